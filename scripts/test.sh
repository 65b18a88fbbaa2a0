#!/usr/bin/env bash
# What `make test` and CI run. Each step is timed; the table at the end says where the time went.
# One build profile (`ci`: optimised, with debug assertions) serves all steps.
set -u
cd "$(dirname "$0")/.." || exit 1
scripts/need-cargo.sh || exit 1
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
export CARGO_INCREMENTAL=0
# Property tests draw the same cases every time here, so that a failure is repeated by running it again; `make test-all` draws others too.
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-1}
names=() seconds=() results=()
failed=0

# NAME COMMAND...
step() {
    local name=$1 begin=$SECONDS result=ok
    shift
    echo "== $name"
    "$@" || { result=FAILED; failed=1; }
    names+=("$name")
    seconds+=($((SECONDS - begin)))
    results+=("$result")
}

# Runs the function $1, which takes steps, beside what follows, until `beside_end` prints what it said and takes its table over.
beside_ids=() beside_logs=()
beside() {
    local log
    log=$(mktemp)
    (
        trap - EXIT INT TERM
        names=() seconds=() results=()
        trap 'for i in "${!names[@]}"; do printf "%s\t%s\t%s\n" "${seconds[$i]}" "${results[$i]}" "${names[$i]}"; done >"$log.table"' EXIT
        "$1"
    ) >"$log" 2>&1 &
    beside_ids+=($!)
    beside_logs+=("$log")
}

beside_kill() {
    local id log
    for id in "${beside_ids[@]}"; do kill $(pgrep -P "$id") "$id" 2>/dev/null; done
    for log in "${beside_logs[@]}"; do rm -f "$log" "$log.table"; done
}
trap beside_kill EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

beside_end() {
    local i took result name log
    for i in "${!beside_ids[@]}"; do
        log=${beside_logs[$i]}
        wait "${beside_ids[$i]}"
        cat "$log"
        # One that was killed has no table.
        [ -s "$log.table" ] || failed=1
        while IFS=$'\t' read -r took result name; do
            names+=("$name (beside)")
            seconds+=("$took")
            results+=("$result")
            [ "$result" = ok ] || failed=1
        done <"$log.table"
        rm -f "$log" "$log.table"
    done
    beside_ids=() beside_logs=()
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

features=(--features fleetfoot-sim/quic,fleetfoot-lab/parquet,fleetfoot-lab/quic,fleetfoot-cli/parquet,fleetfoot-cli/quic,fleetfoot-cli/serve,fleetfoot-cli/xdp)
step "packages" scripts/setup.sh
if scripts/has-bpf.sh; then
    features[1]+=,fleetfoot-cli/bpf
else
    echo "skipped: programs for the kernel (fleetfoot attach)"
fi
step "format" cargo fmt --all --check
step "build" cargo test --profile ci --workspace --locked --no-run --quiet "${features[@]}"
# Needs no test's result, and tests with real packets wait more than they compute: it takes what they leave. The first step calls no cargo, so
# that the tests do not wait for its lock. A plug-in is a crate of its own, for which libraries come from the build above while the crates of
# this workspace are compiled again; fuzz targets are built with other flags.
apart() {
    local plugin=(--manifest-path examples/plugin/Cargo.toml)
    renice -n 19 "$BASHPID" >/dev/null
    # With debug assertions, so its figures are not those of a release; they grow with them.
    step "cost per packet" scripts/cost.sh "${CARGO_TARGET_DIR:-target}/ci/examples/bench_one" bench/limits-ci.csv
    step "lints" cargo clippy --profile ci --workspace --all-targets --locked --quiet "${features[@]}" -- -D warnings
    step "documents" env RUSTDOCFLAGS="-D warnings" cargo doc --profile ci --workspace --no-deps --locked --quiet
    step "plug-in, format" cargo fmt "${plugin[@]}" --check
    step "plug-in" cargo test --profile ci --locked --quiet "${plugin[@]}" --target-dir "${CARGO_TARGET_DIR:-target}"
    step "fuzz targets" env FUZZ_RUNS="${FUZZ_RUNS:-5000}" scripts/fuzz.sh
    step "licences and sources" scripts/deny.sh
    step "bill of materials" bill_of_materials
}
beside apart
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
beside_end
# Compares the numbers of the page with those of the Python package too.
step "explorer in a browser" scripts/test-explorer.sh
if [ -n "${FLEETFOOT_LONG:-}" ]; then
    step "long tests" cargo test --profile ci --workspace --locked "${features[@]}" -- --ignored
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
echo "where the time went:"
for i in "${!names[@]}"; do
    printf '  %5d s  %-22s %s\n' "${seconds[$i]}" "${names[$i]}" "${results[$i]}"
done
printf '  %5d s  all\n' "$SECONDS"
if [ "$failed" = 0 ]; then
    echo "make test: passed"
else
    echo "make test: FAILED"
    exit 1
fi
