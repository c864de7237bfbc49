"""Rows of a trace's CSV file, read strictly: a cell that is not what its column promises is refused with its place."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from stromboli.errors import ManifestError

NUMBER = re.compile(r"-?\d{1,15}(\.\d{1,30})?", re.ASCII)
DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
LONGEST = 10**10
"""Seconds (three centuries) up to which a moment is believed."""


@dataclass(frozen=True, slots=True)
class Row:
    """One data row: the file it stands in, its line (counted from 1, the header included) and its cells by column."""

    file: str
    line: int
    cells: Mapping[str, str]

    def wrong(self, column: str, problem: str) -> ManifestError:
        """The error for a cell: file, line, column, what it holds and what is wrong with it."""
        held = self.cells.get(column, "")
        return ManifestError(f"{held!r} {problem}", file=self.file, object=f"line {self.line}", path=f"column {column}")

    def text(self, column: str) -> str:
        """The cell without surrounding blanks, perhaps empty."""
        return self.cells[column].strip()

    def name(self, column: str, prefix: str = "") -> str:
        """The cell as a name in Kubernetes: in lower case, `_` as `-`. ManifestError when that is no DNS label."""
        name = prefix + self.text(column).lower().replace("_", "-")
        if not DNS_LABEL.fullmatch(name):
            raise self.wrong(column, "cannot name a Kubernetes object; write letters, digits and '-', at most 63")
        return name

    def label(self, column: str) -> str:
        """The cell as the value of a label, perhaps empty. Raises ManifestError when it cannot be one."""
        return self.label_value(column, self.text(column)) if self.text(column) else ""

    def labels(self, column: str) -> list[str]:
        """The label values of a cell that lists them as `A|B`; none when it is empty."""
        return [self.label_value(column, part.strip()) for part in self.text(column).split("|") if self.text(column)]

    def label_value(self, column: str, value: str) -> str:
        """The value, which stands in that column, if Kubernetes takes it for a label; ManifestError otherwise."""
        if not LABEL_VALUE.fullmatch(value):
            raise self.wrong(column, "is no value for a label; write letters, digits, '-', '_' and '.', at most 63")
        return value

    def number(self, column: str, least: int = 0) -> Fraction:
        """The cell as an exact number of at least `least`. Raises ManifestError."""
        if not NUMBER.fullmatch(self.text(column)):
            raise self.wrong(column, "is not a number")
        value = Fraction(self.text(column))
        if value < least:
            raise self.wrong(column, f"is less than {least}")
        return value

    def whole(self, column: str, least: int = 0) -> int:
        """The cell as a whole number (`8` or `8.0`) of at least `least`. Raises ManifestError."""
        value = self.number(column, least)
        if value.denominator != 1:
            raise self.wrong(column, "is not a whole number")
        return int(value)

    def seconds(self, column: str) -> int | None:
        """The cell as whole seconds since the trace's start, rounded; None when empty. Raises ManifestError."""
        if not self.text(column):
            return None
        value = round(self.number(column))
        if value > LONGEST:
            raise self.wrong(column, f"is more than {LONGEST} seconds")
        return value


def read_rows(path: Path, columns: Sequence[str], without: Mapping[str, str] = {}) -> Iterator[Row]:
    """The rows of a CSV file that has (at least) these columns, one at a time.

    ``without`` says what the cells of further columns are in a file that lacks all of these.  Raises ManifestError
    when the file cannot be read, lacks a column, or has a row with more or fewer cells.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            yield from checked_rows(path.name, csv.DictReader(file, strict=True), columns, without)
    except OSError as error:
        raise ManifestError(f"cannot be read: {error.strerror}", file=str(path)) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise ManifestError(f"is no CSV file in UTF-8: {error}", file=str(path)) from error


def checked_rows(
    file: str, reader: csv.DictReader[str], columns: Sequence[str], without: Mapping[str, str] = {}
) -> Iterator[Row]:
    """Rows of a reader, its header and the length of each row checked first. Raises ManifestError."""
    header = reader.fieldnames or ()
    further = without if any(column in header for column in without) else ()
    missing = [column for column in (*columns, *further) if column not in header]
    if missing:
        problem = f"the header lacks it; it names {', '.join(header) or 'nothing'}"
        raise ManifestError(problem, file=file, object="line 1", path=f"column {missing[0]}")
    for cells in reader:
        yield Row(file, reader.line_num, {**without, **complete(file, reader.line_num, cells)})


def complete(file: str, line: int, cells: dict[str | None, str | None]) -> dict[str, str]:
    """The cells, none missing and none left over. Raises ManifestError."""
    found = {str(column): cell for column, cell in cells.items() if column is not None and cell is not None}
    if len(found) == len(cells):
        return found
    short = next((str(column) for column, cell in cells.items() if cell is None), "")
    problem = "the row ends before it" if short else "the row has more cells than the header names"
    raise ManifestError(problem, file=file, object=f"line {line}", path=f"column {short}" if short else "")


def distinct(rows: Iterable[Row], column: str) -> Iterator[Row]:
    """The same rows. Raises ManifestError at the second that has the same name in that column."""
    lines: dict[str, int] = {}
    for row in rows:
        first = lines.setdefault(row.name(column), row.line)
        if first != row.line:
            raise row.wrong(column, f"names two things: line {first} has it already")
        yield row
