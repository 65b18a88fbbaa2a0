"""``run``, ``compare`` and ``recommend``: from a scenario to an answer."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Literal

from fleetfoot import _native
from fleetfoot._checked import (
    MOST_SEEDS,
    ScenarioLike,
    names,
    path_or_none,
    scenario_of,
    threads,
    whole,
    whole_or_none,
)
from fleetfoot.errors import UsageError
from fleetfoot.plugin import renew
from fleetfoot.progress import ProgressLike, listening
from fleetfoot.result import Result

__all__ = ["compare", "limit_memory", "recommend", "run"]

_LARGEST_SEED = 2**64 - 1


def run(
    scenario: ScenarioLike,
    variant: str | None = None,
    *,
    seed: int | None = None,
    seeds: int = 1,
    jobs: int | None = None,
    out: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    force: bool = False,
    samples: bool = True,
    traces: bool = False,
    progress: ProgressLike = None,
) -> Result:
    """Run a scenario, or one of its variants, alone, as ``fleetfoot run`` does.

    Args:
        scenario: The scenario, or the path of its file.
        variant: A variant of the file, or a mechanism by name.
        seed: The seed, instead of the scenario's first.
        seeds: Run so many seeds.
        jobs: Threads, 1 to 512; by default one per core.
        out: Also write result, samples and report into this folder, and keep finished runs there.
        fresh: Run everything again, reuse nothing of ``out``.
        force: Write into a folder that holds something else.
        samples: Keep the flows of the runs; without them the result takes some kilobytes.
        traces: Record two flows of every group over time: the first seed is run once more.
        progress: A function that is called with a :class:`fleetfoot.Progress` after every run, or True for a bar.

    Raises:
        ScenarioError: The scenario cannot be run as it stands.
        UsageError: An argument cannot be.
        RunError: A run failed, for want of memory for instance.
        KeyboardInterrupt: Ctrl-C; finished runs are kept where ``out`` was given.

    >>> import fleetfoot
    >>> line = fleetfoot.Scenario.home_line().with_(run__duration="5 s")
    >>> fleetfoot.run(line, "codel").variants
    ['codel']
    """
    request = _request(
        "run",
        only=[] if variant is None else [variant],
        seed=seed,
        seeds=seeds,
        jobs=jobs,
        out=out,
        fresh=fresh,
        force=force,
        samples=samples,
        traces=traces,
    )
    with listening(progress) as heard:
        return Result(_native.run(scenario_of(scenario)._inner, request, heard))


def compare(
    scenario: ScenarioLike,
    *,
    only: str | Iterable[str] | None = None,
    where: str | Iterable[str] | None = None,
    pairs: bool = False,
    sensitivity: bool = False,
    budget: str | int | None = None,
    seed: int | None = None,
    seeds: int | None = None,
    jobs: int | None = None,
    out: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    force: bool = False,
    samples: bool = True,
    traces: bool = False,
    progress: ProgressLike = None,
) -> Result:
    """Run every variant with common random numbers and rank them by what they win and cost, as ``fleetfoot compare``.

    Args:
        scenario: The scenario, or the path of its file.
        only: Only these variants or mechanisms; ``"a + b"`` is both together.
        where: Apply queue mechanisms here, not where queues stand: ``LINK`` or ``LINK:DIRECTION``.
        pairs: Also the sensible pairs of mechanisms.
        sensitivity: Also: does the answer hold at half and double rate, RTT, load and buffer, and with jitter?
        budget: How far to go while the best are undecided: so many more runs (``500``), or so long in all
            (``"2 min"``): the first pass is made whole, and after that time no further step begins.
        seed: The first seed, instead of the scenario's.
        seeds: Number of seeds, instead of the scenario's.
        jobs: Threads, 1 to 512; by default one per core.
        out: Also write result, samples and report into this folder, and keep finished runs there.
        fresh: Run everything again, reuse nothing of ``out``.
        force: Write into a folder that holds something else.
        samples: Keep the flows of the runs; without them the result takes some kilobytes.
        traces: Record some flows of the scenario and of the best variants over time.
        progress: A function that is called with a :class:`fleetfoot.Progress` after every run, or True for a bar.

    Raises:
        ScenarioError: A variant cannot be resolved, or there is nothing of a name.
        UsageError: An argument cannot be, or nothing in the scenario waits.
        RunError: A run failed, for want of memory for instance.
        KeyboardInterrupt: Ctrl-C; finished runs are kept where ``out`` was given; the same call goes on from there.

    >>> import fleetfoot
    >>> line = fleetfoot.Scenario.home_line().with_(run__duration="5 s")
    >>> fleetfoot.compare(line, only="codel", seeds=2, budget=0).variants[:2]
    ['as described', 'codel']
    """
    request = _request(
        "compare",
        only=names("only", only),
        places=names("where", where),
        pairs=pairs,
        sensitivity=sensitivity,
        budget=budget,
        seed=seed,
        seeds=seeds,
        jobs=jobs,
        out=out,
        fresh=fresh,
        force=force,
        samples=samples,
        traces=traces,
    )
    with listening(progress) as heard:
        return Result(_native.compare(scenario_of(scenario)._inner, request, heard))


def recommend(
    scenario: ScenarioLike,
    *,
    control: Literal["sender", "router", "both"] = "both",
    only_linux: bool = False,
    where: str | Iterable[str] | None = None,
    seed: int | None = None,
    seeds: int | None = None,
    jobs: int | None = None,
    out: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    force: bool = False,
    samples: bool = True,
    traces: bool = False,
    progress: ProgressLike = None,
) -> Result:
    """Search for one setting to try first, and compare it near the described network, as ``fleetfoot recommend`` does.

    Args:
        scenario: The scenario, or the path of its file.
        control: Where you can change something: hosts that send, queues of routers, or both.
        only_linux: Only what a released Linux kernel has.
        where: As for :func:`compare`.
        seed: As for :func:`compare`.
        seeds: Number of seeds of the finalists, instead of the scenario's.
        jobs: As for :func:`compare`.
        out: As for :func:`compare`.
        fresh: As for :func:`compare`.
        force: As for :func:`compare`.
        samples: As for :func:`compare`.
        traces: As for :func:`compare`.
        progress: As for :func:`compare`.

    Raises:
        ScenarioError: As for :func:`compare`.
        UsageError: As for :func:`compare`.
        RunError: As for :func:`compare`.
        KeyboardInterrupt: As for :func:`compare`.
    """
    request = _request(
        "recommend",
        control=control,
        only_linux=only_linux,
        places=names("where", where),
        seed=seed,
        seeds=seeds,
        jobs=jobs,
        out=out,
        fresh=fresh,
        force=force,
        samples=samples,
        traces=traces,
    )
    with listening(progress) as heard:
        return Result(_native.recommend(scenario_of(scenario)._inner, request, heard))


def limit_memory(size: int) -> None:
    """Set the memory that this process may take; by default half of what the machine allows it.

    A run that would take more is refused; one that grows beyond it ends with a :class:`fleetfoot.RunError`. All
    memory of the process counts. Results never depend on it.

    Args:
        size: Bytes.

    Raises:
        UsageError: It is no positive whole number.
    """
    _native.limit_memory(whole("size", size, 1, 2**64 - 1))


#: What the compiled part takes, and its defaults.
_DEFAULTS: dict[str, Any] = {
    "only": [],
    "places": [],
    "pairs": False,
    "sensitivity": False,
    "budget": None,
    "control": "both",
    "only_linux": False,
    "seed": None,
    "seeds": None,
    "jobs": None,
    "out": None,
    "fresh": False,
    "force": False,
    "samples": True,
    "traces": False,
}

#: Arguments that say how something is made, and not what.
_HOW = ("jobs", "out", "fresh", "force", "samples", "traces")


def _request(verb: str, **given: Any) -> dict[str, Any]:  # noqa: ANN401
    """The arguments of a function as the compiled part takes them, which knows every class as it is now."""
    renew()
    if not isinstance(given.get("control", "both"), str):
        raise UsageError("control: one of sender, router, both is wanted")
    request = {**_DEFAULTS, **given}
    request["seed"] = whole_or_none("seed", request["seed"], 0, _LARGEST_SEED)
    request["seeds"] = whole_or_none("seeds", request["seeds"], 1, MOST_SEEDS)
    request["budget"] = None if request["budget"] is None else str(request["budget"])
    said = [f"{name}={value!r}" for name, value in request.items() if value != _DEFAULTS[name] and name not in _HOW]
    request["command"] = f"fleetfoot.{verb}({', '.join(['scenario', *said])})"
    request["jobs"] = threads(request["jobs"])
    request["out"] = path_or_none(request["out"])
    for name, default in _DEFAULTS.items():
        if isinstance(default, bool):
            request[name] = bool(request[name])
    return request
