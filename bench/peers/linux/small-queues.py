#!/usr/bin/env python3
"""What waits in a Linux host whose own link is the bottleneck (TCP Small Queues), as specs/linux-6.18/small-queues.txt records it.

A greedy CUBIC sender in a network namespace of its own, behind HTB at the rate of the link and a FIFO of 1,000 packets. Between the
namespaces nothing takes time. Prints for each rate the packets that wait (bytes in the queue by the size of a full packet), what the queue
dropped, and the congestion window beside what is in flight.

Usage: small-queues.py [RATE...]; needs root, iproute2, ethtool and the kernel's sch_htb.
"""

import re
import socket
import subprocess
import sys
import time

FULL = 1514
SAMPLES = 60
FIRST = 20  # slow start is over by then


def run(command):
    return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout


def listen():
    server = socket.socket()
    server.bind(("10.9.0.2", 5000))
    server.listen()
    peer, _ = server.accept()
    while peer.recv(1 << 16):
        pass


def send(seconds):
    client = socket.socket()
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    client.connect(("10.9.0.2", 5000))
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        client.sendall(bytes(65536))


def measure(rate):
    ends = {"fleet-sq-a": "10.9.0.1/24", "fleet-sq-b": "10.9.0.2/24"}
    programs = []
    try:
        for space in ends:
            run(f"ip netns add {space}")
        run("ip link add veth-a netns fleet-sq-a type veth peer name veth-b netns fleet-sq-b")
        for space, address in ends.items():
            device = f"veth-{space[-1]}"
            run(f"ip -n {space} address add {address} dev {device} && ip -n {space} link set {device} up")
            run(f"ip netns exec {space} ethtool -K {device} tso off gso off gro off")
        inside = "ip netns exec fleet-sq-a"
        run(f"{inside} tc qdisc add dev veth-a root handle 1: htb default 1")
        run(f"{inside} tc class add dev veth-a parent 1: classid 1:1 htb rate {rate} burst 1600 cburst 1600 quantum 1514")
        run(f"{inside} tc qdisc add dev veth-a parent 1:1 handle 10: pfifo limit 1000")
        for space, role in [("fleet-sq-b", "listen"), ("fleet-sq-a", "send")]:
            programs.append(subprocess.Popen(["ip", "netns", "exec", space, sys.executable, __file__, role]))
            time.sleep(1)
        waiting = []
        for _ in range(SAMPLES):
            time.sleep(0.1)
            shown = run(f"{inside} tc -s qdisc show dev veth-a").split("qdisc pfifo")[1]
            size, unit = re.search(r"backlog (\d+)(K?)b", shown).groups()
            waiting.append(int(size) * (1000 if unit else 1) / FULL)
            dropped = int(re.search(r"dropped (\d+)", shown).group(1))
        socket_state = run(f"{inside} ss -tin dst 10.9.0.2")
        window, flight = (int(re.search(rf"{key}:(\d+)", socket_state).group(1)) for key in ["cwnd", "unacked"])
        waiting = sorted(waiting[FIRST:])
        middle = waiting[len(waiting) // 2]
        print(f"{rate} {waiting[0]:.0f} {middle:.0f} {waiting[-1]:.0f} {dropped} {window} {flight}", flush=True)
    finally:
        for program in programs:
            program.kill()
        for space in ends:
            subprocess.run(["ip", "netns", "del", space], check=False)


if sys.argv[1:] == ["listen"]:
    listen()
elif sys.argv[1:] == ["send"]:
    send(SAMPLES)
else:
    release = run("uname -r").strip().split("-")[0]
    print(f"# kernel {release}; rate, packets waiting at least, median, at most, dropped, congestion window, packets in flight")
    for wanted in sys.argv[1:] or ["5mbit", "10mbit", "20mbit"]:
        measure(wanted)
