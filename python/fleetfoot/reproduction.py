"""Published figures and tables, run again."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fleetfoot import _native
from fleetfoot._checked import names as listed
from fleetfoot._checked import path_or_none, threads
from fleetfoot.progress import ProgressLike, listening

__all__ = ["Experiment", "Figure", "Reproduction", "experiments", "reproduce"]


@dataclass(frozen=True, slots=True)
class Experiment:
    """A published figure or table that can be reproduced.

    Attributes:
        id: Its name for :func:`reproduce`.
        group: The group it belongs to.
        claim: What was published, in a sentence.
    """

    id: str
    group: str
    claim: str


def experiments() -> list[Experiment]:
    """Every experiment that comes with the package."""
    return [Experiment(**entry) for entry in json.loads(_native.experiments())]


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing: what was published and what was measured.

    Attributes:
        name: The experiment it belongs to, with a number where there are several.
        svg: The drawing as the text of an SVG file.
    """

    name: str
    svg: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the SVG file."""
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return self.svg


@dataclass(frozen=True, slots=True)
class Reproduction:
    """Experiments with their verdicts.

    Attributes:
        figures: A drawing or several of each experiment that has one.
    """

    _json: str
    figures: tuple[Figure, ...]

    def to_json(self) -> str:
        """The text of ``reproduce.json``."""
        return self._json

    def to_dict(self) -> dict[str, Any]:
        """The same as dictionaries: ``experiments`` is a list with the checks of each (docs/data-dictionary.md)."""
        document: dict[str, Any] = json.loads(self._json)
        return document

    @property
    def verdicts(self) -> dict[str, str]:
        """The verdict on each experiment, by its id."""
        return {entry["id"]: str(entry["verdict"]) for entry in self.to_dict()["experiments"]}

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(entry['id'])}</td><td>{html.escape(str(entry['verdict']))}</td>"
            f'<td style="text-align: left">{html.escape(str(entry["claim"]))}</td></tr>'
            for entry in self.to_dict()["experiments"]
        )
        return (
            "<table><thead><tr><th>experiment</th><th>verdict</th><th>what was published</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>"
        )

    def __repr__(self) -> str:
        return f"<Reproduction: {', '.join(f'{name}: {verdict}' for name, verdict in self.verdicts.items())}>"


def reproduce(
    names: str | Iterable[str],
    *,
    level: Literal["quick", "usual", "full", "recorded"] = "usual",
    jobs: int | None = None,
    out: str | os.PathLike[str] | None = None,
    fresh: bool = False,
    force: bool = False,
    progress: ProgressLike = None,
) -> Reproduction:
    """Put published values beside measured ones, with one verdict each, as ``fleetfoot reproduce`` does.

    Args:
        names: Ids or groups of :func:`experiments`, or files and folders; an empty list is all.
        level: ``quick``: a few short runs, which say no more than the full run; ``usual``: at most ten seeds;
            ``full``: as many as the files say; ``recorded``: nothing is run, what the full runs said is shown.
        jobs: Threads, 1 to 512; by default one per core.
        out: Also write document and report into this folder, and keep finished runs there.
        fresh: Run everything again, reuse nothing of ``out``.
        force: Write into a folder that holds something else.
        progress: A function that is called with a :class:`fleetfoot.Progress` after every run, or True for a bar.

    Raises:
        UsageError: There is no such experiment, or an argument cannot be.
        RunError: A run failed.
        KeyboardInterrupt: Ctrl-C; finished runs are kept where ``out`` was given.
    """
    wanted = {
        "names": listed("names", names),
        "level": level,
        "jobs": threads(jobs),
        "out": path_or_none(out),
        "fresh": bool(fresh),
        "force": bool(force),
    }
    wanted["command"] = f"fleetfoot.reproduce({wanted['names']!r}, level={level!r})"
    with listening(progress) as heard:
        document, figures = _native.reproduce(wanted, heard)
    return Reproduction(document, tuple(Figure(name, svg) for name, svg in figures))
