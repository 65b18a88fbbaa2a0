#!/usr/bin/env python3
"""Transfers of this kernel over its own queue disciplines, three namespaces in a row: sender, router, receiver.

    fq_codel.py OUTPUT-FOLDER [CASE...]

The router's way to the receiver has a token bucket (tbf) with the queue discipline under test inside; all delay (24 ms) is on
the receiver's way back. Offloads are off, so that the router sees packets as long as the wire's. Writes OUTPUT/results.txt: one
line per case. Meant to be run by fq_codel.sh under guest.sh; alone it needs root, veth and the disciplines.
"""
import ctypes
import os
import select
import socket
import subprocess
import sys
import threading
import time

LIBC = ctypes.CDLL(None, use_errno=True)
PORT = 5001
RTT_MS = 24
# The scenario open.toml of the review: four users fetch 300 kB each and think for 1 s, beside one download.
OPEN = dict(rate="20mbit", users=4, size=300_000, think=1.0, seconds=20, warmup=3)
ALONE = dict(rate="20mbit", users=0, size=0, think=1.0, seconds=30, warmup=5)
# The trace 5g.trace of the review: a new rate every 200 ms, Mbit/s.
STEPS = [50, 5, 100, 5, 50, 20, 100, 50, 5, 20, 20, 20, 20, 100, 5, 200, 50, 200, 50, 200, 200, 100, 20, 100, 5, 100, 20,
         50, 5, 100, 200, 200, 5, 100, 200, 50, 20, 50, 5, 50, 5, 20, 20, 5, 200, 100, 20, 100, 50, 200]
CELL = dict(rate="50mbit", users=0, size=0, think=1.0, seconds=30, warmup=0, steps=STEPS)
FIFO, WIDE = "bfifo limit 454200", "bfifo limit 2000000"
CASES = {
    "open-fifo": dict(OPEN, queue=FIFO),
    "open-fq_codel": dict(OPEN, queue="fq_codel"),
    "open-codel": dict(OPEN, queue="codel"),
    "open-fq_pie": dict(OPEN, queue="fq_pie"),
    "open-cake": dict(OPEN, queue="cake unlimited besteffort flows"),
    "open-fq_codel-reno": dict(OPEN, queue="fq_codel", control="reno"),
    "open-sfq": dict(OPEN, queue="sfq limit 300"),
    "alone-fifo": dict(ALONE, queue=FIFO),
    "alone-fq_codel": dict(ALONE, queue="fq_codel"),
    "alone-fq_codel-reno": dict(ALONE, queue="fq_codel", control="reno"),
    "alone-codel": dict(ALONE, queue="codel"),
    "cell-fifo": dict(CELL, queue=WIDE),
    "cell-fq_codel": dict(CELL, queue="fq_codel"),
    "cell-codel": dict(CELL, queue="codel"),
    "cell-fq_pie": dict(CELL, queue="fq_pie"),
}


def sh(line):
    subprocess.run(line, shell=True, check=True)


def enter(name):
    with open(f"/run/netns/{name}") as handle:
        if LIBC.setns(handle.fileno(), 0):
            raise OSError(ctypes.get_errno(), f"setns {name}")


def build(case):
    for name in ("left", "mid", "right"):
        sh(f"ip netns add {name}; ip -n {name} link set lo up")
    for a, b, c, d, net in (("left", "l0", "m0", "mid", 1), ("mid", "m1", "r0", "right", 2)):
        sh(f"ip link add {b} netns {a} type veth peer name {c} netns {d}")
        sh(f"ip -n {a} addr add 10.0.{net}.1/24 dev {b}; ip -n {d} addr add 10.0.{net}.2/24 dev {c}")
        for space, device in ((a, b), (d, c)):
            sh(f"ip netns exec {space} ethtool -K {device} tso off gso off gro off tx off rx off >/dev/null 2>&1 || true")
            sh(f"ip -n {space} link set {device} gso_max_segs 1 up")
    sh("ip netns exec mid sysctl -q net.ipv4.ip_forward=1")
    sh("ip -n left route add default via 10.0.1.2; ip -n right route add default via 10.0.2.1")
    sh(f"tc -n right qdisc replace dev r0 root netem delay {RTT_MS}ms limit 100000")
    sh(f"tc -n mid qdisc replace dev m1 root handle 1: {bucket(case, case['rate'])}")
    sh(f"tc -n mid qdisc replace dev m1 parent 1:1 handle 2: {case['queue']}")
    for space in ("left", "right"):
        sh(f"ip netns exec {space} sysctl -q net.ipv4.tcp_congestion_control={case.get('control', 'cubic')}")
        sh(f"ip netns exec {space} sysctl -q net.ipv4.tcp_no_metrics_save=1")


def bucket(case, rate):
    limit = case["queue"].split()[2] if case["queue"].startswith("bfifo") else 10_000_000
    # 14 bytes of Ethernet header count; a bucket of one packet, so that nothing leaves in bursts.
    return f"tbf rate {rate} burst {1700 if 'steps' not in case else 6000} limit {limit}"


def sink(case, start, out):
    """Takes bytes; prints the download's within the measured time."""
    enter("right")
    server = socket.create_server(("", PORT), backlog=100)
    poll = select.poll()
    poll.register(server, select.POLLIN)
    kinds, sockets, counted = {}, {}, 0
    begin, end = start + case["warmup"], start + case["seconds"]
    buffer = bytearray(1 << 18)
    while time.monotonic() < end:
        for number, _ in poll.poll(50):
            if number == server.fileno():
                connection = server.accept()[0]
                sockets[connection.fileno()] = connection
                poll.register(connection, select.POLLIN)
                continue
            connection = sockets[number]
            try:
                count = connection.recv_into(buffer)
            except OSError:
                count = 0
            kinds.setdefault(number, buffer[0:1] == b"d")
            if count == 0:
                poll.unregister(number)
                connection.close()
                del sockets[number], kinds[number]
            elif kinds[number] and begin <= time.monotonic() < end:
                counted += count
    os.write(out, f"{counted}".encode())
    os._exit(0)


def user(case, start, times):
    end = start + case["seconds"]
    while True:
        time.sleep(case["think"])
        begin = time.monotonic()
        if begin >= end:
            return
        with socket.create_connection(("10.0.2.2", PORT)) as connection:
            connection.sendall(b"u" * case["size"])
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(end - begin + 1)
            try:
                connection.recv(1)
            except OSError:
                return
        if time.monotonic() < end and begin - start >= case["warmup"]:
            times.append(time.monotonic() - begin)


def download(case, start):
    with socket.create_connection(("10.0.2.2", PORT)) as connection:
        connection.settimeout(1)
        block = b"d" * 65536
        while time.monotonic() < start + case["seconds"]:
            try:
                connection.send(block)
            except OSError:
                pass


def source(case, start, out):
    enter("left")
    times = []
    threads = [threading.Thread(target=user, args=(case, start, times), daemon=True) for _ in range(case["users"])]
    threads.append(threading.Thread(target=download, args=(case, start), daemon=True))
    for thread in threads:
        thread.start()
    time.sleep(max(0.0, start + case["seconds"] - time.monotonic()))
    os.write(out, " ".join(f"{t:.4f}" for t in times).encode() or b"-")
    os._exit(0)


def counters():
    line = subprocess.run("tc -n mid -s qdisc show dev m1", shell=True, capture_output=True, text=True, check=True).stdout
    root = line.split("qdisc ")[1].split()
    inner = line.split("qdisc ")[2].split()
    return int(root[root.index("Sent") + 1]), int(inner[inner.index("(dropped") + 1].rstrip(","))


def run(name, case, results):
    build(case)
    start = time.monotonic() + 0.5
    pipes, children = [], []
    for role in (sink, source):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            role(case, start, write)
        os.close(write)
        pipes.append(read)
        children.append(child)
    changer = None
    if "steps" in case:
        changer = subprocess.Popen(["tc", "-n", "mid", "-force", "-batch", "-"], stdin=subprocess.PIPE, text=True)
        at = start
        for step in case["steps"] * 3:
            if at >= start + case["seconds"]:
                break
            time.sleep(max(0.0, at - time.monotonic()))
            changer.stdin.write(f"qdisc change dev m1 root handle 1: {bucket(case, str(step) + 'mbit')}\n")
            changer.stdin.flush()
            at += 0.2
    time.sleep(max(0.0, start + case["warmup"] - time.monotonic()))
    before = counters() if "steps" not in case else (0, 0)
    time.sleep(max(0.0, start + case["seconds"] - time.monotonic()))
    after = counters()
    if changer:
        changer.stdin.close()
        changer.wait()
    counted, took = (os.read(pipe, 1 << 16).decode() for pipe in pipes)
    for child in children:
        os.waitpid(child, 0)
    took = [float(word) for word in took.split() if word != "-"]
    measured = case["seconds"] - case["warmup"]
    if "steps" in case:
        capacity = sum((case["steps"] * 3)[: case["seconds"] * 5]) * 1e6 * 0.2
    else:
        capacity = float(case["rate"].removesuffix("mbit")) * 1e6 * measured
    mean = sum(took) / len(took) if took else 0.0
    line = (f"{name} download_mbit_s {int(counted) * 8e-6 / measured:.2f} used {(after[0] - before[0]) * 8 / capacity:.3f} "
            f"drops {after[1] - before[1]} transfers {len(took)} mean_s {mean:.3f}")
    print(line, flush=True)
    results.write(line + "\n")
    results.flush()
    for name in ("left", "mid", "right"):
        sh(f"ip netns del {name}")


def main():
    names = sys.argv[2:] or list(CASES)
    with open(f"{sys.argv[1]}/results.txt", "a") as results:
        results.write(f"# kernel {os.uname().release.split('-')[0]}\n")
        for name in names:
            run(name, CASES[name], results)


main()
