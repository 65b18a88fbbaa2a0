#!/usr/bin/env bash
# Loads pages over QUIC on the line of quic/home.toml twice: in the simulator, and between a quinn client and a quinn server on real
# sockets behind the same link (`fleetfoot shell`: root or user namespaces, ip). Says whether the medians are within 5 %: a busy machine is
# no failure.
set -u
cd "$(dirname "$0")/../.." || exit 1
if ! command -v ip >/dev/null 2>&1 || [ ! -e /dev/net/tun ]; then
    echo "skipped: needs /dev/net/tun and the program ip"
    exit 0
fi
target=${CARGO_TARGET_DIR:-$PWD/target}
cargo build --release --quiet --locked --package fleetfoot-cli --features quic || exit 1
cargo build --release --quiet --locked --manifest-path bench/peers/quic/Cargo.toml --target-dir "$target" || exit 1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$target/release/fleetfoot" run bench/peers/quic/home.toml --quiet --out "$folder/run" >/dev/null || exit 1
pages=$target/release/quic-pages
# What is compared is the network: nobody should wait for a core.
priority=()
[ "$(id -u)" = 0 ] && priority=(nice -n -15)
"${priority[@]}" "$target/release/fleetfoot" shell bench/peers/quic/home.toml --far "$pages server 0.0.0.0:4433" -- \
    sh -c "sleep 1; exec $pages client \$FLEETFOOT_FAR:4433 ${PAGES:-50} 20000 40 20000" >"$folder/real" 2>"$folder/said" || {
    cat "$folder/said"
    exit 1
}
python3 - "$folder" <<'P'
import csv, statistics, sys
folder = sys.argv[1]
real = [float(line) for line in open(folder + "/real")]
with open(folder + "/run/samples.csv") as flows:
    simulated = [float(row["fct_s"]) for row in csv.DictReader(flows) if row["fct_s"]]
one, other = statistics.median(simulated), statistics.median(real)
off = other / one - 1
print(f"a page over QUIC: {one * 1e3:.1f} ms in the simulator ({len(simulated)} pages), {other * 1e3:.1f} ms on real sockets "
      f"({len(real)} pages): {off * 100:+.1f} % at the median, {'within' if abs(off) <= 0.05 else 'beyond'} 5 %")
P
