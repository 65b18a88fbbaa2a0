"""NewReno in Python: exactly the built-in ``reno`` (a test compares all rows of their results).

A file to start from for a congestion control that differs from NewReno in one place.
"""

from __future__ import annotations

import fleetfoot


@fleetfoot.register
class Reno(fleetfoot.Controller):
    """NewReno: slow start, one segment per window and round trip, half of the window at a loss.

    **Source.** RFC 5681 3.1, with RFC 3465's byte counting. **Deviations.** As the built-in ``reno``, without HyStart.
    """

    NAME = "python-reno"

    def __init__(self, parameters: dict[str, object], connection: fleetfoot.plugin.Connection) -> None:
        super().__init__(parameters, connection)
        self.acked = 0
        self.credit = 0
        # ns-2's window: a fraction of segments.
        self.exact = self.window / self.mss

    def whole(self, amount: int) -> int:
        """Whole segments where the profile counts those (Linux), else bytes."""
        return amount - amount % self.mss if self.connection.count_segments else amount

    def on_ack(self, now: float, ack: fleetfoot.plugin.Ack) -> None:
        if ack.recovering or not ack.cwnd_limited or ack.acked == 0:
            return
        if self.connection.fractions:
            slow = self.ssthresh is None or self.exact < self.ssthresh / self.mss
            self.exact += 1.0 if slow else 1.0 / self.exact
            self.window = int(self.exact * self.mss)
            return
        acked = ack.acked
        if self.ssthresh is None or self.window < self.ssthresh:
            limit = self.connection.abc_limit
            earned = self.credit + (acked if limit is None else min(acked, limit * self.mss))
            grown = self.whole(earned)
            self.credit = earned - grown
            reached = self.window + grown
            if self.ssthresh is None or reached < self.ssthresh:
                self.window = reached
                return
            self.credit = 0
            self.window, acked = self.ssthresh, min(reached - self.ssthresh, acked)
        self.acked += acked
        if self.acked >= self.window:
            segments = self.acked // self.window  # RFC 3465 2.1
            self.acked -= segments * self.window
            self.window += segments * self.mss

    def reduce(self, event: fleetfoot.plugin.Event) -> None:
        """Halve, at least to two segments (RFC 5681 (4))."""
        self._before = (self.window, self.ssthresh)
        base = self.window if self.connection.reduce_from_window else event.flight_size
        half = self.whole((base + 1) // 2)
        if self.connection.fractions:
            share = (self.exact if self.connection.reduce_from_window else base / self.mss) * 0.5
            half = int(share) * self.mss
            self.exact = max(share, 1.0)
        self.ssthresh = max(half, 2 * self.mss)
        self.acked = self.credit = 0

    def on_loss(self, now: float, event: fleetfoot.plugin.Event) -> None:
        self.reduce(event)
        self.window = int(self.exact * self.mss) if self.connection.fractions else self.ssthresh

    def on_rto(self, now: float, event: fleetfoot.plugin.Event) -> None:
        if event.first:
            self.reduce(event)
        self.window, self.exact = self.mss, 1.0
        self.acked = self.credit = 0

    def on_undo(self, now: float, event: fleetfoot.plugin.Event) -> None:
        super().on_undo(now, event)
        self.exact = self.window / self.mss

    def set_window(self, now: float, window: int, ssthresh: int | None) -> None:
        super().set_window(now, window, ssthresh)
        self.exact = self.window / self.mss
        self.acked = self.credit = 0
