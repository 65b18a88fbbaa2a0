"""A learned window: a table that was learned in the gymnasium environment, and the congestion control that reads it.

Once per round trip the queueing delay, in smallest round-trip times, selects a row; the row says by which factor the window
changes. ``python examples/python/table_window.py`` learns the table again, in seconds, and prints it.
"""

from __future__ import annotations

import random

import fleetfoot

EDGES = (0.02, 0.1, 0.25, 0.5)
"""Where the rows of the table end: queueing delay in smallest round-trip times. The last row has no end."""

TABLE = (1.628, 1.096, 0.985, 0.942, 0.829)
"""What ``learn(seed=1)`` returned: the factor of each row. The first row is also that of the start."""


def factor(table: tuple[float, ...], wait: float) -> float:
    """The factor for a queueing delay of ``wait`` smallest round-trip times."""
    return table[sum(wait >= edge for edge in EDGES)]


@fleetfoot.register
class TableWindow(fleetfoot.Controller):
    """A window that a learned table changes once per round trip, by the queueing delay.

    **Source.** ``examples/python/table_window.py``: learned for the sum of throughput and half of the negative delay, on
    lines of 6 to 24 Mbit/s with 20 to 80 ms that nobody else uses. **Deviations.** Losses, marks and timeouts are answered as in RFC 5681.
    """

    NAME = "table-window"

    def __init__(self, parameters, connection):
        super().__init__(parameters, connection)
        self.rtts = []

    def on_ack(self, now, ack):
        if ack.rtt is not None:
            self.rtts.append(ack.rtt)
        if not ack.round_start or ack.recovering or not self.rtts or not ack.min_rtt:
            return
        wait = sum(self.rtts) / len(self.rtts) / ack.min_rtt - 1.0
        self.rtts.clear()
        change = factor(TABLE, wait)
        if change <= 1.0 or ack.cwnd_limited:
            self.window = max(self.window * change, 2 * self.mss)


def episode(env, table, seed):
    """The sum of rewards of the table as a policy."""
    _, info = env.reset(seed=seed)
    window, total, over = info["window_bytes"] / info["mss_bytes"], 0.0, False
    while not over:
        if info["recoveries"] or info["timeouts"]:
            window = max(window / 2, 2.0)
        elif not info["recovering"]:
            window = max(window * factor(table, info["rtt_s"] / info["min_rtt_s"] - 1.0), 2.0)
        _, reward, _, over, info = env.step([window])
        total += reward
    return total


def learn(seed=1, rounds=60):
    """Learns the table by trying random changes, and keeping what is better on all lines together."""
    import fleetfoot.gym

    lines = [(6, 80, 40), (12, 40, 40), (24, 20, 40)]
    envs = [
        fleetfoot.gym.BottleneckEnv(rate_mbps=rate, rtt_ms=rtt, buffer_packets=buffer, duration_s=8)
        for rate, rtt, buffer in lines
    ]
    chance = random.Random(seed)
    best, most = (1.5, 1.02, 1.0, 0.95, 0.8), float("-inf")
    for attempt in range(rounds):
        table = best if attempt == 0 else tuple(
            round(min(max(row * chance.uniform(0.9, 1.1), 0.5), 2.0), 3) for row in best
        )
        # Each line counts by its round-trip times, of which an episode has as many as fit.
        total = sum(episode(env, table, 1) * rtt for env, (_, rtt, _) in zip(envs, lines, strict=True))
        if total > most:
            best, most = table, total
            print(f"{attempt:3}: {total:9.1f} {table}")
    return best


if __name__ == "__main__":
    print("TABLE =", learn())
