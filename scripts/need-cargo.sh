#!/usr/bin/env bash
# Says in one sentence what is missing when there is no Rust compiler, or one that is too old.
set -u
if ! command -v cargo >/dev/null 2>&1; then
    echo "fleetfoot needs a Rust compiler (cargo 1.95 or newer) on the PATH; see rustup.rs" >&2
    exit 1
fi
have=$(cargo --version | cut -d' ' -f2 | cut -d. -f1-2)
if [ "$(printf '%s\n1.95\n' "$have" | sort -V | head -n 1)" != "1.95" ]; then
    echo "fleetfoot needs cargo 1.95 or newer, found $have" >&2
    exit 1
fi
