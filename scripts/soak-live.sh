#!/usr/bin/env bash
# Our TCP against the kernel's on real packets, over every kind of path, every byte compared: 64 GiB, or --gib N. It is done in parts,
# one line each; finished parts are noted in SOAK_LIVE_STATE (target/soak-live.state), and a run that was stopped goes on behind them.
# --fresh begins again. Needs root or namespaces and TUN; says so and does nothing without.
set -u
cd "$(dirname "$0")/.." || exit 1
scripts/need-cargo.sh || exit 1
gib=64
state=${SOAK_LIVE_STATE:-${CARGO_TARGET_DIR:-target}/soak-live.state}
while [ $# -gt 0 ]; do
    case $1 in
    --gib)
        gib=${2:?a number of GiB}
        shift 2
        ;;
    --fresh)
        rm -f "$state"
        shift
        ;;
    *)
        echo "soak-live.sh: unknown argument $1; there are --gib N and --fresh" >&2
        exit 2
        ;;
    esac
done
FLEETFOOT_SOAK_GIB=$gib FLEETFOOT_SOAK_STATE=$(realpath -m "$state") cargo test --profile ci --locked --quiet \
    --package fleetfoot-live --test host -- --ignored --exact soak::gibibytes_over_every_kind_of_path --nocapture || exit 1
rm -f "$state"
