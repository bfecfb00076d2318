#!/usr/bin/env bash
# Writes a container image of one static program, without a daemon, a registry or a base image:
#
#   deploy/image.sh PROGRAM IMAGE OUT.tar        e.g. target/release/berth localhost/berth:0.1.0 berth.tar
#
# The program is /NAME in the image, its entry point, and all that is in it. The tar is an OCI image layout, which
# 'ctr images import', 'podman load' and 'kind load image-archive' take; the list that older 'docker load's want is in it
# too. The same program gives the same bytes, whoever runs this and when: times are zero, owners root, files sorted.
# Prints what a node has to fetch, and the digest by which it knows the image. Over 15 MB it is refused: every node fetches it, and
# what makes it larger is to be seen when it comes in. COMPRESSION=1 is for those in a hurry, whatever size that is;
# IMAGE_TARGET is what the program was built for, by Rust's name for it, where that is not this machine.
#
# A shell is enough for it: GNU tar, gzip and sha256sum are on every machine that can build the program.
set -euo pipefail
[ $# -eq 3 ] || { echo "usage: image.sh PROGRAM IMAGE OUT.tar" >&2 && exit 2; }
program=$1 image=$2 out=$3 name=$(basename "$1")
export LC_ALL=C

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root" "$work/image/blobs/sha256"

# Files of folder $1, the rest of the arguments, as a tar that tells nothing of this machine.
plain_tar() {
    tar --create --directory "$1" --format=ustar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner "${@:2}"
}

digest() {
    sha256sum "$1" | cut -d ' ' -f 1
}

# Takes a file into the image by its digest; prints what refers to it.
put() {
    local sum
    sum=$(digest "$1")
    printf '"digest":"sha256:%s","size":%s' "$sum" "$(stat --format=%s "$1")"
    mv "$1" "$work/image/blobs/sha256/$sum"
}

# By Go's name for it, which images have.
target=${IMAGE_TARGET:-$(uname -m)}
case ${target%%-*} in
x86_64) architecture=amd64 ;;
aarch64) architecture=arm64 ;;
powerpc64le | ppc64le) architecture=ppc64le ;;
riscv64*) architecture=riscv64 ;;
s390x) architecture=s390x ;;
*) echo "image.sh: no architecture of images is known for $target; add it here" >&2 && exit 2 ;;
esac

install -m 755 "$program" "$work/root/$name"
plain_tar "$work/root" "$name" >"$work/layer"
diff_id=$(digest "$work/layer")
# Without a name and a time in its header.
gzip --no-name "-${COMPRESSION:-9}" <"$work/layer" >"$work/layer.gz"
size=$(stat --format=%s "$work/layer.gz")
megabytes=$((size / 1000000)).$((size / 100000 % 10))
if [ -z "${COMPRESSION:-}" ] && [ "$size" -gt 15000000 ]; then
    echo "image.sh: $image would be $megabytes MB compressed, more than the 15 that it may be" >&2 && exit 1
fi
layer=$(put "$work/layer.gz")

printf '{"architecture":"%s","os":"linux","created":"1970-01-01T00:00:00Z","config":{"Entrypoint":["/%s"],"WorkingDir":"/"},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]},"history":[{"created":"1970-01-01T00:00:00Z","created_by":"deploy/image.sh"}]}' \
    "$architecture" "$name" "$diff_id" >"$work/config"
config=$(put "$work/config")

oci=application/vnd.oci.image
printf '{"schemaVersion":2,"mediaType":"%s.manifest.v1+json","config":{"mediaType":"%s.config.v1+json",%s},"layers":[{"mediaType":"%s.layer.v1.tar+gzip",%s}]}' \
    "$oci" "$oci" "$config" "$oci" "$layer" >"$work/manifest"
manifest_digest=$(digest "$work/manifest")
manifest=$(put "$work/manifest")

printf '{"schemaVersion":2,"mediaType":"%s.index.v1+json","manifests":[{"mediaType":"%s.manifest.v1+json",%s,"platform":{"architecture":"%s","os":"linux"},"annotations":{"io.containerd.image.name":"%s","org.opencontainers.image.ref.name":"%s"}}]}' \
    "$oci" "$oci" "$manifest" "$architecture" "$image" "${image##*:}" >"$work/image/index.json"
printf '{"imageLayoutVersion":"1.0.0"}' >"$work/image/oci-layout"

blob() {
    sed 's|"digest":"sha256:\([0-9a-f]*\)".*|blobs/sha256/\1|' <<<"$1"
}
printf '[{"Config":"%s","RepoTags":["%s"],"Layers":["%s"]}]' \
    "$(blob "$config")" "$image" "$(blob "$layer")" >"$work/image/manifest.json"

chmod -R u=rwX,go=rX "$work/image"
mkdir -p "$(dirname "$out")"
plain_tar "$work/image" blobs index.json manifest.json oci-layout >"$out"
printf '%s: %s, %s MB compressed, sha256:%s\n' "$out" "$image" "$megabytes" "$manifest_digest"
