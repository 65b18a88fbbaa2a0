#!/usr/bin/env bash
# Records single flows in ns-2 into specs/ns-2.35/, or the folder given: what crates/core/tests/ns2.rs holds the profiles to.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! command -v ns >/dev/null; then
    echo "ns-2 is not installed (Debian package ns2): nothing recorded" >&2
    exit 1
fi
folder=${1:-specs/ns-2.35}
mkdir -p "$folder"

# record NAME AGENT PACKETS INITIAL_WINDOW WINDOW QUEUE DELAY [DROP...]
record() {
    local name=$1
    shift
    ns bench/peers/ns2-single.tcl "${@:1:6}" "${*:7}" >"$folder/$name.txt"
}

record no-loss Sack1 60 2 1000 1000 0.01
record window-of-20 Sack1 80 2 20 1000 0.01
record window-of-20-loss Sack1 120 2 20 1000 0.01 50
record one-loss Sack1 60 10 1000 1000 0.01 5
record first-lost Sack1 60 10 1000 1000 0.01 1
record two-losses Sack1 80 10 1000 1000 0.01 12 15
record every-other Sack1 100 10 1000 1000 0.01 11 13 15 17 19
record seven-in-a-row Sack1 150 10 1000 1000 0.01 20 21 22 23 24 25 26
record half-a-window Sack1 150 10 1000 1000 0.01 11 12 13 14 15 16 17 18 19 20
record recovery-again Sack1 150 10 1000 1000 0.01 12 40 41 60
record small-window Sack1 40 3 1000 1000 0.01 2
record two-in-three Sack1 40 3 1000 1000 0.01 2 3
record retransmission-lost Sack1 80 10 1000 1000 0.01 5 21
record holes-and-timeout Sack1 100 10 1000 1000 0.01 11 14 17 20 32 33
record go-back Sack1 100 10 1000 1000 0.01 11 14 17 20 33 34 35 36
record go-back-in-half Sack1 120 10 1000 1000 0.01 21 22 23 24 25 26 27 28 29 30 31 32 33
record timeout-twice Sack1 80 10 1000 1000 0.01 5 21 76
record tail-lost Sack1 30 10 1000 1000 0.01 29 30
record window-lost Sack1 60 10 1000 1000 0.01 1 2 3 4 5 6 7 8 9 10
record loss-after-timeout Sack1 100 10 1000 1000 0.01 5 21 77 78 81
record syn-lost Sack1 40 10 1000 1000 0.01 0
record full-queue Sack1 400 10 1000 10 0.01
record full-queue-of-30 Sack1 3000 2 1000 30 0.01
record long-path Sack1 600 10 1000 40 0.1
record far-path Sack1 600 10 1000 1000 0.15 300 500 800
