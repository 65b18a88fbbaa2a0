"""The environments of gymnasium."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

gymnasium = pytest.importorskip("gymnasium")

from gymnasium.utils.env_checker import check_env  # noqa: E402

import fleetfoot  # noqa: E402
import fleetfoot.gym  # noqa: E402

IDS = ("fleetfoot/Bottleneck-v0", "fleetfoot/BottleneckAck-v0", "fleetfoot/PacingRate-v0")


@pytest.mark.parametrize("identifier", IDS)
@pytest.mark.parametrize(("cross", "relative"), [(0, False), (2, True)])
def test_gymnasium_finds_nothing_wrong(identifier: str, cross: int, relative: bool) -> None:
    env = gymnasium.make(identifier, duration_s=3, cross=cross, relative=relative)
    with warnings.catch_warnings():
        # It recommends symmetric actions, which `relative=True` has, and bounds of observations.
        warnings.filterwarnings("ignore", category=UserWarning)
        check_env(env.unwrapped, skip_render_check=True)
    env.close()


def test_relative_actions_are_symmetric_and_multiply() -> None:
    env = fleetfoot.gym.BottleneckEnv(relative=True, duration_s=3)
    assert (env.action_space.low[0], env.action_space.high[0]) == (-1.0, 1.0)
    observation, _ = env.reset(seed=1)
    doubled, *_ = env.step(np.array([1.0], np.float32))
    assert doubled[0] == pytest.approx(2 * observation[0])


class Aimd:
    """NewReno as a policy: slow start, one packet per window, half of the window at a loss."""

    def __init__(self, window: float) -> None:
        self.window, self.ssthresh, self.acked = window, float("inf"), 0.0

    def decide(self, info: dict[str, Any]) -> float:
        mss = info["mss_bytes"]
        if info["timeouts"]:
            self.ssthresh = max(info["flight_size_bytes"] // (2 * mss), 2.0)
            self.window, self.acked = 1.0, 0.0
        elif info["recoveries"]:
            self.ssthresh = max(self.window // 2, 2.0)
            self.window, self.acked = self.ssthresh, 0.0
        elif info["window_limited"] and not info["recovering"]:
            acked = info["acked_bytes"] / mss
            if self.window < self.ssthresh:
                step = min(acked, self.ssthresh - self.window)
                self.window += step
                acked -= step
            self.acked += acked
            if self.acked >= self.window:
                self.acked -= self.window
                self.window += 1.0
        return self.window


def played(env: fleetfoot.gym.BottleneckEnv, seed: int = 1) -> dict[str, Any]:
    _, info = env.reset(seed=seed)
    policy, over = Aimd(info["window_bytes"] / info["mss_bytes"]), False
    while not over:
        _, _, _, over, info = env.step(np.array([policy.decide(info)], np.float32))
    return dict(info["result"])


def of_bottleneck(result: dict[str, Any]) -> dict[str, Any]:
    (link,) = (link for link in result["links"] if link["name"] == "bottleneck" and link["direction"] == "forward")
    return dict(link)


@pytest.mark.parametrize(
    ("rate_mbps", "rtt_ms", "buffer_packets"), [(12.0, 40.0, 40), (24.0, 20.0, 60), (6.0, 80.0, 25)]
)
def test_aimd_has_the_throughput_and_the_queue_of_reno(rate_mbps: float, rtt_ms: float, buffer_packets: int) -> None:
    env = fleetfoot.gym.BottleneckEnv(
        rate_mbps=rate_mbps, rtt_ms=rtt_ms, buffer_packets=buffer_packets, step="ack", duration_s=60
    )
    own, reno = played(env), env.baseline("reno", seed=1)
    assert own["groups"][0]["goodput_bps"] == pytest.approx(reno["groups"][0]["goodput_bps"], rel=0.02)
    for name in ("queue_delay_s", "queue_packets"):
        assert of_bottleneck(own)[name] == pytest.approx(of_bottleneck(reno)[name], rel=0.02), name


def test_the_same_seed_and_decisions_give_the_same_episode_and_others_another() -> None:
    env = fleetfoot.gym.BottleneckEnv(cross=3, duration_s=5)
    first, again, other = played(env, 1), played(env, 1), played(env, 2)
    assert first == again
    assert first != other


def test_a_step_by_round_trip_takes_a_round_trip() -> None:
    env = fleetfoot.gym.BottleneckEnv(rate_mbps=12, rtt_ms=40, duration_s=5)
    env.reset(seed=1)
    spans = []
    over = False
    while not over:
        observation, reward, terminated, over, info = env.step(np.array([20.0], np.float32))
        assert env.observation_space.contains(observation)
        assert not terminated
        assert np.isfinite(reward)
        spans.append(info["elapsed_s"])
    assert all(0.038 < span < 0.06 for span in spans[3:-1])
    with pytest.raises(fleetfoot.UsageError, match="reset begins another"):
        env.step(np.array([20.0], np.float32))


def test_the_pacing_rate_is_kept() -> None:
    env = gymnasium.make("fleetfoot/PacingRate-v0", rate_mbps=12, duration_s=10)
    env.reset(seed=1)
    over = False
    while not over:
        *_, over, info = env.step(np.array([6.0], np.float32))
    # Pacing counts payload; the first round trips are not paced.
    assert info["result"]["groups"][0]["goodput_bps"] == pytest.approx(6e6, rel=0.01)
    assert of_bottleneck(info["result"])["queue_packets"] < 1.0


@pytest.mark.parametrize("step", ["rtt", "ack"])
def test_the_reward_is_the_formula_and_adds_up_alike(step: str) -> None:
    env = fleetfoot.gym.BottleneckEnv(step=step, duration_s=20, reward=fleetfoot.gym.Reward(1.0, 0.0, 0.0))
    env.reset(seed=1)
    total, over = 0.0, False
    while not over:
        _, reward, _, over, info = env.step(np.array([60.0], np.float32))
        total += reward
    # The window fills the line: 1 for each smallest round trip, less the headers, 52 of 1500 bytes.
    assert total == pytest.approx(20 / info["min_rtt_s"] * 1448 / 1500, rel=0.01)


def test_a_function_may_be_the_reward() -> None:
    env = fleetfoot.gym.BottleneckEnv(reward=lambda info: info["delivered_bytes"], duration_s=2)
    env.reset(seed=1)
    _, reward, _, _, info = env.step(np.array([10.0], np.float32))
    assert reward == info["delivered_bytes"] > 0


def test_a_scenario_may_be_given_and_what_cannot_be_steered_is_refused() -> None:
    tables = {
        "title": "A line with pages",
        "network": {
            "kind": "dumbbell",
            "pairs": 2,
            "access": {"rate": "1 Gbit/s", "delay": "1 ms"},
            "bottleneck": {"rate": "10 Mbit/s", "delay": "8 ms", "queue": {"kind": "fq-codel"}},
        },
        "traffic": [
            {"name": "upload", "kind": "bulk"},
            {"name": "ping", "kind": "ping", "interval": "20 ms"},
        ],
        "run": {"duration": "3 s", "warmup": "0 s"},
    }
    line = fleetfoot.Scenario.from_dict(tables)
    env = fleetfoot.gym.BottleneckEnv(line, flow="upload")
    result = played(env)
    assert [group["name"] for group in result["groups"]] == ["upload", "ping"]
    for flow, said in (
        ("ping", "not one connection of kind `bulk`"),
        ("none", "no traffic is called `none`"),
    ):
        with pytest.raises(fleetfoot.UsageError, match=said):
            fleetfoot.gym.BottleneckEnv(line, flow=flow).reset(seed=1)


def test_options_change_the_line_and_not_the_spaces() -> None:
    env = fleetfoot.gym.BottleneckEnv(duration_s=2)
    _, info = env.reset(seed=1)
    slow = info["min_rtt_s"]
    _, info = env.reset(seed=1, options={"rtt_ms": 20.0})
    assert info["min_rtt_s"] == pytest.approx(slow / 2, rel=0.05)
    with pytest.raises(fleetfoot.UsageError, match="change the action space"):
        env.reset(options={"max_window_packets": 7})
    with pytest.raises(fleetfoot.UsageError, match="no argument is called 'rat'"):
        env.reset(options={"rat": 7})


@pytest.mark.parametrize("vectorization", ["vector_entry_point", "sync"])
def test_a_vector_steps_like_its_members(vectorization: str) -> None:
    env = gymnasium.make_vec(
        IDS[0], num_envs=3, vectorization_mode=vectorization, vector_kwargs=None, duration_s=2, cross=1
    )
    observations, _ = env.reset(seed=7)
    assert observations.shape == (3, 9)
    ends = 0
    for _ in range(150):
        actions = np.full((3, 1), 30.0, np.float32)
        observations, rewards, terminated, truncated, infos = env.step(actions)
        assert env.observation_space.contains(observations)
        assert rewards.shape == (3,)
        assert not terminated.any()
        if truncated.any():
            ends += int(truncated.sum())
            place = int(np.flatnonzero(truncated)[0])
            assert infos["_result"][place]
            assert infos["result"]["groups"][place][0]["goodput_bps"] > 1e6
    assert ends >= 6
    env.close()


@pytest.mark.parametrize("relative", [False, True])
@pytest.mark.parametrize("control", ["packets", "bytes", "pacing_rate"])
def test_the_native_vector_plays_what_a_single_one_plays(control: str, relative: bool) -> None:
    arguments: dict[str, Any] = {"cross": 1, "duration_s": 5, "control": control, "relative": relative}
    single = fleetfoot.gym.BottleneckEnv(**arguments)
    many = fleetfoot.gym.BottleneckVectorEnv(3, **arguments)
    single.reset(seed=1)
    rows, _ = many.reset(seed=[5, 6, 7])
    # The seed that the simulator has there.
    observation, _ = single._taken(single._flows.reset(0, 7))
    value = {"packets": 25.0, "bytes": 40_000.0, "pacing_rate": 7.0}[control]
    for turn in range(30):
        assert (rows[2] == observation).all()
        action = np.array([0.3 if turn % 2 else -0.2] if relative else [value + turn], np.float32)
        rows, rewards, _, _, infos = many.step(np.stack([action] * 3))
        observation, reward, _, _, info = single.step(action)
        assert rewards[2] == pytest.approx(reward)
        assert infos["delivered_bytes"][2] == info["delivered_bytes"]
