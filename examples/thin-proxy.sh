#!/bin/sh
# How many messages of a thin stream arrive late over a bad link, and what does redundant data bundling in a proxy change?
#
#   sh examples/thin-proxy.sh [RUNS] [SHARE OF PACKETS LOST]
#
# A client sends 100 bytes every 15 ms through `fleetfoot proxy`, whose TCP crosses the link, to a server at the far end. Each run has a
# seed of its own for what the link loses, the same for all settings. Late is a message that arrives more than 100 ms after it was
# written, where 30 ms are the link's delay one way. Needs root and python3.
set -eu
runs=${1:-5}
loss=${2:-10%}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Both ends read the same clock of this machine.
cat > "$work/server.py" <<'PY'
import socket, struct, sys, time
listener = socket.create_server(("0.0.0.0", 7000))
stream, _ = listener.accept()
delays, rest = [], b""
while data := stream.recv(65536):
    now = time.monotonic()
    rest += data
    while len(rest) >= 100:
        delays.append((now - struct.unpack("d", rest[:8])[0]) * 1e3)
        rest = rest[100:]
delays.sort()
late = sum(delay > 100 for delay in delays)
at = lambda share: delays[min(len(delays) - 1, int(share * len(delays)))]
text = f"{len(delays)} messages, {late} late; ms: mean {sum(delays) / len(delays):.1f}, median {at(0.5):.1f}, p99 {at(0.99):.1f}, longest {delays[-1]:.1f}"
open(sys.argv[1], "w").write(text + "\n")
stream.close()
PY
cat > "$work/client.py" <<'PY'
import socket, struct, time
stream = socket.create_connection(("127.0.0.1", 1080))
stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
begin = time.monotonic()
for number in range(1000):
    time.sleep(max(0, begin + number * 0.015 - time.monotonic()))
    stream.sendall(struct.pack("d", time.monotonic()) + bytes(92))
stream.shutdown(socket.SHUT_WR)
stream.recv(1)
PY
cat > "$work/near.sh" <<'RUN'
: > "$1/said"
${FLEETFOOT:-fleetfoot} proxy --to "$FLEETFOOT_FAR:7000" --set tcp.rdb="$2" 2> "$1/said" &
proxy=$!
until grep -q 'proxy at' "$1/said"; do sleep 0.05; done
sleep 0.5
python3 "$1/client.py"
sleep 0.5
kill -TERM $proxy
wait $proxy
grep '^our TCP' "$1/said"
RUN

for seed in $(seq "$runs"); do
    for rdb in off one all; do
        ${FLEETFOOT:-fleetfoot} shell --rate 10mbit --delay 30ms --loss "$loss" --seed "$seed" --quiet \
            --far "python3 $work/server.py $work/late" -- sh "$work/near.sh" "$work" "$rdb" > "$work/counted"
        printf 'run %s, rdb %s: ' "$seed" "$rdb"
        cat "$work/late"
        sed 's/^/  /' "$work/counted"
    done
done
