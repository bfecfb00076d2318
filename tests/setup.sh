#!/usr/bin/env bash
# Checks that this machine can build and test Berth, and installs what is missing with apt when run as
# root. Quick and silent when all is there; safe to run any number of times.
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

check_rust() {
    local wanted found
    wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
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
    printf 'setup: installing %s\n' "${missing[*]}"
    apt-get -qq update
    DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes --no-install-recommends "${missing[@]}"
}

check_rust
install_packages
