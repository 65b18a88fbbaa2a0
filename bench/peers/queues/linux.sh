#!/usr/bin/env bash
# Plays the schedules of crates/core/tests/queue_peers through Linux's own sch_codel.c and sch_fq_codel.c, taken out of Debian's
# package linux-source-6.1 (fetched once into the cache folder, 140 MB) and built with the few things of the kernel they need
# (kernel.c), and holds ours to what they did. With a folder as argument the records stay there (specs/linux-6.1-queues).
set -euo pipefail
cd "$(dirname "$0")/../../.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/fleetfoot/linux-source
for program in gcc g++ dpkg-deb xz; do
    command -v "$program" >/dev/null || { echo "skipped: $program is missing (Debian packages gcc g++ xz-utils)"; exit 0; }
done
if [ ! -e "$cache/ready" ]; then
    mkdir -p "$cache"
    if ! (cd "$cache" && apt-get download linux-source-6.1 >/dev/null 2>&1); then
        echo "skipped: no package linux-source-6.1 here"
        exit 0
    fi
    dpkg-deb -x "$cache"/linux-source-6.1*.deb "$cache/package"
    tar -xJf "$cache"/package/usr/src/linux-source-6.1.tar.xz -C "$cache" --strip-components=1 --wildcards \
        '*/include/net/codel*.h' '*/net/sched/sch_codel.c' '*/net/sched/sch_fq_codel.c'
    rm -rf "$cache/package" "$cache"/*.deb
    touch "$cache/ready"
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/schedules" "$work/records/linux-6.1-queues" "$work/codel" "$work/fq_codel"
for name in codel fq_codel; do
    for header in codel codel_impl codel_qdisc; do
        grep -v '^#include' "$cache/include/net/$header.h" >"$work/$name/$header.h"
    done
done
# Data and the two calls; not the netlink part, and not peeking, which only another discipline above would do.
sed -n '/^struct codel_sched_data {/,/^static const struct nla_policy/p' "$cache/net/sched/sch_codel.c" |
    sed '$d; /^static struct sk_buff \*codel_peek/,/^}/d' >"$work/codel/discipline.c"
sed -n '/^struct fq_codel_flow {/,/^static void fq_codel_flow_purge/p' "$cache/net/sched/sch_fq_codel.c" |
    sed '$d; /^static struct sk_buff \*fq_codel_peek/,/^}/d' >"$work/fq_codel/discipline.c"
gcc -O1 -w -DCODEL -I "$work/codel" -I bench/peers/queues -c -o "$work/codel/kernel.o" bench/peers/queues/kernel.c
gcc -O1 -w -I "$work/fq_codel" -I bench/peers/queues -c -o "$work/fq_codel/kernel.o" bench/peers/queues/kernel.c
for name in codel fq_codel; do
    g++ -O1 -std=c++17 -o "$work/$name/queues" bench/peers/queues/kernel.cc "$work/$name/kernel.o"
done
FLEETFOOT_QUEUE_SCHEDULES=$work/schedules cargo test --quiet --locked --package fleetfoot-core --test queue_peers schedules_for >/dev/null
for schedule in "$work"/schedules/*.txt; do
    name=$(basename "$schedule")
    printf '%-24s ' "${name%.txt}"
    case $name in codel-*) queue=codel ;; *) queue=fq_codel ;; esac
    "$work/$queue/queues" "$schedule" 2>&1 >"$work/records/linux-6.1-queues/$name"
done
FLEETFOOT_QUEUE_RECORDS=$work/records cargo test --quiet --locked --package fleetfoot-core --test queue_peers linux
if [ -n "${1:-}" ]; then
    mkdir -p "$1"
    cp "$work"/records/linux-6.1-queues/*.txt "$1"
fi
