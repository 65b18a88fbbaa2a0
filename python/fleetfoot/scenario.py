"""Scenarios: a network, who uses it, and how long and how often it is run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fleetfoot import _native

__all__ = ["Scenario"]


class Scenario:
    """A network and its traffic, read and checked. It never changes: :meth:`with_` returns another.

    The keys are those of scenario files (docs/scenario-reference.md); quantities are text with their
    unit, such as ``"20 Mbit/s"``.

    >>> import fleetfoot
    >>> line = fleetfoot.Scenario.home_line()
    >>> faster = line.with_({"network.bottleneck.rate": "20 Mbit/s"})
    >>> faster.to_dict()["network"]["bottleneck"]["rate"]
    '20 Mbit/s'
    """

    __slots__ = ("_inner",)

    _inner: _native.Scenario

    def __init__(self) -> None:
        raise TypeError(
            "a scenario is read: Scenario.load, Scenario.from_toml, Scenario.from_dict or Scenario.home_line"
        )

    @classmethod
    def _of(cls, native: _native.Scenario) -> Scenario:
        scenario = cls.__new__(cls)
        object.__setattr__(scenario, "_inner", native)
        return scenario

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a scenario does not change: with_ returns another")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Scenario:
        """Read the file at ``path`` and those it extends.

        Raises:
            ScenarioError: The first mistake, with its place; also where the file cannot be read.
        """
        return cls._of(_native.Scenario.load(os.fspath(path)))

    @classmethod
    def from_toml(cls, text: str, *, name: str = "scenario.toml") -> Scenario:
        """Read a text in the form of a scenario file.

        Args:
            text: The file's text.
            name: What messages call it. What it extends and the files it names are looked for in the
                folder of ``name``.

        Raises:
            ScenarioError: The first mistake, with its place in the text.
        """
        return cls._of(_native.Scenario.parse(name, text))

    @classmethod
    def from_dict(cls, tables: Mapping[str, Any], *, name: str = "scenario.toml") -> Scenario:
        """Read a scenario from dictionaries: the tables of a scenario file, as ``tomllib`` reads them.

        Args:
            tables: Keys and values of the file. Values are text, numbers (of NumPy too), booleans, lists
                and dictionaries.
            name: What messages call it; as for :meth:`from_toml`.

        Raises:
            ScenarioError: The first mistake, with its place in the text that the tables make.
            UsageError: A key or a value has a type that a scenario cannot hold.
        """
        return cls._of(_native.Scenario.from_mapping(name, tables))

    @classmethod
    def home_line(cls) -> Scenario:
        """The busy home line that the program compares without a file (``examples/home-line.toml``)."""
        return cls._of(_native.Scenario.home_line())

    @classmethod
    def _reread(cls, text: str) -> Scenario:
        return cls._of(_native.Scenario.reread("scenario.toml", text))

    def with_(self, settings: Mapping[str, Any] | None = None, /, **more: Any) -> Scenario:  # noqa: ANN401
        """The scenario with other values at some paths, as ``--set`` of the program changes it.

        Args:
            settings: Paths with dots and their new values: ``{"network.bottleneck.queue.kind": "codel"}``.
            more: The same as keywords, where ``__`` stands for the dot: ``run__duration="10 s"``.

        Raises:
            ScenarioError: There is no such key, or it does not take this value.
            UsageError: A value has a type that a scenario cannot hold.
        """
        merged: dict[str, Any] = dict(settings or {})
        merged.update({path.replace("__", "."): value for path, value in more.items()})
        return Scenario._of(self._inner.changed("with_", merged))

    def to_toml(self) -> str:
        """The whole scenario as the text of a file, with everything that it extends."""
        return self._inner.to_toml()

    def to_dict(self) -> dict[str, Any]:
        """The same as dictionaries; :meth:`from_dict` reads them."""
        return self._inner.to_mapping()

    @property
    def title(self) -> str:
        """What every output calls it."""
        return self._inner.title

    @property
    def name(self) -> str:
        """The path it was read from, or what messages call it."""
        return self._inner.name

    @property
    def files(self) -> list[Path]:
        """The files it was read from and those it names: what it extends, traces of links, lists of flows."""
        return [Path(path) for path in self._inner.files]

    @property
    def variants(self) -> dict[str, dict[str, Any]]:
        """What the file compares, in its order: names of variants, and the paths and values they change."""
        return dict(self._inner.variants)

    def __repr__(self) -> str:
        return f"<Scenario {self.title!r}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scenario):
            return NotImplemented
        return self.title == other.title and self.to_toml() == other.to_toml()

    def __hash__(self) -> int:
        return hash((self.title, self.to_toml()))

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.name, self.to_toml(), self._inner.is_changed)


def _restored(name: str, text: str, is_changed: bool) -> Scenario:
    """A scenario that was pickled."""
    read = _native.Scenario.reread if is_changed else _native.Scenario.parse
    return Scenario._of(read(name, text))
