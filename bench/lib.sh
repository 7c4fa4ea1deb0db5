# Shared by the benchmarks: source it from the project's root. Everything runs on loopback or unix sockets, under
# var/bench, and is ended by its pid when the script ends.
. scripts/common.sh

BENCH_DIR=var/bench
BENCH_PIDS=()
BENCH_TMP=()
mkdir -p "$BENCH_DIR"
trap bench_end EXIT

bench_end() {
    [ ${#BENCH_PIDS[@]} -eq 0 ] || kill "${BENCH_PIDS[@]}" 2>/dev/null || true
    wait 2>/dev/null || true
    [ ${#BENCH_TMP[@]} -eq 0 ] || rm -rf "${BENCH_TMP[@]}"
}

bench_build() {
    need_packages $PACKAGES_BUILD $PACKAGES_RUN "$@"
    BUILD_TARGET=millrace build build $PRODUCT_OPTIONS
}

# bench_program NAME: builds bench/NAME.c and prints where the program is.
bench_program() {
    ninja -C build --quiet "bench/bench_$1" >build/ninja.log ||
        { cat build/ninja.log >&2; die "bench/$1.c does not build"; }
    printf '%s\n' "build/bench/bench_$1"
}

# bench_start LOG COMMAND…: in the background, ended with the script. Sets BENCH_PID.
bench_start() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 &
    BENCH_PID=$!
    BENCH_PIDS+=("$BENCH_PID")
}

bench_wait_for() { # COMMAND…: until it succeeds, 10 s at most
    local i
    for i in $(seq 100); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.1
    done
    die "not ready after 10 s: $*"
}

# A private Redis as millrace runs it: unix socket, AOF every second. Sets REDIS_SOCKET.
bench_redis() {
    local dir
    dir=$(mktemp -d /tmp/millrace-bench.XXXXXX)
    BENCH_TMP+=("$dir")
    ln -sf "$(command -v redis-check-rdb)" "$dir/redis-server"
    REDIS_SOCKET=$dir/redis.sock
    bench_start "$dir/log" "$dir/redis-server" --port 0 --unixsocket "$REDIS_SOCKET" --dir "$dir" \
        --appendonly yes --appendfsync everysec --save ''
    bench_wait_for redis-cli -s "$REDIS_SOCKET" ping
    export REDIS_SOCKET
}

bench_free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

median() { printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"; }

# The program of a Debian package, without installing it: no service is set up on this machine.
# bench_unpacked PACKAGE PATH prints where it is.
bench_unpacked() {
    local package=$1 path=$2 dir=$BENCH_DIR/unpacked
    if [ ! -x "$dir$path" ]; then
        mkdir -p "$dir"
        (cd "$dir" && apt-get download -qq "$package" >&2 2>/dev/null && dpkg-deb -x "$package"_*.deb .) ||
            die "cannot fetch the Debian package $package"
    fi
    printf '%s\n' "$PWD/$dir$path"
}

rss_kb() { awk '/^VmRSS/ {print $2}' "/proc/$1/status"; }
cpu_ticks() { awk '{print $14 + $15}' "/proc/$1/stat"; }
