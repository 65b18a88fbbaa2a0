"""Progress of work that takes long."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fleetfoot.errors import UsageError

__all__ = ["Progress", "ProgressLike"]


@dataclass(frozen=True, slots=True)
class Progress:
    """A run has finished.

    Attributes:
        step: What is being done: ``as described``, ``variants``, ``runs``...
        variant: Name of the variant that was run.
        seed: Its seed.
        done: Runs of this step that are finished, reused ones included.
        total: Runs of this step.
        reused: Runs of this step that were kept from before.
        wall_s: How long the run took (s); zero if it was reused.
    """

    step: str
    variant: str
    seed: int
    done: int
    total: int
    reused: int
    wall_s: float


#: What a function takes as ``progress``: nothing, a function that is called after every run, or True for a bar.
ProgressLike = Callable[[Progress], object] | bool | None

#: What the compiled part calls.
Heard = Callable[[str, str, int, int, int, int, float], None]


@contextmanager
def listening(progress: ProgressLike) -> Iterator[Heard | None]:
    """What the compiled part calls for ``progress``."""
    if progress is None or progress is False:
        yield None
        return
    if progress is True:
        with _bar() as bar:
            yield bar
        return
    if not callable(progress):
        raise UsageError("progress: True or a function that takes a Progress is wanted")
    call = progress

    def heard(*event: Any) -> None:  # noqa: ANN401
        call(Progress(*event))

    yield heard


@contextmanager
def _bar() -> Iterator[Heard]:
    """A bar of tqdm where it is installed, else a line on standard error at growing intervals."""
    try:
        from tqdm import tqdm
    except ImportError:
        yield _lines()
        return
    bar = tqdm(unit="run")
    seen: dict[str, int] = {}

    def heard(step: str, variant: str, seed: int, done: int, total: int, reused: int, wall_s: float) -> None:  # noqa: ARG001
        if step not in seen:
            bar.total = (bar.total or 0) + total
            bar.set_description(step, refresh=False)
            seen[step] = 0
        bar.update(done - seen[step])
        seen[step] = done

    try:
        yield heard
    finally:
        bar.close()


def _lines() -> Heard:
    begin = time.monotonic()
    pause, last = 1.0, begin

    def heard(step: str, variant: str, seed: int, done: int, total: int, reused: int, wall_s: float) -> None:  # noqa: ARG001
        nonlocal pause, last
        now = time.monotonic()
        if done < total and now - last < pause:
            return
        last, pause = now, pause * 1.5
        print(f"{step}: {done} of {total} runs, {now - begin:.0f} s", file=sys.stderr)

    return heard
