"""What things do: mechanisms, queues, congestion controls, switches."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from fleetfoot import _native

__all__ = ["Explanation", "explain"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What is known of a mechanism, queue, congestion control or switch of ``[tcp]``; a notebook shows it.

    Attributes:
        name: Its name.
    """

    name: str
    _json: str

    def to_dict(self) -> dict[str, Any]:
        """The document of ``fleetfoot explain NAME --json``."""
        document: dict[str, Any] = json.loads(self._json)
        return document

    def _repr_markdown_(self) -> str:
        document = self.to_dict()
        parts = [f"**{self.name}**"]
        parts += [str(document[key]) for key in ("document", "doc", "text") if document.get(key)]
        for heading, key in (
            ("Source", "source"),
            ("Evidence", "evidence"),
            ("Turn it on", "turn_on"),
            ("Values", "values"),
        ):
            if document.get(key):
                parts.append(f"{heading}: {document[key]}")
        settings = [f"`{path} = {value}`" for path, value in document.get("set", {}).items()]
        if settings:
            parts.append("In a scenario: " + ", ".join(settings))
        parts += [
            f"- `{one['name']}` ({one['type']}; default {one['default']}): {one['doc']}"
            for one in document.get("parameters", [])
        ]
        return "\n\n".join(parts)

    def __str__(self) -> str:
        return self._repr_markdown_().replace("**", "").replace("`", "")


def explain(name: str) -> Explanation:
    """What something does, its source, parameters, evidence and how to turn it on.

    Args:
        name: A mechanism, a queue, a congestion control, or a switch of ``[tcp]``.

    Raises:
        UsageError: Nothing is called so; the message names what is nearest.

    >>> import fleetfoot
    >>> fleetfoot.explain("codel").to_dict()["source"]
    'RFC 8289'
    """
    return Explanation(name, _native.explain(name))
