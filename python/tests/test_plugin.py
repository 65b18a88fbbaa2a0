"""Mechanisms written in Python."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import fleetfoot
from fleetfoot import _native
from fleetfoot._fingerprint import fingerprint

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"

LINE: dict[str, Any] = {
    "title": "Two flows",
    "network": {
        "kind": "dumbbell",
        "pairs": 3,
        "access": {
            "rate": "1 Gbit/s",
            "delay": "1 ms",
            "jitter": {"dist": "uniform", "min": "0 ms", "max": "1 ms"},
        },
        "bottleneck": {
            "rate": "12 Mbit/s",
            "delay": "8 ms",
            "queue": {"kind": "drop-tail", "limit": "30 packets"},
        },
    },
    "tcp": {"profile": "linux", "congestion_control": "reno"},
    "traffic": [
        {"name": "flow", "kind": "bulk"},
        {
            "name": "pages",
            "kind": "transfer",
            "size": {"dist": "lognormal", "median": "20 kB", "sigma": 1.0},
            "arrivals": {"dist": "poisson", "rate": "10 per second"},
        },
    ],
    "run": {"duration": "10 s", "warmup": "0 s"},
}


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    for name in fleetfoot.registered():
        fleetfoot.unregister(name)


def example(name: str) -> ModuleType:
    """An example, run anew."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def measured(settings: dict[str, Any] | None = None, seed: int = 1) -> str:
    """A run's result, with a digest of everything that it measured."""
    return rows(fleetfoot.Scenario.from_dict(LINE).with_(settings or {"run.duration": "10001 ms"}), seed)


def rows(scenario: fleetfoot.Scenario, seed: int) -> str:
    return _native.Steered(scenario._inner, "flow", 1, "rtt", "packets", 1).baseline(0, None, seed)


class Half(fleetfoot.Controller):
    """Adds a segment for each acknowledgment."""

    NAME = "half"
    PARAMETERS = {
        "factor": fleetfoot.Parameter(0.5, "Share kept.", low=0.1, high=0.9),
        "pause": fleetfoot.Parameter(0.005, "A time.", kind="duration"),
        "mode": fleetfoot.Parameter("slow", "A word.", choices=("slow", "fast")),
        "flag": fleetfoot.Parameter(False, "A truth value."),
        "count": fleetfoot.Parameter(3, "A number.", low=1, high=9),
        "rate": fleetfoot.Parameter(None, "A speed.", kind="rate"),
        "room": fleetfoot.Parameter(64_000, "An amount.", kind="bytes"),
        "limit": fleetfoot.Parameter(None, "A limit.", kind="limit"),
    }
    made: list[dict[str, Any]] = []

    def __init__(self, parameters: dict[str, Any], connection: fleetfoot.plugin.Connection) -> None:
        super().__init__(parameters, connection)
        type(self).made.append(parameters)

    def on_ack(self, now: float, ack: fleetfoot.plugin.Ack) -> None:
        if ack.cwnd_limited and not ack.recovering:
            self.window += self.mss * ack.acked / self.window

    def on_loss(self, now: float, event: fleetfoot.plugin.Event) -> None:
        self.reduce_to(self.window * self.parameters["factor"])


@pytest.mark.parametrize("profile", ["linux", "rfc", "ns2-sack"])
def test_reno_in_python_is_reno(profile: str) -> None:
    example("reno")
    base = {"tcp.profile": profile, "tcp.hystart": "off"}
    inside = measured({**base, "tcp.congestion_control": "reno"})
    outside = measured({**base, "tcp.congestion_control": "python-reno"})
    assert outside == inside


def test_drop_tail_in_python_is_drop_tail() -> None:
    example("drop_tail")
    for limit in ("30 packets", "20 kB", "unlimited"):
        inside = measured({"network.bottleneck.queue": {"kind": "drop-tail", "limit": limit}})
        outside = measured({"network.bottleneck.queue": {"kind": "python-drop-tail", "limit": limit}})
        assert outside == inside, limit


def test_the_example_that_marks_keeps_the_wait_near_its_step() -> None:
    example("step_mark")
    dctcp = {"tcp.congestion_control": "dctcp", "tcp.ecn": "accurate", "run.warmup": "2 s"}
    plain = link(measured(dctcp))
    marked = link(measured({**dctcp, "network.bottleneck.queue": {"kind": "step-mark", "step": "2 ms"}}))
    assert marked["queue_delay_s"] < 0.006 < plain["queue_delay_s"]


def test_the_learned_window_fills_the_line_with_less_waiting_than_reno() -> None:
    module = example("table_window")
    assert module.learn(seed=1, rounds=2) != module.TABLE
    # A line between those that it was learned on.
    scenario = {
        "network.bottleneck.rate": "18 Mbit/s",
        "network.bottleneck.delay": "13 ms",
        "network.bottleneck.queue": {"kind": "drop-tail", "limit": "60 packets"},
        "network.access.jitter": "0 ms",
        "traffic": [{"name": "flow", "kind": "bulk"}],
    }
    reno = measured(scenario)
    table = measured({**scenario, "tcp.congestion_control": "table-window"})
    assert link(table)["queue_delay_s"] < 0.5 * link(reno)["queue_delay_s"]
    assert goodput(table) > 0.9 * goodput(reno)


def link(result: str) -> dict[str, Any]:
    (found,) = (
        one for one in json.loads(result)["links"] if one["name"] == "bottleneck" and one["direction"] == "forward"
    )
    return dict(found)


def goodput(result: str) -> float:
    return float(sum(group["goodput_bps"] for group in json.loads(result)["groups"]))


def test_parameters_come_as_plain_numbers() -> None:
    Half.made.clear()
    fleetfoot.register(Half)
    changed = {
        "kind": "half",
        "factor": 0.7,
        "pause": "20 ms",
        "mode": "fast",
        "flag": True,
        "rate": "3 Mbit/s",
    }
    measured({"tcp.congestion_control": {**changed, "limit": "20 kB"}})
    first = Half.made[0]
    limit = first.pop("limit")
    assert (limit.packets, limit.bytes) == (None, 20_000)
    assert first == {
        "factor": 0.7,
        "pause": 0.02,
        "mode": "fast",
        "flag": True,
        "count": 3,
        "rate": 3_000_000,
        "room": 64_000,
    }


def test_scenarios_know_the_parameters() -> None:
    fleetfoot.register(Half)
    line = fleetfoot.Scenario.from_dict(LINE)
    with pytest.raises(fleetfoot.ScenarioError, match=r"0\.1"):
        line.with_({"tcp.congestion_control": {"kind": "half", "factor": 3.0}})
    with pytest.raises(fleetfoot.ScenarioError, match="did you mean `factor`"):
        line.with_({"tcp.congestion_control": {"kind": "half", "facter": 0.5}})


def test_an_unknown_name_says_where_names_are_known() -> None:
    with pytest.raises(fleetfoot.ScenarioError, match="unknown congestion control `half`") as caught:
        fleetfoot.Scenario.from_dict(LINE).with_({"tcp.congestion_control": "half"})
    assert "in each process anew" in str(caught.value)


def test_the_same_seed_gives_the_same_run_and_the_class_is_read_anew() -> None:
    fleetfoot.register(Half)
    line = fleetfoot.Scenario.from_dict(LINE).with_({"tcp.congestion_control": "half"})
    first = rows(line, 1)
    assert rows(line, 1) == first
    assert rows(line, 2) != first

    class Other(Half):
        """Another with the same name."""

        def on_loss(self, now: float, event: fleetfoot.plugin.Event) -> None:
            self.reduce_to(self.window * 0.9)

    fleetfoot.register(Other)
    assert rows(line, 1) != first
    fleetfoot.register(Half)
    assert rows(line, 1) == first


def test_the_fingerprint_changes_with_what_a_class_does() -> None:
    def made(factor: float, table: tuple[int, ...] = (1, 2)) -> type[fleetfoot.Controller]:
        class Mine(fleetfoot.Controller):
            """Mine."""

            NAME = "mine"

            def on_ack(self, now: float, ack: fleetfoot.plugin.Ack) -> None:
                self.window *= factor + table[0]

        return Mine

    assert fingerprint(made(0.5)) == fingerprint(made(0.5))
    assert fingerprint(made(0.5)) != fingerprint(made(0.6))
    assert fingerprint(made(0.5)) != fingerprint(made(0.5, (1, 3)))


HELPERS = """
import functools

FACTOR = 0.5

class Base(fleetfoot.Controller):
    "A base."

    def on_loss(self, now, event):
        self.reduce_to(self.window * FACTOR)

@functools.lru_cache
def cached(window):
    return window + 1

class Table:
    def at(self, window):
        return window + 2
"""

MECHANISM = """
import fleetfoot
import helpers_of_mine
from helpers_of_mine import Base, Table, cached

TABLE = Table()
MODES = {"slow", "fast", "other", "none"}

class Mine(Base):
    "Of several modules."

    NAME = "mine"
    PARAMETERS = {"share": fleetfoot.Parameter(0.5, "A share.", low=0.1)}

    def on_ack(self, now, ack):
        if "mode" not in MODES and now not in {"a", "b", "c"}:
            self.window = TABLE.at(cached(self.window)) * helpers_of_mine.FACTOR
"""


def fingerprint_of(folder: Path, helpers: str = HELPERS, hash_seed: str = "0") -> str:
    """The fingerprint of `Mine` in a process of its own."""
    (folder / "helpers_of_mine.py").write_text(f"import fleetfoot\n{helpers}")
    (folder / "mine.py").write_text(MECHANISM)
    code = "import mine; from fleetfoot._fingerprint import fingerprint; print(fingerprint(mine.Mine))"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONDONTWRITEBYTECODE": "1"}
    made = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return made.stdout


def test_the_fingerprint_is_that_of_all_code_of_the_author(tmp_path: Path) -> None:
    first = fingerprint_of(tmp_path)
    assert fingerprint_of(tmp_path, hash_seed="7") == first
    for old, new in (
        ("FACTOR = 0.5", "FACTOR = 0.6"),
        ("self.window * FACTOR", "self.window * 0.9"),
        ("window + 1", "window + 3"),
        ("window + 2", "window + 4"),
    ):
        assert old in HELPERS
        assert fingerprint_of(tmp_path, HELPERS.replace(old, new)) != first, new


def test_kept_runs_are_those_of_the_class_as_it_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Kept(fleetfoot.Controller):
        """Keeps a share."""

        NAME = "kept"
        SHARE = 0.5

        def on_ack(self, now: float, ack: fleetfoot.plugin.Ack) -> None:
            if ack.cwnd_limited and not ack.recovering:
                self.window += self.mss * ack.acked / self.window

        def on_loss(self, now: float, event: fleetfoot.plugin.Event) -> None:
            self.reduce_to(self.window * self.SHARE)

    fleetfoot.register(Kept)
    line = fleetfoot.Scenario.from_dict(LINE).with_({"tcp.congestion_control": "kept"})

    def run() -> fleetfoot.Result:
        return fleetfoot.run(line, out=tmp_path / "run", force=True)

    def sweep() -> dict[str, int]:
        return fleetfoot.sweep(line, set={"run.duration": ["2 s"]}, seeds=1, out=tmp_path / "sweep", force=True).counts

    def goodput(result: fleetfoot.Result) -> list[float]:
        return list(result.runs.to_pandas()["goodput_bps"])

    first = run()
    assert (first.computed, run().reused) == (1, 1)
    assert (sweep()["computed"], sweep()["reused"]) == (1, 1)
    monkeypatch.setattr(Kept, "SHARE", 0.9)
    other = run()
    assert (other.computed, other.reused) == (1, 0)
    assert goodput(other) != goodput(first)
    assert sweep()["computed"] == 1
    monkeypatch.setattr(Kept, "on_loss", lambda self, now, event: self.reduce_to(2 * self.mss))
    assert (sweep()["computed"], run().computed) == (1, 1)


class Breaks(Half):
    """Divides by zero."""

    NAME = "breaks"

    def on_loss(self, now: float, event: fleetfoot.plugin.Event) -> None:
        self.window = 1 / 0


def test_an_exception_ends_the_run_with_class_method_and_line() -> None:
    fleetfoot.register(Breaks)
    line = fleetfoot.Scenario.from_dict(LINE)
    broken = line.with_({"tcp.congestion_control": "breaks"})
    with pytest.raises(fleetfoot.RunError) as caught:
        rows(broken, 1)
    said = str(caught.value)
    number = Breaks.on_loss.__code__.co_firstlineno + 1
    assert said.startswith("`breaks`: Breaks.on_loss failed at "), said
    assert f"ZeroDivisionError: division by zero (line {number} of {__file__})" in said, said
    assert "\n" not in said
    # The next run begins without it.
    assert rows(line, 1) == rows(line, 1)


@pytest.mark.parametrize(
    ("attribute", "value", "said"),
    [
        ("window", "wide", "self.window is no number: wide"),
        ("window", float("nan"), "self.window is NaN"),
        ("ssthresh", -1, "self.ssthresh is -1"),
    ],
)
def test_an_attribute_that_cannot_be_is_refused(attribute: str, value: object, said: str) -> None:
    class Wrong(Half):
        """Wrong."""

        NAME = "wrong"

        def on_ack(self, now: float, ack: fleetfoot.plugin.Ack) -> None:
            setattr(self, attribute, value)

    fleetfoot.register(Wrong)
    with pytest.raises(fleetfoot.RunError, match=said):
        measured({"tcp.congestion_control": "wrong"})


class Line(fleetfoot.Queue):
    """Keeps everything."""

    NAME = "line"

    def __init__(self, parameters: dict[str, Any], link: fleetfoot.plugin.Link) -> None:
        super().__init__(parameters, link)
        self.waiting: list[fleetfoot.plugin.Packet] = []

    def enqueue(self, now: float, packet: fleetfoot.plugin.Packet, context: fleetfoot.plugin.QueueContext) -> None:
        self.waiting.append(packet)

    def dequeue(self, now: float, context: fleetfoot.plugin.QueueContext) -> fleetfoot.plugin.Packet | None:
        return self.waiting.pop(0) if self.waiting else None


def test_a_queue_that_breaks_its_contract_is_refused() -> None:
    class Keeps(Line):
        """Never gives anything back."""

        NAME = "keeps"

        def dequeue(self, now: float, context: fleetfoot.plugin.QueueContext) -> None:
            return None

    class Twice(Line):
        """Gives the same packet twice."""

        NAME = "twice"

        def dequeue(self, now: float, context: fleetfoot.plugin.QueueContext) -> fleetfoot.plugin.Packet:
            return self.waiting[0]

    class Text(Line):
        """Gives a text."""

        NAME = "text"

        def dequeue(self, now: float, context: fleetfoot.plugin.QueueContext) -> Any:
            return "packet"

    for cls, said in (
        (Keeps, r"Keeps.dequeue returned None at .* while 1 packets wait"),
        (Twice, "a packet that has left the queue already"),
        (Text, "dequeue returns a packet or None, not packet"),
    ):
        fleetfoot.register(cls)
        with pytest.raises(fleetfoot.RunError, match=said):
            measured({"network.bottleneck.queue": cls.NAME})


def test_a_queue_may_hold_packets_back() -> None:
    class Shaper(Line):
        """Lets a packet go each 5 ms."""

        NAME = "shaper"
        next_at = 0.0

        def ready_at(self, now: float) -> float:
            return self.next_at

        def dequeue(self, now: float, context: fleetfoot.plugin.QueueContext) -> fleetfoot.plugin.Packet | None:
            if now < self.next_at or not self.waiting:
                return None
            self.next_at = now + 0.005
            return self.waiting.pop(0)

    fleetfoot.register(Shaper)
    result = measured({"network.bottleneck.queue": "shaper"})
    # 200 packets a second of 1500 bytes at most, of 1000 that the line could send.
    assert link(result)["utilisation"] < 0.21
    assert goodput(result) > 1.5e6


def test_what_cannot_be_registered_is_refused() -> None:
    class Nameless(Half):
        """Has no name."""

        NAME = ""

    class Taken(Half):
        """Has a name that is taken."""

        NAME = "cubic"

    class Silent(fleetfoot.Controller):
        NAME = "silent"

    class Idle(fleetfoot.Queue):
        """Does nothing."""

        NAME = "idle"

    class Odd(Half):
        """Has a default out of its range."""

        NAME = "odd"
        PARAMETERS = {"factor": fleetfoot.Parameter(3.0, "Too much.", low=0.0, high=1.0)}

    def of(default: Any, kind: str = "", **more: Any) -> type[fleetfoot.Controller]:
        parameter = fleetfoot.Parameter(default, "A value.", kind=kind, **more)
        return type("Units", (Half,), {"__doc__": "Has units.", "NAME": "units", "PARAMETERS": {"pause": parameter}})

    for cls, said in (
        (Nameless, "class Nameless has no NAME"),
        (Taken, "the plug-in name `cubic` is taken"),
        (Silent, "class Silent has no docstring"),
        (Idle, "class Idle has no method enqueue"),
        (Odd, "the default of the parameter `factor`"),
        (of("5 ms", "duration"), "its default '5 ms' is no plain number of seconds"),
        (of("5 ms"), "its default '5 ms' is none of its choices"),
        (of("60 packets", "limit"), "is no plain number of packets"),
        (of("10 Mbit/s", "rate"), "is no plain number of bit/s"),
        (of(0.1, "duration", high="1 s"), "its high '1 s' is no plain number of seconds"),
        (of(1500.5, "bytes"), "its default 1500.5 is no whole number of bytes"),
        (of(-1), "the default of the parameter `pause`: -1 is not in 0 to"),
        (int, "is no subclass of"),
    ):
        with pytest.raises(fleetfoot.UsageError, match=said):
            fleetfoot.register(cls)  # type: ignore[type-var]


def test_registered_classes_are_listed_and_go() -> None:
    fleetfoot.register(Half)
    fleetfoot.register(Line)
    assert fleetfoot.registered() == {
        "half": ("congestion control", "Adds a segment for each acknowledgment."),
        "line": ("queue", "Keeps everything."),
    }
    assert fleetfoot.unregister("line")
    assert not fleetfoot.unregister("line")
    assert list(fleetfoot.registered()) == ["half"]


def test_runs_in_threads_do_not_disturb_each_other() -> None:
    fleetfoot.register(Half)
    fleetfoot.register(Breaks)
    line = fleetfoot.Scenario.from_dict(LINE)
    half, broken = (line.with_({"tcp.congestion_control": name}) for name in ("half", "breaks"))
    alone = {seed: rows(half, seed) for seed in (1, 2)}
    with ThreadPoolExecutor(4) as pool:
        good = [pool.submit(rows, half, seed) for seed in (1, 2, 1, 2)]
        bad = [pool.submit(rows, broken, seed) for seed in (1, 2)]
    assert [run.result() for run in good] == [alone[seed] for seed in (1, 2, 1, 2)]
    for run in bad:
        with pytest.raises(fleetfoot.RunError, match=r"Breaks\.on_loss failed"):
            run.result()


def test_another_process_says_where_the_class_is_to_be_registered() -> None:
    fleetfoot.register(Half)
    scenario = fleetfoot.Scenario.from_dict(LINE).with_({"tcp.congestion_control": "half"})
    code = "import pickle, sys; pickle.load(sys.stdin.buffer)"
    worker = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(scenario), capture_output=True, check=False
    )
    said = worker.stderr.decode()
    assert worker.returncode == 1
    assert "unknown congestion control `half`" in said
    assert "in each process anew" in said


def test_registered_classes_are_among_the_mechanisms() -> None:
    fleetfoot.register(Half)
    (mine,) = (one for one in fleetfoot.mechanisms() if one.name == "half")
    assert mine.family == "python"
    assert mine.set == {"tcp.congestion_control": "half"}
    assert mine.document == "Adds a segment for each acknowledgment."
