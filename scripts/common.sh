# Shared by ./run, ./test and bench/: Debian packages and builds. Source it from the project's root.

# What it takes to build, and the two stores that millrace starts for itself. redis-tools and
# mariadb-server-core hold the server programs without installing a system service; what sets up a
# new MariaDB needs my_print_defaults of mariadb-client-core.
PACKAGES_BUILD="gcc libc6-dev make pkg-config meson ninja-build libevent-dev libmariadb-dev"
PACKAGES_BUILD="$PACKAGES_BUILD libssl-dev libnghttp2-dev libzstd-dev"
PACKAGES_BUILD="$PACKAGES_BUILD libcrypt-dev libunistring-dev zlib1g-dev"
PACKAGES_RUN="redis-tools mariadb-server-core mariadb-client-core ca-certificates"
# pdftotext, and its tables of Chinese, Japanese and Korean characters.
PACKAGES_RUN="$PACKAGES_RUN poppler-utils poppler-data"
# The pages are built by Node, 18 as Debian has it or later.
PACKAGES_WEB="nodejs npm"
PACKAGES_BROWSER="chromium fonts-noto-cjk"
PACKAGES_TEST="clang libclang-rt-14-dev clang-format-14 python3 openssl curl procps nodejs"
PACKAGES_TEST="$PACKAGES_TEST liblua5.1-0-dev bibutils python3-pybtex"
# Networks of machines, and clocks that do not agree.
PACKAGES_TEST="$PACKAGES_TEST iproute2 nftables libfaketime"
# For a Debian in a folder, in which the package is tried in the sandbox of its unit.
PACKAGES_SYSTEM="debootstrap lintian systemd python3-seccomp"

# How the program that people run is built; ./test has its own options.
PRODUCT_OPTIONS="-Db_lto=true"

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

# Prints those of the named packages that are not installed. A `node` or `npm` from elsewhere is as
# good.
missing_packages() {
    local installed
    installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "$@" 2>/dev/null)
    local name
    for name in "$@"; do
        [ "$name" = nodejs ] && command -v node >/dev/null && continue
        [ "$name" = npm ] && command -v npm >/dev/null && continue
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

# build DIR [meson options]: configures once, and when the options are others than before; then
# compiles what changed: all of it, or BUILD_TARGET alone.
build() {
    local dir=$1 again=
    shift
    [ ! -f "$dir/build.ninja" ] || again=--reconfigure
    if [ ! "$again" ] || [ "$(cat "$dir/.options" 2>/dev/null)" != "$*" ]; then
        say "configuring $dir"
        meson setup $again "$dir" "$@" >"$dir.log" 2>&1 ||
            { cat "$dir.log" >&2; die "meson failed"; }
        rm -f "$dir.log"
        printf '%s\n' "$*" >"$dir/.options"
    fi
    ninja -C "$dir" --quiet ${BUILD_TARGET:-} >"$dir/ninja.log" ||
        { cat "$dir/ninja.log" >&2; die "the build failed"; }
}

# node_modules DIR: what its package-lock.json names, fetched once.
node_modules() {
    local stamp="$1/node_modules/.stamp" lock
    lock=$(sha256sum <"$1/package-lock.json")
    [ "$(cat "$stamp" 2>/dev/null)" = "$lock" ] && return 0
    say "fetching the packages of $1"
    (cd "$1" && npm ci --no-audit --no-fund --loglevel=error >&2) && echo "$lock" >"$stamp"
}

# build_pages: web/dist, when something in web/ has changed since. Fails with a message and leaves
# the old pages, if there are any.
build_pages() {
    local stamp=web/dist/.stamp now
    now=$(find web \( -path web/node_modules -o -path web/dist \) -prune -o -type f -print0 |
        sort -z | xargs -0 sha256sum | sha256sum)
    [ "$(cat "$stamp" 2>/dev/null)" = "$now" ] && return 0
    node_modules web || {
        say "the packages of the pages could not be fetched; is the npm registry within reach?"
        return 1
    }
    say "building the pages"
    (cd web && npm run --silent build) >web/node_modules/.build.log 2>&1 ||
        { cat web/node_modules/.build.log >&2; say "the pages could not be built"; return 1; }
    echo "$now" >"$stamp"
}

# unpack_foreign ARCHITECTURE DIR PACKAGES: unpacks packages of another architecture, once. apt gets
# lists and a cache of its own there, and the mirrors of this machine.
unpack_foreign() {
    local architecture=$1 dir=$2
    shift 2
    [ -f "$dir/.unpacked" ] && return 0
    mkdir -p "$dir/apt/lists/partial" "$dir/apt/cache/archives/partial"
    dir=$(cd "$dir" && pwd)
    local options="-o APT::Architecture=$architecture -o APT::Architectures=$architecture"
    options="$options -o Dir::State=$dir/apt -o Dir::State::status=/dev/null"
    options="$options -o Dir::Cache=$dir/apt/cache -o APT::Sandbox::User= -qq"
    say "fetching packages for $architecture: $*"
    # shellcheck disable=SC2086
    (cd "$dir/apt" && apt-get $options update && apt-get $options download "$@") >&2 ||
        die "apt-get could not fetch: $*"
    local package
    for package in "$dir"/apt/*.deb; do
        dpkg-deb -x "$package" "$dir"
    done
    rm -r "$dir/apt"
    touch "$dir/.unpacked"
}
