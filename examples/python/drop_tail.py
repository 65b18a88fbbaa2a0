"""Drop-tail in Python: exactly the built-in ``drop-tail``, in 20 lines. A file to start from for a queue of your own."""

from __future__ import annotations

from collections import deque

import fleetfoot


@fleetfoot.register
class DropTail(fleetfoot.Queue):
    """First in, first out; what does not fit is refused."""

    NAME = "python-drop-tail"
    PARAMETERS = {"limit": fleetfoot.Parameter(1000, "What may wait (as for drop-tail)", kind="limit")}

    def __init__(self, parameters, link):
        super().__init__(parameters, link)
        self.waiting = deque()

    def enqueue(self, now, packet, context):
        if self.parameters["limit"].admits(context, packet):
            self.waiting.append(packet)
        else:
            context.drop(packet, "full")

    def dequeue(self, now, context):
        return self.waiting.popleft() if self.waiting else None
