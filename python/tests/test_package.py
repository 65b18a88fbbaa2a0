"""The wheel, the source distribution, the stubs, the documents."""

from __future__ import annotations

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import fleetfoot

ROOT = Path(__file__).resolve().parents[2]


def modules() -> list[str]:
    found = [f"fleetfoot.{module.name}" for module in pkgutil.iter_modules(fleetfoot.__path__)]
    return ["fleetfoot", *(name for name in found if name != "fleetfoot._native")]


@pytest.mark.parametrize("name", modules())
def test_examples_in_documents(name: str) -> None:
    pytest.importorskip(name)
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("page", ["gym.md", "python-mechanisms.md", "python.md"])
def test_samples_in_pages_run(page: str, tmp_path: Path) -> None:
    if page == "gym.md":
        pytest.importorskip("gymnasium")
    samples = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs" / page).read_text(), re.DOTALL | re.MULTILINE)
    assert samples
    # On a line that takes a hundredth of the time.
    brief = """
import fleetfoot
brief = fleetfoot.Scenario.home_line().with_(run__duration="6 s", run__warmup="1 s", run__seeds=1)
fleetfoot.Scenario.home_line = lambda: brief
"""
    code = "\n".join([brief, *samples])
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ran.returncode == 0, ran.stderr


def test_everything_public_is_there_and_documented() -> None:
    for name in fleetfoot.__all__:
        value = getattr(fleetfoot, name)
        assert isinstance(value, str) or value.__doc__, name


def test_the_stubs_are_those_of_the_compiled_part() -> None:
    command = [
        sys.executable,
        "-m",
        "mypy.stubtest",
        "fleetfoot._native",
        "--mypy-config-file",
        str(ROOT / "pyproject.toml"),
    ]
    tested = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_the_wheel_needs_no_compiler(tmp_path: Path) -> None:
    wheel = os.environ.get("FLEETFOOT_WHEEL")
    if wheel is None:
        pytest.skip("FLEETFOOT_WHEEL names no wheel: scripts/python.sh builds one")
    venv.create(tmp_path / "empty", with_pip=True)
    python = tmp_path / "empty" / "bin" / "python"
    # No folder of compilers on the path: neither cc nor cargo.
    bare = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    bare["PATH"] = str(python.parent)
    install = [str(python), "-m", "pip", "install", "--quiet", "--only-binary", ":all:", str(ROOT / wheel)]
    subprocess.run(install, check=True, env=bare, cwd=tmp_path)
    first = (
        "import fleetfoot; line = fleetfoot.Scenario.home_line().with_(run__duration='5 s'); "
        "print(fleetfoot.compare(line, only='codel', seeds=2, budget=0).variants)"
    )
    ran = subprocess.run([str(python), "-c", first], capture_output=True, text=True, env=bare, cwd=tmp_path, check=True)
    assert "codel" in ran.stdout
