#!/usr/bin/env python3
"""Brings the numbers that notes of experiments quote up to their records.

A note quotes a check of its own full run as `0.73 [0.49, 1.04]`: estimate and 95 % interval. After `fleetfoot reproduce ID --full --record` has
changed a record, this finds each such quotation among the numbers that were recorded in REVISION and replaces it by today's, to as many digits.
Words around numbers are for an author to read again; each changed line is shown. Quotations of other runs, which say so in the brackets
(`[0.59, 0.92; other runs]`), are left alone.

    scripts/notes.py [--write] [REVISION]

Without --write it changes nothing and ends with exit code 1 if a note is out of date. REVISION is HEAD if none is given: records that are not
committed are compared with the last commit.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTE = re.compile(r'^note = (?:"""(?:.*?)"""|"[^\n]*")$', re.DOTALL | re.MULTILINE)
NUMBER = r"-?\d+(?:\.\d+)?"
QUOTATION = re.compile(rf"({NUMBER}) \[({NUMBER}), ({NUMBER})\]")
# Ratios are quoted as they are or in per cent, seconds in milliseconds, too.
SCALES = (1, 100, 1000)


def recorded(text: str) -> dict[str, tuple[float, float, float]]:
    """Estimate and interval of each check in the full run of a record."""
    checks = tomllib.loads(text).get("full", {}).get("checks", {})
    return {name: (check["measured"], *check["ci95"]) for name, check in checks.items() if isinstance(check, dict) and "ci95" in check and "measured" in check}


def rounded(value: float, like: str, scale: int) -> str:
    """The value times the scale, with as many digits as the text `like` has."""
    digits = len(like.partition(".")[2])
    text = f"{value * scale:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


def replacements(quoted: tuple[str, str, str], before: dict, after: dict) -> set[tuple[str, str, str]]:
    """What the quoted numbers are today, for every check and scale with which they were recorded."""
    found = set()
    for name, was in before.items():
        for scale in SCALES:
            if name in after and all(rounded(value, text, scale) == text for value, text in zip(was, quoted, strict=True)):
                found.add(tuple(rounded(value, text, scale) for value, text in zip(after[name], quoted, strict=True)))
    return found


def brought_up(note: str, before: dict, after: dict, say) -> str:
    """The note with the numbers of `after` in place of those of `before`."""

    def replaced(match: re.Match[str]) -> str:
        found = replacements(match.groups(), before, after)
        if len(found) > 1:
            say(f"{match[0]}: several checks had these numbers; see for yourself")
        if len(found) != 1:
            return match[0]
        estimate, low, high = found.pop()
        now = f"{estimate} [{low}, {high}]"
        if now != match[0]:
            say(f"{match[0]} -> {now}")
        return now

    return QUOTATION.sub(replaced, note)


def at_revision(revision: str, path: Path) -> str | None:
    """The file as it was in the revision, if it was there."""
    shown = subprocess.run(["git", "-C", ROOT, "show", f"{revision}:{path.relative_to(ROOT).as_posix()}"], capture_output=True, text=True, check=False)
    return shown.stdout if shown.returncode == 0 else None


def main() -> int:
    """Brings all notes up; the exit code."""
    options = [word for word in sys.argv[1:] if word.startswith("-")]
    revision = next((word for word in sys.argv[1:] if not word.startswith("-")), "HEAD")
    if options not in ([], ["--write"]):
        print(f"notes.py: unknown option {options[0]}; the valid one is --write", file=sys.stderr)
        return 2
    stale = 0
    for record in sorted(ROOT.glob("experiments/*/verdicts/*.toml")):
        experiment = record.parent.parent / record.name
        old, new = at_revision(revision, record), record.read_text()
        if old is None or old == new or not experiment.exists():
            continue
        was, now = (tomllib.loads(text).get("full", {}).get("verdict") for text in (old, new))
        if was != now:
            print(f"{record.stem}: the verdict was {was} and is {now}")
        text = experiment.read_text()
        before, after = recorded(old), recorded(new)
        changed = NOTE.sub(lambda match: brought_up(match[0], before, after, lambda line: print(f"{record.stem}: {line}")), text, count=1)  # noqa: B023
        stale += changed != text
        if options and changed != text:
            experiment.write_text(changed)
    return 1 if stale and not options else 0


if __name__ == "__main__":
    sys.exit(main())
