#!/bin/bash
# The workloads of docs/design/engine.md#workloads with both profiles, the cost of each queue's decision, then instructions and missed lines of the caches
# per delivered packet (scripts/cost.sh), held to bench/limits.csv.
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
scripts/cost.sh "$bench" bench/limits.csv
