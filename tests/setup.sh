#!/usr/bin/env bash
# Checks that this machine can build Berth, with --tests also that it can test it, and installs what is missing with
# apt when run as root. Quick and silent when all is there; safe to run any number of times.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    printf 'setup: %s\n' "$@" >&2
    exit 1
}

# Is version $1 at least version $2?
at_least() {
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

# The version of a Debian package that apt would install, without what Debian adds to it; nothing if there is none.
candidate() {
    apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: \([0-9][0-9.]*\).*/\1/p'
}

apt_install() {
    printf 'setup: installing %s\n' "$*"
    DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends "$@"
}

# Where there is no cargo: as root on Debian, rustup with a stable toolchain, or else Debian's own Rust if it is new
# enough. Where neither is to be had, nothing is done.
install_rust() {
    command -v apt-get >/dev/null && [ "$(id -u)" -eq 0 ] || return 0
    apt-get -qq update
    if [ -n "$(candidate rustup)" ]; then
        apt_install rustup
        rustup toolchain install stable --profile minimal -c rustfmt -c clippy
        rustup default stable
    elif [ -n "$(candidate rustc)" ] && at_least "$(candidate rustc)" "$1"; then
        apt_install cargo rustc rustfmt rust-clippy
    fi
}

check_rust() {
    local wanted found
    wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
    command -v cargo >/dev/null || install_rust "$wanted"
    command -v cargo >/dev/null && command -v rustc >/dev/null || fail \
        "cargo is not installed; Berth needs Rust $wanted or newer." \
        "Install it with rustup (https://rustup.rs), then open a new shell and run this again."
    found=$(rustc --version | cut -d ' ' -f 2)
    at_least "${found%%-*}" "$wanted" || fail \
        "Rust $found is too old; Berth needs $wanted or newer." \
        "With rustup: rustup update stable"
    # Not every toolchain comes with these two, and make lint needs both.
    local component
    for component in fmt clippy; do
        cargo "$component" --version >/dev/null 2>&1 || add_component "$component"
    done
}

add_component() {
    local name=${1/fmt/rustfmt}
    command -v rustup >/dev/null || fail "cargo $1 is not installed; add the component $name to your toolchain."
    rustup component add "$name"
}

# The Debian packages that bring what is missing, one per line.
packages() {
    # Rust links with the C compiler, and needs the C library's start files for it.
    command -v cc >/dev/null || printf '%s\n' gcc libc6-dev
    [ "$tests" = yes ] || return 0
    # Tests of the kernel: namespaces and a second pair of eyes, and guests with a distribution's kernel.
    command -v ip >/dev/null && command -v bridge >/dev/null || printf '%s\n' iproute2
    command -v qemu-system-x86_64 >/dev/null || printf '%s\n' qemu-system-x86
    command -v busybox >/dev/null || printf '%s\n' busybox-static
    command -v cpio >/dev/null || printf '%s\n' cpio
    command -v depmod >/dev/null || printf '%s\n' kmod
    # Tests of the service: what systemd thinks of its unit.
    command -v systemd-analyze >/dev/null || printf '%s\n' systemd
    # Tests of the page: a browser, and what drives it.
    command -v chromium >/dev/null || printf '%s\n' chromium
    command -v chromedriver >/dev/null || printf '%s\n' chromium-driver
    # Tests of the API: a control plane, which is built with Go where there is none.
    command -v setpriv >/dev/null && command -v flock >/dev/null || printf '%s\n' util-linux
    command -v go >/dev/null || tests/control-plane/build.sh --find >/dev/null 2>&1 || printf '%s\n' golang-go ca-certificates
    # Tests of the cluster: a request that kubectl doesn't send as it is.
    command -v curl >/dev/null || printf '%s\n' curl
}

install_packages() {
    local missing
    mapfile -t missing < <(packages)
    [ "${#missing[@]}" -gt 0 ] || return 0
    command -v apt-get >/dev/null || fail \
        "these are missing, and there is no apt-get to install them: ${missing[*]}" \
        "Install what your distribution calls them and run this again."
    [ "$(id -u)" -eq 0 ] || fail \
        "these are missing: ${missing[*]}" \
        "Install them with: sudo apt-get install ${missing[*]}"
    apt-get -qq update
    apt_install "${missing[@]}"
}

# The guests' kernel is a package that is fetched, not installed: apt has to know of it.
check_lists() {
    [ "$tests" = yes ] && command -v apt-cache >/dev/null || return 0
    [ -z "$(candidate linux-image-cloud-amd64)" ] || return 0
    [ "$(id -u)" -eq 0 ] || fail "apt knows no linux-image-cloud-amd64; update its lists with: sudo apt-get update"
    apt-get -qq update
}

# Kubernetes and etcd, found or built once; what it prints is for the tests, what it says goes to stderr.
check_control_plane() {
    [ "$tests" = no ] || tests/control-plane/build.sh >/dev/null
}

# Helm, the same way: for the tests of the chart.
check_helm() {
    [ "$tests" = no ] || tests/helm/build.sh >/dev/null
}

# And promtool, for those of the alerts and of the dashboard.
check_promtool() {
    [ "$tests" = no ] || tests/promtool.sh >/dev/null
}

tests=no
[ "${1:-}" != --tests ] || tests=yes
check_rust
install_packages
check_lists
check_control_plane
check_helm
check_promtool
