#!/usr/bin/env bash
# Runs a command under Debian's stock kernel in qemu's software emulation, for what this machine's kernel lacks (modules).
#
#     bench/peers/linux/guest.sh OUTPUT-FOLDER 'MODULES' COMMAND [ARGUMENT...]
#
# The guest sees this machine's files read-only, OUTPUT-FOLDER writable at the same path, and the modules in /run/modules. Its clock counts instructions
# (icount), so that the load of this machine does not disturb what it measures, and waiting takes no time.
# Needs Debian packages: qemu-system-x86 busybox-static kmod cpio; fetches linux-image (70 MB) once into the cache folder.
set -euo pipefail
output=$(realpath "$1") modules=$2
shift 2
cache=${XDG_CACHE_HOME:-$HOME/.cache}/fleetfoot/guest
export PATH=$PATH:/usr/sbin:/sbin
for program in qemu-system-x86_64 busybox modprobe depmod cpio dpkg-deb; do
    command -v "$program" >/dev/null || { echo "$program is missing: apt-get install qemu-system-x86 busybox-static kmod cpio" >&2; exit 2; }
done
if [ ! -e "$cache/ready" ]; then
    mkdir -p "$cache"
    package=$(apt-cache search --names-only '^linux-image-6\.1\.0-[0-9]+-amd64$' | sort -V | tail -1 | cut -d' ' -f1)
    [ -n "$package" ] || { echo "no package linux-image-6.1.0-*-amd64 here" >&2; exit 2; }
    (cd "$cache" && apt-get download "$package" >&2 && dpkg-deb -x linux-image-*.deb root && rm -f linux-image-*.deb)
    depmod -b "$cache/root" "$(ls "$cache/root/lib/modules")"
    touch "$cache/ready"
fi
kernel=$(ls "$cache/root/lib/modules")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/tree/bin" "$work/tree/modules" "$work/tree/proc" "$work/tree/sys" "$work/tree/dev" "$work/tree/host"
cp "$(command -v busybox)" "$work/tree/bin/busybox"
for module in virtio_pci 9pnet_virtio 9p $modules; do
    modprobe -d "$cache/root" -S "$kernel" --show-depends "$module" | awk '/^insmod/ {print $2}'
done | awk '!seen[$0]++' >"$work/modules"
: >"$work/tree/load"
while read -r file; do
    cp "$file" "$work/tree/modules/"
    echo "insmod /modules/$(basename "$file")" >>"$work/tree/load"
done <"$work/modules"
{
    printf 'cd %q\n' "$PWD"
    printf 'export PATH=%q HOME=/tmp\n' "$PATH"
    printf '%q ' "$@"
    echo
} >"$output/.command"
cat >"$work/tree/init" <<END
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc none /proc; mount -t sysfs none /sys; mount -t devtmpfs none /dev
. /load
mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288,cache=loose,ro host /host
mount -t 9p -o trans=virtio,version=9p2000.L,msize=524288 out /host$output
mount -t proc none /host/proc; mount -t sysfs none /host/sys; mount -t devtmpfs none /host/dev
mount -t tmpfs none /host/run; cp -r /modules /host/run/modules
ip link set lo up
chroot /host /bin/bash $output/.command </dev/null
echo "guest status \$?"
poweroff -f
END
chmod +x "$work/tree/init"
(cd "$work/tree" && find . | cpio -o -H newc 2>/dev/null | gzip -1) >"$work/initrd"
qemu-system-x86_64 -M pc -cpu max -m 1024 -display none -no-reboot -nic none -serial file:"$work/console" \
    -icount shift=1,sleep=off -rtc clock=vm \
    -kernel "$cache/root/boot/vmlinuz-$kernel" -initrd "$work/initrd" -append "console=ttyS0 quiet panic=-1 random.trust_cpu=on" \
    -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
    -virtfs local,path="$output",mount_tag=out,security_model=none
rm -f "$output/.command"
tr -d '\r' <"$work/console" | sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g'
tr -d '\r' <"$work/console" | grep -q '^guest status 0$'
