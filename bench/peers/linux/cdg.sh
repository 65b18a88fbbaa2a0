#!/usr/bin/env bash
# Records tcp_cdg of Debian's stock kernel, in qemu's software emulation, and holds `cdg` to the record; about two minutes.
# With a folder as argument the records stay there (specs/linux-6.1-cdg is one such folder).
set -euo pipefail
cd "$(dirname "$0")/../../.."
folder=${1:-}
if [ -z "$folder" ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
fi
mkdir -p "$folder"
python=$(python3 -c 'import sys; print(sys.executable)')
bench/peers/linux/guest.sh "$folder" 'tcp_cdg tun' "$python" bench/peers/linux/cdg.py "$(realpath "$folder")"
FLEETFOOT_CDG_RECORDS=$(realpath "$folder") cargo test --quiet --locked --package fleetfoot-core --test cdg_linux -- --nocapture
