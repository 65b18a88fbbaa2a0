"""What results take in memory: holds many of one small scenario, each of a seed of its own.

``python bench/python/result_memory.py [RESULTS]`` prints, for results with and without their samples, the memory of the
process before and after (resident set) and what ``Result.nbytes`` says, all for each result. Each kind has a process of its own.
"""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
import time
from pathlib import Path

import fleetfoot

LINE = Path(__file__).resolve().parents[2] / "crates/cli/tests/line.toml"


def resident() -> int:
    """Bytes of this process in memory."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def measure(kind: str, count: int) -> None:
    line = fleetfoot.Scenario.load(LINE).with_(run__seeds=1)
    samples = kind == "full"
    fleetfoot.run(line, seed=0, samples=samples, jobs=1)  # what is set up once
    begin, before = time.monotonic(), resident()
    held = [fleetfoot.run(line, seed=seed, samples=samples, jobs=1) for seed in range(1, count + 1)]
    grown = resident() - before
    told = sum(result.nbytes for result in held)
    flows = sum(len(held[number].samples) for number in range(10)) / 10 if samples else 0
    print(
        f"{kind}: {count} results in {time.monotonic() - begin:.0f} s, {before / 1e6:.0f} MB before, {grown / 1e6:.1f} MB more: "
        f"{grown / count:.0f} bytes each, nbytes {told / count:.0f}" + (f", {flows:.0f} flows" if samples else "")
    )


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for kind in ("summary", "full"):
        subprocess.run([sys.executable, __file__, str(count), kind], check=True)


if __name__ == "__main__":
    measure(sys.argv[2], int(sys.argv[1])) if len(sys.argv) > 2 else main()
