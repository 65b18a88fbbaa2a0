"""Exceptions of Fleetfoot.

Every message is the one that the program ``fleetfoot`` prints for the same mistake. All can be pickled.
"""

from __future__ import annotations

__all__ = ["Error", "InternalError", "MissingExtraError", "RunError", "ScenarioError", "UsageError"]


class Error(Exception):
    """What all exceptions of Fleetfoot have in common."""


class ScenarioError(Error, ValueError):
    """A mistake in a scenario, with its place.

    ``str(error)`` is the whole message, with the line it is about and what would be right.

    Attributes:
        file: The file, or what stands for it: the name of a text, ``with_``, the name of a mechanism.
        line: Line of the mistake, from 1; ``None`` where it concerns the file as a whole.
        column: Column of the mistake in characters, from 1; ``None`` where it concerns the file as a whole.
        key: The key as a path, such as ``network.bottleneck.rate``; empty for the file as a whole.
        message: One sentence: what was found and what is wrong with it.
        help: What would be right: valid choices, units, the nearest name; a line each.
    """

    def __init__(
        self,
        text: str,
        file: str = "",
        line: int | None = None,
        column: int | None = None,
        key: str = "",
        message: str = "",
        help: list[str] | None = None,  # noqa: A002 - the name of the attribute
    ) -> None:
        self.file = file
        self.line = line
        self.column = column
        self.key = key
        self.message = message or text
        self.help = list(help or [])
        super().__init__(text, file, line, column, key, message, self.help)

    def __str__(self) -> str:
        return str(self.args[0])


class UsageError(Error, ValueError):
    """An argument that cannot be; the message names what is valid."""


class RunError(Error, RuntimeError):
    """A run failed, or what it gave could not be kept."""


class MissingExtraError(Error, ImportError):
    """A library of an extra is not installed; the message has the command that installs it."""


class InternalError(Error, RuntimeError):
    """A mistake in Fleetfoot itself: please report it."""
