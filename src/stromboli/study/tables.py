"""Tables of studies: rows that DataFrame libraries read, and files of CSV or Parquet."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, Final

from stromboli.errors import StudyError
from stromboli.sim.simulation.metrics import Row

EXTRA: Final = "pip install 'stromboli[study]'"
"""What brings pyarrow and matplotlib."""


class Table:
    """Rows of equal columns.  Any library that knows the Arrow C stream interface reads it, such as polars and pandas.

    Everything but ``rows`` and CSV needs pyarrow, and raises StudyError without it.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = list(rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"Table of {len(self)} rows: {', '.join(self.rows[0]) if self.rows else ''}"

    def _repr_html_(self) -> str:
        """What notebooks show: pandas' table, where that is installed."""
        return str(self.to_pandas()._repr_html_())

    def to_arrow(self) -> Any:
        """A pyarrow Table; a column without any value is of numbers."""
        arrow = needed("pyarrow")
        table = arrow.Table.from_pylist(self.rows)
        empty = {field.name for field in table.schema if arrow.types.is_null(field.type)}
        fields = [arrow.field(one.name, arrow.float64()) if one.name in empty else one for one in table.schema]
        return table.cast(arrow.schema(fields))

    def to_pandas(self) -> Any:
        """A pandas DataFrame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """A polars DataFrame."""
        return needed("polars", "polars").DataFrame(self)

    def write(self, path: Path) -> None:
        """Write a file, Parquet where its name says so and otherwise CSV.  Raises OSError."""
        write_whole(path, parquet_bytes(self) if path.suffix == ".parquet" else self._csv().encode())

    def _csv(self) -> str:
        text = StringIO(newline="")
        writer = csv.DictWriter(text, list(self.rows[0]) if self.rows else [])
        writer.writeheader()
        writer.writerows(self.rows)
        return text.getvalue()


def parquet_bytes(table: Table, notes: Mapping[str, str] | None = None) -> bytes:
    """A table as a Parquet file, ``notes`` in its metadata; equal rows and notes give equal bytes."""
    arrow, parquet = needed("pyarrow"), needed("pyarrow.parquet")
    sink = arrow.BufferOutputStream()
    parquet.write_table(table.to_arrow().replace_schema_metadata(notes or None), sink)
    return bytes(sink.getvalue())


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that takes its name once it is whole and on the disk.  Raises OSError."""
    part = path.with_name(f".{path.name}.partial")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def needed(module: str, brought_by: str = EXTRA) -> Any:
    """A module of an extra.  Raises StudyError, which says what to install."""
    from importlib import import_module

    try:
        return import_module(module)
    except ImportError:
        found = brought_by if " " in brought_by else f"pip install {brought_by}"
        raise StudyError(f"this needs {module.partition('.')[0]}: {found}") from None
