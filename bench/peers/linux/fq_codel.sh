#!/usr/bin/env bash
# One download, with and without others beside it, over the queue disciplines of Debian's stock kernel, in qemu's software
# emulation. Usage: fq_codel.sh OUTPUT-FOLDER [CASE...]. Needs what guest.sh needs, iproute2 and ethtool.
set -euo pipefail
cd "$(dirname "$0")/../../.."
folder=$(realpath "$1")
shift
python=$(python3 -c 'import sys; print(sys.executable)')
bench/peers/linux/guest.sh "$folder" 'veth sch_tbf sch_netem sch_codel sch_fq_codel sch_pie sch_fq_pie sch_cake sch_sfq' \
    "$python" bench/peers/linux/fq_codel.py "$folder" "$@"
