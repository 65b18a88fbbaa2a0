"""Says what a check of the external links found. Usage: links.py OUTPUT.json, which `sphinx-build -b linkcheck` wrote.

Three things are kept apart: a link is dead (its server says so, or its host has no address while others have one), it could not be reached (no answer, or
one that says nothing about the page), or there is no network at all. Exit code 0: no link is dead; 1: some are; 3: nothing was reached, so nothing is known.
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from pathlib import Path

# Answers that say nothing about the page: it wants a login, refuses programs, or asks for patience; or the server has a fault of its own.
SILENT = re.compile(r"\b(401|402|403|405|406|418|429|451|999|5\d\d) (Client|Server) Error")
ANSWERED = re.compile(r"\b\d{3} (Client|Server) Error|Anchor '")
NAMELESS = re.compile(
    r"NameResolutionError|Name or service not known|nodename nor servname|No address associated|getaddrinfo failed"
)
NO_ANSWER = re.compile(
    r"Max retries exceeded|Connection|timed out|Timeout|SSL|Temporary failure|unreachable|refused", re.IGNORECASE
)

Row = dict[str, object]


def kind(row: Row) -> str:
    """What became of a link: working, dead, silent (an answer that says nothing), nameless, unreached, or left (not asked)."""
    status, info = str(row["status"]), str(row.get("info", ""))
    if not re.match(r"https?:", str(row["uri"])):
        return "dead" if status == "broken" else "left"
    if status in {"working", "redirected"}:
        return "working"
    if status in {"ignored", "unchecked"}:
        return "left"
    if status == "rate-limited" or SILENT.search(info):
        return "silent"
    if ANSWERED.search(info):
        return "dead"
    if NAMELESS.search(info):
        return "nameless"
    if status == "timeout" or NO_ANSWER.search(info):
        return "unreached"
    return "dead"


def report(rows: list[Row]) -> tuple[int, str]:
    """The exit code and what is said of these rows."""
    found: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[kind(row)][str(row["uri"])].append(row)
    answered = bool(found["working"] or found["silent"] or any(re.match("https?:", uri) for uri in found["dead"]))
    asked = sum(len(found[one]) for one in ("working", "silent", "nameless", "unreached")) + len(found["dead"])
    lines: list[str] = []

    def tell(title: str, kinds: list[str], *, why: bool = True) -> None:
        links = {uri: rows for one in kinds for uri, rows in found[one].items()}
        if not links:
            return
        lines.append(f"{title}: {len(links)}")
        for uri, places in sorted(links.items()):
            where = ", ".join(sorted({f"{row['filename']}:{row['lineno']}" for row in places}))
            lines.append(f"  {uri}\n    in {where}")
            if why:
                lines.append(f"    {str(places[0].get('info', ''))[:200]}")

    # With an answer of one host a name that has no address is gone; without any it may be the network that is missing.
    dead = ["dead", "nameless"] if answered else ["dead"]
    missed = ["unreached"] if answered else ["unreached", "nameless"]
    tell("dead links", dead)
    if not answered and any(found[one] for one in missed):
        lines.append("no network: none of the addresses below was reached, so nothing is known of them")
    tell("not reached, which says nothing about the page", missed, why=answered)
    tell("answered without showing the page (login, refusal, fault of the server)", ["silent"])
    bad = sum(len(found[one]) for one in dead)
    unknown = sum(len(found[one]) for one in missed) + len(found["silent"])
    lines.append(f"external links: {asked} asked, {len(found['working'])} work, {bad} dead, {unknown} not known")
    if bad:
        return 1, "\n".join(lines)
    return (3 if asked and not answered else 0), "\n".join(lines)


def main() -> int:
    """Reads the file and prints what it says."""
    rows = [json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines() if line]
    code, text = report(rows)
    print(text)
    return code


if __name__ == "__main__":
    sys.exit(main())
