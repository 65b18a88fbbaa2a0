#!/usr/bin/env bash
# Every experiment in full, compared with the checked-in record: verdicts and numbers must be the same.
# Runs that are finished are kept in fleetfoot-out/reproduce-full, so an interrupted run goes on.
set -u
cd "$(dirname "$0")/.." || exit 1
cargo build --profile ci --quiet --locked --package fleetfoot-cli || exit 1
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
cp -r experiments/. "$found"
"${CARGO_TARGET_DIR:-target}/ci/fleetfoot" reproduce --full --record="$found" --out fleetfoot-out/reproduce-full || exit 1
if ! diff -ru experiments "$found"; then
    echo "the full runs differ from experiments/*/verdicts; review, then record them with: fleetfoot reproduce --full --record"
    exit 1
fi
