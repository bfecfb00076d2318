#!/usr/bin/env bash
# Finds what a cluster with nodes is made of, and builds or fetches once what is not there. Prints lines of a name and a
# path: those of ../control-plane/build.sh --nodes, and
#   runtime   a folder with containerd, ctr, containerd-shim-runc-v2 and runc
#   plugins   a folder with the CNI plugins
#   pause     the program that holds a pod's namespaces
# Says on stderr what takes time or goes wrong.
#
# The runtime is Debian's. Its packages are fetched and unpacked into ~/.cache/berth, by version, and not installed:
# nothing of them runs on this machine but inside a test's namespaces.
set -euo pipefail
here=$(realpath "$(dirname "$0")")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/berth
packages=(containerd runc containernetworking-plugins)

fail() {
    printf 'cluster: %s\n' "$@" >&2
    exit 1
}

version() {
    apt-cache policy "$1" | sed -n 's/^ *Candidate: \([^ ]*[0-9][^ ]*\)$/\1/p'
}

fetch() {
    local package
    work=$(mktemp -d "$folder.new.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    printf 'cluster: fetching %s\n' "${packages[*]}" >&2
    mkdir "$work/root"
    # apt's own user must be able to write here, or apt complains.
    chmod 755 "$work"
    (cd "$work" && apt-get -qq download "${packages[@]}" 2>&1 | { grep -v 'unsandboxed as root' || true; }) >&2
    for package in "$work"/*.deb; do
        dpkg -x "$package" "$work/root"
    done
    # Debian has runc where only root looks for programs.
    mv "$work/root/usr/sbin/runc" "$work/root/usr/bin/runc"
    "$work/root/usr/bin/runc" --version >/dev/null || fail "Debian's runc doesn't run here; is libseccomp2 installed?"
    mv "$work/root" "$folder"
}

"$here/../control-plane/build.sh" --nodes

command -v apt-cache >/dev/null || fail "containerd, runc and the CNI plugins come from Debian's packages, and there is no apt"
key=''
for package in "${packages[@]}"; do
    one=$(version "$package")
    [ -n "$one" ] || fail "apt knows no $package; update its lists with: apt-get update"
    key=$key${key:+-}${one//[:~]/_}
done
folder=$cache/runtime-$key
mkdir -p "$cache"
exec 9>"$cache/runtime.lock"
flock 9
[ -d "$folder" ] || fetch
if [ ! "$folder/pause" -nt "$here/pause.c" ]; then
    gcc -static -Os -s -o "$folder/pause.new" "$here/pause.c"
    mv "$folder/pause.new" "$folder/pause"
fi
printf '%s %s\n' runtime "$folder/usr/bin" plugins "$folder/usr/lib/cni" pause "$folder/pause"
