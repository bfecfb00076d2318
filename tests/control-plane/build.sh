#!/usr/bin/env bash
# Finds the control plane that tests run against, and builds once what is not there. Prints four lines, each a name
# and a path: etcd, kube-apiserver, kube-controller-manager, kubectl. Says on stderr what takes time or goes wrong.
# With --nodes also what a cluster with nodes takes: kube-scheduler, kubelet.
# With --find nothing is built: it fails where something is missing.
#
# Looked for in KUBEBUILDER_ASSETS, in PATH, and in ~/.cache/berth/kubernetes-<version>, in that order. Of the first
# two only what is the same minor version as go.mod has, and not a vendor's: tests compare messages word by word.
# Built from Go modules, pinned by go.mod and go.sum. etcd too, in the version that this Kubernetes is made for: with
# one that is too old (Debian's 3.4.23) the API server can't do all it should, watches with initial events for one.
set -euo pipefail
here=$(realpath "$(dirname "$0")")

version=$(sed -n 's|^\tk8s.io/kubernetes ||p' "$here/go.mod")
minor=${version%.*}
wanted_go=$(sed -n 's/^go \([0-9.]*\)$/\1/p' "$here/go.mod")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/berth
folder=$cache/kubernetes-$version

say() {
    printf 'control-plane: %s\n' "$@" >&2
}

fail() {
    say "$@"
    exit 1
}

# Is version $1 at least version $2?
at_least() {
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

# Is the program at $2 what $1 names, in a version that the tests are for?
is_real() {
    case $1 in
    etcd) [[ $("$2" --version 2>/dev/null) =~ ^"etcd Version: 3."([6-9]|[1-9][0-9]) ]] ;;
    kubectl) [[ $("$2" version --client 2>/dev/null) =~ "Client Version: $minor."[0-9]+$'\n' ]] ;;
    *) [[ $("$2" --version 2>/dev/null) =~ ^"Kubernetes $minor."[0-9]+$ ]] ;;
    esac
}

# Where the program $1 is, if it is somewhere.
find_program() {
    local place
    if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$1" ]; then
        is_real "$1" "$KUBEBUILDER_ASSETS/$1" && echo "$KUBEBUILDER_ASSETS/$1" && return
        say "$KUBEBUILDER_ASSETS/$1 is not used: tests are for $minor"
    fi
    place=$(command -v "$1") && is_real "$1" "$place" && echo "$place" && return
    [ -x "$folder/$1" ] && echo "$folder/$1"
}

# A Go that can build this one's go.mod: since 1.21 Go fetches the toolchain that a go.mod asks for. An older one
# can fetch it too, as a module, if it is told how.
find_go() {
    local found
    command -v go >/dev/null || fail \
        "Go is not installed; kube-apiserver $version is built with Go $wanted_go." \
        "Install any Go from 1.21 on (https://go.dev/dl; on Debian, as root, tests/setup.sh --tests installs it)," \
        "or set KUBEBUILDER_ASSETS to a folder with etcd, kube-apiserver, kube-controller-manager and kubectl $minor."
    found=$(go env GOVERSION)
    if at_least "${found#go}" 1.21; then
        echo go
    else
        fetch_go
    fi
}

fetch_go() {
    local toolchain=$cache/go-$wanted_go module
    if [ ! -d "$toolchain" ]; then
        say "$(go env GOVERSION) is too old; fetching Go $wanted_go into $toolchain"
        module=$(cd "$work" && go mod download -json "golang.org/toolchain@v0.0.1-go$wanted_go.$(go env GOOS)-$(go env GOARCH)" |
            sed -n 's/^\t"Dir": "\(.*\)",\?$/\1/p')
        [ -n "$module" ] || fail "Go $wanted_go could not be fetched; install it from https://go.dev/dl"
        # Modules are kept read-only and without executables.
        cp -r "$module" "$work/go"
        chmod -R u+w "$work/go"
        find "$work/go/bin" "$work/go/pkg/tool" -type f -exec chmod +x {} +
        mv "$work/go" "$toolchain"
    fi
    echo "$toolchain/bin/go"
}

# All at once: one go compiles what several have in common once, and one is linked while another is compiled. Without what only a
# debugger reads, and with less care for memory, that takes a sixth less.
build() {
    local go began=$SECONDS name made packages=()
    local stamp=k8s.io/component-base/version
    go=$(find_go)
    say "building $* for Kubernetes $version, once: many minutes on few cores"
    for name in "$@"; do
        packages+=("$(package "$name")")
    done
    mkdir "$work/bin"
    # Without the version Kubernetes calls itself v0.0.0-master.
    (cd "$here" && GOGC=400 CGO_ENABLED=0 "$go" build -mod=readonly -trimpath -buildvcs=false -gcflags=all=-dwarf=false \
        -o "$work/bin/" -ldflags "-s -w \
        -X $stamp.gitVersion=$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=${minor#v1.}" "${packages[@]}" >&2)
    mkdir -p "$folder"
    for name in "$@"; do
        # Go names a program after the last part of its package's path that is not a version.
        made=$(package "$name")
        made=${made%/v3}
        mv "$work/bin/${made##*/}" "$folder/$name"
    done
    say "kept in $folder, after $((SECONDS - began)) s"
}

package() {
    case $1 in
    etcd) echo go.etcd.io/etcd/server/v3 ;;
    *) echo "k8s.io/kubernetes/cmd/$1" ;;
    esac
}

programs=(etcd kube-apiserver kube-controller-manager kubectl)
may_build=yes
for option in "$@"; do
    case $option in
    --nodes) programs+=(kube-scheduler kubelet) ;;
    --find) may_build=no ;;
    *) fail "usage: build.sh [--nodes] [--find]" ;;
    esac
done
declare -A paths
look() {
    local name
    missing=()
    for name in "${programs[@]}"; do
        paths[$name]=$(find_program "$name") || missing+=("$name")
    done
}

main() {
    local name
    look 2>/dev/null
    if [ "${#missing[@]}" -gt 0 ] && [ "$may_build" = yes ]; then
        mkdir -p "$cache"
        # Two must not build at once; the second finds what the first built. What is half done lies beside, and a
        # later run removes what a killed one left.
        exec 9>"$folder.lock"
        flock --nonblock 9 || { say "another one builds; waiting for it" && flock 9; }
        look
        rm -rf "$folder".new.*
        work=$(mktemp -d "$folder.new.XXXXXX")
        trap 'rm -rf "$work"' EXIT
        [ "${#missing[@]}" -eq 0 ] || build "${missing[@]}"
        look
    fi
    [ "${#missing[@]}" -eq 0 ] || fail "these are missing: ${missing[*]}"
    for name in "${programs[@]}"; do
        printf '%s %s\n' "$name" "${paths[$name]}"
    done
}

main
exit
