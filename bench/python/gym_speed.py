"""Steps per second of fleetfoot.gym beside ns.py, a packet simulator in Python, in turns.

No environment of gymnasium for congestion control can be installed with pip alone (docs/gym.md says what
was looked for), so the peer is ns.py (``pip install ns.py gymnasium``), whose TCP sender is given a window
once each round trip, as the environment does. Both play a line of 12 Mbit/s with 40 ms and room for 40
packets, with a sawtooth that loses nothing. Prints a table of medians.

Usage: python bench/python/gym_speed.py [TURNS]
"""

from __future__ import annotations

import os
import statistics
import sys
import time

import gymnasium
import numpy as np

import fleetfoot.gym

RATE_MBPS, RTT_MS, BUFFER, DURATION_S = 12.0, 40.0, 40, 60.0


def sawtooth(window: float) -> float:
    """One packet more up to what the line and half of its buffer hold, then half."""
    return window + 1.0 if window < 60.0 else 30.0


def of_fleetfoot(step: str) -> tuple[int, float]:
    """Steps and packets of an episode."""
    env = gymnasium.make(
        "fleetfoot/Bottleneck-v0",
        rate_mbps=RATE_MBPS,
        rtt_ms=RTT_MS,
        buffer_packets=BUFFER,
        duration_s=DURATION_S,
        step=step,
        disable_env_checker=True,
    )
    env.reset(seed=1)
    window, over, steps, packets = 10.0, False, 0, 0.0
    action = np.zeros(1, np.float32)
    while not over:
        action[0] = window
        observation, _, _, over, _ = env.step(action)
        packets += float(observation[2])
        if step == "rtt" or steps % 20 == 0:
            window = sawtooth(window)
        steps += 1
    return steps, packets


def of_vector(count: int) -> tuple[int, float]:
    """Steps of all runs of a vector, and packets."""
    envs = fleetfoot.gym.BottleneckVectorEnv(
        count, rate_mbps=RATE_MBPS, rtt_ms=RTT_MS, buffer_packets=BUFFER, duration_s=DURATION_S
    )
    envs.reset(seed=1)
    windows, steps, packets, over = np.full(count, 10.0), 0, 0.0, False
    while not over:
        observations, _, _, truncated, _ = envs.step(windows.astype(np.float32))
        windows = np.where(windows < 60.0, windows + 1.0, 30.0)
        packets += float(observations[:, 2].sum())
        steps += count
        over = bool(truncated.any())
    return steps, packets


def of_ns_py() -> tuple[int, float]:
    """The same line and policy in ns.py."""
    import simpy
    from ns.flow.cc import CongestionControl
    from ns.flow.flow import Flow
    from ns.packet.tcp_generator import TCPPacketGenerator
    from ns.packet.tcp_sink import TCPSink
    from ns.port.port import Port
    from ns.port.wire import Wire

    class Given(CongestionControl):
        """Holds the window that it is given."""

        def ack_received(self, rtt: float = 0, current_time: float = 0) -> None:
            """Nothing."""

    env = simpy.Environment()
    mss = 1500
    flow = Flow(fid=0, src="a", dst="b", finish_time=DURATION_S, size=10**12)
    control = Given(mss=mss, cwnd=10 * mss)
    sender = TCPPacketGenerator(env, flow=flow, cc=control)
    sender.mss = mss
    port = Port(env, rate=RATE_MBPS * 1e6, qlimit=BUFFER)
    there = Wire(env, lambda: RTT_MS / 2000)
    back = Wire(env, lambda: RTT_MS / 2000)
    sink = TCPSink(env, rec_waits=False, rec_arrivals=False, rec_flow_ids=False)
    sender.out, port.out, there.out, sink.out, back.out = port, there, sink, back, sender
    window, steps = 10.0, 0
    while env.now < DURATION_S:
        control.cwnd = window * mss
        sender.cwnd_available.put(True)
        env.run(until=env.now + max(sender.smoothed_rtt, RTT_MS / 1000))
        window = sawtooth(window)
        steps += 1
    return steps, sender.last_ack / mss


def main() -> None:
    """Plays in turns and prints medians."""
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    players = {
        "fleetfoot, each round trip": lambda: of_fleetfoot("rtt"),
        "fleetfoot, each acknowledgment": lambda: of_fleetfoot("ack"),
        f"fleetfoot, vector of 64 on {os.cpu_count()} cores": lambda: of_vector(64),
        "ns.py, each round trip": of_ns_py,
    }
    took: dict[str, list[tuple[float, float, float]]] = {name: [] for name in players}
    for _ in range(turns):
        for name, play in players.items():
            begin, cpu = time.perf_counter(), time.process_time()
            steps, packets = play()
            wall = time.perf_counter() - begin
            took[name].append((steps / wall, packets / wall, steps / (time.process_time() - cpu)))
    print("| | steps per second | packets per second | steps per CPU second |")
    print("|---|---:|---:|---:|")
    for name, rates in took.items():
        medians = [statistics.median(rate[column] for rate in rates) for column in range(3)]
        print(f"| {name} | {medians[0]:,.0f} | {medians[1]:,.0f} | {medians[2]:,.0f} |")


if __name__ == "__main__":
    main()
