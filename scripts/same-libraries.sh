#!/usr/bin/env bash
# Whether the wheel that scripts/python.sh tests is made of the libraries which the tests have compiled. Cargo compiles a library once for each
# set of its features, so each one that differs, and all that depend on it, would be compiled a second time.
# Usage: scripts/same-libraries.sh FEATURES_OF_THE_TESTS
set -euo pipefail
cd "$(dirname "$0")/.."
wheel=parquet,quic,as-tested
case $1 in *fleetfoot-cli/bpf*) wheel+=,fleetfoot-live/bpf ;; esac

# Each library with its features; the same library comes again below others.
libraries() {
    cargo tree --locked --prefix none --format '{p}|{f}' "$@" | sed -E 's/ \([^|]*\)//; s/ \(\*\)$//' | grep -v '^fleetfoot-python ' | sort -u
}
tested=$(libraries --workspace --edges normal,build,dev --features "$1")
packed=$(libraries --package fleetfoot-python --edges normal,build --features "$wheel")
other=$(comm -13 <(echo "$tested") <(echo "$packed"))
if [ -n "$other" ]; then
    echo "compiled for the wheel again, since its features are not those of the tests (crates/python/Cargo.toml, as-tested):"
    echo "$other"
    exit 1
fi
