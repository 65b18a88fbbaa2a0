#!/usr/bin/env bash
# Cost per delivered packet without a clock: instructions, and lines that miss caches of a fixed size (valgrind's cachegrind).
# Usage: scripts/cost.sh BENCH_ONE [LIMITS]. With LIMITS (a file like bench/limits.csv) the workloads are those of the file, and the
# exit code is 1 if a figure exceeds its limit by more than 1 % (instructions) or 5 % (lines).
set -euo pipefail
cd "$(dirname "$0")/.."
bench=$1
limits=${2:-}
if ! command -v valgrind > /dev/null; then
    echo "valgrind is not installed: nothing is counted"
    exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# count NAME PROFILE SECONDS: packets, instructions, misses of 32 KiB for instructions, of 32 KiB for data, data beyond 1 MiB.
count() {
    valgrind --tool=cachegrind --cache-sim=yes --cachegrind-out-file=/dev/null \
        --I1=32768,8,64 --D1=32768,8,64 --LL=1048576,16,64 "$bench" "$@" > "$work/out" 2> "$work/log"
    sed -n 's/,//g; s/.*delivered \([0-9]*\).*/\1/p' "$work/out"
    sed -n 's/,//g; s/^==[0-9]*== \(I *refs\|I1 *misses\|D1 *misses\|LLd misses\): *\([0-9]*\).*/\2/p' "$work/log"
}

# The longer run less the shorter: start-up drops out.
rows() {
    if [ -n "$limits" ]; then
        sed 1d "$limits"
    else
        printf '%s\n' bench-xlf1g,ns2-sack,3,6 bench-xlf1g,linux,3,6 bench-many,ns2-sack,3,4
    fi
}
status=0
printf '%-14s %-9s %12s %12s %12s %12s\n' workload profile instructions I1-misses D1-misses LL-misses
while IFS=, read -r name profile from to instructions lines compiler; do
    # Another compiler makes other instructions of the same program.
    if [ -n "$limits" ] && [ "$compiler" != "$(rustc -V | cut -d ' ' -f 2)" ]; then
        echo "skipped: the limits of $name $profile were counted with rustc $compiler"
        continue
    fi
    mapfile -t short < <(count "$name" "$profile" "$from")
    mapfile -t long < <(count "$name" "$profile" "$to")
    packets=$((long[0] - short[0]))
    per() { awk -v a="${short[$1]}" -v b="${long[$1]}" -v n="$packets" 'BEGIN { printf "%.1f", (b - a) / n }'; }
    counted=("$(per 1)" "$(per 2)" "$(per 3)" "$(per 4)")
    printf '%-14s %-9s %12s %12s %12s %12s\n' "$name" "$profile" "${counted[@]}"
    [ -n "$limits" ] || continue
    if awk -v i="${counted[0]}" -v most="$instructions" 'BEGIN { exit !(i > most * 1.01) }'; then
        echo "$name $profile: ${counted[0]} instructions per delivered packet, limit $instructions ($limits)" >&2
        status=1
    fi
    if awk -v l="${counted[2]}" -v most="$lines" 'BEGIN { exit !(l > most * 1.05) }'; then
        echo "$name $profile: ${counted[2]} lines beyond 32 KiB per delivered packet, limit $lines ($limits)" >&2
        status=1
    fi
done < <(rows)
exit $status
