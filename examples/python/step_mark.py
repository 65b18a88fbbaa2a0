"""A queue that marks: what waits longer than a step of time is marked, or dropped if it cannot carry a mark.

The step is that of DCTCP's and L4S's simplest queues; with ``ecn`` in the scenario and ``dctcp`` it keeps the wait near the step.
"""

from __future__ import annotations

from collections import deque

import fleetfoot


@fleetfoot.register
class StepMark(fleetfoot.Queue):
    """First in, first out; a packet that has waited longer than ``step`` leaves marked.

    **Source.** RFC 8257 3.1 with a threshold in time instead of bytes. **Deviations.** A packet without ECN is dropped on
    arrival while the queue is full, never early.
    """

    NAME = "step-mark"
    PARAMETERS = {
        "limit": fleetfoot.Parameter(1000, "What may wait", kind="limit"),
        "step": fleetfoot.Parameter(0.001, "Wait from which packets are marked (RFC 9332: 1 ms)", kind="duration"),
    }

    def __init__(self, parameters, link):
        super().__init__(parameters, link)
        self.waiting = deque()

    def enqueue(self, now, packet, context):
        if self.parameters["limit"].admits(context, packet):
            self.waiting.append(packet)
        else:
            context.drop(packet, "full")

    def dequeue(self, now, context):
        packet = self.waiting.popleft() if self.waiting else None
        if packet is not None and now - packet.enqueued_at > self.parameters["step"]:
            context.mark(packet)
        return packet
