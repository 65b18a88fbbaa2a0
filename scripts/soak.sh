#!/usr/bin/env bash
# Random transfers over random bad paths in virtual time. Arguments go to the program: --gib N, --seconds N, --seed N, --runs N,
# --short. Built with debug assertions, so every event checks the connection's invariants. Adds its line to SOAK_LOG
# (docs/soak.log).
set -u
cd "$(dirname "$0")/.." || exit 1
scripts/need-cargo.sh || exit 1
cargo build --profile ci --locked --quiet --package fleetfoot-testkit --example soak || exit 1
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
git diff --quiet HEAD 2>/dev/null || commit="$commit with changes"
trap : INT # the program ends by itself and says what it did
line=$("${CARGO_TARGET_DIR:-target}/ci/examples/soak" "$@") || exit 1
echo "$line"
echo "$(date -u +%F) $commit: $line" >>"${SOAK_LOG:-docs/soak.log}"
