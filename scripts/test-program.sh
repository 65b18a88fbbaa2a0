#!/usr/bin/env bash
# The program as a user meets it: determinism across runs, threads and builds, resuming, bad input, a closed pipe.
set -u
cd "$(dirname "$0")/.." || exit 1
# `make test` has built this program for its tests.
[ -n "${FLEETFOOT_BUILT:-}" ] || cargo build --profile ci --quiet --locked --package fleetfoot-cli --features parquet,quic || exit 1
optimised=$PWD/target/ci/fleetfoot
# A second build is compared where there is time for it (`make test-all`).
debug=
if [ -n "${FLEETFOOT_LONG:-}" ]; then
    cargo build --quiet --locked --package fleetfoot-cli || exit 1
    debug=$PWD/target/debug/fleetfoot
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

check() {
    local what=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED: $what"
    fi
}

fails_with() {
    local wanted=$1
    shift
    "$@" >"$scratch/out" 2>"$scratch/err"
    local code=$?
    [ "$code" = "$wanted" ] && ! grep -q panicked "$scratch/err"
}

cat >"$scratch/small.toml" <<'T'
title = "Small"
[network]
kind = "dumbbell"
pairs = 4
bottleneck = { rate = "10 Mbit/s", delay = "10 ms", queue = { kind = "drop-tail", limit = "30 packets" } }
[[traffic]]
name = "pages"
kind = "transfer"
size = { dist = "lomax", mean = "30 kB", shape = 1.5 }
arrivals = { dist = "poisson", rate = "10 per second" }
[[traffic]]
name = "backup"
kind = "bulk"
count = 1
[[variant]]
name = "fair queue"
set = { "network.bottleneck.queue.kind" = "fq-codel" }
[[variant]]
name = "early drop"
set = { "network.bottleneck.queue.kind" = "codel" }
[run]
duration = "5 s"
warmup = "1 s"
seeds = 4
T

compare() { "$1" compare "$scratch/small.toml" --quiet --out "$scratch/$2" --fresh --force --jobs "$3" >/dev/null; }
check "a comparison runs" compare "$optimised" a 2
check "again" compare "$optimised" b 2
check "on one thread" compare "$optimised" c 1
check "same bytes twice" cmp "$scratch/a/result.json" "$scratch/b/result.json"
check "same bytes with one thread" cmp "$scratch/a/result.json" "$scratch/c/result.json"
if [ -n "$debug" ]; then
    # Built without it.
    check "QUIC is refused" fails_with 2 "$debug" run examples/quic-home.toml --out "$scratch/quic"
    check "QUIC is named" grep -q -e "--features quic" "$scratch/err"
    check "an experiment with QUIC is refused" fails_with 2 "$debug" reproduce own-quic-queues --quick --out "$scratch/quic"
    check "the feature is named" grep -q -e "--features quic" "$scratch/err"
    check "its record is shown" bash -c 'set -o pipefail; "$0" reproduce own-quic-queues --recorded | grep cake >/dev/null' "$debug"
    others_run() {
        "$debug" reproduce own-quic-queues rtor-rule --quick --out "$scratch/quic" 2>"$scratch/err" | grep rtor-rule >/dev/null &&
            grep -q "Left out, .*QUIC.*: own-quic-queues" "$scratch/err"
    }
    check "experiments without QUIC run, and what is left out is said" others_run
    check "debug build" compare "$debug" d 2
    check "same bytes in debug" cmp "$scratch/a/result.json" "$scratch/d/result.json"
else
    echo "skipped: the same bytes from another build (make test-all)"
fi
for file in result.json runs.csv samples.csv runs.parquet samples.parquet report.html scenario.toml command.txt; do
    check "$file is written" test -s "$scratch/a/$file"
done
json() { "$optimised" compare "$scratch/small.toml" --json --quiet --out "$scratch/a" 2>/dev/null | python3 -c '
import json, sys
d = json.load(sys.stdin)
assert d["variants"][0]["name"] == "as described", d["variants"][0]["name"]
assert len(d["variants"]) == 3
assert d["answer"]
'; }
check "json on standard output, from finished runs" json
check "examples run" bash -c 'for f in examples/*.toml; do "$0" run "$f" --seed 1 --quiet --out "$1/example" --force >/dev/null || exit 1; done' "$optimised" "$scratch"
events() { "$optimised" compare "$scratch/small.toml" --quiet --out "$scratch/a" --events "$scratch/events.jsonl" >/dev/null && python3 - "$scratch/events.jsonl" <<'P'
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
kinds = [event["event"] for event in events]
assert kinds[0] == "started" and kinds[-1] == "finished", kinds
runs = [event for event in events if event["event"] == "run"]
steps = [event for event in events if event["event"] == "step"]
# Twelve runs of the first pass, then those that the comparison adds (with jitter, more seeds), step by step.
assert events[0]["runs"] == 12 and sum(step["runs"] for step in steps) == len(runs) >= 12, len(runs)
assert steps[0]["step"] == "as described" and steps[1]["step"] == "variants", steps
first = runs[: steps[0]["runs"] + steps[1]["runs"]]
assert len({(run["variant"], run["seed"]) for run in first}) == len(first) == 12
assert all(run["reused"] for run in runs), runs[0]
assert any(event["event"] == "warning" and "too few seeds" in event["message"] for event in events)
assert events[-1]["reused"] == len(runs) and not events[-1]["interrupted"], events[-1]
P
}
check "progress as JSON lines, one per run" events
# What will run is said before it runs: here runs that take hours. No clock decides: the events say that none has ended.
first_line() {
    sed 's/duration = "5 s"/duration = "24 h"/' "$scratch/small.toml" >"$scratch/long.toml"
    python3 - "$optimised" "$scratch" <<'P'
import json, os, subprocess, sys
program, scratch = sys.argv[1:]
events = f"{scratch}/first.jsonl"
for verb in ["compare", "run"]:
    child = subprocess.Popen([program, verb, f"{scratch}/long.toml", "--out", f"{scratch}/first-{verb}", "--events", events],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    line = child.stderr.readline()
    kinds = []
    while not kinds:
        assert child.poll() is None, "it ended"
        if os.path.exists(events):
            whole = open(events).read().split("\n")[:-1]  # the last line may be half written
            kinds = [json.loads(text)["event"] for text in whole]
    child.kill()
    child.communicate()
    assert line.startswith(("Comparing", "Running")) and "about" in line, line
    assert kinds[0] == "started" and "run" not in kinds, kinds
    os.remove(events)
P
}
check "what will run is said before the first run ends" first_line
# A run that needs more memory than it may take stops and says what grew; the JSON document is whole.
cat >"$scratch/grows.toml" <<'T'
[network]
kind = "dumbbell"
access = { rate = "100 Gbit/s", delay = "1 ms", queue = { kind = "drop-tail", limit = "unlimited" } }
bottleneck = { rate = "1 Mbit/s", delay = "10 ms", queue = { kind = "drop-tail", limit = "unlimited" } }
[[traffic]]
name = "flood"
kind = "cbr"
rate = "50 Gbit/s"
[run]
duration = "60 s"
T
too_large() {
    fails_with 1 "$optimised" run "$scratch/grows.toml" --memory 100MB --json && python3 - "$scratch/out" <<'P'
import json, sys
message = json.load(open(sys.argv[1]))["error"]["message"]
assert "packets that wait for link `bottleneck`" in message and "100 MB" in message, message
P
}
check "a run that outgrows its memory is stopped" too_large
check "unknown file" fails_with 2 "$optimised" compare "$scratch/none.toml"
sed 's/pairs = 4/piars = 4/' "$scratch/small.toml" >"$scratch/typo.toml"
check "unknown key" fails_with 2 "$optimised" compare "$scratch/typo.toml"
check "the message names file, line and nearest key" grep -q 'typo.toml:4' "$scratch/err"
check "nearest key" grep -q 'pairs' "$scratch/err"
check "shells complete names" bash -c 'set -o pipefail; "$0" completions bash | grep fq-codel-ecn >/dev/null' "$optimised"
check "unwritable output folder" fails_with 2 "$optimised" compare "$scratch/small.toml" --out /proc/none
check "unknown verb" fails_with 2 "$optimised" compair
check "failure as json" bash -c '"$0" compare "$1" --json 2>/dev/null | python3 -c "import json,sys; assert json.load(sys.stdin)[\"error\"]"' "$optimised" "$scratch/typo.toml"
check "a closed pipe is no error" bash -c 'set -o pipefail; "$0" list | head -n 1 >/dev/null' "$optimised"
check "capture" "$optimised" run "$scratch/small.toml" --quiet --out "$scratch/e" --force --pcap "$scratch/e.pcapng" --trace "$scratch/e.csv"
# Our own experiments, quick, against the record: a list, so that groups whose quick runs are longer stay out of every test.
quick="own-superpackets-grid own-superpackets-policy own-superpackets-upstream own-attacks-superpackets own-sp-weight-long sp-fig3"
as_recorded() {
    cp -r experiments "$scratch/experiments"
    # shellcheck disable=SC2086
    "$optimised" reproduce $quick --quick --quiet --record="$scratch/experiments" --out "$scratch/quick" >/dev/null || return 1
    diff -ru experiments "$scratch/experiments"
}
check "quick runs of our own experiments say what is recorded" as_recorded
drawn() {
    "$optimised" reproduce own-superpackets-grid --recorded --quiet --figures "$scratch/drawn" >/dev/null &&
        grep -q '<svg' "$scratch/drawn/own-superpackets-grid-fct.svg"
}
check "figures from the record" drawn
check "unwritable folder of figures" fails_with 2 "$optimised" reproduce sp-tbuffer --recorded --figures /proc/none
check "unknown experiment" fails_with 2 "$optimised" reproduce sp-fig33
check "the nearest experiment" grep -q 'sp-fig3' "$scratch/err"
if command -v tshark >/dev/null 2>&1; then
    no_complaints() {
        [ "$(tshark -r "$scratch/e.pcapng" -o tcp.check_checksum:TRUE -o ip.check_checksum:TRUE -c 20000 \
            -Y 'tcp.checksum.status == "Bad" || ip.checksum.status == "Bad" || _ws.malformed' 2>"$scratch/err" | wc -l)" = 0 ] &&
            ! grep -vi 'running as user' "$scratch/err" | grep -q .
    }
    check "tshark reads the capture without complaint" no_complaints
else
    echo "skipped: tshark is not installed"
fi
echo "program: $passed passed, $failed failed"
[ "$failed" = 0 ]
