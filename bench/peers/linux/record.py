#!/usr/bin/env python3
"""Records what this machine's kernel does on a described path.

Two network namespaces, a TUN device in each, and between them this process: it delays every packet, serialises the
data direction at a rate, drops what the case says, and writes each packet down. One file per case, one line per
packet, relative to the first SYN:

    time_ms  direction  flags  sequence:end  ack  window  options

The direction is `>` for the data sender. `x` behind the flags marks a packet that was dropped after it was written
down. Times of `>` lines are when the sender handed the packet over; of `<` lines, when the ACK reached it.

What is not TCP is kept out of the record: segments are not sent in groups (gso_max_segs 1, which also switches off the
deferral that waits for a group), the buffers are large from the start, and the receiving program sleeps while data
arrives, so that no segment waits for a lock that it holds.

Cases with "tuned" are about the receiver: its buffer is that of an untouched system, the program reads at once, and the
times are those at the receiver: of `>` lines when the packet reached it, of `<` lines when the ACK left, both from the tick
of its millisecond clock before the first SYN. `echo` is the tick whose timestamp the packet echoes.

Needs root, /dev/net/tun and the program ip. Cleans up after itself, also when interrupted.
"""

import ctypes
import fcntl
import heapq
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time

MSS = 1460
LIBC = ctypes.CDLL(None, use_errno=True)
TUNSETIFF = 0x400454CA
IFF_TUN, IFF_NO_PI = 1, 0x1000

# name: rate in Mbit/s (0: unlimited), one-way delay in ms, data packets to drop by index of transmission,
# queue limit in packets, congestion control (else cubic), what the sender does: list of (time s, bytes), then close; whether
# the receiver's buffer is tuned and read at once.
CASES = {
    "clean-100k": {"writes": [(0, 100_000)]},
    "clean-10mbit": {"writes": [(0, 400_000)], "rate": 10, "limit": 1000},
    "queue-50": {"writes": [(0, 600_000)], "rate": 10, "limit": 50},
    "reno-queue-50": {"writes": [(0, 600_000)], "rate": 10, "limit": 50, "control": "reno"},
    "tail-1": {"writes": [(0, 14_480)], "drop": [9]},
    "tail-2": {"writes": [(0, 14_480)], "drop": [8, 9]},
    "tail-3": {"writes": [(0, 14_480)], "drop": [7, 8, 9]},
    "tail-10": {"writes": [(0, 14_480)], "drop": list(range(10))},
    "tail-10-and-probe": {"writes": [(0, 14_480)], "drop": list(range(11))},
    "first-lost": {"writes": [(0, 60_000)], "drop": [0]},
    "middle-lost": {"writes": [(0, 60_000)], "drop": [3]},
    "two-lost": {"writes": [(0, 60_000)], "drop": [3, 6]},
    "five-lost": {"writes": [(0, 60_000)], "drop": [1, 3, 5, 7, 8]},
    "retransmission-lost": {"writes": [(0, 60_000)], "drop": [3, 16]},
    "two-recoveries": {"writes": [(0, 300_000)], "rate": 10, "limit": 1000, "drop": [40, 80, 91, 119]},
    "syn-lost": {"writes": [(0, 14_480)], "drop_syn": 1},
    "synack-lost": {"writes": [(0, 14_480)], "drop_synack": 1},
    "syns-lost": {"writes": [(0, 14_480)], "drop_syn": 3},
    "queue-then-silence": {"writes": [(0, 300_000)], "rate": 10, "limit": 1000, "drop": list(range(190, 212))},
    "late-then-lost": {"writes": [(0.5 * i, 120) for i in (0, 1, 2, 3, 4, 5, 14)], "nodelay": True, "hold": {2: 280, 3: 330}, "drop": [6, 7]},
    "idle-1s": {"writes": [(0, 100_000), (2.0, 60_000)]},
    "thin": {"writes": [(0.03 * i, 120) for i in range(20)], "nodelay": True},
    "thin-nagle": {"writes": [(0.03 * i, 120) for i in range(20)]},
    "reordered": {"writes": [(0, 60_000)], "hold": {4: 30}},
    "one-byte": {"writes": [(0, 1)]},
    "small-writes": {"writes": [(0, 100), (0, 100)]},
    "full-window": {"writes": [(0, 14_480)]},
    "one-more": {"writes": [(0, 14_481)]},
    "tuned": {"writes": [(0, 1_500_000)], "rate": 10, "delay": 20, "limit": 1000, "tuned": True},
    "tuned-one-lost": {"writes": [(0, 700_000)], "rate": 50, "delay": 20, "limit": 1000, "drop": [200], "tuned": True},
    "tuned-many-lost": {"writes": [(0, 700_000)], "rate": 50, "delay": 20, "limit": 100, "tuned": True},
}


class Path:
    """The wire between the namespaces."""

    def __init__(self, case, files, log):
        self.case, self.files, self.log = case, files, log
        self.delay = case.get("delay", 50) / 1000
        self.rate = case.get("rate", 0) * 1e6
        self.limit = case.get("limit", 100_000)
        self.drop, self.hold = set(case.get("drop", [])), case.get("hold", {})
        self.data_index, self.syns, self.synacks = 0, 0, 0
        self.pending, self.order, self.busy_until, self.starts = [], 0, 0.0, []
        self.origin, self.isn, self.lateness = None, [None, None], 0.0
        self.tuned, self.clock, self.echoes = case.get("tuned"), None, {}

    def on_packet(self, side, now, packet):
        ip_header = (packet[0] & 15) * 4
        if packet[0] >> 4 != 4 or packet[9] != 6:
            return
        seq, ack, offset, flags, window = struct.unpack("!IIBBH", packet[ip_header + 4 : ip_header + 16])
        header = (offset >> 4) * 4
        payload = len(packet) - ip_header - header
        if self.origin is None:
            self.origin = int(now * 1000) / 1000 if self.tuned else now
        if flags & 2:
            self.isn[side] = seq
        drop, late = False, 0.0
        if side == 0 and payload:
            drop, late = self.data_index in self.drop, self.hold.get(self.data_index, 0) / 1000
            self.data_index += 1
        if side == 0 and flags & 2:
            drop = self.syns < self.case.get("drop_syn", 0)
            self.syns += 1
        if side == 1 and flags & 2:
            drop = self.synacks < self.case.get("drop_synack", 0)
            self.synacks += 1
        due = now + self.delay + late
        if side == 0 and self.rate and not drop:
            self.starts = [start for start in self.starts if start > now]
            if len(self.starts) >= self.limit:
                drop = True
            else:
                start = max(now, self.busy_until)
                self.busy_until = start + len(packet) * 8 / self.rate
                self.starts.append(start)
                due = self.busy_until + self.delay
        line = self.describe(side, flags, seq, ack, payload, window, packet[ip_header + 20 : ip_header + header], drop)
        if self.tuned:
            at = packet.find(b"\x08\x0a", ip_header + 20, ip_header + header)
            value, echo = struct.unpack("!II", packet[at + 2 : at + 10])
            self.order += 1
            line = (self.order, line)
            if side == 0:
                self.echoes[line] = echo
            else:  # the kernel's clock of timestamps is this one's, from an offset, and was read a moment ago
                offset = (value - int(now * 1000)) & 0xFFFFFFFF
                self.clock = offset if self.clock is None else max(self.clock, offset)
                self.log.append((now - self.origin, line))
        elif side == 0:
            self.log.append((now - self.origin, line))
        if not drop:
            self.order += 1
            heapq.heappush(self.pending, (due, self.order, side, packet, line))
        elif side == 1 and not self.tuned:
            self.log.append((due - self.origin, line))

    def describe(self, side, flags, seq, ack, payload, window, options, drop):
        letters = "".join(c for bit, c in ((2, "S"), (1, "F"), (4, "R"), (8, "P"), (16, "."), (64, "E"), (128, "W")) if flags & bit)
        start = (seq - (self.isn[side] or seq)) & 0xFFFFFFFF
        other = self.isn[1 - side]
        acked = (ack - other) & 0xFFFFFFFF if flags & 16 and other is not None else 0
        words, i = [], 0
        while i < len(options):
            kind = options[i]
            if kind == 0:
                break
            if kind == 1:
                i += 1
                continue
            length = options[i + 1]
            body = options[i + 2 : i + length]
            if kind == 2:
                words.append("mss=%d" % struct.unpack("!H", body))
            elif kind == 3:
                words.append("wscale=%d" % body[0])
            elif kind == 4:
                words.append("sackok")
            elif kind == 8:
                words.append("ts")
            elif kind == 5:
                edges = [(e - (other or 0)) & 0xFFFFFFFF for e in struct.unpack("!%dI" % (len(body) // 4), body)]
                words.append("sack=" + ",".join("%d:%d" % (edges[j], edges[j + 1]) for j in range(0, len(edges), 2)))
            i += length
        return "%s %s%s %d:%d %d %d %s" % ("><"[side], letters, "x" if drop else "", start, start + payload, acked, window, " ".join(words))

    def run(self, until_idle, children):
        last = time.monotonic()
        while True:
            now = time.monotonic()
            while self.pending and self.pending[0][0] <= now:
                due, _, side, packet, line = heapq.heappop(self.pending)
                self.lateness = max(self.lateness, now - due)
                if side == 1 - int(bool(self.tuned)):
                    self.log.append((time.monotonic() - self.origin if self.tuned else now - self.origin, line))
                os.write(self.files[1 - side], packet)
                last = now
            wait = self.pending[0][0] - now if self.pending else 0.05
            ready, _, _ = select.select(self.files, [], [], max(wait, 0))
            now = time.monotonic()
            for descriptor in ready:
                self.on_packet(self.files.index(descriptor), now, os.read(descriptor, 65536))
                last = now
            if not self.pending and now - last > until_idle and all(child.poll() is not None for child in children):
                return
            if now - last > 30:
                return


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def enter(name):
    descriptor = os.open("/run/netns/" + name, os.O_RDONLY)
    if LIBC.setns(descriptor, 0x40000000) != 0:
        raise OSError(ctypes.get_errno(), "setns")
    os.close(descriptor)


def open_tun(namespace, address, peer):
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    enter(namespace)
    descriptor = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", b"ff0", IFF_TUN | IFF_NO_PI))
    ip("addr", "add", address, "peer", peer, "dev", "ff0")
    ip("link", "set", "ff0", "mtu", "1500", "txqueuelen", "10000", "gso_max_segs", "1", "up")
    ip("link", "set", "lo", "up")
    LIBC.setns(home, 0x40000000)
    os.close(home)
    return descriptor


def receiver(namespace, case):
    enter(namespace)
    if case.get("tuned"):
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(40))
        except OSError:
            pass
    listener = socket.create_server(("10.98.0.2", 7000))
    print("ready", flush=True)
    connection, _ = listener.accept()
    if case.get("tuned"):
        room = bytearray(1 << 20)
        while connection.recv_into(room):
            pass
        connection.close()
        return
    # Sleeps until the FIN: EPOLLRDHUP is raised then, not by data. Without the low-water mark the kernel would see a reader
    # that lags behind and acknowledge less often.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 2_000_000)
    ended = select.epoll()
    ended.register(connection, select.EPOLLRDHUP)
    ended.poll()
    while connection.recv(1 << 20):
        pass
    connection.close()


def sender(namespace, case):
    enter(namespace)
    connection = socket.socket()
    connection.setsockopt(socket.IPPROTO_TCP, 13, case.get("control", "cubic").encode())
    if case.get("nodelay"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.connect(("10.98.0.2", 7000))
    begin = time.monotonic()
    for when, count in case["writes"]:
        time.sleep(max(0, begin + when - time.monotonic()))
        connection.sendall(b"x" * count)
    connection.close()


def record(name, folder):
    case = CASES[name]
    LIBC.prctl(29, 1, 0, 0, 0)
    try:  # on a busy machine the wire must not be late
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    except OSError:
        pass
    names = ["ff-a-%d" % os.getpid(), "ff-b-%d" % os.getpid()]
    children, files, log = [], [], []
    try:
        for namespace in names:
            ip("netns", "add", namespace)
        files = [open_tun(names[0], "10.98.0.1", "10.98.0.2"), open_tun(names[1], "10.98.0.2", "10.98.0.1")]
        for namespace in names:
            rmem = "4096 131072 33554432" if case.get("tuned") else "4096 6291456 6291456"
            settings = ["net.ipv4.tcp_no_metrics_save=1", "net.ipv4.tcp_rmem=" + rmem, "net.ipv4.tcp_wmem=4096 4194304 4194304"]
            subprocess.run(["ip", "netns", "exec", namespace, "sysctl", "-qw", *settings], check=True)
        me = [sys.executable, os.path.abspath(__file__)]
        children.append(subprocess.Popen([*me, "--receiver", names[1], name], stdout=subprocess.PIPE, text=True))
        children[0].stdout.readline()
        children.append(subprocess.Popen([*me, "--sender", names[0], name]))
        path = Path(case, files, log)
        path.run(0.5, children)
        log.sort(key=lambda entry: entry[0])
        target = os.path.join(folder, name + ".txt")
        with open(target, "w", encoding="ascii") as out:
            out.write("# %s, %s\n" % (name, " ".join("%s=%s" % (k, str(v).replace(" ", "")) for k, v in case.items() if k != "writes")))
            out.write("# kernel %s, MSS %d offered, one-way delay %d ms, the wire was at most %.1f ms late\n" % (os.uname().release.split("-")[0], MSS, path.delay * 1000, path.lateness * 1000))
            for when, line in log:
                if path.tuned:
                    echo = path.echoes.get(line, 0)
                    tick = (echo - path.clock - int(path.origin * 1000 + 0.5)) & 0xFFFFFFFF
                    text = line[1].rstrip() + (" echo=%d" % tick if echo else "")
                    out.write("%.3f %s\n" % (when * 1000, text))
                else:
                    out.write("%.1f %s\n" % (when * 1000, line.rstrip()))
        print("%s: %d packets, at most %.1f ms late" % (name, len(log), path.lateness * 1000))
        return path.lateness
    finally:
        for child in children:
            if child.poll() is None:
                child.kill()
        for descriptor in files:
            os.close(descriptor)
        for namespace in names:
            subprocess.run(["ip", "netns", "del", namespace], check=False, stderr=subprocess.DEVNULL)


def main():
    if len(sys.argv) == 4 and sys.argv[1] == "--receiver":
        receiver(sys.argv[2], CASES[sys.argv[3]])
    elif len(sys.argv) == 4 and sys.argv[1] == "--sender":
        sender(sys.argv[2], CASES[sys.argv[3]])
    else:
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        folder = sys.argv[1] if len(sys.argv) > 1 else "."
        os.makedirs(folder, exist_ok=True)
        for name in sys.argv[2:] or CASES:
            if name not in CASES:
                sys.exit("no case %s; there are: %s" % (name, " ".join(CASES)))
            for _ in range(5):  # on a busy machine the wire may be late: again
                if record(name, folder) < 0.002:
                    break


if __name__ == "__main__":
    main()
