#!/usr/bin/env bash
# The plug-in of examples/ as its readers have it: copied out of this workspace, with paths to the checkout. Compiles everything again.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cp -r examples/plugin/. Cargo.lock "$scratch/"
sed -i "s#\"\.\./\.\./crates/#\"$PWD/crates/#" "$scratch/Cargo.toml"
grep -q "path = \"$PWD/crates/cli\"" "$scratch/Cargo.toml"
cd "$scratch"
# The versions of the checkout, of which Cargo drops what this crate does not need.
cargo test --quiet --release --target-dir "$scratch/target"
