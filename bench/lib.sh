# Shared by the benchmarks: source it from the project's root. Everything runs on loopback or unix
# sockets, under var/bench, and is ended by its pid when the script ends.
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
    python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'
}

# bench_certificate FILE: makes FILE.crt and FILE.key, for 127.0.0.1; ECDSA P-256.
bench_certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=bench -days 2 \
        -addext subjectAltName=IP:127.0.0.1 -out "$1.crt" -keyout "$1.key" 2>/dev/null ||
        die "openssl could not make a certificate"
}

median() { printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"; }

# The program of a Debian package, without installing it: no service is set up on this machine.
# bench_unpacked PACKAGE PATH prints where it is.
bench_unpacked() {
    local package=$1 path=$2 dir=$BENCH_DIR/unpacked
    if [ ! -x "$dir$path" ]; then
        mkdir -p "$dir"
        (cd "$dir" && apt-get download -qq "$package" >&2 2>/dev/null &&
            dpkg-deb -x "$package"_*.deb .) ||
            die "cannot fetch the Debian package $package"
    fi
    printf '%s\n' "$PWD/$dir$path"
}

# bench_nginx FOLDER PORT LOCATIONS: one worker, with its files in FOLDER.
bench_nginx() {
    local dir=$1 port=$2 locations=$3 program
    program=$(bench_unpacked nginx /usr/sbin/nginx)
    cat >"$dir/nginx.conf" <<TXT
daemon off;
worker_processes 1;
pid nginx.pid;
error_log stderr crit;
events { worker_connections 1024; }
http {
    access_log off;
    sendfile on;
    keepalive_requests 100000000;
    open_file_cache max=100;
    client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3;
    uwsgi_temp_path t4; scgi_temp_path t5;
    server {
        listen 127.0.0.1:$port;
        $locations
    }
}
TXT
    bench_start "$dir/nginx.log" "$program" -p "$dir" -c nginx.conf -e stderr
}

# Where PostgreSQL's programs are: an installed one's, or those of the Debian package, unpacked.
bench_postgres() {
    local found
    found=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -1)
    if [ -z "$found" ]; then
        need_packages libpq5 libllvm14 libxml2 libxslt1.1 libldap-2.5-0 libgssapi-krb5-2
        found=$(dirname "$(bench_unpacked postgresql-15 /usr/lib/postgresql/15/bin/postgres)")
    fi
    printf '%s\n' "$found"
}

# What bench/peers/corpus needs, in $BENCH_DIR/corpus_peers.
corpus_peers() {
    need_packages python3-pybtex python3-bibtexparser python3-redis
    command -v npm >/dev/null || die "npm is needed for @retorquere/bibtex-parser"
    mkdir -p "$BENCH_DIR/corpus_peers"
    cp bench/peers/corpus/* "$BENCH_DIR/corpus_peers"
    node_modules "$BENCH_DIR/corpus_peers" ||
        die "the packages of the peers could not be fetched; is the npm registry within reach?"
}

# For bench/run: bench_figure NAME UNIT GOAL VALUE…; bench/figures.py tells what they mean.
bench_figure() {
    local name=$1 unit=$2 goal=$3 values
    shift 3
    [ -n "${BENCH_JSON:-}" ] || return 0
    values=$(printf ', %s' "$@")
    printf '{"name": "%s", "unit": "%s", "values": [%s], "goal": "%s"}\n' \
        "$name" "$unit" "${values#, }" "$goal" >>"$BENCH_JSON"
}

# … | bench_kept BENCH FIELD=UNIT=GOAL…: passes a line of JSON on, and keeps these fields of it for
# bench/run.
bench_kept() {
    python3 -c '
import json, os, sys
sys.path.insert(0, "bench")
from figures import figure
line = sys.stdin.readline()
print(line, end="")
found = json.loads(line)
for word in sys.argv[2:]:
    path, unit, goal = word.split("=", 2)
    value = found
    for name in path.split("."):
        value = value[name]
    figure(f"{sys.argv[1]}/{path}/millrace", unit, [value], goal)
' "$@"
}

rss_kb() { awk '/^VmRSS/ {print $2}' "/proc/$1/status"; }
cpu_ticks() { awk '{print $14 + $15}' "/proc/$1/stat"; }
