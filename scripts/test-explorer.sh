#!/usr/bin/env bash
# Opens the explorer in headless Chromium: behind `fleetfoot serve`, or with `--built-in` the file of `make explorer`, whose numbers are
# compared with the program's. `make test-all` does both.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/browser.sh
scratch=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$scratch"' EXIT
[ -n "${FLEETFOOT_BUILT:-}" ] || cargo build --profile ci --quiet --locked --package fleetfoot-cli --features parquet,serve || exit 1
npm ci --prefix web/explorer --silent --no-audit --no-fund >"$scratch/npm" 2>&1 || { cat "$scratch/npm"; exit 1; }
sh web/explorer/build.sh --verify && (cd web/explorer && npm run --silent types) || exit 1
export CHROMIUM=$browser PROGRAM=$PWD/target/ci/fleetfoot
# The package of scripts/python.sh, if it is there.
python=${VIRTUAL_ENV:-.venv}/bin/python
if "$python" -c 'import fleetfoot' >/dev/null 2>&1; then
    PYTHON=$(cd "$(dirname "$python")" && pwd)/python
    export PYTHON
fi
if [ "${1:-}" = --built-in ]; then
    scripts/explorer.sh "$scratch/explorer.html" 2>"$scratch/why" || {
        code=$?
        cat "$scratch/why"
        [ "$code" = 3 ] && echo "skipped: the explorer cannot be built here" && exit 0
        exit 1
    }
    EXPLORER=$scratch/explorer.html LONG=1 npm test --prefix web/explorer --silent
    exit
fi
"$PROGRAM" serve --port 0 --json >"$scratch/address" 2>"$scratch/log" &
server=$!
for _ in $(seq 100); do [ -s "$scratch/address" ] && break; sleep 0.1; done
address=$(sed -n 's/.*"address":"\([^"]*\)".*/\1/p' "$scratch/address")
[ -n "$address" ] || { cat "$scratch/log"; exit 1; }
EXPLORER=$address npm test --prefix web/explorer --silent
