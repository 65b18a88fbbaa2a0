"""The program beside the package, for tests that hold one against the other."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest


def run_program(
    *arguments: str, cwd: Path, environment: dict[str, str] | None = None, code: int = 0
) -> subprocess.CompletedProcess[str]:
    """Run ``fleetfoot``; skips the test where the program was not built."""
    program = Path(os.environ.get("FLEETFOOT_PROGRAM") or Path(__file__).parents[2] / "target/ci/fleetfoot")
    if not program.is_file():
        pytest.skip("the program was not built: cargo build --profile ci, or FLEETFOOT_PROGRAM=PATH")
    made = subprocess.run([program, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert made.returncode == code, made.stderr
    return made
