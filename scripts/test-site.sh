#!/usr/bin/env bash
# Opens the documentation site in headless Chromium: scenes, search, a desk and a phone, both colour schemes, axe-core.
# SHOTS=FOLDER also takes the pictures for the documents.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/browser.sh
site=${CARGO_TARGET_DIR:-target}/site/html
if [ ! -e "$site/index.html" ]; then
    echo "skipped: no site; make site builds it"
    exit 0
fi
[ -d web/node_modules/axe-core ] || npm ci --prefix web --silent --no-audit --no-fund || exit 1
site=$(cd "$site" && pwd)
[ -z "${SHOTS:-}" ] || { mkdir -p "$SHOTS" && SHOTS=$(cd "$SHOTS" && pwd) && export SHOTS; }
CHROMIUM=$browser SITE=$site node --test web/test/site.spec.mjs
