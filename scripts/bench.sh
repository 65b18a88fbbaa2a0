#!/bin/bash
# The workloads of docs/design/engine.md#workloads with both profiles, the cost of each queue's decision, then instructions per delivered packet under callgrind.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --quiet --locked --package fleetfoot-sim --example bench_one --example bench_queues
bench=${CARGO_TARGET_DIR:-target}/release/examples/bench_one
for profile in ns2-sack linux; do
    for name in bench-xlf1g bench-xlf100m bench-10g bench-many bench-100k bench-idle1m bench-incast; do
        "$bench" "$name" "$profile"
    done
done
echo
"${CARGO_TARGET_DIR:-target}/release/examples/bench_queues"
echo
if ! command -v valgrind > /dev/null; then
    echo "valgrind is not installed: no instruction count"
    exit 0
fi
# A run of 6 s less one of 3 s: start-up and the first overshoot drop out.
instructions() {
    local log
    log=$(mktemp)
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" bench-xlf1g "$1" "$2" 2> "$log" |
        sed -n 's/.*delivered \([0-9]*\).*/\1/p'
    sed -n 's/,//g; s/.*Collected : \([0-9]*\).*/\1/p' "$log"
    rm -f "$log"
}
for profile in ns2-sack linux; do
    mapfile -t short < <(instructions "$profile" 3)
    mapfile -t long < <(instructions "$profile" 6)
    echo "bench-xlf1g $profile: $(((long[1] - short[1]) / (long[0] - short[0]))) instructions per delivered packet"
done
