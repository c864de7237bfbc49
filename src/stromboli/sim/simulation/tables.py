"""Tables of simulations as files: CSV, or Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from stromboli.sim.simulation.metrics import Row


def write_table(rows: Sequence[Row], path: Path) -> None:
    """Write rows, which have the same columns, into a file: Parquet where its name says so, otherwise CSV.

    It takes its name once it is whole.  Raises ImportError without pyarrow, and OSError.
    """
    part = path.with_name(f".{path.name}.partial")
    try:
        if path.suffix == ".parquet":
            _parquet(rows, part)
        else:
            with part.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, list(rows[0]) if rows else [])
                writer.writeheader()
                writer.writerows(rows)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _parquet(rows: Sequence[Row], path: Path) -> None:
    from pyarrow import Table, parquet

    parquet.write_table(Table.from_pylist(list(rows)), path)
