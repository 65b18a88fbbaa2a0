"""Follows pages of the documents word for word. Usage: follow.py PROGRAM PAGE...

Each page is followed in an empty folder of its own: a block after "save this as `NAME`" becomes that file, a block of
commands that begin with `fleetfoot` is run, and a block without a language that follows is what the last command has to
print. `..` stands for lines left out; a quoted line may end before the printed one does, and its spaces need not be as many.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BLOCK = re.compile(r"^```([^\n`]*)\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
SAVED = re.compile(r"[Ss]ave this as `([^`/]+)`")
# What a page may ask a reader to run here; other commands need root, a network or a reader's own values.
RUN = (
    "fleetfoot compare",
    "fleetfoot run",
    "fleetfoot drill",
    "fleetfoot recommend",
    "fleetfoot explain",
    "fleetfoot list",
    "printf ",
)
# What can still go on after a name in capitals has to be replaced by the reader.
PLACEHOLDER = re.compile(r"\b(COMMAND|ADDRESS|FILE|FOLDER|GATEWAY|IF)\b")


class MismatchError(Exception):
    """A page and the program disagree."""


def follow(program: Path, page: Path) -> str:
    """Follows one page; what was done."""
    text = page.read_text()
    files = commands = quoted = 0
    printed: str | None = None
    problems: list[str] = []
    end = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "work"
        folder.mkdir()
        (Path(name) / "bin").mkdir()
        (Path(name) / "bin" / "fleetfoot").symlink_to(program)
        environment = {
            "PATH": f"{Path(name) / 'bin'}:{os.environ['PATH']}",
            "HOME": name,
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
        }
        for block in BLOCK.finditer(text):
            language, body = block.group(1).strip(), block.group(2)
            line = text.count("\n", 0, block.start()) + 1
            saved = SAVED.findall(text[end : block.start()])
            end = block.end()
            if saved and language:
                (folder / saved[-1]).write_text(body)
                files += 1
            elif not language and body.startswith(RUN):
                for command in re.sub(r"\\\n\s*", "", body).splitlines():
                    if not command.startswith(RUN) or PLACEHOLDER.search(command):
                        continue
                    arguments = shlex.split(command, comments=True)
                    target = None
                    if ">" in arguments:
                        target = arguments[arguments.index(">") + 1]
                        arguments = arguments[: arguments.index(">")]
                    done = subprocess.run(
                        arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False
                    )
                    if done.returncode != 0:
                        raise MismatchError(f"{page}:{line}: `{command}` ended with {done.returncode}:\n{done.stderr}")
                    if target:
                        (folder / target).write_text(done.stdout)
                    printed = done.stdout
                    commands += 1
            elif not language and printed is not None and not re.match(r"[a-z]+ |[A-Z]+=", body):
                count, differences = compare(body, printed, f"{page}:{line}")
                quoted += count
                problems += differences
    if problems:
        raise MismatchError("\n".join(problems))
    if not commands:
        raise MismatchError(f"{page}: no command was run")
    return f"{files} files, {commands} commands, {quoted} quoted lines"


def compare(body: str, printed: str, place: str) -> tuple[int, list[str]]:
    """The number of lines of BODY, and for each of its parts that does not stand in PRINTED, in this order, what does instead."""
    lines = [" ".join(line.split()) for line in printed.splitlines()]
    begin = count = 0
    problems = []
    for part in re.split(r"^\s*\.\.\s*$", body.strip("\n"), flags=re.MULTILINE):
        wanted = [" ".join(line.split()) for line in part.strip("\n").splitlines()]
        count += len(wanted)
        for at in range(begin, len(lines) - len(wanted) + 1):
            if all(same(one, other) for one, other in zip(wanted, lines[at:], strict=False)):
                begin = at + len(wanted)
                break
        else:
            for line in wanted:
                if not any(same(line, other) for other in lines):
                    nearest = difflib.get_close_matches(line, lines, 1, 0.4)
                    problems.append(
                        f"{place}: quoted  {line}\n{place}: printed {nearest[0] if nearest else 'nothing like it'}"
                    )
            if not problems:
                problems.append(f"{place}: printed in another order: {wanted[0]}")
    return count, problems


def same(wanted: str, line: str) -> bool:
    """Whether the line is the wanted one, or begins with it; an empty line is wanted as such."""
    return line == wanted or (bool(wanted) and line.startswith(wanted + " "))


def main(program: Path, pages: list[Path]) -> int:
    """Prints a line for each page; 1 if any does not hold."""
    failed = 0
    for page in pages:
        begin = time.monotonic()
        try:
            said = follow(program.resolve(), page)
        except MismatchError as mismatch:
            failed += 1
            said = f"FAILED\n{mismatch}"
        print(f"{page}: {said} ({time.monotonic() - begin:.1f} s)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), [Path(page) for page in sys.argv[2:]]))
