#!/usr/bin/env bash
# Line coverage of crates/core/src by the tests of core and testkit. Needs llvm-profdata and llvm-cov of the compiler's LLVM (Debian package
# llvm-22 for Rust 1.95), or the component llvm-tools. The figure leaves out tests.
set -u
cd "$(dirname "$0")/.." || exit 1
scripts/need-cargo.sh || exit 1
version=$(rustc -vV | sed -n 's/^LLVM version: \([0-9]*\).*/\1/p')
sysroot=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin
tool() {
    for candidate in "$sysroot/$1" "$1-$version" "/usr/lib/llvm-$version/bin/$1"; do
        command -v "$candidate" && return
    done
    echo "skipped: $1 of LLVM $version is not installed (Debian: llvm-$version; rustup component add llvm-tools)" >&2
    exit 1
}
profdata=$(tool llvm-profdata) || exit 0
cov=$(tool llvm-cov) || exit 0
export CARGO_TARGET_DIR=target/coverage
mkdir -p "$CARGO_TARGET_DIR"
raw=$(mktemp -d)
trap 'rm -rf "$raw"' EXIT
log=$CARGO_TARGET_DIR/tests.log
echo "tests of core, instrumented (minutes)" >&2
if ! RUSTFLAGS="-C instrument-coverage" LLVM_PROFILE_FILE="$raw/%m-%p.profraw" \
    cargo test --package fleetfoot-core --package fleetfoot-testkit --tests --locked >"$log" 2>&1; then
    tail -n 40 "$log"
    exit 1
fi
"$profdata" merge -sparse "$raw"/*.profraw -o "$CARGO_TARGET_DIR/core.profdata" || exit 1
programs=()
while read -r program; do programs+=(-object "$program"); done < <(grep -oE '\([^)]*debug/deps/[^)]*\)' "$log" | tr -d '()')
"$cov" report --instr-profile="$CARGO_TARGET_DIR/core.profdata" "${programs[@]:1}" --sources crates/core/src \
    --ignore-filename-regex='/tests(/|\.rs)' >"$CARGO_TARGET_DIR/report.txt" || exit 1
# Lines, lines missed and the share covered, worst files first.
awk '/\.rs / && $9 > 0 { printf "%5d of %5d lines not reached  %s  %s\n", $9, $8, $10, $1 }' "$CARGO_TARGET_DIR/report.txt" |
    sort -rn | head -n "${COVERAGE_FILES:-20}"
awk '/^TOTAL/ { printf "crates/core/src: %d lines, %d not reached, %s covered\n", $8, $9, $10 }' "$CARGO_TARGET_DIR/report.txt"
