"""Sweeps: one scenario at many points, on all cores, over any executor, or on a Ray cluster."""

from __future__ import annotations

import html
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, overload

from fleetfoot import _native
from fleetfoot._extra import library
from fleetfoot._pool import Executed, Pool, drive
from fleetfoot.errors import UsageError
from fleetfoot.plugin import renew
from fleetfoot.scenario import Scenario

__all__ = ["Figure", "Points", "Sweep", "SweepProgress", "sweep"]

#: Low, high, then in any order a number of values and "log" or "lin"; or one text, as ``--range`` has it.
Range = Sequence[Any] | str


@dataclass(frozen=True, slots=True)
class SweepProgress:
    """How far a sweep is. A run here is one seed of a point, with all of its variants.

    Attributes:
        done: Runs that are finished, those kept from before included.
        total: Runs of the whole sweep, as far as that is known: a rule of stopping leaves some out.
        reused: Runs that were kept from before.
        failed: Runs that failed.
    """

    done: int
    total: int
    reused: int
    failed: int


class Figure:
    """A figure of the report. In a notebook it shows itself.

    Attributes:
        title: What it shows.
        svg: The drawing as the text of an SVG file.
    """

    def __init__(self, title: str, svg: str) -> None:
        self.title = title
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<Figure {self.title!r}>"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the drawing as an SVG file."""
        Path(path).write_text(self.svg, encoding="utf-8")


class Figures(Sequence[Figure]):
    """The figures of a sweep. In a notebook they show themselves below each other."""

    def __init__(self, figures: Sequence[Figure]) -> None:
        self._figures = list(figures)

    def __len__(self) -> int:
        return len(self._figures)

    @overload
    def __getitem__(self, index: int) -> Figure: ...
    @overload
    def __getitem__(self, index: slice) -> Figures: ...
    def __getitem__(self, index: int | slice) -> Figure | Figures:
        if isinstance(index, slice):
            return Figures(self._figures[index])
        return self._figures[index]

    def _repr_html_(self) -> str:
        return "\n".join(f"<div>{figure.svg}</div>" for figure in self._figures)

    def __repr__(self) -> str:
        return f"<{len(self)} figures>"


class Points(Sequence[dict[str, Any]]):
    """The points of a sweep: each a dictionary of paths and values. They are made when they are asked for."""

    def __init__(self, native: _native.Sweep) -> None:
        self._native = native
        self._paths = [path for path, _, _ in native.axes]

    def __len__(self) -> int:
        return self._native.points

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"there are {len(self)} points")
        return dict(zip(self._paths, self._native.values(number), strict=True))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[number] for number in range(len(self)))

    def __repr__(self) -> str:
        return f"<{len(self)} points of {', '.join(self._paths)}>"


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was asked for, as the compiled part takes it."""

    scenario: Scenario
    lists: list[tuple[str, list[Any]]]
    ranges: list[str]
    more: dict[str, Any]

    def native(self) -> _native.Sweep:
        return _native.Sweep(self.scenario._inner, self.lists, self.ranges, **self.more)


class Sweep:
    """What a sweep gave: a folder with its data set, which is read when it is asked for.

    Attributes:
        folder: Where everything is: tables, ``report.html``, ``sweep.json``, the journal.
        points: The points: ``points[3]`` is a dictionary of paths and values.
        counts: Runs (every variant and seed counts) that were ``computed`` now and ``reused`` from
            before, and points that are ``done``, ``wide`` (see ``until``), ``failed`` and ``open``.
        failures: The points that failed: ``point`` (number), ``set`` (in words), ``reason``.
        best: The best point of each measure, a line each.
        document: What ``sweep.json`` says.
    """

    def __init__(
        self,
        asked: _Asked,
        folder: Path,
        tables: list[str],
        lines: list[str],
        document: dict[str, Any],
    ) -> None:
        self._made_of = (asked, folder, tables, lines, document)
        self._native = native = asked.native()
        self._tables = {Path(name).stem: folder / name for name in tables}
        self.folder = folder
        self.points = Points(native)
        self.best = lines
        self.document = document
        self.failures: list[dict[str, Any]] = document["failures"]
        states = {key: value for key, value in document["points"].items() if key != "total"}
        timing = document["timing"]
        self.counts: dict[str, int] = {"computed": timing["computed"], "reused": timing["reused"], **states}

    def __reduce__(self) -> tuple[Any, ...]:
        return Sweep, self._made_of

    @property
    def title(self) -> str:
        """What the scenario is called."""
        return self._native.title

    def path(self, table: str = "runs") -> Path:
        """The file of a table.

        Args:
            table: ``points``, ``runs`` (a row for each point, variant, seed and traffic group) or ``links``.
        """
        if table not in self._tables:
            raise UsageError(f"there is no table {table!r}; there are {', '.join(self._tables)}")
        return self._tables[table]

    def to_arrow(self, table: str = "runs") -> Any:  # noqa: ANN401
        """The table as ``pyarrow.Table``; docs/sweep.md and docs/data-dictionary.md have columns and units.

        Its first columns are ``point`` and one for each axis, named by its path and the unit of its numbers.

        Raises:
            MissingExtraError: PyArrow is not installed.
        """
        return library("pyarrow.parquet").read_table(self.path(table))

    def to_pandas(self, table: str = "runs") -> Any:  # noqa: ANN401
        """The table as ``pandas.DataFrame``."""
        library("pyarrow")
        return library("pandas").read_parquet(self.path(table))

    def to_polars(self, table: str = "runs") -> Any:  # noqa: ANN401
        """The table as ``polars.DataFrame``; ``polars.scan_parquet(sweep.path())`` reads it lazily."""
        return library("polars").read_parquet(self.path(table))

    def plot(self, columns: str | Sequence[str] = (), axes: tuple[str, str] | None = None) -> Figures:
        """The heat maps of the report, or lines where there is one axis.

        Args:
            columns: Columns of the table ``runs`` with numbers; by default completion times of the
                groups that wait.
            axes: Paths of the axes that run to the right and down; by default every pair of the first
                four. Other axes make panels where they have few values, else a cell is their mean.

        Raises:
            ScenarioError: There is no such column or axis.
        """
        made = _native.sweep_figures(self._native, str(self.folder), _list(columns), list(axes or ()))
        return Figures([Figure(title, svg) for title, svg in made])

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {name}" for name, count in self.counts.items() if count)
        return f"<Sweep of {self.title!r}: {len(self.points)} points ({counts}) in {str(self.folder)!r}>"

    def _repr_html_(self) -> str:
        rows = [
            ("Points", f"{len(self.points)}"),
            *((column, unit) for column, unit in ((axis[1], _values(self, axis[0])) for axis in self._native.axes)),
            ("Runs", f"{self.counts['computed']} computed, {self.counts['reused']} reused"),
            *((name.capitalize(), str(self.counts[name])) for name in ("wide", "failed", "open") if self.counts[name]),
            *(("Best", line.removeprefix("Best ")) for line in self.best),
            ("Report", str(self.folder / "report.html")),
        ]
        cells = "".join(
            f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
            f"<td style='text-align:left'>{html.escape(value)}</td></tr>"
            for name, value in rows
        )
        return f"<table><caption>{html.escape(self.title)}: a sweep</caption>{cells}</table>"


def _values(sweep: Sweep, path: str) -> str:
    first, last = sweep.points[0][path], sweep.points[-1][path]
    return f"{first}" if first == last else f"from {first} to {last}"


def _list(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else [str(one) for one in value]


def _range(path: str, given: Range) -> str:
    """A range as ``--range`` has it."""
    if isinstance(given, str):
        return f"{path}={given}"
    parts = list(given)
    if len(parts) < 2:
        raise UsageError(f'range: {path}: low and high are wanted, then "log" or a number of values')
    low, high, *rest = parts
    words = sorted((_number(one) for one in rest), key=str.isdigit)
    return f"{path}={':'.join([_number(low), _number(high), *words])}"


def _number(value: object) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return repr(float(value))
    return str(value)


def sweep(
    scenario: Scenario,
    *,
    set: Mapping[str, Sequence[Any]] | None = None,  # noqa: A002 - the flag of the program
    range: Mapping[str, Range] | None = None,  # noqa: A002 - the flag of the program
    sample: str | None = None,
    only: str | Sequence[str] = (),
    where: str | Sequence[str] = (),
    seed: int | None = None,
    seeds: int | None = None,
    until: str | None = None,
    show: str | Sequence[str] = (),
    axes: tuple[str, str] | None = None,
    out: str | os.PathLike[str] | None = None,
    jobs: int = 0,
    retry: bool = False,
    fresh: bool = False,
    force: bool = False,
    progress: bool | Callable[[SweepProgress], object] = False,
    engine: str | futures.Executor = "local",
    address: str | None = None,
) -> Sweep:
    """Run a scenario at many points, and write one data set, as ``fleetfoot sweep`` does (docs/sweep.md).

    Finished runs are kept in the folder at once: after Ctrl-C, ``kill -9`` or a failure the same call
    goes on behind them. The data set follows from scenario, points and seeds alone, byte for byte,
    whatever the engine.

    Args:
        scenario: What is run.
        set: Paths and the values that each takes: ``{"tcp.initial_window": [3, 10, 20]}``.
        range: Paths and ranges: ``{"network.bottleneck.rate": ("2 Mbit/s", "200 Mbit/s", "log", 7)}``.
            Both ends have the same unit or none.
        sample: Not every combination: ``"latin-hypercube=1000"`` or ``"random=1000"``. Ranges then need
            no number of values.
        only: Beside the scenario as described these variants or mechanisms; ``"a + b"`` is both together.
        where: Where queue mechanisms are applied: ``LINK`` or ``LINK:DIRECTION``; by default at the
            bottleneck.
        seed: The first seed, instead of the scenario's. Points that are drawn follow from it.
        seeds: Seeds of each point, instead of the scenario's; with ``until`` the most of them, by
            default 100.
        until: Seeds until half of the 95 % interval of a mean is no wider than that: ``"fct_mean_s=5%"``,
            ``"web.fct_mean_s=0.01"`` (in the unit of the column).
        show: Columns of the table of runs that the report draws.
        axes: The two axes of the report's heat maps.
        out: The folder; by default ``fleetfoot-out/TITLE-HASH``.
        jobs: Threads of the local engine; 0: one per core.
        retry: Run what failed once more.
        fresh: Run everything again.
        force: Write into a folder that holds something else; a sweep that grew reuses the points it
            shares with the smaller.
        progress: True shows a bar (needs tqdm); a function is called now and then with a
            :class:`SweepProgress`.
        engine: ``"local"``; ``"ray"``; or an executor of :mod:`concurrent.futures`, which is left open.
        address: The Ray cluster; by default the one that runs here, else a new one.

    Raises:
        ScenarioError: A path, value or name does not fit the scenario.
        UsageError: An argument cannot be, or the folder holds something else.
        RunError: The journal cannot be written, memory is not enough, the executor or the cluster
            failed. Runs that fail are no exception: ``failures`` has them.
        MissingExtraError: Ray or tqdm is not installed.
    """
    if not isinstance(scenario, Scenario):
        raise UsageError("sweep: the first argument is a Scenario: Scenario.load(path) reads one")
    if isinstance(engine, str) and engine not in ("local", "ray"):
        raise UsageError(f'engine: "local", "ray" or an executor is wanted, not {engine!r}')
    if address is not None and engine != "ray":
        raise UsageError('address has no effect without engine="ray"')
    if jobs < 0 or (jobs and engine != "local"):
        raise UsageError('jobs is a number of threads, and has an effect with engine="local" only')
    renew()
    lists = [(path, [values] if isinstance(values, str) else list(values)) for path, values in (set or {}).items()]
    more = {
        "sample": sample,
        "only": _list(only),
        "places": _list(where),
        "seed": seed,
        "seeds": seeds,
        "until": until,
    }
    ranges = [_range(path, given) for path, given in (range or {}).items()]
    asked = _Asked(scenario, lists, ranges, more)
    native = asked.native()
    sweeping = _native.Sweeping(
        native,
        show=_list(show),
        axes=list(axes or ()),
        out=None if out is None else os.fspath(out),
        force=force,
        fresh=fresh,
        retry=retry,
    )
    try:
        with _Told(sweeping, progress, native.title) as told:
            _run(native, sweeping, engine, address, jobs, told)
        command = f"fleetfoot.sweep({scenario!r}, ...) in Python"
        tables, lines, document = sweeping.finish(command)
    except BaseException:
        sweeping.close()
        raise
    return Sweep(asked, Path(sweeping.folder).absolute(), tables, lines, json.loads(document))


def _run(
    native: _native.Sweep,
    sweeping: _native.Sweeping,
    engine: str | futures.Executor,
    address: str | None,
    jobs: int,
    told: _Told,
) -> None:
    if engine == "local":
        sweeping.run(jobs, told if told.listens else None)
    elif isinstance(engine, str):
        from fleetfoot.ray import RayPool

        pool = RayPool(address, native.description())
        try:
            drive(sweeping, pool, told)
        finally:
            pool.close()
    else:
        executed: Pool = Executed(engine, native.description())
        drive(sweeping, executed, told)


class _Told:
    """Tells whoever listens how far a sweep is."""

    def __init__(
        self, sweeping: _native.Sweeping, progress: bool | Callable[[SweepProgress], object], title: str
    ) -> None:
        self._sweeping = sweeping
        self._listener = progress if callable(progress) else None
        self._bar = library("tqdm").tqdm(desc=title, unit="run") if progress is True else None
        self._last: tuple[int, int, int, int] | None = None
        self.listens = self._listener is not None or self._bar is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self) -> None:
        now = self._sweeping.progress
        if not self.listens or now == self._last:
            return
        self._last = now
        total, done, reused, failed = now
        if self._bar is not None:
            self._bar.total = total
            self._bar.update(done - self._bar.n)
        if self._listener is not None:
            self._listener(SweepProgress(done, total, reused, failed))
