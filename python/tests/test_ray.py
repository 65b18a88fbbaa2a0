from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from program import run_program
from test_sweep import LINE, data

import fleetfoot

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

# Both nodes and the driver have one token, whatever Ray keeps in the home folder.
os.environ["RAY_AUTH_MODE"] = "token"
os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
ray = pytest.importorskip("ray")

AXES: dict[str, Any] = {
    "range": {
        "network.bottleneck.rate": ("2 Mbit/s", "20 Mbit/s", "log", 20),
        "network.bottleneck.delay": ("1 ms", "50 ms", "log", 10),
    },
    "seeds": 4,
}
ENVIRONMENT = {
    **os.environ,
    "RAY_USAGE_STATS_ENABLED": "0",
    # Ray's workers step back behind other programs; threads, with which they are compared, do not.
    "RAY_worker_niceness": "0",
    # A node that is killed is missed soon.
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_failure_threshold": "4",
}


class Cluster:
    """Two nodes on this machine, each with one processor."""

    def __init__(self) -> None:
        self._nodes: list[subprocess.Popen[bytes]] = []
        self.address = "127.0.0.1:26379"
        # A folder of its own: what Ray leaves in the usual one would be taken for a cluster. Sockets need a short path.
        self._folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
        head = ["--head", "--node-ip-address=127.0.0.1", "--port=26379", "--include-dashboard=false"]
        self._start(*head, f"--temp-dir={self._folder}")
        # Nodes that start at once find the same sockets free, and the later one cannot listen.
        until = time.monotonic() + 60
        while not list(Path(self._folder).glob("session_2*/sockets/raylet")) and time.monotonic() < until:
            time.sleep(0.2)
        self.second = self._start(f"--address={self.address}", "--node-ip-address=127.0.0.2")

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        common = ["--num-cpus=1", "--object-store-memory=100000000", "--disable-usage-stats", "--block"]
        node = subprocess.Popen(
            [str(Path(sys.executable).with_name("ray")), "start", *arguments, *common],
            env=ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._nodes.append(node)
        return node

    def kill(self, node: subprocess.Popen[bytes]) -> None:
        """Kill the node and all of its processes."""
        for pid in _descendants(node.pid):
            _killed(pid)
        _killed(node.pid)
        node.wait()

    def close(self) -> None:
        for node in reversed(self._nodes):
            if node.poll() is None:
                self.kill(node)
        shutil.rmtree(self._folder, ignore_errors=True)


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, thread.read_text().split()):
            found += [*_descendants(child), child]
    return found


def _killed(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                # A driver that finds no node at this machine's address joins any, so also the one that is killed.
                ray.init(address=made.address, _node_ip_address="127.0.0.1", log_to_driver=False, logging_level="ERROR")
            except ConnectionError:
                assert time.monotonic() < deadline, "the cluster does not start"
                time.sleep(0.5)
                continue
            if len([node for node in ray.nodes() if node["Alive"]]) == 2:
                break
            ray.shutdown()
            assert time.monotonic() < deadline, "the second node does not start"
            time.sleep(0.5)
        yield made
    finally:
        ray.shutdown()
        made.close()


def test_a_node_that_is_killed_changes_no_byte(cluster: Cluster, tmp_path: Path) -> None:
    line = fleetfoot.Scenario.from_toml(LINE).with_({"run.duration": "4 s"})
    begin = time.monotonic()
    local = fleetfoot.sweep(line, **AXES, out=tmp_path / "local")
    local_s = time.monotonic() - begin

    # Workers have started and know the program after this one.
    few = {**AXES, "range": {"network.bottleneck.rate": ("2 Mbit/s", "20 Mbit/s", "log", 20)}}
    fleetfoot.sweep(line, **few, out=tmp_path / "few", engine="ray")
    begin = time.monotonic()
    over = fleetfoot.sweep(line, **AXES, out=tmp_path / "ray", engine="ray")
    ray_s = time.monotonic() - begin
    assert data(over.folder) == data(local.folder)
    print(
        f"{local.counts['computed']} runs: {local_s:.1f} s on threads, {ray_s:.1f} s over two nodes of Ray "
        f"({ray_s / local_s:.2f} times as long)"
    )

    # By way of the program too.
    (tmp_path / "line.toml").write_text(line.to_toml())
    arguments = ["--seeds=4", "--range", "network.bottleneck.rate=2 Mbit/s:20 Mbit/s:log:20", "--range"]
    arguments += [
        "network.bottleneck.delay=1 ms:50 ms:log:10",
        "--engine=ray",
        f"--address={cluster.address}",
    ]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    made = run_program(
        "sweep",
        "line.toml",
        "--out=program",
        *arguments,
        "--json",
        cwd=tmp_path,
        environment={**ENVIRONMENT, "PATH": path},
    )
    assert json.loads(made.stdout)["timing"]["computed"] == 800
    assert data(tmp_path / "program") == data(local.folder)

    killed: list[fleetfoot.SweepProgress] = []

    def kill(progress: fleetfoot.SweepProgress) -> None:
        if progress.done > 200 and not killed:
            killed.append(progress)
            cluster.kill(cluster.second)

    over = fleetfoot.sweep(line, **AXES, out=tmp_path / "lost", engine="ray", progress=kill)
    print(f"a node of two was killed after {killed[0].done} of {killed[0].total} runs; {over!r}")
    # The sweep may be over before the cluster has missed the node.
    deadline = time.monotonic() + 60
    while len([node for node in ray.nodes() if node["Alive"]]) > 1:
        assert time.monotonic() < deadline, "the killed node is still there"
        time.sleep(0.5)
    assert killed[0].done < killed[0].total
    assert data(over.folder) == data(local.folder)


def test_a_cluster_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "line.toml").write_text(LINE)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    made = run_program(
        *("sweep", "line.toml", "--set", "tcp.initial_window=3,10", "--engine=ray", "--address=127.0.0.1:1"),
        cwd=tmp_path,
        environment={**ENVIRONMENT, "PATH": path},
        code=2,
    )
    assert "there is no Ray cluster at 127.0.0.1:1" in made.stderr
