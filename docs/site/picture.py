"""Draws the picture of README's first screen from a comparison. Usage: picture.py RESULT.json [--check].

Each group that somebody waits for has two bars: the mean time as the network is described, and with the recommended setting. `--check` compares
instead of writing, and looks for the answer in README.
"""

from __future__ import annotations

import html
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "docs" / "images" / "home-line.svg"
LABELS = {
    "web": "a web page",
    "video-call": "a frame of a video call",
    "ping": "a move in a game",
    "dns": "looking up a name",
}
WIDTH, LEFT, BAR, ROW, TOP = 760, 190, 440, 56, 84
STYLE = (
    ".ff{font:14px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}.ff text{fill:#1b1f24}.ff .g{fill:#fff}.ff .q{fill:#59636e;font-size:13px}"
    ".ff .h{font-size:18px;font-weight:600}.ff .b{font-weight:600}.ff .before{fill:#b5bdc6}.ff .after{fill:#00855f}.ff .i{stroke:#1b1f24;fill:none}"
    "@media(prefers-color-scheme:dark){.ff text{fill:#e6eaef}.ff .g{fill:#171c23}.ff .q{fill:#9aa5b1}.ff .before{fill:#59636e}.ff .after{fill:#4fd0a5}.ff .i{stroke:#e6eaef}}"
)


def time(seconds: float) -> str:
    """A time as a reader says it."""
    return f"{seconds:.2g} s" if seconds >= 0.995 else f"{seconds * 1e3:.0f} ms"


def draw(result: dict[str, Any]) -> str:
    """The picture as SVG."""
    chosen = result["recommended"]["variant"]
    baseline, remedy = (
        next(one for one in result["variants"] if one["name"] == name)
        for name in (result["variants"][0]["name"], chosen)
    )
    after = {one["name"]: one for one in remedy["groups"]}
    versus = {one["name"]: one for one in remedy["versus"]["groups"]}
    rows = [one for one in baseline["groups"] if one["latency_sensitive"]]
    loss = max(versus.values(), key=lambda one: one["harm"]["value"])
    height = TOP + ROW * len(rows) + 44
    title = f"{result['scenario']}: how long people wait, before and after one setting"
    seeds = result["recommended"]["seeds"]
    described = "; ".join(
        f"{LABELS[one['kind']]} {time(one['fct_s']['mean'])} before, {time(after[one['name']]['fct_s']['mean'])} after"
        for one in rows
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="ff" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" role="img">',
        f"<title>{html.escape(title)}</title><desc>{html.escape(described)}</desc><style>{STYLE}</style>",
        f'<rect class="g" width="{WIDTH}" height="{height}" rx="8"/><text x="20" y="34" class="h">{html.escape(title)}</text>',
        '<rect class="before" x="20" y="50" width="14" height="12"/><text x="40" y="61" class="q">as the line is</text>',
        f'<rect class="after" x="150" y="50" width="14" height="12"/><text x="170" y="61" class="q">with {html.escape(chosen)} in the router</text>',
    ]
    for index, one in enumerate(rows):
        y = TOP + index * ROW
        ratio = versus[one["name"]]["fct_mean_ratio"]
        low, high = (LEFT + BAR * end for end in ratio["ci95"])
        parts += [
            f'<text x="20" y="{y + 25}">{html.escape(LABELS[one["kind"]])}</text>',
            f'<rect class="before" x="{LEFT}" y="{y}" width="{BAR}" height="18" rx="2"/>',
            f'<text x="{LEFT + BAR + 10}" y="{y + 14}" class="b">{time(one["fct_s"]["mean"])}</text>',
            f'<rect class="after" x="{LEFT}" y="{y + 21}" width="{BAR * ratio["value"]:.1f}" height="18" rx="2"/>',
            f'<path class="i" d="M{low:.1f} {y + 30}H{high:.1f}M{low:.1f} {y + 26}v8M{high:.1f} {y + 26}v8"/>',
            f'<text x="{high + 10:.1f}" y="{y + 35}" class="b">{time(after[one["name"]]["fct_s"]["mean"])}</text>',
        ]
    parts.append(
        f'<text x="20" y="{height - 18}" class="q">Cost: {html.escape(loss["name"])} loses {loss["harm"]["value"] * 100:.0f} % of its fair share. '
        f"Means over {seeds} runs, each bar in proportion; 95 % intervals.</text></svg>\n"
    )
    return "\n".join(parts)


def main(arguments: list[str]) -> int:
    """Writes the picture, or says what of README is not current."""
    result = json.loads(Path(arguments[0]).read_text())
    picture = draw(result)
    if "--check" not in arguments:
        TARGET.write_text(picture)
        return 0
    problems = []
    if TARGET.read_text() != picture:
        problems.append(
            f"{TARGET} is not current: python3 docs/site/picture.py RESULT.json, with the result of `fleetfoot compare`"
        )
    readme = " ".join((ROOT / "README.md").read_text().replace("\n> ", " ").split())
    if " ".join(result["answer"].split()) not in readme:
        problems.append(f"README.md does not quote the answer: {result['answer']}")
    print("\n".join(problems) or "README's first screen is current")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
