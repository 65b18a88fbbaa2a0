#!/bin/sh
# Builds the page of `fleetfoot serve` into crates/web/assets and records what it was made from; the explorer with its engine inside
# is built by scripts/explorer.sh.
# `--verify` changes nothing: it checks the record and, where the packages are installed, that a build gives the same bytes.
set -eu
cd "$(dirname "$0")"
assets=../../crates/web/assets
record=$assets/page.sha256

sums() {
    sha256sum package-lock.json build.sh build.mjs page.html src/*.ts src/*.css ../src/report.css $assets/page.html
}

if [ "${1:-}" = --verify ]; then
    sums | cmp -s - $record || { echo "web/explorer: sources or page changed without web/explorer/build.sh; run it and commit" >&2; exit 1; }
    if [ -x node_modules/.bin/esbuild ]; then
        scratch=$(mktemp -d)
        trap 'rm -rf "$scratch"' EXIT
        node build.mjs "$scratch/page.html" >/dev/null
        cmp "$scratch/page.html" $assets/page.html
        echo "web/explorer: the page is what its sources give"
    else
        echo "web/explorer: the record fits (packages not installed, not rebuilt)"
    fi
    exit 0
fi
[ -x node_modules/.bin/esbuild ] || npm ci --no-audit --no-fund
[ ! -x node_modules/.bin/tsc ] || node_modules/.bin/tsc --noEmit
node build.mjs $assets/page.html
sums >$record
