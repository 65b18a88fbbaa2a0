"""What a sweep takes for each point: processor time, bytes to and from workers, memory, storage.

    python scripts/sweep_capacity.py POINTS [ray]

Runs POINTS points of a small line (one run of 3 s of traffic each, about 1 MB) over two processes, or over Ray, in a new folder
below the current one, and prints a line of numbers: the source of "Capacity" in docs/sweep.md. Needs the Python package.
"""

from __future__ import annotations

import resource
import shutil
import sys
import tempfile
import time
from concurrent import futures
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import fleetfoot
from fleetfoot import _pool

LINE = Path(__file__).resolve().parents[1] / "crates/cli/tests/line.toml"


def mebibytes(who: int) -> float:
    """The most memory that these processes ever had at a time, each by itself."""
    return resource.getrusage(who).ru_maxrss / 1024


def seconds(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def main() -> None:
    points, over = int(sys.argv[1]), sys.argv[2:]
    counted = {"tasks": 0, "sent": 0, "received": 0, "description": 0}

    def counting(pool: type[Any]) -> None:
        submit, result, begin = pool.submit, pool.result, pool.__init__

        def counted_begin(self: Any, target: Any, description: bytes) -> None:
            counted["description"] = len(description)
            begin(self, target, description)

        def counted_submit(self: Any, task: bytes) -> Any:
            counted["tasks"] += 1
            counted["sent"] += len(task)
            return submit(self, task)

        def counted_result(self: Any, handle: Any, task: bytes) -> Any:
            made = result(self, handle, task)
            counted["received"] += len(made) if isinstance(made, bytes) else 0
            return made

        pool.__init__, pool.submit, pool.result = counted_begin, counted_submit, counted_result

    ranges = {
        "network.bottleneck.rate": ("2 Mbit/s", "20 Mbit/s", "log"),
        "network.bottleneck.delay": ("1 ms", "50 ms", "log"),
    }
    asked: dict[str, Any] = {"range": ranges, "sample": f"latin-hypercube={points}"}
    line = fleetfoot.Scenario.load(LINE).with_(run__seeds=1)
    folder = Path(tempfile.mkdtemp(prefix="sweep-capacity-", dir="."))
    try:
        begin = time.monotonic()
        if over == ["ray"]:
            from fleetfoot.ray import RayPool

            counting(RayPool)
            fleetfoot.sweep(line, **asked, out=folder / "sweep", engine="ray")
        else:
            counting(_pool.Executed)
            with futures.ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
                fleetfoot.sweep(line, **asked, out=folder / "sweep", engine=processes)
        wall = time.monotonic() - begin
        sizes = {file.name: file.stat().st_size for file in (folder / "sweep").iterdir()}
    finally:
        shutil.rmtree(folder)
    tables = sum(size for name, size in sizes.items() if name.endswith(".parquet"))
    print(
        f"{points} points in {wall:.1f} s: driver {1e3 * seconds(resource.RUSAGE_SELF) / points:.3f} ms, workers "
        f"{1e3 * seconds(resource.RUSAGE_CHILDREN) / points:.2f} ms of a processor for each; "
        f"{counted['tasks']} tasks, {counted['sent'] / points:.1f} bytes sent and {counted['received'] / points:.0f} received "
        f"for each point, description {counted['description']} bytes; driver {mebibytes(resource.RUSAGE_SELF):.0f} MiB, "
        f"workers {mebibytes(resource.RUSAGE_CHILDREN):.0f} MiB; journal {sizes['sweep.journal'] / points:.0f}, tables "
        f"{tables / points:.0f} bytes for each point, report {sizes['report.html']} bytes"
    )


if __name__ == "__main__":
    main()
