#!/usr/bin/env python3
"""Is what `fleetfoot import` says of a capture true? Two captures that other programs made.

Two namespaces with Linux's TCP are joined by a relay that knows its rate and its delay (this kernel may have no netem). A client and a
server of known sizes and waits talk over it, tcpdump captures at the client, at the server, and `import` has to find rate, round-trip time,
sizes and waits within 5 %.

    scripts/real-captures.py PROGRAM [--keep FOLDER] [--small]

Needs root, ip (iproute2), ethtool and tcpdump; without them it says so and exits 0. Namespaces and interfaces live as long as the
processes in them, which die with this one. --small makes the short captures that are checked in; --keep keeps the captures.
"""
import ctypes
import heapq
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET, PR_SET_PDEATHSIG, PR_SET_TIMERSLACK = 0x40000000, 1, 29
CLIENT, SERVER, PORT = "10.9.0.1", "10.9.0.2", 8080


class Link:
    """One direction of the relay: a queue, a serialiser, a wire."""

    def __init__(self, rate_bps, delay_s, queue_bytes):
        self.rate, self.delay, self.queue = rate_bps, delay_s, queue_bytes
        self.free_at, self.drops = 0.0, 0

    def leaves_at(self, now, length):
        backlog = max(0.0, self.free_at - now) * self.rate / 8
        if backlog + length > self.queue:
            self.drops += 1
            return None
        self.free_at = max(now, self.free_at) + length * 8 / self.rate
        return self.free_at + self.delay


def relay(interfaces, rate_bps, rtt_s, queue_bytes):
    """Forwards frames between two interfaces; a layer-3 byte takes 8 / rate."""
    ends = []
    for name in interfaces:
        end = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
        end.bind((name, 0))
        end.setblocking(False)
        ends.append(end)
    links = [Link(rate_bps, rtt_s / 2, queue_bytes) for _ in ends]
    due, number = [], 0
    print("ready", flush=True)
    while True:
        now = time.monotonic()
        while due and due[0][0] <= now:
            at, _, side, frame = heapq.heappop(due)
            try:
                ends[1 - side].send(frame)
            except OSError:
                return  # the other namespace is gone
            now = time.monotonic()
        wait = max(0.0, due[0][0] - now) if due else 1.0
        for end in select.select(ends, [], [], wait)[0]:
            side = ends.index(end)
            for _ in range(64):
                try:
                    frame, address = end.recvfrom(65535)
                except BlockingIOError:
                    break
                except OSError:
                    return
                if address[2] == socket.PACKET_OUTGOING:
                    continue
                now = time.monotonic()
                at = links[side].leaves_at(now, len(frame) - 14)
                if at is not None:
                    number += 1
                    heapq.heappush(due, (at, number, side, frame))


def exactly(connection, count):
    parts = []
    while count > 0:
        part = connection.recv(min(count, 1 << 16))
        if not part:
            return None
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def serve():
    """A request states its own size, the wait, and the size of the answer."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    listener.bind((SERVER, PORT))
    listener.listen(64)
    print("ready", flush=True)

    def talk(connection):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with connection:
            while (head := exactly(connection, 12)) is not None:
                size, wait_us, answer = struct.unpack("!III", head)
                if exactly(connection, size - 12) is None:
                    return
                time.sleep(wait_us / 1e6)
                connection.sendall(bytes(answer))

    while True:
        connection, _ = listener.accept()
        threading.Thread(target=talk, args=(connection,), daemon=True).start()


def ask(plan):
    """Plays a plan: connections of (start, [(request, wait, answer, think)])."""
    began = time.monotonic()

    def talk(start, exchanges):
        time.sleep(max(0.0, began + start - time.monotonic()))
        connection = socket.create_connection((SERVER, PORT))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        with connection:
            for request, wait_us, answer, think_us in exchanges:
                connection.sendall(struct.pack("!III", request, wait_us, answer) + bytes(request - 12))
                exactly(connection, answer)
                time.sleep(think_us / 1e6)

    threads = [threading.Thread(target=talk, args=one) for one in plan]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def namespaced(role, *more):
    """A child of this script in a network namespace of its own."""
    def enter():
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if LIBC.unshare(CLONE_NEWNET) != 0:
            os._exit(9)
    return subprocess.Popen([sys.executable, __file__, "--role", role, *more], preexec_fn=enter,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def inside(pid, *command):
    return ("nsenter", "-t", str(pid), "-n", *command)


def capture(at, path, plan, rate_bps, rtt_s, queue_bytes, snap):
    """Plays `plan` and captures at the `client` or the `server`."""
    children = {role: namespaced("host") for role in ("client", "server")}
    children["relay"] = namespaced("relay", str(rate_bps), str(rtt_s), str(queue_bytes))
    dump = None
    try:
        time.sleep(0.3)
        pids = {role: child.pid for role, child in children.items()}
        for role, address in (("client", CLIENT), ("server", SERVER)):
            # Both ends are made where they belong, so that nothing ever stands in the namespace of this machine.
            run(*inside(pids["relay"], "ip", "link", "add", f"to-{role}", "type", "veth", "peer", "name", "eth0", "netns", str(pids[role])))
            run(*inside(pids[role], "ip", "addr", "add", f"{address}/24", "dev", "eth0"))
            for pid, name in ((pids[role], "eth0"), (pids["relay"], f"to-{role}")):
                run(*inside(pid, "ethtool", "-K", name, "tso", "off", "gso", "off", "gro", "off", "tx", "off", "sg", "off"))
                run(*inside(pid, "ip", "link", "set", name, "up"))
        for role in children:
            children[role].stdin.write("go\n")
            children[role].stdin.flush()
        children["relay"].stdout.readline()
        server = subprocess.Popen(inside(pids["server"], sys.executable, __file__, "--role", "serve"),
                                  stdout=subprocess.PIPE, text=True,
                                  preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
        children["serving"] = server
        server.stdout.readline()
        dump = subprocess.Popen(inside(pids[at], "tcpdump", "-i", "eth0", "-n", "-s", str(snap), "-B", "8192", "-U", "--immediate-mode", "-w", path, "tcp"),
                                stderr=subprocess.PIPE, text=True)
        children["tcpdump"] = dump
        while "listening" not in dump.stderr.readline():
            pass
        client = subprocess.run(inside(pids["client"], sys.executable, __file__, "--role", "ask"), input=json.dumps(plan), text=True)
        if client.returncode != 0:
            sys.exit("the client failed")
        time.sleep(1.0)
        dump.send_signal(signal.SIGINT)
        dump.wait(timeout=10)
    finally:
        for child in children.values():
            child.kill()
            child.wait()


def expect(failures, what, found, wanted):
    share = abs(found / wanted - 1) if wanted else abs(found)
    good = share <= 0.05
    print(f"  {what:<34}{found:>14.6g}  known {wanted:>12.6g}  {'' if good else 'NOT '}within 5 %")
    if not good:
        failures.append(what)


def judge(program, folder, name, path, known):
    """What import says beside what is known."""
    scenario = os.path.join(folder, f"{name}.toml")
    result = subprocess.run([program, "import", path, "--out", scenario, "--force", "--json", "--quiet"],
                            capture_output=True, text=True)
    if result.returncode != 0:
        sys.exit(f"import failed: {result.stdout}{result.stderr}")
    summary = json.loads(result.stdout)["summary"]
    failures = []
    print(f"{name}: {summary['packets']} packets, {summary['connections']} connections")
    expect(failures, "connections", summary["connections"], known["connections"])
    expect(failures, "bytes from the client", summary["segments"][0]["bytes"], known["up"])
    expect(failures, "bytes to the client", summary["segments"][1]["bytes"], known["down"])
    expect(failures, "RTT, handshakes, median (s)", summary["handshake_rtt_s"]["p50"], known["rtt_s"])
    expect(failures, "RTT, smallest, median (s)", summary["rtt_s"]["p50"], known["rtt_s"])
    for key, what in (("answer_wait_s", "wait before answers, median (s)"), ("ask_wait_s", "wait before the next, median (s)")):
        if key in known:
            expect(failures, what, summary[key]["p50"], known[key])
    if "rate_bps" in known:
        expect(failures, "rate to the client (bit/s)", summary["rate"][1]["bps"], known["rate_bps"])
    if "answer" in known:
        expect(failures, "bytes answered, median", summary["unit_bytes"][1]["p50"], known["answer"])
    return failures


def scenes(small):
    """Name, where, plan, rate, RTT, queue, what is known."""
    few = 3 if small else 12
    # Users who ask: sizes and waits differ, so that the median is one of them.
    pages = [(0.15 * number, [(400, 30_000, 9_000, 60_000)] * (2 if small else 4)) for number in range(few)]
    exchanges = sum(len(one[1]) for one in pages)
    yield ("pages-at-client", "client", pages, 20e6, 0.040, 60_000,
           {"connections": few, "up": 400 * exchanges, "down": 9_000 * exchanges, "rtt_s": 0.040, "answer_wait_s": 0.030,
            "ask_wait_s": 0.060, "answer": 9_000})
    size = 60_000 if small else 3_000_000
    bulk = [(0.0, [(200, 0, size, 0)]), (0.4, [(200, 0, size, 0)])]
    known = {"connections": 2, "up": 400, "down": 2 * size, "rtt_s": 0.080, "answer": size}
    if not small:
        known["rate_bps"] = 8e6
    yield ("bulk-at-server", "server", bulk, 8e6, 0.080, 60_000, known)
    if not small:
        yield ("bulk-at-client", "client", bulk, 8e6, 0.080, 60_000, known)


def missing():
    if os.geteuid() != 0:
        return "this needs root, for namespaces"
    for tool in ("ip", "ethtool", "tcpdump", "nsenter"):
        if shutil.which(tool) is None:
            return f"{tool} is not installed"
    if subprocess.run(["unshare", "-n", "true"], stderr=subprocess.DEVNULL).returncode != 0:
        return "namespaces cannot be made here"
    return None


def main():
    if "--role" in sys.argv:
        role = sys.argv[sys.argv.index("--role") + 1]
        LIBC.prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0)
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        except OSError:
            pass  # later than said on a busy machine
        if role in ("host", "relay"):
            sys.stdin.readline()
        if role == "relay":
            rate, rtt, queue = (float(word) for word in sys.argv[-3:])
            relay(("to-client", "to-server"), rate, rtt, queue)
        elif role == "serve":
            serve()
        elif role == "ask":
            ask(json.load(sys.stdin))
        while role == "host":
            signal.pause()
        return
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    reason = missing()
    if reason:
        print(f"skipped: {reason}")
        return
    program, small = os.path.abspath(sys.argv[1]), "--small" in sys.argv
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    kept = sys.argv[sys.argv.index("--keep") + 1] if "--keep" in sys.argv else None
    with tempfile.TemporaryDirectory() as scratch:
        folder = kept or scratch
        os.makedirs(folder, exist_ok=True)
        failures = []
        for name, at, plan, rate, rtt, queue, known in scenes(small):
            path = os.path.join(folder, f"{name}.pcap")
            capture(at, path, plan, rate, rtt, queue, 96)
            failures += judge(program, folder, name, path, known)
    if failures:
        sys.exit(f"not within 5 %: {', '.join(failures)}")
    print("import of real captures: passed")


if __name__ == "__main__":
    main()
