"""The directive `scene`: an animated explanation, drawn from the trace of a real run in docs/scenes, and its still picture."""

from __future__ import annotations

from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive


class Scene(Directive):
    """Places the scene NAME."""

    required_arguments = 1
    has_content: ClassVar[bool] = False

    def run(self) -> list[nodes.Node]:
        """A paragraph until the scenes exist."""
        return []


def setup(app):
    """Registers the directive."""
    app.add_directive("scene", Scene)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
