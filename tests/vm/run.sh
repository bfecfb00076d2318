#!/usr/bin/env bash
# Runs a program as root in a QEMU guest with Debian's kernel, for what this machine's kernel lacks.
#
#   tests/vm/run.sh FILE... -- COMMAND
#
# The files are in the guest's /tests, with the libraries they need; COMMAND is a line for its shell. Prints what it
# printed; exits 0 only if the guest came to its end and the command exited 0. Kernel and base image are made once and
# kept in ~/.cache/berth, by the kernel's version. No network, no disk, emulated: about ten seconds for nothing.
set -euo pipefail

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/berth/vm
LIMIT=${LIMIT:-1500}
MEMORY=${MEMORY:-1024}
MODULES="bonding 8021q dummy vrf veth macvlan bridge vxlan"
HERE=$(realpath "$(dirname "$0")")

fail() {
    printf 'vm: %s\n' "$@" >&2
    exit 1
}

files=()
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    files+=("$(realpath "$1")")
    shift
done
[ "${1:-}" = -- ] && [ $# -eq 2 ] || fail "usage: run.sh FILE... -- COMMAND"
command=$2

# The libraries of a program, one per line; none for a script or a static one.
libraries() {
    { ldd "$1" 2>/dev/null || true; } | grep -o '/[^ ]*\.so[^ ]*' || true
}

# Copies programs to a folder of an image, with their libraries where they look for them.
install_programs() {
    local root=$1 folder=$2 program library
    shift 2
    mkdir -p "$root/$folder"
    for program in "$@"; do
        cp "$program" "$root/$folder/"
        for library in $(libraries "$program"); do
            mkdir -p "$root$(dirname "$library")"
            cp -L "$library" "$root$library"
        done
    done
}

archive() {
    (cd "$1" && find . -print0 | cpio --null --create --format=newc --quiet)
}

# Debian's kernel for clouds: small, and it has every kind of link.
fetch_kernel() {
    local package=$1 folder=$2
    rm -rf "$folder.new"
    mkdir -p "$folder.new"
    (cd "$folder.new" && apt-get -qq -o APT::Sandbox::User=root download "$package" && dpkg-deb --extract ./*.deb . && rm ./*.deb)
    [ -d "$folder.new/lib/modules" ] || mv "$folder.new/usr/lib" "$folder.new/lib"
    depmod --basedir "$folder.new" "${package#linux-image-}"
    rm -rf "$folder"
    mv "$folder.new" "$folder"
}

# A shell, ip, and the modules with all that they need.
make_base() {
    local kernel=$1 release=$2 image=$3 root module file
    local modules=lib/modules/$release
    root=$(mktemp -d)
    mkdir -p "$root"/{bin,sbin,proc,sys,dev,tmp,run,etc/modprobe.d,var,"$modules"}
    ln -s /run "$root/var/run"
    cp "$(command -v busybox)" "$root/bin/busybox"
    for module in $(busybox --list | grep -vx busybox); do
        ln -sf busybox "$root/bin/$module"
    done
    rm -f "$root/bin/ip"
    ln -s ../bin/busybox "$root/sbin/modprobe"
    install_programs "$root" bin "$(command -v ip)" "$(command -v bridge)"
    for module in $MODULES; do
        sed -n "s|^\(.*/$module\.ko[^:]*\): *|\1 |p" "$kernel/$modules/modules.dep"
    done | tr ' ' '\n' | sort -u | while read -r file; do
        [ -n "$file" ] || continue
        mkdir -p "$root/$modules/$(dirname "$file")"
        cp "$kernel/$modules/$file" "$root/$modules/$file"
    done
    cp "$kernel/$modules"/modules.{builtin,builtin.modinfo,order} "$root/$modules/"
    depmod --basedir "$root" "$release"
    # Loading them is not to make links by itself.
    printf 'options bonding max_bonds=0\noptions dummy numdummies=0\n' > "$root/etc/modprobe.d/berth.conf"
    printf '%s\n' "$MODULES" > "$root/etc/modules"
    cp "$HERE/init" "$root/init"
    archive "$root" > "$image.new"
    mv "$image.new" "$image"
    rm -rf "$root"
}

for tool in qemu-system-x86_64 busybox cpio depmod apt-get; do
    command -v "$tool" >/dev/null || fail "$tool is not installed; run tests/setup.sh"
done
package=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends: linux-image-[0-9]/ { print $2; exit }')
[ -n "$package" ] || fail "Debian's package lists know no linux-image-cloud-amd64; run apt-get update"
release=${package#linux-image-}
kernel=$CACHE/$release
image=$CACHE/$release-$(cat "$HERE/run.sh" "$HERE/init" | sha256sum | cut -c 1-12).cpio
mkdir -p "$CACHE"
exec 9> "$CACHE/lock"
flock 9
[ -d "$kernel" ] || fetch_kernel "$package" "$kernel"
[ -e "$image" ] || make_base "$kernel" "$release" "$image"
flock -u 9

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/root/tests"
install_programs "$work/root" tests "${files[@]}"
printf '%s\n' "$command" > "$work/root/tests/.command"
{ cat "$image"; archive "$work/root"; } > "$work/initrd"
timeout --kill-after=5 "$LIMIT" qemu-system-x86_64 \
    -machine microvm,acpi=off,pit=on,pic=on,rtc=on,auto-kernel-cmdline=off -accel tcg,thread=multi -cpu max \
    -smp 2 -m "$MEMORY" -nodefaults -no-user-config -display none -no-reboot -net none \
    -serial "file:$work/console" -kernel "$kernel/boot/vmlinuz-$release" -initrd "$work/initrd" \
    -append "console=ttyS0 quiet panic=-1 no_timer_check tsc=reliable reboot=t" </dev/null ||
    printf 'vm: qemu ended with %d\n' "$?" >&2
tr -d '\r' < "$work/console"
grep -q '^VM-END 0$' <(tr -d '\r' < "$work/console")
