"""Tables: columns and rows that every library of data frames reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fleetfoot import _native
from fleetfoot._extra import library

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["Table"]


class Table:
    """A table in memory. It leaves by the Arrow PyCapsule protocol, so that pyarrow, polars, pandas and DuckDB read it.

    Names of columns carry the unit; docs/data-dictionary.md defines each.
    """

    __slots__ = ("_inner",)

    def __init__(self, inner: _native.Table) -> None:
        self._inner = inner

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in order."""
        return self._inner.column_names

    def __len__(self) -> int:
        return len(self._inner)

    def __arrow_c_schema__(self) -> object:
        """The columns, by the Arrow PyCapsule protocol."""
        return self._inner.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The rows, by the Arrow PyCapsule protocol."""
        return self._inner.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pyarrow.Table:
        """The table as a ``pyarrow.Table``, without a copy.

        Raises:
            MissingExtraError: pyarrow is not installed.
        """
        made: pyarrow.Table = library("pyarrow").table(self)
        return made

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a ``pandas.DataFrame``.

        Raises:
            MissingExtraError: pandas or pyarrow is not installed.
        """
        library("pandas")
        made: pandas.DataFrame = self.to_arrow().to_pandas()
        return made

    def to_polars(self) -> polars.DataFrame:
        """The table as a ``polars.DataFrame``.

        Raises:
            MissingExtraError: polars is not installed.
        """
        made: polars.DataFrame = library("polars").DataFrame(self)
        return made

    def __repr__(self) -> str:
        return f"<Table of {len(self)} rows: {', '.join(self.column_names)}>"
