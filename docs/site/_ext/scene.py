"""The directive `scene`: an animated explanation from the trace of real runs, with a still picture of the same."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import scenes
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

if TYPE_CHECKING:
    from sphinx.application import Sphinx


class Scene(SphinxDirective):
    """Places the scene NAME of docs/scenes."""

    required_arguments = 1
    has_content: ClassVar[bool] = False

    def run(self) -> list[nodes.Node]:
        """The scene as HTML; nothing in other formats."""
        source = Path(self.env.srcdir) / "scenes.json"
        self.env.note_dependency(str(source))
        made: dict[str, Any] = json.loads(source.read_text())
        name = self.arguments[0]
        if name not in made:
            raise self.error(f"no scene `{name}`; there are {', '.join(made)}")
        return [nodes.raw("", page(made[name]), format="html")]


def page(scene: dict[str, Any]) -> str:
    """The figure: what it shows, the still picture, what happens in each lane, and the data of the player."""
    name = scene["name"]
    lanes = []
    for one in scene["lanes"]:
        items = "".join(
            f'<li data-at="{caption["at"]}"><span class="when">{caption["at"]:.0f} ms</span> {html.escape(caption["text"])}</li>'
            for caption in one["captions"]
        )
        lanes.append(f'<div><p class="scene-lane">{html.escape(one["name"])}</p><ol>{items}</ol></div>')
    data = json.dumps(scene, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<figure class="scene" id="scene-{name}"><figcaption><strong>{html.escape(scene["title"])}.</strong> {html.escape(scene["text"])}</figcaption>'
        f'<div class="scene-player" hidden></div>'
        f'<div class="scene-scroll" tabindex="0" role="region" aria-label="The same over time: {html.escape(scene["title"])}">{scenes.still(scene)}</div>'
        f'<div class="scene-captions">{"".join(lanes)}</div>'
        f'<p class="scene-source">Every packet is drawn from a run: <code>fleetfoot run docs/scenes/{name}.toml</code></p>'
        f'<script type="application/json">{data}</script></figure>'
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Registers the directive."""
    app.add_directive("scene", Scene)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
