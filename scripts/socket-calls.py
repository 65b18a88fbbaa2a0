#!/usr/bin/env python3
"""What Linux answers to every socket call in every state of a socket, on the loopback interface."""
import errno, fcntl, select, socket, struct, time, os

EVENTS = [("IN", 1), ("PRI", 2), ("OUT", 4), ("ERR", 8), ("HUP", 16), ("RDHUP", 0x2000)]

def server(backlog=5):
    s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", 0)); s.listen(backlog); return s

def settle(): time.sleep(0.03)

def pair():
    s = server(); c = socket.socket(); c.connect(s.getsockname()); a, _ = s.accept(); s.close()
    c.setblocking(False); a.setblocking(False)
    return c, a

def reset(s):
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)); s.close()

KEEP = []
def fresh():
    s = socket.socket(); s.setblocking(False); return s
def bound():
    s = fresh(); s.bind(("127.0.0.1", 0)); return s
def listening():
    s = bound(); s.listen(1); return s
def connecting():
    l = server(0); KEEP.append(l)
    for _ in range(1):
        c = socket.socket(); c.connect(l.getsockname()); KEEP.append(c)
    s = fresh(); s.connect_ex(l.getsockname()); settle(); return s
def refused():
    l = server(); at = l.getsockname(); l.close()
    s = fresh(); s.connect_ex(at); settle(); return s
def connected():
    c, a = pair(); KEEP.append(a); return c
def data():
    c, a = pair(); KEEP.append(a); a.send(b"x" * 100); settle(); return c
def peer_closed():
    c, a = pair(); a.close(); settle(); return c
def data_and_end():
    c, a = pair(); a.send(b"x" * 100); a.close(); settle(); return c
def shut_write():
    c, a = pair(); KEEP.append(a); c.shutdown(socket.SHUT_WR); settle(); return c
def shut_read():
    c, a = pair(); KEEP.append(a); c.shutdown(socket.SHUT_RD); settle(); return c
def shut_both():
    c, a = pair(); KEEP.append(a); c.shutdown(socket.SHUT_RDWR); settle(); return c
def was_reset():
    c, a = pair(); reset(a); settle(); return c
def data_and_reset():
    c, a = pair(); a.send(b"x" * 100); settle(); reset(a); settle(); return c
def end_and_reset():
    c, a = pair(); a.shutdown(socket.SHUT_WR); settle(); reset(a); settle(); return c
def ended():
    c, a = pair(); c.shutdown(socket.SHUT_WR); settle(); a.close(); settle(); return c

STATES = [fresh, bound, listening, connecting, refused, connected, data, peer_closed, data_and_end, shut_write,
          shut_read, shut_both, was_reset, data_and_reset, end_and_reset, ended]

def result(f):
    try: return f()
    except OSError as e: return errno.errorcode[e.errno]

def twice(f): return lambda s: f"{result(lambda: f(s))},{result(lambda: f(s))}"
def nothing(f):
    def g(s):
        f(s); return 0
    return g
def accept(s):
    s.accept(); return 0
def poll(s):
    p = select.poll(); p.register(s, 0x2000 | 1 | 2 | 4)
    got = p.poll(0); bits = got[0][1] if got else 0
    return "|".join(n for n, b in EVENTS if bits & b) or "-"
def error(s):
    e = s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR); return errno.errorcode.get(e, 0)
def ioctl(n):
    return lambda s: struct.unpack("i", fcntl.ioctl(s, n, b"\0" * 4))[0]
def name(s):
    s.getpeername(); return 0
TARGET = server()
CALLS = [
    ("read", twice(lambda s: len(s.recv(1000)))),
    ("peek", twice(lambda s: len(s.recv(1000, socket.MSG_PEEK)))),
    ("write", twice(lambda s: s.send(b"y" * 10))),
    ("poll", lambda s: poll(s)),
    ("SO_ERROR", twice(error)),
    ("accept", lambda s: result(lambda: accept(s))),
    ("listen", lambda s: result(lambda: nothing(lambda s: s.listen(1))(s))),
    ("connect", twice(lambda s: nothing(lambda s: s.connect(TARGET.getsockname()))(s))),
    ("bind", lambda s: result(lambda: nothing(lambda s: s.bind(("127.0.0.1", 0)))(s))),
    ("shutdown(RD)", lambda s: result(lambda: nothing(lambda s: s.shutdown(0))(s))),
    ("shutdown(WR)", lambda s: result(lambda: nothing(lambda s: s.shutdown(1))(s))),
    ("SIOCINQ", lambda s: result(lambda: ioctl(0x541B)(s))),
    ("SIOCOUTQ", lambda s: result(lambda: ioctl(0x5411)(s))),
    ("getpeername", lambda s: result(lambda: name(s))),
]
print(f"# Linux {os.uname().release.split('-')[0]}: what a non-blocking socket answers, twice where a comma stands")
for state in STATES:
    for call, f in CALLS:
        s = state()
        print(f"{state.__name__:15} {call:13} {f(s)}")
        s.close()
