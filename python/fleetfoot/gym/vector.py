"""Many flows at bottlenecks at once."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from fleetfoot.errors import UsageError
from fleetfoot.gym.env import FIELDS, Reward, mean_rtt, observation_space, observations, task_of
from fleetfoot.scenario import Scenario

__all__ = ["BottleneckVectorEnv"]

_AT = {name: index for index, name in enumerate(FIELDS)}


class BottleneckVectorEnv(VectorEnv[NDArray[np.float32], NDArray[np.float32], NDArray[Any]]):
    """``num_envs`` independent runs of what :class:`BottleneckEnv` plays, stepped together on all cores.

    No process and no thread belongs to a run: a call of ``step`` deals the runs to the cores and releases the
    interpreter meanwhile. A run that is over is begun anew by the next step (``AutoresetMode.NEXT_STEP``),
    with another seed.

    Args:
        num_envs: Runs.
        scenario: As for :class:`BottleneckEnv`.
        render_mode: ``None``.
        arguments: As for :class:`BottleneckEnv`.

    Observations have the shape ``(num_envs, 9)``, actions ``(num_envs, 1)``. ``infos`` has an array of
    64-bit floats of shape ``(num_envs,)`` for each entry of ``info`` there, and after last steps ``result``
    with masks, as gymnasium joins dictionaries (``infos["result"]["groups"][place]``).
    """

    metadata = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        scenario: Scenario | str | os.PathLike[str] | None = None,
        *,
        render_mode: str | None = None,
        **arguments: Any,
    ) -> None:
        if num_envs < 1:
            raise UsageError(f"num_envs: {num_envs!r} is less than 1")
        if render_mode is not None:
            raise UsageError(f"render_mode: {render_mode!r}; nothing is drawn")
        self.num_envs = num_envs
        self.render_mode = None
        self._task = task_of(dict(arguments, scenario=scenario))
        self._flows = self._task.flows(num_envs)
        self._reference_mbps = self._task.reference_mbps or self._flows.slowest(0) / 1e6
        self.single_observation_space = observation_space()
        self.single_action_space = self._task.action_space(self._reference_mbps)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._seen = np.zeros((num_envs, len(FIELDS)))
        self._over: NDArray[np.bool_] | None = None

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin all runs. ``seed``: of all, or one for each."""
        if options:
            raise UsageError("options: the runs of a vector keep their arguments")
        first = seed if isinstance(seed, int) or seed is None else None
        super().reset(seed=first)
        seeds = list(seed) if isinstance(seed, list) else [None] * self.num_envs
        if len(seeds) != self.num_envs:
            raise UsageError(f"{len(seeds)} seeds for {self.num_envs} runs")
        for place, own in enumerate(seeds):
            self._seen[place] = self._flows.reset(place, self._seed() if own is None else own)
        self._over = np.zeros(self.num_envs, np.bool_)
        return observations(self._seen), self._infos()

    def step(
        self, actions: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Decide for each run, and go on to the next decision of each."""
        before = self._over
        if before is None:
            raise UsageError("reset comes before the first step")
        seen = self._seen
        values = self._task.decided_all(
            np.asarray(actions, np.float64).reshape(self.num_envs),
            seen[:, _AT["mss_bytes"]],
            seen[:, _AT["window_bytes"]],
            seen[:, _AT["pacing_rate_bps"]],
            self._reference_mbps,
        )
        numbers, over = self._flows.step_all(values.tolist())
        self._seen = np.frombuffer(numbers).reshape(seen.shape).copy()
        self._over = np.array(over, np.bool_)
        results: dict[int, Any] = {}
        for place in np.flatnonzero(before):
            self._seen[place] = self._flows.reset(int(place), self._seed())
            self._over[place] = False
        for place in np.flatnonzero(self._over):
            results[int(place)] = json.loads(self._flows.result(int(place)) or "{}")
        infos = self._infos()
        reward = self._task.reward
        if isinstance(reward, Reward):
            rewards = np.where(before, 0.0, reward.of_many(infos))
        else:
            rewards = np.zeros(self.num_envs)
            for place in np.flatnonzero(~before):
                rewards[place] = reward({name: column[place] for name, column in infos.items()})
        for index, result in results.items():
            infos = self._add_info(infos, {"result": result}, index)
        return observations(self._seen), rewards, np.zeros(self.num_envs, np.bool_), self._over.copy(), infos

    def _seed(self) -> int:
        return int(self.np_random.integers(2**32))

    def _infos(self) -> dict[str, Any]:
        infos: dict[str, Any] = {name: self._seen[:, index].copy() for name, index in _AT.items()}
        infos["rtt_s"] = mean_rtt(self._seen)
        infos["reference_bps"] = np.full(self.num_envs, self._reference_mbps * 1e6)
        return infos
