# Shared by ./run, ./test and bench/: Debian packages and builds. Source it from the project's root.

# What it takes to build, and the two stores that millrace starts for itself. redis-tools and
# mariadb-server-core hold the server programs without installing a system service; what sets up a new
# MariaDB needs my_print_defaults of mariadb-client-core.
PACKAGES_BUILD="gcc libc6-dev make pkg-config meson ninja-build libevent-dev libmariadb-dev libcurl4-openssl-dev libzstd-dev libcrypt-dev libunistring-dev"
PACKAGES_RUN="redis-tools mariadb-server-core mariadb-client-core ca-certificates"
PACKAGES_TEST="clang libclang-rt-14-dev clang-format-14 python3 openssl procps nodejs bibutils python3-pybtex"

# How the program that people run is built; ./test has its own options.
PRODUCT_OPTIONS="-Db_lto=true"

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

# Prints those of the named packages that are not installed. A `node` from elsewhere is as good.
missing_packages() {
    local installed
    installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null)
    local name
    for name in "$@"; do
        [ "$name" = nodejs ] && command -v node >/dev/null && continue
        grep -qx "$name installed" <<<"$installed" || printf '%s ' "$name"
    done
}

# Installs what is missing, after saying so.
need_packages() {
    command -v dpkg-query >/dev/null ||
        die "this script installs Debian packages. Elsewhere, install the like of: $*"
    local missing sudo=""
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null ||
            die "please install as root: apt-get install --no-install-recommends $missing"
        sudo="sudo"
    fi
    say "millrace needs these Debian packages and installs them now: $missing"
    # shellcheck disable=SC2086
    $sudo apt-get update -qq >&2 &&
        $sudo env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends $missing >&2 ||
        die "apt-get could not install: $missing"
}

# build DIR [meson options]: configures once, then compiles what changed: all of it, or BUILD_TARGET alone.
build() {
    local dir=$1
    shift
    if [ ! -f "$dir/build.ninja" ]; then
        say "configuring $dir"
        meson setup "$dir" "$@" >"$dir.log" 2>&1 || { cat "$dir.log" >&2; die "meson failed"; }
        rm -f "$dir.log"
    fi
    ninja -C "$dir" --quiet ${BUILD_TARGET:-} >"$dir/ninja.log" || { cat "$dir/ninja.log" >&2; die "the build failed"; }
}
