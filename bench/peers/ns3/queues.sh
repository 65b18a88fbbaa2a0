#!/usr/bin/env bash
# Plays the schedules of crates/core/tests/queue_peers through the queue disciplines of ns-3 (Debian package libns3-dev) and
# holds ours to what they did. With a folder as argument the records stay there (specs/ns-3.37 is made so).
set -euo pipefail
cd "$(dirname "$0")/../../.."
if ! command -v g++ >/dev/null || [ ! -e /usr/include/ns3/fq-codel-queue-disc.h ]; then
    echo "skipped: ns-3 is not installed (Debian packages libns3-dev and g++)"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/schedules" "$work/records/ns-3.37"
g++ -O1 -std=c++17 -o "$work/queues" bench/peers/ns3/queues.cc -lns3-traffic-control -lns3-network -lns3-core
FLEETFOOT_QUEUE_SCHEDULES=$work/schedules cargo test --quiet --locked --package fleetfoot-core --test queue_peers schedules_for >/dev/null
for schedule in "$work"/schedules/*.txt; do
    name=$(basename "$schedule")
    printf '%-24s ' "${name%.txt}"
    "$work/queues" "$schedule" 2>&1 >"$work/records/ns-3.37/$name"
done
FLEETFOOT_QUEUE_RECORDS=$work/records cargo test --quiet --locked --package fleetfoot-core --test queue_peers ns_3
if [ -n "${1:-}" ]; then
    mkdir -p "$1"
    cp "$work"/records/ns-3.37/*.txt "$1"
fi
