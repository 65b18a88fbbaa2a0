#!/usr/bin/env python3
"""What Linux makes of values of socket options on a new socket: the answer, and what is read back."""
import errno, os, socket

S, T, I = socket.SOL_SOCKET, socket.IPPROTO_TCP, socket.IPPROTO_IP
OPTIONS = [
    ("SO_REUSEADDR", S, 2), ("SO_REUSEPORT", S, 15), ("SO_SNDBUF", S, 7), ("SO_RCVBUF", S, 8), ("SO_RCVLOWAT", S, 18),
    ("SO_ERROR", S, 4), ("SO_KEEPALIVE", S, 9), ("SO_OOBINLINE", S, 10), ("SO_ACCEPTCONN", S, 30),
    ("TCP_NODELAY", T, 1), ("TCP_CORK", T, 3), ("TCP_MAXSEG", T, 2), ("TCP_USER_TIMEOUT", T, 18), ("TCP_SYNCNT", T, 7),
    ("TCP_KEEPIDLE", T, 4), ("TCP_KEEPINTVL", T, 5), ("TCP_KEEPCNT", T, 6), ("TCP_LINGER2", T, 8),
    ("TCP_DEFER_ACCEPT", T, 9), ("TCP_WINDOW_CLAMP", T, 10), ("TCP_FASTOPEN", T, 23), ("TCP_FASTOPEN_CONNECT", T, 30),
    ("TCP_FASTOPEN_NO_COOKIE", T, 34), ("TCP_QUICKACK", T, 12), ("TCP_NOTSENT_LOWAT", T, 25), ("TCP_INQ", T, 36),
    ("IP_TOS", I, 1), ("IP_TTL", I, 2), ("IP_MTU_DISCOVER", I, 10), ("IP_RECVERR", I, 11),
]
VALUES = [-2, -1, 0, 1, 2, 3, 4, 6, 10, 87, 88, 120, 121, 127, 128, 255, 256, 536, 1000, 10000, 32767, 32768, 65535,
          65536, 300000, 1 << 31 - 1, 2147483647]

def answer(f):
    try: return f()
    except OSError as e: return errno.errorcode[e.errno]

def read(name):
    return open(f"/proc/sys/net/{name}").read().split()

print(f"# Linux {os.uname().release.split('-')[0]}: option, value, answer, value read back. Made by scripts/socket-options.py.")
for name in ["core/rmem_max", "core/wmem_max", "ipv4/tcp_rmem", "ipv4/tcp_wmem", "ipv4/tcp_syn_retries", "ipv4/tcp_fin_timeout"]:
    print(f"# {name} {' '.join(read(name))}")
for name, level, number in OPTIONS:
    s = socket.socket()
    print(f"{name:22} {'-':>10} - {answer(lambda: s.getsockopt(level, number))}")
    s.close()
    for value in VALUES:
        s = socket.socket()
        def put():
            s.setsockopt(level, number, value)
            return 0
        print(f"{name:22} {value:10} {answer(put)} {answer(lambda: s.getsockopt(level, number))}")
        s.close()
