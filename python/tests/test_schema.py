"""The JSON schema of scenario files, which editors use."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = json.loads((ROOT / "docs" / "scenario.schema.json").read_text())


def mistakes(tables: dict[str, Any]) -> list[str]:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    return [error.message for error in validator.iter_errors(tables)]


def test_it_takes_every_file_that_the_program_takes() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    extending = 0
    for file in [*ROOT.glob("examples/*.toml"), *ROOT.glob("experiments/**/*.toml")]:
        tables = tomllib.loads(file.read_text())
        # Records are no scenarios, and what others extend need not be whole.
        if file.parent.name == "verdicts" or (file.parent.name == "base" and "extends" not in tables):
            continue
        extending += "extends" in tables
        assert mistakes(tables) == [], file
    assert extending > 20


WHOLE = {
    "network": {"kind": "dumbbell", "bottleneck": {"rate": "10 Mbit/s"}},
    "traffic": [{"kind": "bulk"}],
}


@pytest.mark.parametrize(
    ("tables", "right"),
    [
        (WHOLE, True),
        ({"network": WHOLE["network"]}, False),
        ({"extends": "base.toml", "network": {"bottleneck": {"delay": "5 ms"}}}, True),
        ({"extends": "base.toml", "traffic": [{"name": "pages", "size": "10 kB"}]}, True),
        ({"extends": "base.toml", "trafic": []}, False),
        ({"extends": "base.toml", "traffic": {"name": "pages"}}, False),
        ({"extends": "base.toml", "tcp": {"initial_window": "ten"}}, False),
        ({"extends": "base.toml", "tcp": {"initial_windo": 10}}, False),
        ({**WHOLE, "traffic": [{"kind": "bulk", "name": "=1+1"}]}, False),
        ({"figure": {"kind": "closed-form"}, "trafic": []}, False),
    ],
)
def test_it_takes_a_part_only_of_a_file_that_extends_another(tables: dict[str, Any], right: bool) -> None:
    assert (mistakes(tables) == []) == right
