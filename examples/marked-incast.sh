#!/bin/sh
# What do `fleetfoot mark` and `fleetfoot router` change for many short answers at once, and does it depend on the senders' congestion control?
#
#   sh examples/marked-incast.sh [RUNS] [CONGESTION CONTROLS]      # 3 "cubic bbr"
#
# In namespaces of its own: a server, `fleetfoot mark --between` (or, without marks, a bridge in its place), `fleetfoot router` with 100 Mbit/s and room
# for 100 packets, and a client that opens 50 connections at once, 20 times, each of which brings ten packets. No delay is added. The queues take
# turns. Printed are completion times. Needs root, python3 and ethtool, and congestion controls that the kernel has.
set -eu
runs=${1:-3}
controls=${2:-cubic bbr}
program=${FLEETFOOT:-fleetfoot}
work=$(mktemp -d)
id=$$
end() {
    for name in server marker router client; do
        ip netns pids "$name-$id" | xargs -r kill 2> /dev/null || true
        ip netns delete "$name-$id" 2> /dev/null || true
    done
    rm -rf "$work"
}
trap end EXIT
trap "exit 1" INT TERM HUP
in_() { place=$1-$id; shift; ip netns exec "$place" "$@"; }
start() { place=$1-$id; shift; exec ip netns exec "$place" "$@"; }

for name in server marker router client; do ip netns add "$name-$id"; done
ip -n "server-$id" link add s type veth peer name in netns "marker-$id"
ip -n "marker-$id" link add out type veth peer name lan netns "router-$id"
ip -n "router-$id" link add wan type veth peer name c netns "client-$id"
for end in server:s marker:in marker:out router:lan router:wan client:c; do
    in_ "${end%:*}" ethtool -K "${end#*:}" tx off tso off gso off gro off sg off > /dev/null
    ip -n "${end%:*}-$id" link set "${end#*:}" up
done
ip -n "server-$id" address add 10.77.0.1/24 dev s
ip -n "client-$id" address add 10.77.0.2/24 dev c

cat > "$work/server.py" <<'PY'
import asyncio, socket, sys
async def answer(_, writer):
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, sys.argv[1].encode())
    writer.write(bytes(14480))
    writer.close()
async def main():
    await (await asyncio.start_server(answer, "10.77.0.1", 9000, backlog=500)).serve_forever()
asyncio.run(main())
PY
cat > "$work/client.py" <<'PY'
import asyncio, time
async def fetch():
    begin = time.monotonic()
    reader, writer = await asyncio.open_connection("10.77.0.1", 9000)
    assert len(await reader.read(-1)) == 14480
    writer.close()
    return time.monotonic() - begin
async def main():
    times = []
    for _ in range(20):
        times += await asyncio.gather(*[fetch() for _ in range(50)])
        await asyncio.sleep(0.4)
    times.sort()
    print(f"mean {sum(times):.0f} ms, median {times[500] * 1e3:.0f} ms, p95 {times[950] * 1e3:.0f} ms")
asyncio.run(main())
PY
bridge() {
    printf 'mode = "bridge"\n[[interface]]\nname = "%s"\nqueue = { kind = "drop-tail", limit = "5000 packets" }\n[[interface]]\nname = "%s"\n%s\n' "$@"
}
bridge in out 'queue = { kind = "drop-tail", limit = "5000 packets" }' > "$work/plain.toml"
for run in $(seq "$runs"); do
    for control in $controls; do
        start server python3 "$work/server.py" "$control" & server=$!
        for queue in drop-tail superpacket sp-h; do
            bridge lan wan "rate = \"100 Mbit/s\"
queue = { kind = \"$queue\", limit = \"100 packets\" }" > "$work/router.toml"
            start router "$program" router --quiet "$work/router.toml" & router=$!
            case $queue in
                drop-tail) start marker "$program" router --quiet "$work/plain.toml" & ;;
                *) start marker "$program" mark --quiet --between in,out & ;;
            esac
            marker=$!
            sleep 1
            printf 'run %s, %s, %s: ' "$run" "$control" "$queue"
            in_ client python3 "$work/client.py"
            kill "$router" "$marker"
            wait "$router" "$marker"
        done
        kill "$server"
        wait "$server" 2> /dev/null || true
    done
done
