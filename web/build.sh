#!/bin/sh
# Builds the script and style of report.html into crates/lab/assets and records what they were made from.
# `--verify` changes nothing: it checks the record and, where the packages are installed, that a build gives the same bytes.
set -eu
cd "$(dirname "$0")"
assets=../crates/lab/assets
record=$assets/report.bundle.sha256

bundle() {
    node_modules/.bin/esbuild src/report.js --bundle --minify --format=iife --target=es2022 --charset=utf8 \
        --legal-comments=none --log-level=warning --metafile="$1/report.meta.json" --outfile="$1/report.bundle.js"
    {
        printf '/* Bundled with esbuild from web/src. Third-party parts and their licences:\n'
        node licences.mjs "$1/report.meta.json" "$1/LICENSES.txt"
        printf '*/\n'
        cat "$1/report.bundle.js"
    } >"$1/with-header"
    mv "$1/with-header" "$1/report.bundle.js"
    rm "$1/report.meta.json"
}

sums() {
    sha256sum package-lock.json build.sh licences.mjs src/report.js src/report.css $assets/report.bundle.js $assets/report.bundle.css
}

if [ "${1:-}" = --verify ]; then
    sums | cmp -s - $record || { echo "web: sources or bundle changed without web/build.sh; run it and commit" >&2; exit 1; }
    if [ -x node_modules/.bin/esbuild ]; then
        scratch=$(mktemp -d)
        trap 'rm -rf "$scratch"' EXIT
        bundle "$scratch"
        cmp "$scratch/report.bundle.js" $assets/report.bundle.js
        cmp "$scratch/report.bundle.css" $assets/report.bundle.css
        echo "web: the bundle is what its sources give"
    else
        echo "web: the record fits (packages not installed, not rebuilt)"
    fi
    exit 0
fi
[ -x node_modules/.bin/esbuild ] || npm ci --no-audit --no-fund
bundle $assets
sums >$record
ls -l $assets/report.bundle.*
