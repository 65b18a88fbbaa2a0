#!/usr/bin/env bash
# What `make test` and CI run. Each step is timed; the table at the end says where the time went, and how much of it processors worked.
# One build profile (`ci`: optimised, with debug assertions) serves all steps.
set -u
cd "$(dirname "$0")/.." || exit 1
scripts/need-cargo.sh || exit 1
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
export CARGO_INCREMENTAL=0
# Property tests draw the same cases every time here, so that a failure is repeated by running it again; `make test-all` draws others too.
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-1}
names=() seconds=() worked=() results=()
failed=0
scratch=$(mktemp -d)

# Sets `processor` to the seconds that processors have worked for the ended children of this shell. `times` tells of the shell that it runs in.
processor_time() {
    local file=$scratch/times.$BASHPID
    times >"$file"
    processor=$(awk -F'[ms ]+' 'NR == 2 { printf "%.0f", 60 * ($1 + $3) + $2 + $4 }' "$file")
}

# NAME COMMAND...
step() {
    local name=$1 begin=$SECONDS result=ok before
    shift
    echo "== $name"
    processor_time
    before=$processor
    "$@" || { result=FAILED; failed=1; }
    processor_time
    names+=("$name")
    seconds+=($((SECONDS - begin)))
    worked+=($((processor - before)))
    results+=("$result")
}

# Runs the function $1, which takes steps, beside what follows, until `beside_end $1` prints what it said and takes its table over.
declare -A beside_ids
beside() {
    local chain=$1
    (
        trap - EXIT INT TERM
        names=() seconds=() worked=() results=()
        trap 'for i in "${!names[@]}"; do printf "%s\t%s\t%s\t%s\n" "${seconds[$i]}" "${worked[$i]}" "${results[$i]}" "${names[$i]}"; done >"$scratch/$chain.table"' EXIT
        "$chain"
    ) >"$scratch/$chain.log" 2>&1 &
    beside_ids[$chain]=$!
}

finish() {
    local id
    for id in "${beside_ids[@]}"; do kill $(pgrep -P "$id") "$id" 2>/dev/null; done
    rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

beside_end() {
    local took work result name
    wait "${beside_ids[$1]}"
    unset "beside_ids[$1]"
    cat "$scratch/$1.log"
    # One that was killed has no table.
    [ -s "$scratch/$1.table" ] || failed=1
    while IFS=$'\t' read -r took work result name; do
        names+=("$name (beside)")
        seconds+=("$took")
        worked+=("$work")
        results+=("$result")
        [ "$result" = ok ] || failed=1
    done <"$scratch/$1.table"
}

# The licences of what is linked into a wheel: fails when a library has none.
bill_of_materials() {
    if ! python3 -c 'import tomllib' 2>/dev/null; then
        echo "skipped: the bill of materials needs Python 3.11 or newer"
        return 0
    fi
    local folder result
    folder=$(mktemp -d)
    SOURCE_DATE_EPOCH=0 python3 scripts/sbom.py fleetfoot-python parquet,quic "$(rustc -vV | sed -n 's/^host: //p')" "$folder/wheel.cdx.json" "$folder/licences"
    result=$?
    rm -rf "$folder"
    return $result
}

# The files of a release, twice; takes what not every machine has.
release() {
    scripts/dist.sh --twice
    local result=$?
    [ $result = 3 ] && echo "skipped: the files of a release"
    [ $result = 0 ] || [ $result = 3 ]
}

features=(--features fleetfoot-sim/quic,fleetfoot-lab/parquet,fleetfoot-lab/quic,fleetfoot-cli/parquet,fleetfoot-cli/quic,fleetfoot-cli/serve,fleetfoot-cli/xdp,fleetfoot-python/parquet)
step "packages" scripts/setup.sh
if scripts/has-bpf.sh; then
    features[1]+=,fleetfoot-cli/bpf
else
    echo "skipped: programs for the kernel (fleetfoot attach)"
fi
step "format" cargo fmt --all --check
step "libraries" scripts/same-libraries.sh "${features[1]}"
step "build" cargo test --profile ci --workspace --locked --no-run --quiet "${features[@]}"
# These two need no test's result, and tests with real packets wait more than they compute: they take what the tests leave.
counted() {
    renice -n 19 "$BASHPID" >/dev/null
    # With debug assertions, so its figures are not those of a release; they grow with them.
    step "cost per packet" scripts/cost.sh "${CARGO_TARGET_DIR:-target}/ci/examples/bench_one" bench/limits-ci.csv
    # Built with other flags, in a folder of their own.
    step "fuzz targets" env FUZZ_RUNS="${FUZZ_RUNS:-5000}" scripts/fuzz.sh
}
compiled() {
    renice -n 19 "$BASHPID" >/dev/null
    step "licences and sources" scripts/deny.sh
    step "bill of materials" bill_of_materials
    # What follows holds the lock of cargo, which the tests take for a moment when they start.
    sleep 15
    step "lints" cargo clippy --profile ci --workspace --all-targets --locked --quiet "${features[@]}" -- -D warnings
    step "documents" env RUSTDOCFLAGS="-D warnings" cargo doc --profile ci --workspace --no-deps --locked --quiet
}
beside counted
beside compiled
step "tests" cargo test --profile ci --workspace --locked --no-fail-fast "${features[@]}"
export FLEETFOOT_BUILT=1
python_package() {
    step "Python package" scripts/python.sh --quiet
}
beside python_package
step "program" scripts/test-program.sh
step "report in a browser" scripts/test-report.sh
step "documentation site" scripts/site.sh --follow
step "site in a browser" scripts/test-site.sh
beside_end python_package
# Compares the numbers of the page with those of the Python package too.
step "explorer in a browser" scripts/test-explorer.sh
beside_end counted
beside_end compiled
if [ -n "${FLEETFOOT_LONG:-}" ]; then
    step "long tests" cargo test --profile ci --workspace --locked "${features[@]}" -- --ignored
    step "plug-in on its own" scripts/plugin-alone.sh
    step "distribution" scripts/dist-check.sh
    step "release" release
    step "other draws" scripts/other-draws.sh
    step "explorer with its own engine" scripts/test-explorer.sh --built-in
    step "soak" env SOAK_LOG=/dev/null scripts/soak.sh --gib 10
    step "longer fuzzing" env -u FUZZ_RUNS FUZZ_SECONDS="${FUZZ_SECONDS:-120}" scripts/fuzz.sh
    step "cost per packet, release" make --no-print-directory bench
    step "full figures" scripts/test-figures.sh
    step "first screen of README" scripts/test-readme.sh
    step "peers" make --no-print-directory peers
fi

echo
echo "where the time went, and for how much of it a processor worked:"
for i in "${!names[@]}"; do
    printf '  %5d s  %5d s  %-26s %s\n' "${seconds[$i]}" "${worked[$i]}" "${names[$i]}" "${results[$i]}"
done
processor_time
printf '  %5d s  %5d s  all\n' "$SECONDS" "$processor"
if [ "$failed" = 0 ]; then
    echo "make test: passed"
else
    echo "make test: FAILED"
    exit 1
fi
