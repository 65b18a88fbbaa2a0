from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent import futures
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar

import pytest
from program import run_program

import fleetfoot
from fleetfoot.errors import RunError, ScenarioError, UsageError

#: The line of the program's tests, with shorter runs.
LINE = (
    fleetfoot.Scenario.load(Path(__file__).parents[2] / "crates/cli/tests/line.toml")
    .with_(run__duration="1 s", run__warmup="200 ms", run__seeds=2)
    .to_toml()
)

AXES: dict[str, Any] = {
    "set": {"tcp.initial_window": [3, 10]},
    "range": {"network.bottleneck.rate": ("2 Mbit/s", "20 Mbit/s", "log", 4)},
}

#: What follows from the sweep alone.
DATA = ["points.parquet", "runs.parquet", "links.parquet", "sweep.json", "scenario.toml", "sweep.journal"]


@pytest.fixture(scope="module")
def line() -> fleetfoot.Scenario:
    return fleetfoot.Scenario.from_toml(LINE)


@pytest.fixture(scope="module")
def local(line: fleetfoot.Scenario, tmp_path_factory: pytest.TempPathFactory) -> fleetfoot.Sweep:
    return fleetfoot.sweep(line, **AXES, out=tmp_path_factory.mktemp("local") / "sweep")


def data(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in DATA}


def test_a_sweep_gives_points_counts_and_tables(local: fleetfoot.Sweep) -> None:
    assert len(local.points) == 8
    assert local.points[-1] == {"tcp.initial_window": 10, "network.bottleneck.rate": "20 Mbit/s"}
    assert [point["tcp.initial_window"] for point in local.points[3:5]] == [3, 10]
    assert next(iter(local.points))["network.bottleneck.rate"] == "2 Mbit/s"
    with pytest.raises(IndexError):
        local.points[8]
    assert local.counts == {"computed": 16, "reused": 0, "done": 8, "wide": 0, "open": 0, "failed": 0}
    assert local.failures == []
    assert local.best[0].startswith("Best fct_mean_s of pages: ")
    runs = local.to_arrow()
    assert runs.num_rows == 16
    assert runs.column_names[:3] == ["point", "tcp.initial_window", "network.bottleneck.rate (Mbit/s)"]
    frame = local.to_pandas()
    assert frame.equals(runs.to_pandas())
    assert local.to_polars("points").shape[0] == 8
    with pytest.raises(UsageError, match="points, runs, links"):
        local.to_arrow("rows")
    assert "16 computed" in repr(local)
    again = pickle.loads(pickle.dumps(local))
    assert (again.counts, again.points[5], again.folder) == (local.counts, local.points[5], local.folder)
    assert again.to_arrow().equals(runs)
    html = local._repr_html_()
    assert "A small line" in html and "network.bottleneck.rate (Mbit/s)" in html


def test_the_figures_are_those_of_the_report(local: fleetfoot.Sweep, tmp_path: Path) -> None:
    figures = local.plot()
    assert [figure.title for figure in figures] == [
        "fct_mean_s of pages: tcp.initial_window and network.bottleneck.rate (Mbit/s)"
    ]
    assert figures[0].title in (local.folder / "report.html").read_text()
    assert "<svg" in figures._repr_html_()
    other = local.plot("goodput_bps", ("network.bottleneck.rate", "tcp.initial_window"))
    assert other[0].svg != figures[0].svg
    other[0].save(tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").read_text().startswith("<svg")
    with pytest.raises(ScenarioError, match="not swept"):
        local.plot(axes=("tcp.initial_window", "run.duration"))
    with pytest.raises(ScenarioError, match="no column of numbers"):
        local.plot("speed")


def test_the_program_writes_the_same_bytes(local: fleetfoot.Sweep, tmp_path: Path) -> None:
    (tmp_path / "line.toml").write_text(LINE)
    arguments = ["line.toml", "--out", "o", "--set", "tcp.initial_window=3,10", "--range"]
    run_program("sweep", *arguments, "network.bottleneck.rate=2 Mbit/s:20 Mbit/s:log:4", cwd=tmp_path)
    assert data(tmp_path / "o") == data(local.folder)


def test_over_threads_and_processes_the_bytes_are_the_same(
    line: fleetfoot.Scenario, local: fleetfoot.Sweep, tmp_path: Path
) -> None:
    told: list[fleetfoot.SweepProgress] = []
    with futures.ThreadPoolExecutor(3) as threads:
        made = fleetfoot.sweep(line, **AXES, out=tmp_path / "threads", engine=threads, progress=told.append)
    assert (made.counts["computed"], told[-1].done, told[-1].total) == (16, 16, 16)
    assert data(made.folder) == data(local.folder)
    with futures.ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        made = fleetfoot.sweep(line, **AXES, out=tmp_path / "processes", engine=processes)
        # A second sweep in the same processes, one that grew.
        grown = {**AXES, "set": {"tcp.initial_window": [3, 10, 20]}}
        more = fleetfoot.sweep(line, **grown, out=tmp_path / "processes", engine=processes, force=True)
    assert data(local.folder)["runs.parquet"] != data(more.folder)["runs.parquet"]
    assert (more.counts["computed"], more.counts["reused"]) == (8, 16)
    assert fleetfoot.sweep(line, **grown, out=tmp_path / "grown").counts["computed"] == 24
    assert data(tmp_path / "grown") == data(tmp_path / "processes")


def test_values_of_python_and_files_of_values(tmp_path: Path) -> None:
    (tmp_path / "steady").write_text("1\n2\n3\n4\n5\n6\n")
    line = fleetfoot.Scenario.from_toml(LINE)
    queues = [{"kind": "codel", "target": "5 ms"}, {"kind": "drop-tail", "limit": "20 packets"}]
    sets: dict[str, list[Any]] = {
        "network.bottleneck.rate": ["5 Mbit/s", {"trace": str(tmp_path / "steady")}],
        "network.bottleneck.queue": queues,
    }
    here = fleetfoot.sweep(line, set=sets, seeds=1, out=tmp_path / "here")
    with futures.ThreadPoolExecutor(1) as threads:
        there = fleetfoot.sweep(line, set=sets, seeds=1, out=tmp_path / "there", engine=threads)
    assert data(here.folder) == data(there.folder)
    assert here.points[2]["network.bottleneck.rate"] == {"trace": str(tmp_path / "steady")}
    drawn = fleetfoot.sweep(
        line,
        range={"network.bottleneck.delay": ("1 ms", "50 ms", "log")},
        sample="latin-hypercube=5",
        seeds=1,
        out=tmp_path / "drawn",
    )
    assert len(drawn.points) == 5


def test_mistakes_are_named_before_anything_runs(line: fleetfoot.Scenario, tmp_path: Path) -> None:
    out = tmp_path / "sweep"

    def mistake(kind: type[Exception], match: str, **arguments: Any) -> None:
        with pytest.raises(kind, match=match):
            fleetfoot.sweep(line, out=out, **arguments)
        assert not out.exists()

    mistake(ScenarioError, "nothing is swept")
    mistake(ScenarioError, "initial_windo", set={"tcp.initial_windo": [3]})
    mistake(ScenarioError, "stands there twice", set={"tcp.initial_window": [3, 3]})
    mistake(ScenarioError, "same unit", range={"network.bottleneck.rate": ("1 Mbit/s", "1 Gbit/s", 3)})
    mistake(UsageError, "low and high", range={"network.bottleneck.rate": ["1 Mbit/s"]})
    mistake(UsageError, "latin-hypercube=N", **AXES, sample="10")
    mistake(UsageError, "no column of numbers", **AXES, until="speed=5%")
    mistake(UsageError, "an executor is wanted", **AXES, engine="dask")
    mistake(UsageError, "has no effect", **AXES, address="127.0.0.1:6379")
    mistake(ScenarioError, "not swept", **AXES, axes=("a", "b"))
    with pytest.raises(UsageError, match="the first argument"):
        fleetfoot.sweep("line.toml", **AXES)  # type: ignore[arg-type]


def test_points_that_fail_are_kept_with_their_reason(line: fleetfoot.Scenario, tmp_path: Path) -> None:
    sets = {"run.warmup": ["100 ms", "900 ms"], "run.duration": ["1 s", "500 ms"]}
    made = fleetfoot.sweep(line, set=sets, seeds=1, out=tmp_path / "sweep")
    assert (made.counts["done"], made.counts["failed"]) == (3, 1)
    assert made.failures[0]["point"] == 3
    assert "warmup" in made.failures[0]["set"]


class Same(fleetfoot.Controller):
    """The same window all the time."""

    NAME = "same"
    PARAMETERS: ClassVar = {"segments": fleetfoot.Parameter(8, "The window in segments.")}

    def __init__(self, parameters: dict[str, Any], connection: Any) -> None:
        super().__init__(parameters, connection)
        self.window = connection.mss * parameters["segments"]

    def on_ack(self, now: float, ack: Any) -> None:
        """Keep it."""


def test_mechanisms_of_this_process_are_swept_here_and_refused_elsewhere(
    line: fleetfoot.Scenario, tmp_path: Path
) -> None:
    fleetfoot.register(Same)
    try:
        sets = {"tcp.congestion_control": [{"kind": "same", "segments": 2}, {"kind": "same", "segments": 20}]}
        here = fleetfoot.sweep(line, set=sets, out=tmp_path / "here")
        with futures.ThreadPoolExecutor(2) as threads:
            there = fleetfoot.sweep(line, set=sets, out=tmp_path / "threads", engine=threads)
        assert (here.counts["done"], here.failures) == (2, [])
        assert data(here.folder) == data(there.folder)
        with (
            futures.ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes,
            pytest.raises(ScenarioError, match="this worker has no mechanism `same`"),
        ):
            fleetfoot.sweep(line, set=sets, out=tmp_path / "processes", engine=processes)
    finally:
        fleetfoot.unregister("same")


class Fragile(Same):
    """The same window all the time; while something outside is broken it fails where the window is large."""

    NAME = "fragile"

    def on_ack(self, now: float, ack: Any) -> None:
        """Keep it, or break."""
        super().on_ack(now, ack)
        if "FRAGILE" in os.environ and self.window > 10 * 1500:
            raise ValueError("it broke")


def test_failed_runs_are_kept_and_made_again_when_asked(
    line: fleetfoot.Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleetfoot.register(Fragile)
    try:
        kinds = [{"kind": "fragile", "segments": segments} for segments in (2, 20)]
        sets = {"tcp.congestion_control": kinds}
        out = tmp_path / "sweep"
        monkeypatch.setenv("FRAGILE", "1")
        first = fleetfoot.sweep(line, set=sets, out=out)
        assert (first.counts["computed"], first.counts["done"], first.counts["failed"]) == (4, 1, 1)
        assert "it broke" in first.failures[0]["reason"]
        monkeypatch.delenv("FRAGILE")
        same = fleetfoot.sweep(line, set=sets, out=out)
        assert (same.counts["computed"], same.counts["reused"], same.counts["failed"]) == (0, 4, 1)
        again = fleetfoot.sweep(line, set=sets, out=out, retry=True)
        assert (again.counts["computed"], again.counts["reused"], again.counts["failed"]) == (2, 2, 0)
    finally:
        fleetfoot.unregister("fragile")


class Broken(futures.Executor):
    """Runs some tasks and then breaks."""

    def __init__(self, tasks: int) -> None:
        self._left = tasks

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> futures.Future[Any]:
        future: futures.Future[Any] = futures.Future()
        self._left -= 1
        if self._left < 0:
            future.set_exception(futures.BrokenExecutor("a worker is gone"))
        else:
            future.set_result(pickle.loads(pickle.dumps(fn))(*args, **kwargs))
        return future


def test_what_a_broken_executor_had_finished_is_kept(
    line: fleetfoot.Scenario, local: fleetfoot.Sweep, tmp_path: Path
) -> None:
    with pytest.raises(RunError, match="a worker is gone"):
        fleetfoot.sweep(line, **AXES, out=tmp_path / "sweep", engine=Broken(7))
    made = fleetfoot.sweep(line, **AXES, out=tmp_path / "sweep")
    assert made.counts["reused"] > 0
    assert made.counts["computed"] + made.counts["reused"] == 16
    assert data(made.folder) == data(local.folder)


def test_ctrl_c_keeps_what_is_done(line: fleetfoot.Scenario, tmp_path: Path) -> None:
    seen = threading.Event()

    def interrupt(progress: fleetfoot.SweepProgress) -> None:
        if progress.done >= 3 and not seen.is_set():
            seen.set()
            signal.raise_signal(signal.SIGINT)

    sets: dict[str, Any] = {"tcp.initial_window": list(range(1, 41))}
    longer = line.with_({"run.duration": "20 s"})
    with futures.ThreadPoolExecutor(2) as threads:
        for engine in ("local", threads):
            out = tmp_path / ("local" if engine == "local" else "threads")
            seen.clear()
            with pytest.raises(KeyboardInterrupt):
                fleetfoot.sweep(longer, set=sets, seeds=4, out=out, engine=engine, progress=interrupt)
            # The folder is free, and what was done is there.
            told: list[fleetfoot.SweepProgress] = []

            def enough(progress: fleetfoot.SweepProgress, told: list[fleetfoot.SweepProgress] = told) -> None:
                told.append(progress)
                raise InterruptedError

            with pytest.raises(InterruptedError):
                fleetfoot.sweep(longer, set=sets, seeds=4, out=out, progress=enough)
            assert told[0].reused >= 3


@pytest.mark.slow
def test_a_killed_process_of_a_pool_loses_nothing(
    line: fleetfoot.Scenario, local: fleetfoot.Sweep, tmp_path: Path
) -> None:
    pids: set[int] = set()
    with futures.ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:

        def kill(_: fleetfoot.SweepProgress) -> None:
            pids.update(processes._processes)
            os.kill(next(iter(processes._processes)), signal.SIGKILL)
            time.sleep(0.2)

        with pytest.raises(RunError, match="the executor broke"):
            fleetfoot.sweep(line, **AXES, out=tmp_path / "sweep", engine=processes, progress=kill)
    made = fleetfoot.sweep(line, **AXES, out=tmp_path / "sweep")
    assert data(made.folder) == data(local.folder)


def test_the_program_names_what_it_needs_for_ray(tmp_path: Path) -> None:
    (tmp_path / "line.toml").write_text(LINE)
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    # An interpreter without packages.
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    python.chmod(0o755)
    environment = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}"}
    arguments = ["sweep", "line.toml", "--set", "tcp.initial_window=3,10", "--engine", "ray"]
    made = run_program(*arguments, cwd=tmp_path, environment=environment, code=2)
    assert 'pip install ".[ray]"' in made.stderr
