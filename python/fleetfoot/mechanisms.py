"""Mechanisms: what there is to choose between."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from fleetfoot import _native

__all__ = ["Mechanism", "mechanisms"]


@dataclass(frozen=True, slots=True)
class Mechanism:
    """A mechanism: a queue, a way of sending, a setting, or several of them together.

    Attributes:
        name: Its name in tables, in ``only`` of :func:`fleetfoot.compare`, and on the command line.
        family: The family it belongs to.
        set: What it changes: paths and values as in a variant.
        document: What it does, in one paragraph.
        source: Where that is written.
        evidence: What is known of its effect, and from where.
        turn_on: How to switch it on outside Fleetfoot.
        effort: How hard that is: ``usual``, ``one setting``, ``several settings``, ``patch`` or ``only here``.
    """

    name: str
    family: str
    set: dict[str, Any]
    document: str
    source: str
    evidence: str
    turn_on: str
    effort: str


def mechanisms() -> list[Mechanism]:
    """Every mechanism, by family, as ``fleetfoot list mechanisms`` prints them, then the registered classes.

    Classes of this process (:func:`fleetfoot.register`) have the family ``python``.

    >>> import fleetfoot
    >>> [m.source for m in fleetfoot.mechanisms() if m.name == "codel"]
    ['RFC 8289']
    """
    built_in = [Mechanism(**entry) for entry in json.loads(_native.mechanisms())]
    return built_in + [_of_class(*row) for row in _native.registered()]


def _of_class(kind: str, name: str, document: str) -> Mechanism:
    """A class that is registered in this process."""
    key = "tcp.congestion_control" if kind == "congestion control" else "network.bottleneck.queue"
    return Mechanism(
        name=name,
        family="python",
        set={key: name},
        document=document,
        source="a class of this process",
        evidence="",
        turn_on="not outside Fleetfoot",
        effort="only here",
    )
