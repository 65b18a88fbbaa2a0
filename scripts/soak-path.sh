#!/usr/bin/env bash
# `fleetfoot router` and `fleetfoot proxy` under load while they are reloaded, cut off and killed: 64 GiB each way through the router, and
# through proxies, or --gib N. It is done in parts, one line each; finished parts are noted in SOAK_PATH_STATE (target/soak-path) with
# .router and .proxy behind it, and a run that was stopped goes on behind them. --fresh begins again; --only router and --only proxy do
# half of it; --ring frames|blocks|xdp and --mode bridge|route do the router's parts with that ring and mode alone.
# Needs root; says so and does nothing without.
set -u
cd "$(dirname "$0")/.." || exit 1
scripts/need-cargo.sh || exit 1
gib=64
only="router proxy"
ring=
mode=
fresh=
state=${SOAK_PATH_STATE:-${CARGO_TARGET_DIR:-target}/soak-path}
while [ $# -gt 0 ]; do
    case $1 in
    --gib)
        gib=${2:?a number of GiB}
        shift 2
        ;;
    --only)
        only=${2:?router or proxy}
        case $only in router | proxy) ;; *) echo "soak-path.sh: --only router or --only proxy, not $only" >&2; exit 2 ;; esac
        shift 2
        ;;
    --ring)
        ring=${2:?frames, blocks or xdp}
        case $ring in frames | blocks | xdp) ;; *) echo "soak-path.sh: --ring frames, blocks or xdp, not $ring" >&2; exit 2 ;; esac
        shift 2
        ;;
    --mode)
        mode=${2:?bridge or route}
        case $mode in bridge | route) ;; *) echo "soak-path.sh: --mode bridge or route, not $mode" >&2; exit 2 ;; esac
        shift 2
        ;;
    --fresh)
        fresh=yes
        shift
        ;;
    *)
        echo "soak-path.sh: unknown argument $1; there are --gib N, --only router|proxy, --ring, --mode and --fresh" >&2
        exit 2
        ;;
    esac
done
if [ -n "$ring$mode" ]; then
    [ "$only" != proxy ] || { echo "soak-path.sh: --ring and --mode are for the router, not for the proxies" >&2; exit 2; }
    only=router
    state=$state${ring:+.$ring}${mode:+.$mode}
    export ${ring:+FLEETFOOT_SOAK_RING="$ring"} ${mode:+FLEETFOOT_SOAK_MODE="$mode"}
fi
[ -z "$fresh" ] || rm -f "$state".router "$state".proxy
for which in $only; do
    case $which in
    router) name=router::gibibytes_through_a_router ;;
    proxy) name=proxy::gibibytes_through_proxies ;;
    esac
    FLEETFOOT_SOAK_GIB=$gib FLEETFOOT_SOAK_STATE=$(realpath -m "$state.$which") cargo test --profile ci --locked --quiet \
        --package fleetfoot-cli --features xdp --test soak -- --ignored --exact "$name" --nocapture || exit 1
    rm -f "$state.$which"
done
