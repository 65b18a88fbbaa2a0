"""Reads every code sample of the documents as its language does. Usage: samples.py PROGRAM.

Scenario files are read by the program, the flags of its commands are looked for in its help, shell, Python, TOML and JSON are parsed. Nothing is run: what the
tutorials show is run by follow.py.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^( *)```([^\n`]*)\n(.*?)^ *```\s*$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(fleetfoot [a-z][^`]*)`")


@functools.cache
def help_of(program: str, *verbs: str) -> str | None:
    """The help of a verb, or of a verb below it; nothing if there is no such verb."""
    done = subprocess.run([program, *verbs, "--help"], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def command(program: str, line: str) -> list[str]:
    """What is wrong with a command line that begins with `fleetfoot`."""
    try:
        words = shlex.split(line, comments=True)[1:]
    except ValueError:
        return [f"not a command line: {line}"]
    # What follows ends the command: another command, a redirection, or the program's own command.
    ends = [
        index
        for index, word in enumerate(words)
        if word in ("--", "|", "&&", "||", "&", ">", "2>", ";") or word.endswith(";")
    ]
    words = words[: ends[0]] if ends else words
    if not words or words[0].startswith("-") or not re.fullmatch(r"[a-z]+", words[0]):
        return []
    known = help_of(program, words[0])
    if known is None:
        return [f"no verb `{words[0]}`: {line}"]
    if len(words) > 1 and re.fullmatch(r"[a-z]+", words[1]) and "Commands:" in known:
        known = (help_of(program, words[0], words[1]) or "") + known
    problems = []
    for word in words[1:]:
        flag = re.match(r"--[a-z][a-z-]*", word)
        if flag and not re.search(rf"{flag.group()}(?![a-z-])", known):
            problems.append(f"`fleetfoot {words[0]}` has no flag {flag.group()}: {line}")
    return problems


def scenario(program: str, body: str) -> list[str]:
    """What the program says to a scenario file; nothing if it takes it."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "sample.toml"
        (Path(name) / "12mbps.trace").write_text("1\n")
        file.write_text(body)
        done = subprocess.run(
            [program, "sweep", str(file), "--set", "run.duration=100 s,101 s", "--dry-run", "--quiet"],
            cwd=name,
            capture_output=True,
            text=True,
            check=False,
        )
        return [] if done.returncode == 0 else [done.stderr.strip().replace(name, "")]


def block(program: str, language: str, body: str) -> list[str]:
    """What is wrong with one sample."""
    if language == "toml":
        try:
            read = tomllib.loads(body)
        except tomllib.TOMLDecodeError as error:
            return [f"TOML: {error}"]
        return scenario(program, body) if {"network", "traffic"} <= read.keys() and "kind" in read["network"] else []
    if language == "python":
        try:
            ast.parse(body)
        except SyntaxError as error:
            return [f"Python: {error}"]
    if language == "json":
        try:
            json.loads(body)
        except json.JSONDecodeError as error:
            return [f"JSON: {error}"]
    if language == "sh":
        done = subprocess.run(["bash", "-n"], input=body, capture_output=True, text=True, check=False)
        return [f"shell: {done.stderr.strip()}"] if done.returncode else []
    if not language:
        lines = re.sub(r"\\\n\s*", "", body).splitlines()
        return [problem for line in lines if line.startswith("fleetfoot ") for problem in command(program, line)]
    return []


def page(program: str, path: Path) -> tuple[int, list[str]]:
    """The number of samples on a page, and what is wrong with them."""
    text = path.read_text()
    problems = []
    count = 0
    for found in BLOCK.finditer(text):
        indent, language, body = found.groups()
        body = re.sub(rf"^{indent}", "", body, flags=re.MULTILINE)
        line = text.count("\n", 0, found.start()) + 1
        problems += [
            f"{path.relative_to(ROOT)}:{line}: {problem}" for problem in block(program, language.strip(), body)
        ]
        count += 1
    for found in INLINE.finditer(BLOCK.sub("", text)):
        problems += [
            f"{path.relative_to(ROOT)}: {problem}" for problem in command(program, " ".join(found.group(1).split()))
        ]
        count += 1
    return count, problems


def main(program: str) -> int:
    """Prints what is wrong; 1 if anything is."""
    pages = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda path: page(program, path), pages))
    problems = [problem for _, those in results for problem in those]
    print(
        "\n".join(problems) or f"samples: {sum(count for count, _ in results)} on {len(pages)} pages, all of them read"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(str(Path(sys.argv[1]).resolve())))
