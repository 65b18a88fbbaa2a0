#!/usr/bin/env bash
# Licences, bans and sources with cargo-deny; says so when the tool is not there (`make test-all` installs it).
set -u
cd "$(dirname "$0")/.." || exit 1
if ! command -v cargo-deny >/dev/null 2>&1; then
    if [ -n "${FLEETFOOT_LONG:-}" ]; then
        cargo install --quiet --locked --debug cargo-deny@0.20.2 || exit 1
    else
        echo "skipped: cargo-deny is not installed (make test-all installs it: cargo install --locked cargo-deny)"
        exit 0
    fi
fi
cargo deny --offline check licenses bans sources 2>/dev/null || cargo deny check licenses bans sources
