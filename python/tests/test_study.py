from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import fleetfoot


@pytest.fixture(scope="module")
def line(home_line: fleetfoot.Scenario) -> fleetfoot.Scenario:
    return home_line.with_(run__duration="2 s")


def test_bad_arguments_are_said_as_the_program_says_them(line: fleetfoot.Scenario, tmp_path: Path) -> None:
    cases: list[tuple[Callable[[], object], type[Exception], str]] = [
        (lambda: fleetfoot.run(line, "codl"), fleetfoot.UsageError, "did you mean `codel`"),
        (lambda: fleetfoot.compare(line, only="codl"), fleetfoot.ScenarioError, "did you mean `codel`"),
        (lambda: fleetfoot.compare(line, where="nowhere"), fleetfoot.ScenarioError, "nowhere"),
        (lambda: fleetfoot.compare(line, seeds=0), fleetfoot.UsageError, "0 is not in 1..=1000000"),
        (lambda: fleetfoot.compare(line, seed=-1), fleetfoot.UsageError, "-1 is not in 0..="),
        (lambda: fleetfoot.run(line, jobs=513), fleetfoot.UsageError, "1 to 512 threads are wanted"),
        (lambda: fleetfoot.run(line, seeds="many"), fleetfoot.UsageError, "a whole number is wanted"),  # type: ignore[arg-type]
        (lambda: fleetfoot.compare(line, budget="much"), fleetfoot.UsageError, "a number of runs"),
        (lambda: fleetfoot.recommend(line, control="all"), fleetfoot.UsageError, "none of sender, router, both"),  # type: ignore[arg-type]
        (lambda: fleetfoot.run(tmp_path / "no.toml"), fleetfoot.ScenarioError, "no.toml"),
        (lambda: fleetfoot.run(3), fleetfoot.UsageError, "a Scenario or the path"),  # type: ignore[arg-type]
        (lambda: fleetfoot.run(line, progress=3), fleetfoot.UsageError, "progress: True or a function"),  # type: ignore[arg-type]
        (lambda: fleetfoot.reproduce("nothing-like-it"), fleetfoot.UsageError, "nothing-like-it"),
        (lambda: fleetfoot.explain("codl"), fleetfoot.UsageError, "did you mean `codel`"),
        (lambda: fleetfoot.drill(tmp_path), fleetfoot.UsageError, "no script"),
        (lambda: fleetfoot.import_capture(tmp_path / "no.pcap", tmp_path / "a.toml"), fleetfoot.UsageError, "no.pcap"),
    ]
    for call, kind, words in cases:
        with pytest.raises(kind) as caught:
            call()
        assert words in str(caught.value)
        assert isinstance(caught.value, fleetfoot.Error)


def test_nothing_that_waits_cannot_be_compared(line: fleetfoot.Scenario) -> None:
    tables = line.to_dict()
    for group in tables["traffic"]:
        group["latency_sensitive"] = False
    with pytest.raises(fleetfoot.UsageError, match="nothing here waits"):
        fleetfoot.compare(fleetfoot.Scenario.from_dict(tables))


def test_progress_is_heard_in_the_thread_that_called(line: fleetfoot.Scenario) -> None:
    heard: list[tuple[fleetfoot.Progress, int]] = []
    fleetfoot.run(line, seeds=4, progress=lambda event: heard.append((event, threading.get_ident())))
    assert [event.done for event, _ in heard] == [1, 2, 3, 4]
    assert {event.seed for event, _ in heard} == {1, 2, 3, 4}
    assert {thread for _, thread in heard} == {threading.get_ident()}


def test_what_progress_raises_ends_the_work(line: fleetfoot.Scenario) -> None:
    def angry(event: fleetfoot.Progress) -> None:
        raise LookupError(event.variant)

    with pytest.raises(LookupError, match="as described"):
        fleetfoot.run(line.with_(run__duration="20 s"), seeds=100_000, progress=angry)


def test_a_bar_is_shown(line: fleetfoot.Scenario, capsys: pytest.CaptureFixture[str]) -> None:
    fleetfoot.run(line, seeds=2, progress=True)
    assert "2/2" in capsys.readouterr().err


def test_finished_runs_are_kept_and_reused(line: fleetfoot.Scenario, tmp_path: Path) -> None:
    first = fleetfoot.run(line, seeds=2, out=tmp_path / "kept")
    assert (first.computed, first.reused) == (2, 0)
    again = fleetfoot.run(line, seeds=2, out=tmp_path / "kept")
    assert (again.computed, again.reused) == (0, 2)
    assert again == first
    assert (tmp_path / "kept" / "result.json").read_text() == first.to_json()
    fresh = fleetfoot.run(line, seeds=2, out=tmp_path / "kept", fresh=True)
    assert (fresh.computed, fresh.reused) == (2, 0)
    with pytest.raises(fleetfoot.UsageError, match="holds something else"):
        fleetfoot.run(line, seeds=3, out=tmp_path / "kept")


def test_other_threads_run_while_runs_go_on(line: fleetfoot.Scenario) -> None:
    ended = threading.Event()
    results: list[fleetfoot.Result] = []

    def work() -> None:
        results.append(fleetfoot.run(line.with_(run__duration="60 s"), seeds=2))
        ended.set()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    turns = 0
    while not ended.is_set():
        turns += 1
        time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert turns > 10
    assert results[0] == results[1]


def test_ctrl_c_is_heard_at_once_and_finished_runs_are_kept(tmp_path: Path) -> None:
    script = textwrap.dedent(
        """
        import sys, time, fleetfoot
        line = fleetfoot.Scenario.home_line().with_(run__duration="20 s")
        def heard(event):
            print("run", flush=True)
        try:
            fleetfoot.run(line, seeds=100_000, out=sys.argv[1], progress=heard)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    )
    folder = tmp_path / "kept"
    process = subprocess.Popen([sys.executable, "-c", script, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "run\n"
    process.send_signal(signal.SIGINT)
    before = time.monotonic()
    rest, _ = process.communicate(timeout=60)
    assert rest.endswith("interrupted\n")
    # Generous: the machine may be busy. A run would take far longer to reach 100,000 seeds.
    assert time.monotonic() - before < 20
    assert any(path.suffix == ".run" for path in (folder / "runs").iterdir())


def test_ctrl_c_ends_a_drill_between_scripts(tmp_path: Path) -> None:
    # A tenth of a second for each script: all would take minutes.
    lines = ["0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n"]
    lines += ["+.01 setsockopt(3, SOL_SOCKET, SO_REUSEADDR, [1], 4) = 0\n"] * 2000
    (tmp_path / "long.pkt").write_text("".join(lines))
    script = textwrap.dedent(
        """
        import sys, fleetfoot
        print("begun", flush=True)
        try:
            fleetfoot.drill([sys.argv[1]] * 3000)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    )
    command = [sys.executable, "-c", script, str(tmp_path / "long.pkt")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    before = time.monotonic()
    rest, _ = process.communicate(timeout=60)
    assert rest == "interrupted\n"
    assert time.monotonic() - before < 20


def test_a_panic_stays_inside() -> None:
    assert issubclass(fleetfoot.InternalError, fleetfoot.Error)
    # Whatever a scenario says, the answer is a result or an exception of ours.
    for text in ("", "x", "[network]\nkind = 3", "title = 3", "\0", "[[traffic]]\n" * 300):
        with pytest.raises(fleetfoot.ScenarioError):
            fleetfoot.Scenario.from_toml(text)


def test_a_run_that_would_not_fit_is_refused(line: fleetfoot.Scenario) -> None:
    script = (
        "import fleetfoot, sys; fleetfoot.limit_memory(1 << 20)\n"
        "try: fleetfoot.run(fleetfoot.Scenario.from_toml(sys.stdin.read()), seeds=1000)\n"
        "except fleetfoot.UsageError as error: print(error)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], input=line.to_toml(), capture_output=True, text=True, check=True
    )
    assert "more than this program may take" in ran.stdout


def test_environment_of_the_process_is_left_alone(line: fleetfoot.Scenario) -> None:
    before = signal.getsignal(signal.SIGINT), dict(os.environ)
    fleetfoot.run(line)
    assert (signal.getsignal(signal.SIGINT), dict(os.environ)) == before


def test_recommend_and_reproduce_and_drill(line: fleetfoot.Scenario, tmp_path: Path) -> None:
    recommended = fleetfoot.recommend(line.with_(run__duration="1 s"), control="router", only_linux=True, seeds=2)
    assert recommended.to_dict()["sensitivity"]
    assert recommended.answer
    listed = fleetfoot.experiments()
    assert listed
    recorded = fleetfoot.reproduce(listed[0].group, level="recorded")
    assert recorded.verdicts
    assert "<table>" in recorded._repr_html_()
    script = tmp_path / "wrong.pkt"
    script.write_text("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 listen(3, 1) = 7\n")
    played = fleetfoot.drill(script)
    assert [(one.verdict, one.line) for one in played] == [("fail", 2)]
    script.write_text("0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n")
    assert [one.verdict for one in fleetfoot.drill(script)] == ["pass"]
    script.write_text("this is no script\n")
    with pytest.raises(fleetfoot.UsageError, match=r"wrong\.pkt:1"):
        fleetfoot.drill(script)
