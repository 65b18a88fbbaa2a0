"""One flow at a bottleneck."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from fleetfoot import _native
from fleetfoot.errors import UsageError
from fleetfoot.scenario import Scenario

__all__ = ["OBSERVATION", "BottleneckEnv", "Reward"]

FIELDS = tuple(_native.steered_fields())

OBSERVATION = (
    "window_packets",
    "in_flight_packets",
    "delivered_packets",
    "lost_packets",
    "rtt_ms",
    "min_rtt_ms",
    "delivery_rate_mbps",
    "elapsed_ms",
    "congestion",
)
"""What an observation holds, in this order. The last is 0; 1 after a loss or a mark; 2 after a timeout."""


@dataclass(frozen=True)
class Reward:
    """The reward of a step: throughput less delay less loss, each with a weight.

    With the delivered bytes *D* and the lost bytes *L* of the step, its time *t* (s), the mean queueing
    delay *q* (mean RTT of the step less the smallest RTT of the connection, s), the smallest RTT *T* (s) and
    the reference rate *C* (bit/s)::

        throughput * 8 D / (C T)  -  delay * (q / T) * (t / T)  -  loss * 8 L / (C T)

    So the rewards of an episode add up to the same however often decisions are asked for: a flow that
    fills the reference rate without a queue gets ``throughput`` for each smallest RTT.

    Attributes:
        throughput: Weight of what was delivered.
        delay: Weight of the queueing delay in smallest RTTs.
        loss: Weight of what was lost.
    """

    throughput: float = 1.0
    delay: float = 0.5
    loss: float = 1.0

    def __call__(self, info: Mapping[str, Any]) -> float:
        """The reward of a step with this ``info``."""
        round_trip = info["min_rtt_s"]
        volume = info["reference_bps"] * round_trip / 8
        if volume <= 0:
            return 0.0
        waits = max(info["rtt_s"] - round_trip, 0.0) / round_trip * info["elapsed_s"] / round_trip
        return float(
            self.throughput * info["delivered_bytes"] / volume
            - self.delay * waits
            - self.loss * info["lost_bytes"] / volume
        )

    def of_many(self, infos: Mapping[str, Any]) -> NDArray[np.float64]:
        """The rewards of the steps of a vector: ``infos`` has arrays."""
        round_trip = np.maximum(infos["min_rtt_s"], 1e-9)
        volume = infos["reference_bps"] * round_trip / 8
        waits = np.maximum(infos["rtt_s"] - round_trip, 0.0) / round_trip * infos["elapsed_s"] / round_trip
        rewards: NDArray[np.float64] = (
            self.throughput * infos["delivered_bytes"] / volume
            - self.delay * waits
            - self.loss * infos["lost_bytes"] / volume
        )
        return np.where(infos["min_rtt_s"] > 0, rewards, 0.0)


@dataclass
class Task:
    """What an environment plays: the arguments of :class:`BottleneckEnv`."""

    scenario: Scenario | str | os.PathLike[str] | None = None
    flow: str = "flow"
    rate_mbps: float = 12.0
    rtt_ms: float = 40.0
    buffer_packets: int = 40
    queue: str | Mapping[str, Any] = "drop-tail"
    cross: int = 0
    cross_control: str = "cubic"
    profile: str = "linux"
    duration_s: float = 30.0
    step: str = "rtt"
    control: str = "packets"
    relative: bool = False
    max_window_packets: int = 1000
    max_rate_mbps: float | None = None
    reference_mbps: float | None = None
    reward: Reward | Callable[[Mapping[str, Any]], float] = field(default_factory=Reward)

    def __post_init__(self) -> None:
        if self.control not in ("packets", "bytes", "pacing_rate"):
            raise UsageError(f"control: {self.control!r} is none of 'packets', 'bytes' and 'pacing_rate'")
        for name in ("rate_mbps", "rtt_ms", "buffer_packets", "duration_s", "max_window_packets"):
            if not getattr(self, name) > 0:
                raise UsageError(f"{name}: {getattr(self, name)!r} is not more than 0")
        if self.cross < 0:
            raise UsageError(f"cross: {self.cross!r} is less than 0")

    def read(self) -> Scenario:
        """The scenario."""
        if isinstance(self.scenario, Scenario):
            return self.scenario
        if self.scenario is not None:
            return Scenario.load(self.scenario)
        queue = dict(self.queue) if isinstance(self.queue, Mapping) else {"kind": self.queue}
        queue.setdefault("limit", f"{self.buffer_packets} packets")
        access = self.rtt_ms / 20
        link: dict[str, Any] = {"rate": "10 Gbit/s", "delay": f"{access:.6f} ms"}
        if self.cross:
            # Up to one packet time of the bottleneck, against phase effects (docs/trust.md).
            span = f"{12.0 / self.rate_mbps:.6f} ms"
            link["jitter"] = {"dist": "uniform", "min": "0 ms", "max": span}
        traffic: list[dict[str, Any]] = [{"name": self.flow, "kind": "bulk"}]
        if self.cross:
            traffic.append(
                {
                    "name": "cross",
                    "kind": "bulk",
                    "count": self.cross,
                    "start_spacing": "100 ms",
                    "tcp": {"congestion_control": self.cross_control},
                }
            )
        tables = {
            "title": "A flow at a bottleneck",
            "network": {
                "kind": "dumbbell",
                "pairs": 1 + self.cross,
                "access": link,
                "bottleneck": {
                    "rate": f"{self.rate_mbps} Mbit/s",
                    "delay": f"{self.rtt_ms / 2 - 2 * access:.6f} ms",
                    "queue": queue,
                },
            },
            "tcp": {"profile": self.profile},
            "traffic": traffic,
            "run": {"duration": f"{self.duration_s} s", "warmup": "0 s"},
        }
        return Scenario.from_dict(tables)

    def flows(self, count: int) -> _native.Steered:
        """Places for ``count`` runs."""
        control = {"packets": "packets", "bytes": "bytes", "pacing_rate": "rate"}[self.control]
        most = self.max_window_packets * 9000
        return _native.Steered(self.read()._inner, self.flow, count, self.step, control, most)

    def rate_limit_mbps(self, reference_mbps: float) -> float:
        """The largest pacing rate."""
        return self.max_rate_mbps or 2.0 * reference_mbps

    def action_space(self, reference_mbps: float) -> gymnasium.spaces.Box:
        """What may be decided."""
        if self.relative:
            return gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        low, high = {
            "packets": (1.0, float(self.max_window_packets)),
            "bytes": (1.0, 1500.0 * self.max_window_packets),
            "pacing_rate": (0.01, self.rate_limit_mbps(reference_mbps)),
        }[self.control]
        return gymnasium.spaces.Box(low, high, (1,), np.float32)

    def decided(self, action: float, mss: float, window: float, rate_bps: float, reference_mbps: float) -> float:
        """The number that a decision is: packets, bytes or bit/s."""
        if math.isnan(action):
            raise UsageError("the action is no number")
        most = float(self.max_window_packets)
        if self.control == "pacing_rate":
            now = rate_bps or reference_mbps * 1e6
            wanted = now * 2.0**action if self.relative else action * 1e6
            return min(max(wanted, 1e4), self.rate_limit_mbps(reference_mbps) * 1e6)
        if self.control == "bytes":
            wanted = window * 2.0**action if self.relative else action
            return min(max(wanted, mss), most * mss)
        wanted = window / mss * 2.0**action if self.relative else action
        return min(max(wanted, 1.0), most)

    def decided_all(
        self,
        actions: NDArray[np.float64],
        mss: NDArray[np.float64],
        windows: NDArray[np.float64],
        rates_bps: NDArray[np.float64],
        reference_mbps: float,
    ) -> NDArray[np.float64]:
        """As :meth:`decided`, of a vector."""
        if np.isnan(actions).any():
            raise UsageError("an action is no number")
        most = float(self.max_window_packets)
        factors = 2.0**actions if self.relative else actions
        if self.control == "pacing_rate":
            now = np.where(rates_bps > 0, rates_bps, reference_mbps * 1e6)
            wanted = now * factors if self.relative else actions * 1e6
            return np.clip(wanted, 1e4, self.rate_limit_mbps(reference_mbps) * 1e6)
        if self.control == "bytes":
            return np.clip(windows * factors if self.relative else actions, mss, most * mss)
        return np.clip(windows / mss * factors if self.relative else actions, 1.0, most)


def observation_space() -> gymnasium.spaces.Box:
    """What may be observed: :data:`OBSERVATION`."""
    return gymnasium.spaces.Box(0.0, np.inf, (len(OBSERVATION),), np.float32)


_AT = {name: index for index, name in enumerate(FIELDS)}


def observations(seen: NDArray[np.float64]) -> NDArray[np.float32]:
    """Observations of rows of numbers: any shape with the last axis ``FIELDS``."""

    def of(name: str) -> NDArray[np.float64]:
        return seen[..., _AT[name]]

    mss = np.maximum(of("mss_bytes"), 1.0)
    elapsed = of("elapsed_s")
    rate = np.divide(of("delivered_bytes") * 8e-6, elapsed, out=np.zeros_like(elapsed), where=elapsed > 0)
    congestion = np.where(of("timeouts") > 0, 2.0, np.where(of("recoveries") + of("marks") > 0, 1.0, 0.0))
    columns = [
        of("window_bytes") / mss,
        of("in_flight_bytes") / mss,
        of("delivered_bytes") / mss,
        of("lost_bytes") / mss,
        mean_rtt(seen) * 1e3,
        of("min_rtt_s") * 1e3,
        rate,
        elapsed * 1e3,
        congestion,
    ]
    return np.stack(columns, axis=-1).astype(np.float32)


def mean_rtt(seen: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean RTT of a step, s; the smoothed RTT where it had no sample."""
    samples = seen[..., _AT["rtt_samples"]]
    known = np.array(seen[..., _AT["srtt_s"]])
    return np.divide(seen[..., _AT["rtt_sum_s"]], samples, out=known, where=samples > 0)


class BottleneckEnv(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """One flow whose window or pacing rate is decided, at a bottleneck with a queue.

    The flow is a connection of TCP that always has data: loss detection, recovery and timeouts are those of
    the profile, and what is decided is what a congestion control decides. A decision has its effect from the
    next acknowledgment on. After a retransmission timeout the window is one packet until the next decision,
    which is asked for at once.

    Args:
        scenario: A scenario, or the path of its file, instead of the simple arguments below. ``flow`` names
            traffic of kind ``bulk`` in it with one connection. Everything else in it is cross traffic.
        flow: The traffic that is decided about.
        rate_mbps: Rate of the bottleneck, Mbit/s.
        rtt_ms: Round-trip time without queues, ms.
        buffer_packets: What may wait at the bottleneck, packets.
        queue: The queue discipline: a name or a table as in scenarios.
        cross: Bulk connections beside the flow.
        cross_control: Their congestion control.
        profile: Profile of TCP.
        duration_s: Virtual time of an episode, s. With a scenario, its ``run.duration`` counts.
        step: ``"rtt"``: a decision each round trip; ``"ack"``: with every acknowledgment. And with every
            timeout.
        control: ``"packets"`` or ``"bytes"``: the window; ``"pacing_rate"``: the rate of payload in Mbit/s,
            below a window of ``max_window_packets``.
        relative: The action, from -1 to 1, is the power of two by which the value in force is multiplied.
        max_window_packets: The largest window.
        max_rate_mbps: The largest pacing rate, Mbit/s; ``None``: twice the reference rate.
        reference_mbps: Rate by which the reward counts, Mbit/s; ``None``: that of the slowest link.
        reward: A :class:`Reward`, or a function of ``info``.
        render_mode: ``None``: nothing is drawn.

    **Observation**, ``Box(0, inf, (9,), float32)``, in the order of :data:`OBSERVATION`: the window in force
    (packets), packets in flight, delivered and lost during the step; mean RTT of the step and smallest RTT
    of the connection (ms); delivery rate (Mbit/s); time of the step (ms); 0, 1 after a loss or a mark, or 2
    after a timeout.

    **Action**, ``Box(..., (1,), float32)``: what ``control`` says. Values outside are brought to the bounds.

    **Info**, plain numbers: ``time_s``, ``elapsed_s``, ``rtt_s`` (mean of the step), ``srtt_s``,
    ``min_rtt_s``, ``acks``, ``delivered_bytes``, ``acked_bytes``, ``lost_bytes``, ``recoveries``, ``marks``,
    ``timeouts``, ``in_flight_bytes``, ``flight_size_bytes`` (at the last congestion event of the step),
    ``window_bytes``, ``pacing_rate_bps``, ``mss_bytes``, ``reference_bps``, ``recovering``,
    ``window_limited``; of ``reset``, ``seed``, that of the simulator. After the last step ``result``:
    goodput of each traffic (bit/s), and of each direction of each link the mean and 95th percentile of the
    wait (s), packets found waiting, utilisation and drops. ``digest`` is a hash of all that the run
    measured.

    An episode is truncated at its end; none is terminated. The seed of an episode comes from ``np_random``:
    the same seed gives the same episode for the same decisions. Without cross traffic and randomness in the
    scenario all seeds are equal. ``reset(options={"rate_mbps": 20, ...})`` changes arguments for this and
    later episodes.
    """

    metadata = {"render_modes": []}  # noqa: RUF012

    observation_space: gymnasium.spaces.Box  # type: ignore[assignment]
    action_space: gymnasium.spaces.Box  # type: ignore[assignment]

    def __init__(
        self,
        scenario: Scenario | str | os.PathLike[str] | None = None,
        *,
        render_mode: str | None = None,
        **arguments: Any,
    ) -> None:
        if render_mode is not None:
            raise UsageError(f"render_mode: {render_mode!r}; nothing is drawn")
        self.render_mode = None
        self._arguments = dict(arguments, scenario=scenario)
        self._begin()
        self.observation_space = observation_space()
        self.action_space = self._task.action_space(self._reference_mbps)
        self._last: dict[str, Any] | None = None
        self._over = True

    def _begin(self) -> None:
        self._task = task_of(self._arguments)
        self._flows = self._task.flows(1)
        self._reference_mbps = self._task.reference_mbps or self._flows.slowest(0) / 1e6

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begin an episode and go on to the first decision.

        Args:
            seed: Seed of this and later episodes.
            options: Arguments of :class:`BottleneckEnv` that change. Those that change the spaces are
                refused.
        """
        super().reset(seed=seed)
        if options:
            before = (self.observation_space, self.action_space)
            arguments, self._arguments = self._arguments, {**self._arguments, **options}
            self._begin()
            if (self.observation_space, self._task.action_space(self._reference_mbps)) != before:
                self._arguments = arguments
                self._begin()
                raise UsageError(
                    f"options {sorted(options)} change the action space; "
                    "give max_rate_mbps, or make another environment"
                )
        run_seed = int(self.np_random.integers(2**32))
        numbers = self._flows.reset(0, run_seed)
        self._over = False
        observation, info = self._taken(numbers)
        info["seed"] = run_seed
        return observation, info

    def step(self, action: NDArray[np.float32]) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Decide, and go on to the next decision or the end of the episode."""
        last = self._last
        if self._over or last is None:
            raise UsageError("the episode is over: reset begins another")
        decided = self._task.decided(
            float(np.asarray(action).reshape(-1)[0]),
            last["mss_bytes"],
            last["window_bytes"],
            last["pacing_rate_bps"],
            self._reference_mbps,
        )
        numbers, self._over = self._flows.step(0, decided)
        observation, info = self._taken(numbers)
        if self._over:
            info["result"] = json.loads(self._flows.result(0) or "{}")
        return observation, float(self._task.reward(info)), False, self._over, info

    def baseline(self, congestion_control: str | None = None, *, seed: int) -> dict[str, Any]:
        """What the same episode measures with a congestion control in the place of decisions.

        Args:
            congestion_control: A built-in one or one of this process (:func:`fleetfoot.register`); ``None``:
                the scenario's.
            seed: Seed of the simulator. An episode of this environment has the one in ``info["seed"]``.

        Returns:
            As ``info["result"]`` after the last step.

        Raises:
            RunError: There is no such congestion control, or it failed.
        """
        document: dict[str, Any] = json.loads(self._flows.baseline(0, congestion_control, seed))
        return document

    def _taken(self, numbers: Sequence[float]) -> tuple[NDArray[np.float32], dict[str, Any]]:
        info: dict[str, Any] = dict(zip(FIELDS, numbers, strict=True))
        mss, elapsed = info["mss_bytes"] or 1.0, info["elapsed_s"]
        info["rtt_s"] = info["rtt_sum_s"] / info["rtt_samples"] if info["rtt_samples"] else info["srtt_s"]
        info["reference_bps"] = self._reference_mbps * 1e6
        events = info["recoveries"] + info["marks"]
        observation = np.array(
            (
                info["window_bytes"] / mss,
                info["in_flight_bytes"] / mss,
                info["delivered_bytes"] / mss,
                info["lost_bytes"] / mss,
                info["rtt_s"] * 1e3,
                info["min_rtt_s"] * 1e3,
                info["delivered_bytes"] * 8e-6 / elapsed if elapsed > 0 else 0.0,
                elapsed * 1e3,
                2.0 if info["timeouts"] else 1.0 if events else 0.0,
            ),
            np.float32,
        )
        self._last = info
        return observation, info


def task_of(arguments: Mapping[str, Any]) -> Task:
    """The task with these arguments.

    Raises:
        UsageError: There is no such argument.
    """
    known = Task.__dataclass_fields__
    for name in arguments:
        if name not in known:
            raise UsageError(f"no argument is called {name!r}; the arguments are {', '.join(known)}")
    return Task(**arguments)
