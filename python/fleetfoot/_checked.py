"""Arguments, checked as the program checks its flags, with the same words."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable

from fleetfoot.errors import UsageError
from fleetfoot.scenario import Scenario

#: What a function takes as a scenario: one that was read, or the path of its file.
ScenarioLike = Scenario | str | os.PathLike[str]

MOST_SEEDS = 1_000_000
MOST_THREADS = 512


def scenario_of(given: ScenarioLike) -> Scenario:
    """The scenario itself, or that of a file."""
    if isinstance(given, Scenario):
        return given
    if isinstance(given, str | os.PathLike):
        return Scenario.load(given)
    raise UsageError(f"a Scenario or the path of its file is wanted, not {type(given).__name__}")


def whole(name: str, value: object, low: int, high: int) -> int:
    """A whole number from ``low`` to ``high``."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise UsageError(f"{name}: a whole number is wanted, not {value!r}") from None
    if not low <= number <= high:
        raise UsageError(f"{name}: {number} is not in {low}..={high}")
    return number


def whole_or_none(name: str, value: object, low: int, high: int) -> int | None:
    """The same, or ``None``."""
    return None if value is None else whole(name, value, low, high)


def threads(value: object) -> int:
    """A number of threads; 0: one per core."""
    if value is None:
        return 0
    try:
        return whole("jobs", value, 1, MOST_THREADS)
    except UsageError:
        raise UsageError(
            f"jobs: 1 to {MOST_THREADS} threads are wanted; without the argument there is one per core"
        ) from None


def names(name: str, value: str | Iterable[str] | None) -> list[str]:
    """A name, or several; a text may hold several, separated by commas."""
    if value is None:
        return []
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    listed = list(value)
    for one in listed:
        if not isinstance(one, str):
            raise UsageError(f"{name}: names are text, not {type(one).__name__}")
    return listed


def path_or_none(value: str | os.PathLike[str] | None) -> str | None:
    """A path as text."""
    return None if value is None else os.fspath(value)
