"""Captures of packets, made into scenarios."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fleetfoot import _native
from fleetfoot._checked import whole
from fleetfoot.progress import ProgressLike, listening
from fleetfoot.scenario import Scenario

__all__ = ["Imported", "import_capture"]


@dataclass(frozen=True, slots=True)
class Imported:
    """A capture that was made into a scenario.

    Attributes:
        path: The file of the scenario; the connection vectors stand beside it.
    """

    path: Path
    _json: str

    @property
    def scenario(self) -> Scenario:
        """The scenario."""
        return Scenario.load(self.path)

    def to_dict(self) -> dict[str, Any]:
        """The document of ``fleetfoot import --json``: ``files``, ``summary``, ``fit``."""
        document: dict[str, Any] = json.loads(self._json)
        return document

    @property
    def fits(self) -> str | None:
        """How well the scenario, replayed, fits the capture; ``None`` where it was not replayed."""
        fit = self.to_dict()["fit"]
        return None if fit is None else str(fit["verdict"])


def import_capture(
    file: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    fit: Literal["auto", "always", "never"] = "auto",
    congestion_control: str | None = None,
    keep_addresses: bool = False,
    most_open: int = 200_000,
    quiet_ms: int = 10,
    idle_s: int = 900,
    progress: ProgressLike = None,
) -> Imported:
    """Make a scenario of a capture: links, round-trip times, sizes, think times; as ``fleetfoot import`` does.

    Args:
        file: A capture (pcap or pcapng), or a file of connection vectors (tmix).
        out: The scenario to write; by default the name of the capture with the ending .toml, in the current folder.
            Connection vectors are written beside it.
        force: Write over files that exist.
        fit: Replay the scenario and report how well it fits; ``auto``: up to two million data segments.
        congestion_control: That of the senders; else those of Linux are tried, and the one that fits best is taken.
        keep_addresses: Name the hosts by their addresses in the summary; else they have numbers only.
        most_open: Connections followed at once; beyond it the one that was silent longest is given up.
        quiet_ms: Milliseconds of silence of an end that could send before it counts as a pause of its application.
        idle_s: Seconds of silence after which a connection counts as over.
        progress: A function that is called with a :class:`fleetfoot.Progress` after every replay, or True for a bar.

    Raises:
        UsageError: The file is no capture, or a file exists.
        RunError: A file could not be written, or the replay failed.
        KeyboardInterrupt: Ctrl-C.
    """
    target = Path(out) if out is not None else Path(f"{Path(file).stem}.toml")
    wanted = {
        "file": os.fspath(file),
        "out": os.fspath(target),
        "force": bool(force),
        "keep_addresses": bool(keep_addresses),
        "most_open": whole("most_open", most_open, 1, 2**32 - 1),
        "quiet_ms": whole("quiet_ms", quiet_ms, 0, 2**32 - 1),
        "idle_s": whole("idle_s", idle_s, 1, 2**32 - 1),
        "fit": fit,
        "congestion_control": congestion_control,
    }
    with listening(progress) as heard:
        return Imported(target, _native.import_capture(wanted, heard))
