#!/usr/bin/env python3
"""Records how the kernel's tcp_cdg reacts to a scripted sequence of RTTs.

The kernel is the sender. Its peer is this process, behind a TUN device: it acknowledges every segment after the delay
that the case has for the time at which the segment came, drops the segments that the case names, and reads the
connection's window after each ACK. One file per case:

    time_us  >  sequence:end                       a data segment of the kernel (x behind: dropped)
    time_us  <  ack  cwnd  ssthresh  state  [sack ...]    an ACK that reached the kernel, and what it then had: segments,
                                                   and its state (0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss)
    time_us  s                                     the SYN of the kernel
    time_us  =                                     the SYN-ACK that reached the kernel
    time_us  w                                     the program's first write

Sequence numbers are relative to the first data byte. The module's parameters are set per case. Run it by
bench/peers/linux/cdg.sh, which starts a kernel that has tcp_cdg.
"""

import fcntl
import heapq
import os
import select
import socket
import struct
import subprocess
import sys
import time

TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 1, 0x1000
HERE, PEER, PORT = "10.98.0.1", "10.98.0.2", 7000
MSS = 1460
DEFAULTS = {"window": 8, "backoff_beta": 724, "backoff_factor": 42, "hystart_detect": 3, "use_ineff": 5, "use_shadow": 1, "use_tolerance": 0}


def saw(base, slope, rise, until):
    """RTT that rises by `slope` seconds per second and falls back in 0.2 s, so that sums of gradients are rarely near zero."""
    points, at = [], 0.0
    while at < until:
        points += [(at, base), (at + rise, base + slope * rise)]
        at += rise + 0.2
    return points


# delay: points (time s, RTT s), straight lines between them; drop_after: the next segment after each time is dropped;
# window: what the peer offers, segments; set: parameters of the module.
# A factor of 10,000 makes a back-off certain wherever the gradient is above a millisecond.
CERTAIN = {"backoff_factor": 10_000, "hystart_detect": 0}
MILD = {**CERTAIN, "backoff_beta": 950}
SHADOW = {"delay": saw(0.15, 0.04, 3.0, 12), "duration": 12, "drop_after": [2.7, 3.8, 5.9, 7.0, 9.1, 10.2]}
CASES = {
    "certain": {"delay": saw(0.15, 0.04, 3.0, 20), "duration": 20, "set": CERTAIN},
    "ineffective": {"delay": saw(0.15, 0.03, 8.0, 20), "duration": 20, "set": CERTAIN},
    "shadow": {**SHADOW, "set": MILD},
    "no-shadow": {**SHADOW, "set": {**MILD, "use_shadow": 0}},
    "tolerance": {**SHADOW, "set": {**MILD, "use_tolerance": 1}},
    "window-4": {"delay": saw(0.15, 0.05, 2.0, 12), "duration": 12, "set": {**CERTAIN, "window": 4, "backoff_beta": 512}},
    "hystart": {"delay": [(0, 0.2), (0.9, 0.17), (1.0, 0.26), (9, 0.1)], "duration": 1.3, "set": {"backoff_factor": 1}},
    "chance": {"delay": saw(0.04, 0.008, 2.0, 60), "duration": 60, "window": 6, "set": {"hystart_detect": 0, "use_ineff": 0, "backoff_beta": 950}},
}


def checksum(data):
    total = sum(struct.unpack("!%dH" % ((len(data) + 1) // 2), data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


class Peer:
    """Receives from the kernel and answers."""

    def __init__(self, case, tun, connection, log):
        self.case, self.tun, self.connection, self.log = case, tun, connection, log
        self.begin = time.monotonic()
        self.next, self.ranges, self.sent, self.order = None, [], 0, 0
        self.pending, self.iss, self.port, self.drop_after = [], 7_000_000, None, list(case.get("drop_after", []))
        self.synced = 0.0

    def now(self):
        return time.monotonic() - self.begin

    def delay(self, at):
        points = self.case["delay"]
        for (t0, d0), (t1, d1) in zip(points, points[1:]):
            if at <= t1:
                return d0 + (d1 - d0) * max(at - t0, 0) / (t1 - t0)
        return points[-1][1]

    def window(self, flags):
        """The field: not scaled in a SYN, else shifted by 7."""
        offered = self.case.get("window", 5000) * MSS
        return min(offered, 65535) if flags & 2 else offered + 127 >> 7

    def packet(self, flags, sequence, ack, options):
        offset = 5 + len(options) // 4
        tcp = struct.pack("!HHIIBBHHH", PORT, self.port, sequence & 0xFFFFFFFF, ack & 0xFFFFFFFF, offset << 4, flags, self.window(flags), 0, 0) + options
        pseudo = socket.inet_aton(PEER) + socket.inet_aton(HERE) + struct.pack("!BBH", 0, 6, len(tcp))
        tcp = tcp[:16] + struct.pack("!H", checksum(pseudo + tcp)) + tcp[18:]
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, 6, 0) + socket.inet_aton(PEER) + socket.inet_aton(HERE)
        return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + tcp

    def on_packet(self, packet):
        now = self.now()
        if packet[0] >> 4 != 4 or packet[9] != 6:
            return
        head = (packet[0] & 15) * 4
        port, _, seq, _, offset, flags = struct.unpack("!HHIIBB", packet[head : head + 14])
        payload = len(packet) - head - (offset >> 4) * 4
        if flags & 2:
            self.port, self.first = port, seq + 1
            self.next = 0
            self.synced = now
            self.log.append((now, "s"))
            options = struct.pack("!BBH", 2, 4, MSS) + b"\x01\x03\x03\x07" + b"\x01\x01\x04\x02"
            self.push(now, ("=", self.packet(0x12, self.iss, self.first, options), 0, []))
            return
        if not payload:
            return
        start = (seq - self.first) & 0xFFFFFFFF
        end = start + payload
        self.sent += 1
        dropped = bool(self.drop_after) and now - self.synced > self.drop_after[0]
        if dropped:
            self.drop_after.pop(0)
        self.log.append((now, "> %d:%d%s" % (start, end, "x" if dropped else "")))
        if dropped:
            return
        if end <= self.next:
            sack = []
        elif start > self.next:
            self.ranges = sorted(self.ranges + [(start, end)])
            merged = []
            for a, b in self.ranges:
                if merged and a <= merged[-1][1]:
                    merged[-1] = (merged[-1][0], max(b, merged[-1][1]))
                else:
                    merged.append((a, b))
            self.ranges = merged
        else:
            self.next = end
            while self.ranges and self.ranges[0][0] <= self.next:
                self.next = max(self.next, self.ranges.pop(0)[1])
        sack = self.ranges[-3:][::-1]
        options = b""
        if sack:
            options = b"\x01\x01" + struct.pack("!BB", 5, 2 + 8 * len(sack))
            for a, b in sack:
                options += struct.pack("!II", (self.first + a) & 0xFFFFFFFF, (self.first + b) & 0xFFFFFFFF)
        self.push(now, ("<", self.packet(0x10, self.iss + 1, self.first + self.next, options), self.next, sack))

    def push(self, now, answer):
        self.order += 1
        heapq.heappush(self.pending, (now + self.delay(now - self.synced), self.order, answer))

    def run(self):
        block = b"x" * 65536
        established = False
        while self.now() < self.case["duration"]:
            while self.pending and self.pending[0][0] <= self.now():
                kind, packet, ack, sack = heapq.heappop(self.pending)[2]
                at = self.now()
                os.write(self.tun, packet)
                if kind == "=":
                    self.log.append((at, "="))
                    established = True
                else:
                    info = self.connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
                    words = struct.unpack("24I", info[8:104])
                    # tcp_info: rto ato snd_mss rcv_mss unacked sacked lost retrans fackets, 4 times, pmtu rcv_ssthresh rtt rttvar snd_ssthresh snd_cwnd
                    line = "< %d %d %d %d" % (ack, words[18], words[17], info[1])
                    if sack:
                        line += " " + " ".join("%d:%d" % edges for edges in sack)
                    self.log.append((at, line))
                if established:
                    if kind == "=":
                        self.log.append((self.now(), "w"))
                    try:
                        self.connection.send(block)
                    except BlockingIOError:
                        pass
            wait = self.pending[0][0] - self.now() if self.pending else 0.2
            if select.select([self.tun], [], [], max(wait, 0))[0]:
                self.on_packet(os.read(self.tun, 65536))


def record(name, folder):
    case = CASES[name]
    settings = {**DEFAULTS, **case["set"]}
    subprocess.run(["rmmod", "tcp_cdg"], check=True)
    subprocess.run(["insmod", "/run/modules/tcp_cdg.ko", *("%s=%s" % item for item in settings.items())], check=True)
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", b"ff0", IFF_TUN | IFF_NO_PI))
    for words in (["addr", "add", HERE, "peer", PEER, "dev", "ff0"], ["link", "set", "ff0", "mtu", "1500", "txqueuelen", "10000", "gso_max_segs", "1", "up"]):
        subprocess.run(["ip", *words], check=True)
    connection = socket.socket()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cdg")
    connection.setsockopt(socket.SOL_SOCKET, 32, 8_000_000)  # SO_SNDBUFFORCE
    connection.setblocking(False)
    log = []
    peer = Peer(case, tun, connection, log)
    connection.connect_ex((PEER, PORT))
    peer.run()
    with open(os.path.join(folder, name + ".txt"), "w", encoding="ascii") as out:
        out.write("# kernel %s, tcp_cdg %s\n" % (os.uname().release.split("-")[0], " ".join("%s=%s" % item for item in settings.items())))
        origin = log[0][0]
        for when, line in log:
            out.write("%.0f %s\n" % ((when - origin) * 1e6, line))
    print("%s: %d segments" % (name, peer.sent), flush=True)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    os.close(tun)


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: cdg.py FOLDER [CASE...]; cases: " + " ".join(CASES))
    for name in sys.argv[2:] or CASES:
        if name not in CASES:
            sys.exit("no case %s; there are: %s" % (name, " ".join(CASES)))
    for key, value in {"tcp_timestamps": 0, "tcp_no_metrics_save": 1, "tcp_wmem": "4096 8000000 8000000"}.items():
        with open("/proc/sys/net/ipv4/" + key, "w", encoding="ascii") as file:
            file.write(str(value))
    for name in sys.argv[2:] or CASES:
        record(name, sys.argv[1])


if __name__ == "__main__":
    main()
