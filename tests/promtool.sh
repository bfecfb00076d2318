#!/usr/bin/env bash
# Finds the promtool with which tests of deploy evaluate alerts and dashboard, and fetches it once where there is none. Prints its
# path, and says on stderr what takes time or goes wrong.
#
# Looked for in PATH, and in ~/.cache/berth. Fetched is Debian's package, unpacked there by its
# version and not installed: no Prometheus is started on this machine.
set -euo pipefail
cache=${XDG_CACHE_HOME:-$HOME/.cache}/berth

fail() {
    printf 'promtool: %s\n' "$@" >&2
    exit 1
}

fetch() {
    work=$(mktemp -d "$folder.new.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    printf 'promtool: fetching prometheus %s\n' "$version" >&2
    # apt's own user must be able to write here, or apt complains.
    chmod 755 "$work"
    (cd "$work" && apt-get -qq download prometheus 2>&1 | { grep -v 'unsandboxed as root' || true; }) >&2
    mkdir "$work/root" "$work/kept"
    dpkg -x "$work"/*.deb "$work/root"
    mv "$work/root/usr/bin/promtool" "$work/kept/promtool"
    "$work/kept/promtool" --version >/dev/null 2>&1 || fail "Debian's promtool doesn't run here"
    mv "$work/kept" "$folder"
}

place=$(command -v promtool) && echo "$place" && exit
command -v apt-cache >/dev/null || fail "there is no promtool in PATH, and no apt to fetch it with; install Prometheus' tools"
version=$(apt-cache policy prometheus | sed -n 's/^ *Candidate: \([^ ]*[0-9][^ ]*\)$/\1/p')
[ -n "$version" ] || fail "apt knows no prometheus; update its lists with: apt-get update"
folder=$cache/promtool-${version//[:~]/_}
mkdir -p "$cache"
exec 9>"$cache/promtool.lock"
flock 9
[ -d "$folder" ] || fetch
echo "$folder/promtool"
