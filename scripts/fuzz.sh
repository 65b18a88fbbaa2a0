#!/usr/bin/env bash
# Builds every fuzz target on the stable compiler and runs each for FUZZ_SECONDS from its checked-in corpus.
set -u
cd "$(dirname "$0")/.." || exit 1
[ -d fuzz ] || { echo "no fuzz targets yet"; exit 0; }
seconds=${FUZZ_SECONDS:-20}
# With FUZZ_RUNS the same inputs every time, for tests; a search with fresh seeds is for `make fuzz`.
limit=(-max_total_time="$seconds")
plain=()
if [ -n "${FUZZ_RUNS:-}" ]; then
    limit=(-seed=1 -runs="$FUZZ_RUNS")
    # So few runs take less time than compiling well would.
    export CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_DEBUG=0
    for crate in fleetfoot-drill fleetfoot-lab fleetfoot-live minijinja; do
        plain+=(--config "profile.release.package.$crate.opt-level=0")
    done
fi
if ! command -v c++ >/dev/null 2>&1; then
    echo "skipped: libFuzzer needs a C++ compiler"
    exit 0
fi
flags="--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Ccodegen-units=1"
(cd fuzz && RUSTFLAGS="$flags" cargo build --release --locked --quiet "${plain[@]}" --target "$(rustc -vV | sed -n 's/^host: //p')") || exit 1
status=0
host=$(rustc -vV | sed -n 's/^host: //p')
for source in fuzz/fuzz_targets/*.rs; do
    name=$(basename "$source" .rs)
    scratch=$(mktemp -d)
    log=$(mktemp)
    corpus=()
    [ -d "fuzz/corpus/$name" ] && corpus=("fuzz/corpus/$name")
    if "fuzz/target/$host/release/$name" "${limit[@]}" -rss_limit_mb=2048 -artifact_prefix="$scratch/" \
        "$scratch" "${corpus[@]}" >"$log" 2>&1; then
        echo "$name: $(grep -oE '^Done [0-9]+ runs' "$log" || tail -n 1 "$log"), nothing found"
        rm -rf "$scratch" "$log"
    else
        status=1
        tail -n 25 "$log"
        echo "$name: FAILED; input kept in $scratch"
    fi
done
exit $status
