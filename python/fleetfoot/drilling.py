"""packetdrill scripts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from fleetfoot import _native
from fleetfoot._checked import whole_or_none

__all__ = ["Drilled", "drill"]


@dataclass(frozen=True, slots=True)
class Drilled:
    """A script that was played.

    Attributes:
        file: The script, relative to the folder that was named.
        topic: First folder of ``file``.
        verdict: ``pass``, ``fail`` or ``unsupported``.
        line: Line where it was decided; ``None`` for a pass.
        reason: Why, on one line; empty for a pass.
        detail: Expected and seen side by side, and the history of segments; empty for a pass.
        duration_s: Time on the stack's clock from the first event to the end (s).
        printed: What code in the script printed.
    """

    file: str
    topic: str
    verdict: str
    line: int | None
    reason: str
    detail: str
    duration_s: float
    printed: list[str]


def drill(
    scripts: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    profile: str = "linux",
    backend: Literal["fleetfoot", "linux"] = "fleetfoot",
    tolerance: int | None = None,
    no_extra: bool = False,
    define: Mapping[str, str] | None = None,
) -> list[Drilled]:
    """Play packetdrill scripts against Fleetfoot's TCP in virtual time, as ``fleetfoot drill`` does.

    Ctrl-C ends it when the scripts that are being played are over.

    Args:
        scripts: Scripts, or folders of them (``*.pkt``).
        profile: The profile of our TCP.
        backend: ``linux`` plays them against the kernel's TCP, in real time; it needs root.
        tolerance: Replace the tolerance of every time (microseconds).
        no_extra: Fail on segments that no line expects.
        define: Replace words in the scripts; also what ``#ifdef`` asks for.

    Raises:
        UsageError: There is no script, one that was named is not well formed, or an argument cannot be.
        RunError: The kernel cannot play them here.
    """
    given = [scripts] if isinstance(scripts, str | os.PathLike) else list(scripts)
    wanted = {
        "paths": [os.fspath(path) for path in given],
        "profile": profile,
        "backend": backend,
        "tolerance": whole_or_none("tolerance", tolerance, 0, 2**63 - 1),
        "no_extra": bool(no_extra),
        "define": list((define or {}).items()),
    }
    return [Drilled(*played) for played in _native.drill(wanted)]
