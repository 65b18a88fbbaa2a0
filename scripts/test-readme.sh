#!/usr/bin/env bash
# README's first screen is what `fleetfoot compare` says now: its picture and the answer that it quotes. About a minute.
set -u
cd "$(dirname "$0")/.." || exit 1
program=${FLEETFOOT_PROGRAM:-${CARGO_TARGET_DIR:-target}/ci/fleetfoot}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$program" compare --quiet --out "$scratch/home" >/dev/null || exit 1
python3 docs/site/picture.py "$scratch/home/result.json" --check
