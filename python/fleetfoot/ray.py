"""Sweeps on a Ray cluster: ``fleetfoot.sweep(..., engine="ray")`` and ``fleetfoot sweep --engine ray``.

Every node needs this package in the same version. The description of the sweep travels once to each
node, by way of Ray's object store; a task is some points and seeds, a result their rows. Tasks that are
lost with their node are run again by Ray.
"""

from __future__ import annotations

import argparse
import os
import queue
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import IO, Any

from fleetfoot._extra import library
from fleetfoot._pool import PER_WORKER, digest_of, run_task_on_ray
from fleetfoot.errors import Error, RunError

__all__ = ["RayPool"]

#: How often it is looked how large the cluster is (s).
_LOOK = 2.0


def _ray() -> Any:  # noqa: ANN401
    # What a program runs is nobody's business, unless its user says otherwise.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    return library("ray")


def _reached(address: str | None) -> None:
    """Raise where nobody listens at an address: Ray would end the whole process."""
    host, colon, port = (address or "").rpartition(":")
    if not colon or not port.isdigit() or "/" in host:
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()
    except (OSError, OverflowError) as error:
        raise RunError(f"there is no Ray cluster at {address}: {error}") from error


class RayPool:
    """Tasks over the Ray cluster at ``address``; by default the one that runs here, else a new one."""

    def __init__(self, address: str | None, description: bytes) -> None:
        ray = self._ray = _ray()
        self._started = not ray.is_initialized()
        if self._started:
            _reached(address)
            try:
                ray.init(address=address, log_to_driver=False, logging_level="ERROR")
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise RunError(f"there is no Ray cluster at {address or 'this machine'}: {error}") from error
        self._look, self._workers = 0.0, 1
        self._digest = digest_of(description)
        self._reference = [ray.put(description)]
        # Tasks have no side effects: whatever becomes of a node, they may be run again.
        self._task = ray.remote(num_cpus=1, max_retries=-1)(run_task_on_ray)

    @property
    def workers(self) -> int:
        """Processors of the cluster: nodes may come and go."""
        now = time.monotonic()
        if now >= self._look:
            self._look = now + _LOOK
            self._workers = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        return self._workers

    def submit(self, task: bytes) -> Any:  # noqa: ANN401
        """Hand a task to some node."""
        return self._task.remote(self._reference, self._digest, task)

    def wait(self, handles: set[Any], timeout: float) -> set[Any]:
        """The tasks that are done."""
        every = list(handles)
        done, _ = self._ray.wait(every, num_returns=1, timeout=timeout)
        if done:
            # What else has come meanwhile.
            done, _ = self._ray.wait(every, num_returns=len(every), timeout=0)
        return set(done)

    def result(self, handle: Any, task: bytes) -> bytes | Any:  # noqa: ANN401
        """The result, or a new handle where Ray gave it up with its node."""
        errors = self._ray.exceptions
        try:
            return bytes(self._ray.get(handle))
        except (errors.ObjectLostError, errors.NodeDiedError, errors.WorkerCrashedError):
            return self.submit(task)
        except errors.RayTaskError as error:
            raise RunError(f"a task failed on the cluster: {error.cause or error}") from error
        except errors.RayError as error:
            raise RunError(f"the cluster failed: {error}. Finished runs are kept") from error

    def cancel(self, handles: set[Any]) -> None:
        """Give up these tasks."""
        for handle in handles:
            self._ray.cancel(handle, force=True)

    def close(self) -> None:
        """Leave the cluster, if this pool has joined it."""
        if self._started:
            self._ray.shutdown()


class _Stream:
    """Frames of the program: length, kind, content (crates/lab/src/sweep/pipe.rs)."""

    def __init__(self, reader: IO[bytes], writer: IO[bytes]) -> None:
        self._reader, self._writer = reader, writer

    def read(self) -> tuple[bytes, bytes] | None:
        head = self._reader.read(5)
        if len(head) < 5:
            return None
        length, kind = struct.unpack("<Ic", head)
        content = self._reader.read(length)
        return (kind, content) if len(content) == length else None

    def write(self, kind: bytes, *parts: bytes) -> None:
        self._writer.write(struct.pack("<Ic", sum(map(len, parts)), kind) + b"".join(parts))
        self._writer.flush()


def _serve(stream: _Stream, pool_of: Callable[[bytes], RayPool]) -> None:
    """Run the tasks that the program sends until it closes the stream."""
    first = stream.read()
    if first is None or first[0] != b"d":
        return
    pool = pool_of(first[1])
    tasks: queue.SimpleQueue[tuple[bytes, bytes] | None] = queue.SimpleQueue()

    def listen() -> None:
        frame = stream.read()
        while frame is not None:
            tasks.put((frame[1][:8], frame[1][8:]))
            frame = stream.read()
        tasks.put(None)

    threading.Thread(target=listen, daemon=True).start()
    stream.write(b"h", str(pool.workers).encode())
    underway: dict[Any, tuple[bytes, bytes]] = {}
    try:
        while True:
            while not tasks.empty() or not underway:
                task = tasks.get()
                if task is None:
                    return
                underway[pool.submit(task[1])] = task
            for handle in pool.wait(set(underway), 0.02 if len(underway) < PER_WORKER * 2 else 0.1):
                number, task_bytes = underway.pop(handle)
                result = pool.result(handle, task_bytes)
                if isinstance(result, bytes):
                    stream.write(b"r", number, result)
                else:
                    underway[result] = (number, task_bytes)
    finally:
        pool.cancel(set(underway))
        pool.close()


def _main() -> int:
    """What the program starts: ``python3 -m fleetfoot.ray``."""
    parser = argparse.ArgumentParser(
        prog="python3 -m fleetfoot.ray",
        description="Workers of `fleetfoot sweep --engine ray`, which starts this program: use that one.",
    )
    parser.add_argument("--address", help="the cluster; by default the one that runs here, else a new one")
    arguments = parser.parse_args()
    # Frames are written to what was the standard output; all else that is printed goes to the standard error.
    frames = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    stream = _Stream(sys.stdin.buffer, frames)
    try:
        _ray()
    except Error as error:
        print(error, file=sys.stderr)
        return 2
    try:
        _serve(stream, lambda description: RayPool(arguments.address, description))
    except Error as error:
        stream.write(b"e", str(error).encode())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
