#!/usr/bin/env bash
# Finds the helm that tests of deploy/chart run, and builds it once where there is none. Prints its path, and says on stderr what
# takes time or goes wrong. With --find nothing is built: it fails where there is none.
#
# Looked for in PATH (any of version 3), and in ~/.cache/berth/helm-<version>. Built from Go modules, pinned by go.mod and go.sum.
set -euo pipefail
here=$(realpath "$(dirname "$0")")

version=$(sed -n 's|^require helm.sh/helm/v3 ||p' "$here/go.mod")
minor=$(sed -n 's|^\tk8s.io/client-go v0\.\([0-9]*\)\..*|\1|p' "$here/go.mod")
cache=${XDG_CACHE_HOME:-$HOME/.cache}/berth
program=$cache/helm-$version/helm

fail() {
    printf 'helm: %s\n' "$@" >&2
    exit 1
}

find_helm() {
    local place
    place=$(command -v helm) && [[ $("$place" version --short 2>/dev/null) =~ ^v3\. ]] && echo "$place" && return
    [ -x "$program" ] && echo "$program"
}

# Since 1.21 Go fetches the toolchain that a go.mod asks for; where it is older, tests/control-plane/build.sh has fetched one.
find_go() {
    local go
    for go in go "$cache"/go-*/bin/go; do
        [[ $("$go" env GOVERSION 2>/dev/null) =~ ^go1\.(2[1-9]|[3-9][0-9]) ]] && echo "$go" && return
    done
    fail "there is no Go from 1.21 on, with which helm $version could be built; install it (https://go.dev/dl), or helm 3"
}

main() {
    local go
    find_helm && return
    [ "${1:-}" != --find ] || fail "there is no helm 3 in PATH, and none at $program"
    mkdir -p "$cache"
    # Two must not build at once; the second finds what the first built.
    exec 9>"$cache/helm.lock"
    flock 9
    find_helm && return
    go=$(find_go)
    printf 'helm: building %s, once: some minutes on few cores\n' "$version" >&2
    mkdir -p "${program%/*}"
    # As ../control-plane/build.sh has it, for what both are made of. Without the last it takes every cluster that it isn't
    # connected to for Kubernetes 1.20.
    (cd "$here" && GOGC=400 CGO_ENABLED=0 "$go" build -mod=readonly -trimpath -buildvcs=false -gcflags=all=-dwarf=false -o "$program.new" \
        -ldflags "-s -w -X helm.sh/helm/v3/internal/version.version=$version \
        -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMajor=1 -X helm.sh/helm/v3/pkg/chartutil.k8sVersionMinor=$minor" helm.sh/helm/v3/cmd/helm >&2)
    mv "$program.new" "$program"
    echo "$program"
}

main "$@"
exit
