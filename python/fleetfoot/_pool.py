"""Tasks of a sweep over workers elsewhere: the same loop for every executor and for Ray."""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent import futures
from typing import Any, Protocol

from fleetfoot import _native
from fleetfoot.errors import RunError, ScenarioError
from fleetfoot.plugin import renew

__all__ = ["Executed", "Pool", "drive", "run_task", "run_task_on_ray"]

#: Tasks under way for each worker: one that is run, one that waits for it.
PER_WORKER = 2
#: Sweeps that a worker process remembers.
_REMEMBERED = 4

_workers: OrderedDict[str, _native.SweepWorker] = OrderedDict()
_lock = threading.Lock()


def digest_of(description: bytes) -> str:
    """What identifies a description."""
    return hashlib.sha256(description).hexdigest()


def worker_of(digest: str, description: Callable[[], bytes | None]) -> _native.SweepWorker | None:
    """The worker of this process for a sweep; ``description`` is asked for if it is new here."""
    with _lock:
        worker = _workers.get(digest)
        if worker is None:
            text = description()
            if text is None:
                return None
            try:
                worker = _native.SweepWorker(text)
            except ScenarioError:
                # A class may have become what it is in the process that drives since it was registered here.
                renew()
                worker = _native.SweepWorker(text)
            _workers[digest] = worker
            while len(_workers) > _REMEMBERED:
                _workers.popitem(last=False)
        _workers.move_to_end(digest)
        return worker


def forget(digest: str) -> None:
    """Stop what runs of a sweep in the threads of this process."""
    with _lock:
        worker = _workers.pop(digest, None)
    if worker is not None:
        worker.stop()


def run_task(digest: str, description: bytes | None, task: bytes) -> bytes | None:
    """Run a task in a worker process. None: this process does not know the sweep, and needs the text."""
    worker = worker_of(digest, lambda: description)
    return None if worker is None else worker.run(task)


def run_task_on_ray(reference: list[Any], digest: str, task: bytes) -> bytes:
    """Run a task on a node of Ray; the description is fetched once for each worker process."""
    import ray

    worker = worker_of(digest, lambda: bytes(ray.get(reference[0])))
    if worker is None:
        raise RunError("the description of the sweep is not in the object store")
    return worker.run(task)


class Pool(Protocol):
    """Something that runs tasks. A handle is whatever :meth:`submit` returns."""

    @property
    def workers(self) -> int:
        """How many tasks can be run at the same time."""

    def submit(self, task: bytes) -> Any:  # noqa: ANN401
        """Hand a task to some worker."""

    def wait(self, handles: set[Any], timeout: float) -> set[Any]:
        """The handles that are done, after some time at most."""

    def result(self, handle: Any, task: bytes) -> bytes | Any:  # noqa: ANN401
        """The result; or a new handle, where the task had to be sent again."""

    def cancel(self, handles: set[Any]) -> None:
        """Give up these tasks, and stop what runs if that is possible."""


class Executed:
    """Tasks over any :class:`concurrent.futures.Executor`.

    The description of the sweep travels once to each worker: a task carries only its digest, and comes back
    where that is not known.
    """

    def __init__(self, executor: futures.Executor, description: bytes) -> None:
        self._executor = executor
        self._description = description
        self._digest = digest_of(description)
        workers = getattr(executor, "_max_workers", None)
        self.workers = workers if isinstance(workers, int) and workers > 0 else (os.cpu_count() or 1)

    def submit(self, task: bytes) -> futures.Future[bytes | None]:
        """Hand a task to some worker, without the description."""
        return self._executor.submit(run_task, self._digest, None, task)

    def wait(self, handles: set[Any], timeout: float) -> set[Any]:
        """The futures that are done."""
        return futures.wait(handles, timeout, futures.FIRST_COMPLETED).done

    def result(self, handle: futures.Future[bytes | None], task: bytes) -> bytes | futures.Future[bytes | None]:
        """The result, or a future of the same task with the description."""
        try:
            made = handle.result()
        except futures.BrokenExecutor as error:
            raise RunError(
                f"the executor broke ({error or type(error).__name__}). Finished runs are kept: the same "
                "call with a new executor goes on behind them"
            ) from error
        if made is None:
            return self._executor.submit(run_task, self._digest, self._description, task)
        return made

    def cancel(self, handles: set[Any]) -> None:
        """Cancel what waits, and stop what runs in threads of this process."""
        for handle in handles:
            handle.cancel()
        forget(self._digest)


def drive(sweeping: _native.Sweeping, pool: Pool, told: Callable[[], object], *, turn: float = 0.25) -> None:
    """Hand out tasks, at most two for each worker at a time, and enter results until all are done."""
    underway: dict[Any, tuple[int, bytes]] = {}

    def entered(timeout: float) -> None:
        for handle in pool.wait(set(underway), timeout):
            number, task = underway.pop(handle)
            result = pool.result(handle, task)
            if isinstance(result, bytes):
                sweeping.enter(number, result)
            else:
                underway[result] = (number, task)

    try:
        while True:
            while len(underway) < PER_WORKER * pool.workers:
                taken = sweeping.take(pool.workers)
                if taken is None:
                    break
                underway[pool.submit(taken[1])] = taken
            if not underway:
                return
            entered(turn)
            told()
    except BaseException:
        pool.cancel(set(underway))
        raise
