#!/usr/bin/env bash
# Opens a report in headless Chromium, in both colour schemes and at the width of a phone.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/browser.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# `make test` has built this program for its tests.
[ -n "${FLEETFOOT_BUILT:-}" ] || cargo build --profile ci --quiet --locked --package fleetfoot-cli --features parquet || exit 1
target/ci/fleetfoot compare examples/home-line.toml --quiet --seeds 5 --out "$scratch/report" --force >/dev/null || exit 1
npm ci --prefix web --silent --no-audit --no-fund >"$scratch/npm" 2>&1 || { cat "$scratch/npm"; exit 1; }
CHROMIUM=$browser REPORT=$scratch/report/report.html npm test --prefix web --silent
