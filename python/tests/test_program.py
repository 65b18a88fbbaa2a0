"""What Python computes is what the program computes, byte for byte."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import fleetfoot

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))


@pytest.fixture(scope="session")
def program() -> Path:
    """The program of the same tree, which `make test` has built."""
    for profile in (os.environ.get("FLEETFOOT_PROFILE", "ci"), "release"):
        path = TARGET / profile / "fleetfoot"
        if path.is_file():
            return path
    pytest.skip("the program is not built: cargo build --profile ci")


def written(program: Path, folder: Path, *words: str) -> bytes:
    command = [str(program), *words, "--out", str(folder), "--quiet"]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    return (folder / "result.json").read_bytes()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_runs_of_every_example(path: Path, program: Path, tmp_path: Path) -> None:
    expected = written(program, tmp_path / "out", "run", str(path), "--seeds", "1")
    result = fleetfoot.run(path, seeds=1)
    assert result.to_json().encode() == expected


def test_a_comparison(program: Path, tmp_path: Path) -> None:
    path = ROOT / "examples" / "home-line.toml"
    words = (
        "compare",
        str(path),
        "--seeds",
        "2",
        "--only",
        "codel,fq-codel",
        "--set",
        "run.duration=5 s",
        "--budget",
        "8",
    )
    expected = written(program, tmp_path / "out", *words)
    scenario = fleetfoot.Scenario.load(path).with_({"run.duration": "5 s"})
    result = fleetfoot.compare(scenario, seeds=2, only="codel,fq-codel", budget=8, jobs=1)
    assert result.to_json().encode() == expected
    assert fleetfoot.compare(result.scenario, seeds=2, only="codel,fq-codel", budget=8) == result
