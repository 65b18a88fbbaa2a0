#!/usr/bin/env bash
# Records transfers of this machine's kernel anew and holds the profile `linux` to them (root, /dev/net/tun, ip, python3).
set -u
cd "$(dirname "$0")/../.." || exit 1
if [ "$(id -u)" != 0 ] || [ ! -e /dev/net/tun ] || ! command -v ip >/dev/null 2>&1; then
    echo "skipped: needs root, /dev/net/tun and the program ip"
    exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 bench/peers/linux/record.py "$folder" || exit 1
FLEETFOOT_LINUX_RECORDS=$folder cargo test --quiet --locked --package fleetfoot-core --test linux
