"""Environments of gymnasium: one flow's window or pacing rate at a bottleneck.

>>> import gymnasium
>>> import fleetfoot.gym
>>> env = gymnasium.make("fleetfoot/Bottleneck-v0", rate_mbps=20, rtt_ms=30, buffer_packets=50)
>>> observation, info = env.reset(seed=1)
>>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
>>> info["elapsed_s"] > 0.0
True

The identifiers, each with every keyword of :class:`BottleneckEnv`:

============================== ==========================================================
``fleetfoot/Bottleneck-v0``    the window in packets, decided once each round trip
``fleetfoot/BottleneckAck-v0`` the window in packets, decided with every acknowledgment
``fleetfoot/PacingRate-v0``    the pacing rate in Mbit/s, decided once each round trip
============================== ==========================================================

``gymnasium.make_vec`` makes :class:`BottleneckVectorEnv`, which steps its runs on all cores. `docs/gym.md`
has units, rewards and speed. Needs gymnasium, which the extra ``gym`` brings.
"""

from __future__ import annotations

from fleetfoot._extra import missing

try:
    import gymnasium
except ModuleNotFoundError as _error:
    raise missing("gymnasium") from _error

from fleetfoot.gym.env import OBSERVATION, BottleneckEnv, Reward
from fleetfoot.gym.vector import BottleneckVectorEnv

__all__ = ["OBSERVATION", "BottleneckEnv", "BottleneckVectorEnv", "Reward"]

for _name, _keywords in (
    ("Bottleneck", {}),
    ("BottleneckAck", {"step": "ack"}),
    ("PacingRate", {"control": "pacing_rate"}),
):
    gymnasium.register(
        id=f"fleetfoot/{_name}-v0",
        entry_point="fleetfoot.gym:BottleneckEnv",
        vector_entry_point="fleetfoot.gym:BottleneckVectorEnv",
        kwargs=_keywords,
    )
