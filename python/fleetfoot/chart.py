"""Charts: the report's, as Vega-Lite specifications that notebooks draw."""

from __future__ import annotations

import copy
import json
import struct
from typing import TYPE_CHECKING, Any

from fleetfoot._extra import library
from fleetfoot.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    import altair

__all__ = ["Chart", "Charts"]

_MIME = "application/vnd.vegalite.v6+json"


class Chart:
    """A chart of the report: a Vega-Lite specification with its data.

    Attributes:
        id: A short name: ``change``, ``size``...
        title: Its heading.
        text: How to read it.
    """

    __slots__ = ("_spec", "id", "text", "title")

    def __init__(self, id: str, title: str, text: str, spec: dict[str, Any]) -> None:  # noqa: A002
        self.id = id
        self.title = title
        self.text = text
        self._spec = spec

    def to_dict(self) -> dict[str, Any]:
        """The Vega-Lite specification."""
        return copy.deepcopy(self._spec)

    def to_json(self) -> str:
        """The same as a JSON text."""
        return json.dumps(self._spec)

    def to_altair(self) -> altair.TopLevelMixin:
        """The chart as one of Altair (``altair.Chart``, ``altair.LayerChart``...), to be changed and saved there.

        Raises:
            MissingExtraError: altair is not installed.
        """
        made: altair.TopLevelMixin = library("altair").Chart.from_dict(self._spec)
        return made

    def to_png(self, scale: float = 2.0) -> bytes:
        """The drawing as a PNG file, made without a browser.

        Args:
            scale: Pixels for each unit of length of the specification.

        Raises:
            MissingExtraError: vl-convert-python is not installed.
        """
        made: bytes = library("vl_convert", "vl-convert-python").vegalite_to_png(self._spec, scale=scale)
        return made

    def _repr_png_(self) -> tuple[bytes, dict[str, int]] | None:
        # For front ends that do not know Vega-Lite of this version: nearly all.
        try:
            png = self.to_png()
        except MissingExtraError:
            return None
        width, height = struct.unpack(">II", png[16:24])
        return png, {"width": width // 2, "height": height // 2}

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:  # noqa: ARG002
        return {_MIME: self._spec, "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"<Chart {self.id}: {self.title}>"


class Charts(list[Chart]):
    """Charts of one result, in the order of the report; a notebook draws all of them."""

    def named(self, name: str) -> Chart:
        """The chart with this id.

        Raises:
            UsageError: There is none; the message names those that there are.
        """
        for chart in self:
            if chart.id == name:
                return chart
        there = ", ".join(chart.id for chart in self) or "none"
        raise UsageError(f'there is no chart "{name}" of this result; there are: {there}')

    def _ipython_display_(self) -> None:
        from IPython.display import display  # type: ignore[import-not-found,unused-ignore]

        for chart in self:
            display(chart)  # type: ignore[no-untyped-call,unused-ignore]
