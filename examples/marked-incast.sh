#!/bin/sh
# What do `fleetfoot mark` and `fleetfoot router` change for many short transfers at once, on real packets and in the simulator?
#
#   sh examples/marked-incast.sh [RUNS] [SET-UPS] [QUEUES]     # 5 "alone beside" "drop-tail superpacket sp-h"
#
# In namespaces of its own, A - marker - B - C: A opens 50 connections and writes ten packets on each, seven times; between A and B is `fleetfoot
# mark --between` for these connections (with drop-tail a bridge in its place), B is `fleetfoot router` with 100 Mbit/s and room for 100 packets, and
# C is behind `fleetfoot shell --delay 10ms`, so that a round trip takes 20 ms. CUBIC, and the queues take turns.
#
#   alone    all 50 are opened at the same moment, and nothing else is there
#   beside   one is opened each millisecond, beside 25 connections without an end, which are not marked
#   attack   the same, while somebody sends 1000 packets of 40 bytes a second, each marked as the first of ten
#
# Printed are completion times, from the SYN to the last byte at C, with 95 % intervals from a bootstrap over runs, the mean over that of drop-tail in the
# same runs, and both in the simulator. A figure with a high share of late packets says more of this machine than of the queues. Needs root, python3,
# ethtool, chrt and CUBIC; where chrt may not give real-time priority it runs without.
set -eu
runs=${1:-5}
setups=${2:-alone beside}
queues=${3:-drop-tail superpacket sp-h}
program=${FLEETFOOT:-fleetfoot}
work=${WORK:-$(mktemp -d)}
id=$$
end() {
    for name in a marker b c; do
        ip netns pids "$name-$id" | xargs -r kill 2> /dev/null || true
    done
    sleep 0.5
    for name in a marker b c; do ip netns delete "$name-$id" 2> /dev/null || true; done
    [ -n "${WORK:-}" ] || rm -rf "$work"
}
trap end EXIT
trap "exit 1" INT TERM HUP
# The programs on the packets' way get a core when they need one, as in a machine that forwards; the rest of this runs on the same cores.
punctual="chrt --fifo 1"
$punctual true 2> /dev/null || punctual=
in_() { place=$1-$id; shift; ip netns exec "$place" "$@"; }
start() { place=$1-$id; shift; exec ip netns exec "$place" "$@"; }

for name in a marker b c; do ip netns add "$name-$id"; done
ip -n "a-$id" link add s type veth peer name in netns "marker-$id"
ip -n "marker-$id" link add out type veth peer name lan netns "b-$id"
ip -n "b-$id" link add wan type veth peer name c netns "c-$id"
for end in a:s marker:in marker:out b:lan b:wan c:c; do
    in_ "${end%:*}" ethtool -K "${end#*:}" tx off tso off gso off gro off sg off > /dev/null
    ip -n "${end%:*}-$id" link set "${end#*:}" up
done
ip -n "a-$id" address add 10.77.0.1/24 dev s
ip -n "c-$id" address add 10.77.0.2/24 dev c
ip -n "a-$id" route add default via 10.77.0.2
in_ c sysctl -qw net.ipv4.ip_forward=1
# What one transfer has learnt of the path is not for the next.
in_ a sysctl -qw net.ipv4.tcp_no_metrics_save=1

cat > "$work/sink.py" <<'PY'
# C: says when the last byte of a short transfer came, by the clock that A has, too.
import asyncio, os, socket, struct, sys, time
SIZE = 14480
class Short(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport, self.left = transport, SIZE
    def data_received(self, data):
        self.left -= len(data)
        if self.left == 0:
            self.transport.write(struct.pack("d", time.monotonic()))
            self.transport.close()
class Long(asyncio.Protocol):
    pass
async def main():
    loop = asyncio.get_running_loop()
    probe = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    probe.connect((os.environ["FLEETFOOT_FAR"], 9))
    await loop.create_server(Short, "0.0.0.0", 9000, backlog=500)
    await loop.create_server(Long, "0.0.0.0", 9001, backlog=500)
    with open(sys.argv[1], "w") as file:
        file.write(probe.getsockname()[0] + "\n")
    await asyncio.sleep(1e6)
asyncio.run(main())
PY
cat > "$work/source.py" <<'PY'
# A: prints the completion times of seven rounds of 50 transfers, a line each (s); one that takes longer than ten seconds is given up.
import asyncio, socket, struct, sys, time
address, spacing, long = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
def opened():
    it = socket.socket()
    it.setblocking(False)
    it.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    return it
async def short(loop, at):
    await asyncio.sleep(max(0.0, at - time.monotonic()))
    try:
        return await asyncio.wait_for(transfer(loop), 10)
    except (OSError, TimeoutError):
        return 10.0
async def transfer(loop):
    with opened() as it:
        began = time.monotonic()
        await loop.sock_connect(it, (address, 9000))
        await loop.sock_sendall(it, bytes(14480))
        it.shutdown(socket.SHUT_WR)
        stamp = b""
        while len(stamp) < 8:
            part = await loop.sock_recv(it, 8 - len(stamp))
            if not part:
                raise ConnectionError("C closed early")
            stamp += part
        return struct.unpack("d", stamp)[0] - began
async def endless(loop, at):
    await asyncio.sleep(at)
    with opened() as it:
        await loop.sock_connect(it, (address, 9001))
        while True:
            await loop.sock_sendall(it, bytes(65536))
async def main():
    loop = asyncio.get_running_loop()
    others = [asyncio.create_task(endless(loop, 0.01 * k)) for k in range(long)]
    if long:
        await asyncio.sleep(3)
    for _ in range(7):
        begin = time.monotonic() + 0.02
        for time_s in await asyncio.gather(*[short(loop, begin + spacing * k) for k in range(50)]):
            print(time_s, flush=True)
        await asyncio.sleep(0.5)
    for other in others:
        other.cancel()
    await asyncio.gather(*others, return_exceptions=True)
asyncio.run(main())
PY
cat > "$work/attacker.py" <<'PY'
# Every packet says that it is the first of ten (layout B), and nothing follows.
import os, random, socket, struct, sys, time
it = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
due = time.monotonic()
while True:
    udp = struct.pack("!HHHH12x", random.randrange(1024, 65536), 9, 20, 0)
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 3 << 2, 40, 0x8A00 | random.randrange(256), 0x4000, 64, 17, 0,
                       socket.inet_aton("10.77.0.66"), socket.inet_aton(sys.argv[1]))
    it.sendto(head + udp, (sys.argv[1], 0))
    due += 0.001
    time.sleep(max(0.0, due - time.monotonic()))
PY
cat > "$work/table.py" <<'PY'
import json, math, random, subprocess, sys
work, program, setup, runs, *queues = sys.argv[1:]
runs = int(runs)
draw = random.Random(1)
resamples = [[draw.randrange(runs) for _ in range(runs)] for _ in range(5000)]
def at(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
STATISTICS = {"mean": lambda v: sum(v) / len(v), "p50": lambda v: at(v, 0.5), "p95": lambda v: at(v, 0.95), "p99": lambda v: at(v, 0.99)}
def interval(value):
    values = sorted(value(chosen) for chosen in resamples)
    return values[int(0.025 * len(values))], values[int(0.975 * len(values)) - 1]
def pooled(of, chosen):
    return [time for run in chosen for time in of[run]]
times, late = {}, {}
for queue in queues:
    times[queue] = [[float(line) for line in open(f"{work}/{setup}-{queue}-{run}.txt")] for run in range(runs)]
    shares = [json.load(open(f"{work}/{setup}-{queue}-{run}.json"))["interfaces"][1]["lateness_s"]["late_share"] for run in range(runs)]
    late[queue] = max(share or 0 for share in shares)
simulated = json.loads(subprocess.run([program, "compare", f"{work}/{setup}.toml", "--json", "--quiet"], stdout=subprocess.PIPE, check=True).stdout)
simulated = {one["name"]: next(g for g in one["groups"] if g["name"] == "short") for one in simulated["variants"]}
base = queues[0]
every = list(range(runs))
print(f"\n{setup}: {runs} runs of 350 transfers for each queue; times in ms, 95 % intervals in brackets")
for queue in queues:
    words = []
    for name, of in STATISTICS.items():
        low, high = interval(lambda chosen: of(pooled(times[queue], chosen)))
        words.append(f"{name} {of(pooled(times[queue], every)) * 1e3:.0f} ({low * 1e3:.0f} to {high * 1e3:.0f})")
    given_up = sum(time >= 10 for time in pooled(times[queue], every))
    print(f"{queue:12} real: {', '.join(words)}; {given_up} given up after 10 s; at most {late[queue]:.2%} of the packets over a millisecond late")
    fct = simulated[queue if queue != "drop-tail" else "as described"]["fct_s"]
    print(f"{'':12} simulated: " + ", ".join(f"{name} {fct[name] * 1e3:.0f}" for name in STATISTICS))
    if queue != base:
        words = []
        for name, of in STATISTICS.items():
            ratio = lambda chosen: of(pooled(times[queue], chosen)) / of(pooled(times[base], chosen))
            low, high = interval(ratio)
            other = simulated["as described" if base == "drop-tail" else base]["fct_s"]
            words.append(f"{name} {ratio(every):.2f} ({low:.2f} to {high:.2f}), simulated {fct[name] / other[name]:.2f}")
        print(f"{'':12} over {base}: " + "; ".join(words))
PY
bridge() {
    printf 'mode = "bridge"\n[[interface]]\nname = "%s"\nqueue = { kind = "drop-tail", limit = "5000 packets" }\n[[interface]]\nname = "%s"\n%s\n' "$@"
}
bridge in out 'queue = { kind = "drop-tail", limit = "5000 packets" }' > "$work/plain.toml"

# The same network for the simulator: ten runs with other seeds.
simulated() {
    spacing="0 s"
    [ "$1" = alone ] || spacing="1 ms"
    cat <<TOML
[network]
kind = "dumbbell"
pairs = 1
access = { rate = "10 Gbit/s", delay = "50 us", jitter = { dist = "uniform", min = "0 us", max = "20 us" }, reverse = { jitter = { dist = "uniform", min = "0 us", max = "20 us" } } }
bottleneck = { rate = "100 Mbit/s", delay = "10 ms", queue = { kind = "drop-tail", limit = "100 packets" }, reverse = { queue = { kind = "drop-tail", limit = "1000 packets" } } }
[tcp]
profile = "linux"
congestion_control = "cubic"
[[traffic]]
name = "short"
kind = "incast"
size = "14480 B"
count = 50
rounds = 7
pause = "500 ms"
start = "3 s"
start_spacing = "$spacing"
TOML
    [ "$1" = alone ] || cat <<TOML
[[traffic]]
name = "long"
kind = "bulk"
count = 25
start_spacing = "10 ms"
TOML
    [ "$1" != attack ] || cat <<TOML
[[traffic]]
name = "attacker"
kind = "raw"
arrivals = { dist = "constant", rate = "1000 per second" }
mark = "first"
length = 10
source = "random"
addresses = 1
TOML
    for queue in superpacket sp-h; do
        cat <<TOML
[[variant]]
name = "$queue"
set = { "network.bottleneck.queue" = { kind = "$queue", limit = "100 packets" }, "traffic.short.tcp" = { super_packets = { mode = "timer", t_buffer = "60 us", max = 10 } } }
TOML
    done
    printf '[run]\nduration = "60 s"\ndrain = "20 s"\nseeds = 10\n'
}

rm -f "$work/address"
start c "$program" shell --quiet --delay 10ms -- python3 "$work/sink.py" "$work/address" &
until [ -s "$work/address" ]; do sleep 0.1; done
address=$(cat "$work/address")
for setup in $setups; do
    case $setup in
        alone) traffic="0 0" ;;
        beside | attack) traffic="0.001 25" ;;
        *) echo "marked-incast.sh: no set-up $setup; there are alone, beside and attack" >&2; exit 2 ;;
    esac
    simulated "$setup" > "$work/$setup.toml"
    run=0
    while [ "$run" -lt "$runs" ]; do
        for queue in $queues; do
            bridge lan wan "rate = \"100 Mbit/s\"
queue = { kind = \"$queue\", limit = \"100 packets\" }" > "$work/router.toml"
            start b $punctual "$program" router --quiet --json "$work/router.toml" > "$work/$setup-$queue-$run.json" & router=$!
            case $queue in
                drop-tail) start marker $punctual "$program" router --quiet "$work/plain.toml" & ;;
                *) start marker $punctual "$program" mark --quiet --port 9000 --between in,out & ;;
            esac
            marker=$!
            sleep 1
            attacker=
            if [ "$setup" = attack ]; then
                start a python3 "$work/attacker.py" "$address" & attacker=$!
            fi
            # shellcheck disable=SC2086 # two words
            in_ a python3 "$work/source.py" "$address" $traffic > "$work/$setup-$queue-$run.txt"
            kill "$router" "$marker" $attacker
            wait "$router" "$marker"
            printf '.' >&2
        done
        run=$((run + 1))
    done
    # shellcheck disable=SC2086 # several words
    python3 "$work/table.py" "$work" "$program" "$setup" "$runs" $queues
done
