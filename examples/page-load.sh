#!/bin/sh
# How long does a page take while something large is loading over the same line, and which queue makes it shorter?
#
#   sh examples/page-load.sh [FOLDER] [RUNS]
#
# A page of 30 objects is served at the far end of the link and loaded by Chromium (Debian package chromium), while a download
# fills the queue towards the browser. FOLDER receives the report; the same command again goes on where it was stopped.
set -eu
out=${1:-fleetfoot-out/page-load}
runs=${2:-10}
# Not in the command, which must be the same when it is given again.
PAGE_LOAD=$(mktemp -d)
export PAGE_LOAD
work=$PAGE_LOAD
trap 'rm -rf "$work"' EXIT

# A page with a style sheet, scripts and pictures of ordinary sizes, and what the download takes.
python3 - "$work" <<'PY'
import random, sys
folder, rng = sys.argv[1], random.Random(1)
sizes = [rng.choice([4, 8, 15, 30, 60]) * 1000 for _ in range(30)]
links = []
for number, size in enumerate(sizes):
    name = f"object-{number}.svg"
    head = b'<svg xmlns="http://www.w3.org/2000/svg" width="40" height="40"><rect width="40" height="40"/><!--'
    body = bytes(rng.choice(b"abcdefghijklmnopqrstuvwxyz") for _ in range(size))
    open(f"{folder}/{name}", "wb").write(head + body + b"--></svg>")
    links.append(f'<img src="{name}" width="40" height="40">')
page = "<!doctype html><title>page</title>" + "\n".join(links)
page += """<script>addEventListener("load", () => { document.title = "loaded in " + Math.round(performance.now()) + " ms"; });</script>"""
open(f"{folder}/page.html", "w").write(page)
open(f"{folder}/large", "wb").truncate(200_000_000)
PY

# What one run does: wait for the server, start the download, let it fill the queue, load the page, print how long that took.
cat > "$work/run.sh" <<'RUN'
until curl -s -o /dev/null "http://$FLEETFOOT_FAR:8000/page.html"; do sleep 0.1; done
curl -s -o /dev/null "http://$FLEETFOOT_FAR:8000/large" &
sleep 3
chromium --headless --no-sandbox --disable-gpu --disable-extensions --disable-background-networking --no-first-run \
    --user-data-dir="$(mktemp -d -p "$PAGE_LOAD")" --dump-dom \
    "http://$FLEETFOOT_FAR:8000/page.html" 2> /dev/null
RUN

${FLEETFOOT:-fleetfoot} shell --rate 10mbit/2mbit --delay 20ms --limit "250 packets" \
    --compare drop-tail,fq-codel,favourtail --runs "$runs" --metric 'loaded in ([0-9]+) ms' --out "$out" \
    --far 'cd $PAGE_LOAD && exec python3 -m http.server 8000 > /dev/null 2>&1' -- sh -c '. "$PAGE_LOAD/run.sh"'
