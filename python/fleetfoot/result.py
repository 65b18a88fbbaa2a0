"""Results of :func:`fleetfoot.run`, :func:`fleetfoot.compare` and :func:`fleetfoot.recommend`."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from fleetfoot import _native
from fleetfoot.chart import Chart, Charts
from fleetfoot.scenario import Scenario
from fleetfoot.table import Table

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["Result"]


class Result:
    """A finished comparison, or a finished run.

    It is kept compressed, as :attr:`nbytes` says, and unpacked where something of it is asked for; it can be pickled.
    The document behind it is that of ``result.json``, field for field (docs/data-dictionary.md).
    """

    __slots__ = ("_inner",)

    def __init__(self, inner: _native.Comparison) -> None:
        self._inner = inner

    @property
    def answer(self) -> str:
        """What to try, where, what it wins and harms and how sure that is; of a single run how long transfers take."""
        return str(self.to_dict()["answer"])

    @property
    def recommended(self) -> str | None:
        """Name of the variant to try first; ``None`` where none is recommended."""
        recommended = self.to_dict()["recommended"]
        return None if recommended is None else str(recommended["variant"])

    @property
    def variants(self) -> list[str]:
        """Names of the variants, the scenario as described first."""
        return [variant["name"] for variant in self.to_dict()["variants"]]

    @property
    def seeds(self) -> list[int]:
        """The seeds, in the order they were run."""
        return [int(seed) for seed in self.to_dict()["seeds"]]

    @property
    def scenario(self) -> Scenario:
        """The scenario that was run, with everything that it extends."""
        return Scenario._reread(self._inner.scenario_toml())

    @property
    def command(self) -> str:
        """What repeats it."""
        return self._inner.command()

    @property
    def computed(self) -> int:
        """How many runs were computed for it."""
        return self._inner.computed

    @property
    def reused(self) -> int:
        """How many runs were kept from before."""
        return self._inner.reused

    @property
    def wall_s(self) -> float:
        """How long its runs took (s)."""
        return self._inner.wall_s

    @property
    def nbytes(self) -> int:
        """Memory that it takes (bytes)."""
        return self._inner.nbytes

    def to_json(self) -> str:
        """The text of ``result.json``: the same bytes as the program writes."""
        return self._inner.to_json()

    def to_dict(self) -> dict[str, Any]:
        """The same as dictionaries and lists."""
        document: dict[str, Any] = json.loads(self._inner.to_json())
        return document

    def save(self, folder: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the folder that the program writes: result, tables, report, scenario.

        The report has drawings of single flows where the result was made with ``traces=True``.

        Args:
            folder: It is made if it is not there.
            force: Write into a folder that holds something else.

        Raises:
            UsageError: The folder holds something else or cannot be written, or the samples were not kept.
            RunError: A file could not be written.
        """
        self._inner.save(os.fspath(folder), force)

    def without_samples(self) -> Result:
        """The same without samples and traces: some kilobytes, for those who keep very many results."""
        return Result(self._inner.without_runs())

    @property
    def runs(self) -> Table:
        """One row per traffic group of every run (variant and seed): the columns of ``runs.csv``.

        Raises:
            UsageError: The result was made with ``samples=False``. This holds for all tables.
        """
        return self.table("runs")

    @property
    def samples(self) -> Table:
        """One row per flow of every run: the columns of ``samples.csv``; times in seconds, sizes in bytes."""
        return self.table("samples")

    @property
    def links(self) -> Table:
        """One row per direction of every link of every run: the columns of ``links.csv``."""
        return self.table("links")

    def traces(self) -> dict[str, Table]:
        """What some flows did over time: two per group, of the first seed; of the scenario and the best variants.

        The tables are empty where the result was made without ``traces=True``.

        Returns:
            ``states``: the sender's state at every acknowledgment and timer: ``variant, group, flow, time_s,
            cwnd_bytes, ssthresh_bytes, srtt_s, pipe_bytes, acked_bytes, state``. ``segments``: every data segment
            sent: ``variant, group, flow, time_s, from_byte, size_bytes, retransmission``. Times are from the start
            of the run.
        """
        return {name: self.table(name) for name in ("states", "segments")}

    def table(self, name: str) -> Table:
        """The table called ``runs``, ``samples``, ``links``, ``states`` or ``segments``.

        Raises:
            UsageError: There is no such table, or the samples were not kept.
        """
        return Table(self._inner.table(name))

    def to_arrow(self, table: str = "runs") -> pyarrow.Table:
        """A table, as :meth:`fleetfoot.Table.to_arrow`."""
        return self.table(table).to_arrow()

    def to_pandas(self, table: str = "runs") -> pandas.DataFrame:
        """A table, as :meth:`fleetfoot.Table.to_pandas`."""
        return self.table(table).to_pandas()

    def to_polars(self, table: str = "runs") -> polars.DataFrame:
        """A table, as :meth:`fleetfoot.Table.to_polars`."""
        return self.table(table).to_polars()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table ``runs``, by the Arrow PyCapsule protocol."""
        return self.runs.__arrow_c_stream__(requested_schema)

    def charts(self) -> Charts:
        """The report's charts for which there is data."""
        listed = json.loads(self._inner.charts())
        return Charts(Chart(one["id"], one["title"], one["text"], one["spec"]) for one in listed)

    def plot(self, chart: str | None = None) -> Chart:
        """One of the report's charts; a notebook draws it.

        Args:
            chart: Its id; without one the first of the report.

        Raises:
            UsageError: There is no such chart; the message names those that there are.
        """
        charts = self.charts()
        if chart is None and charts:
            return charts[0]
        return charts.named(chart or "")

    def _repr_html_(self) -> str:
        return self._inner.html()

    def __repr__(self) -> str:
        document = self.to_dict()
        count = len(document["variants"])
        what = f"{count} variants" if count > 1 else document["variants"][0]["name"]
        return f"<Result of {document['scenario']!r}: {what}, {len(document['seeds'])} seeds>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result):
            return NotImplemented
        return self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, self._inner.parts()


def _restored(document: bytes, about: bytes, runs: bytes | None, counts: tuple[int, int, float]) -> Result:
    """A result that was pickled."""
    return Result(_native.Comparison.of_parts(document, about, runs, counts))
