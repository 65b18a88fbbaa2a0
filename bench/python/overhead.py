"""What Python adds to a run: the program and the package in turns, the same scenario, one seed, one thread, the same files written.

``python bench/python/overhead.py PROGRAM [SECONDS_OF_TRAFFIC] [PAIRS]`` prints the CPU seconds of each pair, with the import of the package and
without, and the medians of the ratios. PROGRAM has to be of the same build profile as the package.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import fleetfoot

RUN = """
import json, sys, time
import fleetfoot
imported = time.process_time()
line = fleetfoot.Scenario.load(sys.argv[1])
fleetfoot.run(line, seeds=1, jobs=1, out=sys.argv[2])
print(json.dumps(time.process_time() - imported))
"""


def used(command: list[str]) -> tuple[float, str]:
    """CPU seconds of a command, and what it printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    made = subprocess.run(command, check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, made.stdout


def main() -> None:
    program = str(Path(sys.argv[1]).resolve())
    duration = f"{sys.argv[2] if len(sys.argv) > 2 else 1000} s"
    pairs = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    whole, run = [], []
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        line = fleetfoot.Scenario.home_line().with_(run__duration=duration)
        Path("line.toml").write_text(line.to_toml())
        for pair in range(pairs):
            once = ["--seeds", "1", "--jobs", "1", "--quiet"]
            theirs, _ = used([program, "run", "line.toml", *once, "--out", f"program-{pair}"])
            ours, told = used([sys.executable, "-c", RUN, "line.toml", f"python-{pair}"])
            inside = float(json.loads(told))
            whole.append(ours / theirs - 1)
            run.append(inside / theirs - 1)
            print(f"program {theirs:.2f} s, Python {ours:.2f} s, of which the run {inside:.2f} s", flush=True)
    for what, shares in (("with the import", whole), ("without", run)):
        low, middle, high = min(shares), statistics.median(shares), max(shares)
        print(f"{what}: {middle:+.2%} (from {low:+.2%} to {high:+.2%})")


if __name__ == "__main__":
    main()
