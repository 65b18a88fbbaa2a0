#!/usr/bin/env bash
# The program as a user meets it: determinism across runs, threads and builds, resuming, bad input, a closed pipe.
set -u
cd "$(dirname "$0")/.." || exit 1
cargo build --profile ci --quiet --locked --package fleetfoot-cli --features parquet || exit 1
cargo build --quiet --locked --package fleetfoot-cli || exit 1
optimised=$PWD/target/ci/fleetfoot
debug=$PWD/target/debug/fleetfoot
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
check "debug build" compare "$debug" d 2
check "same bytes twice" cmp "$scratch/a/result.json" "$scratch/b/result.json"
check "same bytes with one thread" cmp "$scratch/a/result.json" "$scratch/c/result.json"
check "same bytes in debug" cmp "$scratch/a/result.json" "$scratch/d/result.json"
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
assert len(runs) == events[0]["runs"] == 12, len(runs)
assert [run["done"] for run in runs] == list(range(1, 13))
assert all(run["total"] == 12 and run["reused"] for run in runs), runs[0]
assert len({(run["variant"], run["seed"]) for run in runs}) == 12
assert any(event["event"] == "warning" and "too few seeds" in event["message"] for event in events)
assert events[-1]["reused"] == 12 and not events[-1]["interrupted"], events[-1]
P
}
check "progress as JSON lines, one per run" events
# The time from the start to the first line on stderr; the middle of five, since other programs run too.
first_line() { python3 - "$optimised" "$scratch" <<'P'
import subprocess, sys, time
program, scratch = sys.argv[1:]
times = []
for number in range(5):
    start = time.monotonic()
    child = subprocess.Popen([program, "compare", "--out", f"{scratch}/first{number}"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    line = child.stderr.readline()
    times.append(time.monotonic() - start)
    child.kill()
    child.communicate()
    assert line.startswith("Comparing"), line
assert sorted(times)[2] < 0.2, times
P
}
check "the first line comes within 0.2 s" first_line
check "unknown file" fails_with 2 "$optimised" compare "$scratch/none.toml"
sed 's/pairs = 4/piars = 4/' "$scratch/small.toml" >"$scratch/typo.toml"
check "unknown key" fails_with 2 "$optimised" compare "$scratch/typo.toml"
check "the message names file, line and nearest key" grep -q 'typo.toml:4' "$scratch/err"
check "nearest key" grep -q 'pairs' "$scratch/err"
check "unwritable output folder" fails_with 2 "$optimised" compare "$scratch/small.toml" --out /proc/none
check "unknown verb" fails_with 2 "$optimised" compair
check "failure as json" bash -c '"$0" compare "$1" --json 2>/dev/null | python3 -c "import json,sys; assert json.load(sys.stdin)[\"error\"]"' "$optimised" "$scratch/typo.toml"
check "a closed pipe is no error" bash -c 'set -o pipefail; "$0" list | head -n 1 >/dev/null' "$optimised"
check "capture" "$optimised" run "$scratch/small.toml" --quiet --out "$scratch/e" --force --pcap "$scratch/e.pcapng" --trace "$scratch/e.csv"
# Our own experiments, quick, against the record: a list, so that groups whose quick runs are longer stay out of every test.
quick="own-superpackets-grid own-superpackets-policy own-superpackets-upstream own-attacks-superpackets own-sp-weight-long sp-fig3"
as_recorded() {
    cp experiments/verdicts.toml "$scratch/verdicts.toml"
    # shellcheck disable=SC2086
    "$optimised" reproduce $quick --quick --quiet --record "$scratch/verdicts.toml" --out "$scratch/quick" >/dev/null || return 1
    diff -u experiments/verdicts.toml "$scratch/verdicts.toml"
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
