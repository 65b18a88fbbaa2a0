#!/usr/bin/env bash
# Every experiment in full, compared with the checked-in record: verdicts and numbers must be the same.
# Runs that are finished are kept in fleetfoot-out/reproduce-full, so an interrupted run goes on.
set -u
cd "$(dirname "$0")/.." || exit 1
cargo build --profile ci --quiet --locked --package fleetfoot-cli || exit 1
found=$(mktemp)
trap 'rm -f "$found"' EXIT
cp experiments/verdicts.toml "$found"
"${CARGO_TARGET_DIR:-target}/ci/fleetfoot" reproduce --full --record "$found" --out fleetfoot-out/reproduce-full || exit 1
if ! diff -u experiments/verdicts.toml "$found"; then
    echo "the full runs differ from experiments/verdicts.toml; review, then record them with: fleetfoot reproduce --full --record experiments/verdicts.toml"
    exit 1
fi
