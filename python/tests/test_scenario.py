from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import fleetfoot

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.toml"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_are_pickled_whole(path: Path) -> None:
    scenario = fleetfoot.Scenario.load(path)
    again = pickle.loads(pickle.dumps(scenario))
    assert again == scenario
    assert again.variants == scenario.variants
    assert path in scenario.files
    assert fleetfoot.Scenario.from_dict(scenario.to_dict(), name=str(path)).to_dict() == scenario.to_dict()


def test_changed_read_again_and_pickled() -> None:
    line = fleetfoot.Scenario.home_line()
    changed = line.with_({"network.bottleneck.rate": "20 Mbit/s"}, run__duration="10 s")
    assert changed != line
    assert changed.to_dict()["network"]["bottleneck"]["rate"] == "20 Mbit/s"
    assert changed.to_dict()["run"]["duration"] == "10 s"
    assert line.to_dict()["network"]["bottleneck"]["rate"] == "50 Mbit/s"
    assert fleetfoot.Scenario.from_toml(changed.to_toml()).to_toml() == changed.to_toml()
    assert fleetfoot.Scenario.from_dict(changed.to_dict()).to_dict() == changed.to_dict()
    for scenario in (line, changed):
        assert pickle.loads(pickle.dumps(scenario)) == scenario


def test_a_mistake_has_its_place() -> None:
    with pytest.raises(fleetfoot.ScenarioError) as caught:
        fleetfoot.Scenario.from_toml('[run]\nduration = "a while"\n', name="mine.toml")
    error = caught.value
    assert (error.file, error.line, error.key) == ("mine.toml", 2, "run.duration")
    assert "a while" in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert vars(again) == vars(error)
