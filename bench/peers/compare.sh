#!/usr/bin/env bash
# The workloads of ns-2's side-by-side, both programs in turns. Usage: bench/peers/compare.sh [ROUNDS]
set -euo pipefail
cd "$(dirname "$0")/../.."
rounds=${1:-1}
peers=bench/peers
if ! command -v ns >/dev/null; then
    echo "ns-2 is not installed (Debian package ns2): nothing to compare with" >&2
    exit 0
fi
cargo build --release --quiet --locked --package fleetfoot-sim --example peers
ours=target/release/examples/peers
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# value FILE KEY
value() { awk -v key="$2" '$1 == key { print $2 }' "$1"; }

# side_by_side NAME KIND ARGUMENTS... : best (smallest) user time of the rounds on each side.
side_by_side() {
    local name=$1 kind=$2
    shift 2
    local best_ours="" best_ns="" round time
    for ((round = 0; round < rounds; round++)); do
        "$ours" "$kind" "$@" >"$work/ours"
        ns "$peers/ns2-$kind.tcl" "$@" >"$work/ns2"
        time=$(value "$work/ours" user_s)
        best_ours=$(awk -v a="${best_ours:-$time}" -v b="$time" 'BEGIN { print (b < a) ? b : a }')
        time=$(value "$work/ns2" user_s)
        best_ns=$(awk -v a="${best_ns:-$time}" -v b="$time" 'BEGIN { print (b < a) ? b : a }')
    done
    printf '\n%s (%s)\n%-22s %16s %16s %10s\n' "$name" "$*" "" fleetfoot ns-2 ratio
    local key a b
    while read -r key a; do
        b=$(value "$work/ns2" "$key")
        [ -n "$b" ] || continue
        case $key in user_s | system_s | setup_s) continue ;; esac
        awk -v k="$key" -v a="$a" -v b="$b" 'BEGIN { printf "%-22s %16s %16s %10s\n", k, a, b, (b == 0 ? "-" : sprintf("%.3f", a / b)) }'
    done <"$work/ours"
    local ours_packets ns_packets
    ours_packets=$(value "$work/ours" delivered_packets)
    ns_packets=$(value "$work/ns2" delivered_packets)
    awk -v pa="$ours_packets" -v pb="$ns_packets" -v a="$best_ours" -v b="$best_ns" 'BEGIN {
        printf "%-22s %16.3f %16.3f\n", "user_s", a, b
        if (a > 0 && b > 0) printf "%-22s %16.0f %16.0f %10.1f\n", "packets_per_cpu_s", pa / a, pb / b, (pa / a) / (pb / b)
    }'
}

#                            flows access bottleneck RTT queue seconds
side_by_side bench-xlf100m dumbbell 10 12e6 100e6 0.1 833 60
side_by_side bench-many dumbbell 1000 1e9 1e9 0.02 1000 10
# The same without ties between flows (README.md).
side_by_side bench-many-untied dumbbell 1000 0.999e9 1e9 0.02 1000 10
#                           flows packets rate delay queue
side_by_side bench-incast incast 50 100 1e9 25e-6 100
side_by_side bench-incast-untied incast 50 100 1e9 25e-6 100 0.3
