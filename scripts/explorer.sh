#!/usr/bin/env bash
# Writes explorer.html (or TARGET): the explorer with the simulator in it, one file that needs no server and no network.
set -eu
cd "$(dirname "$0")/.."
target=${1:-explorer.html}
triple=wasm32-unknown-unknown
if ! command -v npm >/dev/null 2>&1; then
    echo "the explorer's page is bundled by Node: install nodejs and npm; \`fleetfoot serve\` shows the same page without it" >&2
    exit 3
fi
library=$(rustc --print sysroot)/lib/rustlib/$triple
if [ ! -d "$library" ] && ! { command -v rustup >/dev/null 2>&1 && rustup target add $triple >/dev/null 2>&1; }; then
    echo "the compiler has no library for $triple: \`rustup target add $triple\` installs it; \`fleetfoot serve\` shows the same page without it" >&2
    exit 3
fi
CARGO_INCREMENTAL=0 cargo build --quiet --locked --profile browser --target $triple --package fleetfoot-web
[ -x web/explorer/node_modules/.bin/esbuild ] || npm ci --prefix web/explorer --silent --no-audit --no-fund
case $target in /*) place=$target ;; *) place=$PWD/$target ;; esac
(cd web/explorer && node build.mjs "$place" "${CARGO_TARGET_DIR:-../../target}/$triple/browser/fleetfoot_web.wasm")
size=$(wc -c <"$place")
[ "$size" -lt 3000000 ] || { echo "$target has $size bytes; 3 MB are the limit" >&2; exit 1; }
