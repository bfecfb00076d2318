#!/usr/bin/env bash
# Builds the image twice, from two clones of this commit at paths of different length, and compares them: the same commit gives
# the same digest, wherever it is built. Two release builds, so many minutes: not part of CI.
#
#   tests/reproducible.sh        prints both digests; fails if they differ
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

build() {
    mkdir -p "$(dirname "$1")"
    git clone --quiet --no-hardlinks . "$1"
    # Each with a target folder of its own, or the second would be the first.
    (cd "$1" && env -u CARGO_TARGET_DIR make --no-print-directory image) >"$1.log" 2>&1 || {
        tail -n 20 "$1.log" >&2
        exit 1
    }
    sed -n 's/.*\(sha256:[0-9a-f]*\)$/\1/p' "$1.log" | tail -n 1
}

one=$(build "$work/one")
echo "$one  $work/one"
other=$(build "$work/another-place/with-a-longer-path")
echo "$other  $work/another-place/with-a-longer-path"
[ -n "$one" ] && [ "$one" = "$other" ]
