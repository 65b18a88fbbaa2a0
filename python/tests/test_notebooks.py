"""The notebooks of ``examples/notebooks``, each run from top to bottom in a new kernel."""

from __future__ import annotations

import base64
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

#: What a notebook must show: drawings and tables, of so many cells at least.
SHOWN = {
    "1-first-comparison": (3, 5),
    "2-a-capture-of-mine": (2, 3),
    "3-reproduce-a-figure": (3, 4),
    "4-design-a-queue": (2, 2),
    "5-evaluate-a-policy": (4, 3),
    "6-sweep-and-heat-map": (2, 3),
}

#: Run before a notebook: where the kernel runs, and warnings of its cells become errors.
PRELUDE = """
import sys as _sys
import warnings as _warnings

_context = []


def _enter(*_):
    _context.append(_warnings.catch_warnings())
    _context[-1].__enter__()
    _warnings.simplefilter("error")


def _leave(*_):
    if _context:
        _context.pop().__exit__(None, None, None)


get_ipython().events.register("pre_run_cell", _enter)
get_ipython().events.register("post_run_cell", _leave)
print(_sys.prefix)
"""


def read(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def test_there_are_six() -> None:
    assert [path.stem for path in NOTEBOOKS] == list(SHOWN)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_as_checked_in(path: Path) -> None:
    """No outputs, no traces of who ran it, and ids that do not change when it is saved."""
    notebook = read(path)
    nbformat.validate(notebook)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert notebook["metadata"]["language_info"] == {"name": "python"}
    cells = notebook["cells"]
    prefix = cells[0]["id"].rpartition("-")[0]
    assert [cell["id"] for cell in cells] == [f"{prefix}-{number:02}" for number in range(1, len(cells) + 1)]
    for before, cell in zip([None, *cells], cells, strict=False):
        assert cell["metadata"] == {}, cell["id"]
        if cell["cell_type"] == "code":
            assert (cell["outputs"], cell["execution_count"]) == ([], None), cell["id"]
            # A sentence introduces each cell; the imports follow the title.
            assert before is not None
            assert before["cell_type"] == "markdown", cell["id"]
    text = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    assert path.read_text(encoding="utf-8") == text, "not as `json.dumps(notebook, indent=1, ensure_ascii=False)`"
    for link in re.findall(r"\]\(([^)#:]+)[^):]*\)", "".join("".join(cell["source"]) for cell in cells)):
        assert (FOLDER / link).exists(), link


def test_the_capture_is_that_of_the_tests() -> None:
    name = "pages-at-client.pcap"
    tested = FOLDER.parents[1] / "crates" / "lab" / "tests" / "captures" / name
    assert (FOLDER / name).read_bytes() == tested.read_bytes()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing of the user's configuration: no other kernel of the same name, no start-up scripts.
    for name in ("JUPYTER_DATA_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        own = tmp_path / name.lower()
        own.mkdir()
        monkeypatch.setenv(name, str(own))
    monkeypatch.delenv("JUPYTER_PATH", raising=False)
    folder = tmp_path / "notebooks"
    shutil.copytree(FOLDER, folder, ignore=shutil.ignore_patterns("*.ipynb", ".*"))
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(PRELUDE))
    client = nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute()

    prelude, *cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert Path(prelude.outputs[0].text.strip()).resolve() == Path(sys.prefix).resolve()
    drawings = tables = 0
    for cell in cells:
        for output in cell.outputs:
            # A representation that fails is a traceback on standard error, and the cell goes on.
            assert output.output_type in ("display_data", "execute_result", "stream"), (cell.id, output)
            if output.output_type == "stream":
                assert output.name == "stdout", (cell.id, output.text)
                assert "Traceback" not in output.text, cell.id
                continue
            svg, png = output.data.get("image/svg+xml", ""), output.data.get("image/png", "")
            if "<svg" in svg or base64.b64decode(png).startswith(b"\x89PNG"):
                drawings += 1
            elif "<table" in output.data.get("text/html", ""):
                tables += 1
    assert drawings >= SHOWN[path.stem][0]
    assert tables >= SHOWN[path.stem][1]
