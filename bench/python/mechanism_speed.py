"""How slow mechanisms in Python are: the examples beside the built-in mechanisms with the same results, in turns.

Usage: python bench/python/mechanism_speed.py [TURNS]
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
import time
from pathlib import Path

import fleetfoot
import fleetfoot.gym

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"


def example(name: str) -> object:
    """Registers an example, and returns its module."""
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def counted(base: type, methods: tuple[str, ...], name: str) -> type:
    """A class that counts calls, registered as ``name``."""
    calls = [0]

    def counting(method: str) -> object:
        def call(self: object, *arguments: object) -> object:
            calls[0] += 1
            return getattr(base, method)(self, *arguments)

        return call

    cls = type(base.__name__, (base,), {method: counting(method) for method in methods})
    cls.__doc__, cls.calls = base.__doc__, calls  # type: ignore[attr-defined]
    return fleetfoot.register(cls, name=name)


def main() -> None:
    """Plays in turns and prints medians."""
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    reno, tail = example("reno"), example("drop_tail")
    line = {"rate_mbps": 100.0, "rtt_ms": 20.0, "buffer_packets": 150, "duration_s": 20.0}

    def env(queue: str) -> fleetfoot.gym.BottleneckEnv:
        return fleetfoot.gym.BottleneckEnv(queue=queue, **line)

    counts = {}
    cls = counted(reno.Reno, ("on_ack", "on_loss", "on_rto"), "counted-reno")  # type: ignore[attr-defined]
    env("drop-tail").baseline("counted-reno", seed=1)
    counts["python-reno"] = cls.calls[0]  # type: ignore[attr-defined]
    cls = counted(tail.DropTail, ("enqueue", "dequeue"), "counted-tail")  # type: ignore[attr-defined]
    env("counted-tail").baseline("reno", seed=1)
    counts["python-drop-tail"] = cls.calls[0]  # type: ignore[attr-defined]

    cases = {
        "built-in": (env("drop-tail"), "reno"),
        "python-reno": (env("drop-tail"), "python-reno"),
        "python-drop-tail": (env("python-drop-tail"), "reno"),
    }
    took: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(turns):
        for name, (one, control) in cases.items():
            begin = time.process_time()
            one.baseline(control, seed=1)
            took[name].append(time.process_time() - begin)
    plain = statistics.median(took["built-in"])
    print("| | calls | CPU time (s) | times the built-in | calls per CPU second |")
    print("|---|---:|---:|---:|---:|")
    for name, times in took.items():
        median = statistics.median(times)
        calls = counts.get(name, 0)
        rate = f"{calls / (median - plain):,.0f}" if calls else ""
        print(f"| {name} | {calls or ''} | {median:.3f} | {median / plain:.1f} | {rate} |")


if __name__ == "__main__":
    main()
