"""How a line of the catalogue is printed: as text or as JSON, alone or many at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, pairwise, repeat
from operator import add, itemgetter
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np

from stromboli.model.resources.axes import Axes
from stromboli.narration.catalogue import FORMS, Line, shown
from stromboli.narration.observe import AmountRows, Columns, OnAxes, each

_AMOUNTS: Final = 1 << 16
"""Different amounts whose texts are remembered; nodes of one kind pass through few."""

_COLUMNS: Final = 1 << 6
"""Columns of text that are remembered."""

_MISSING: Final = "(missing)"

_ENCODE: Final = msgspec.json.Encoder().encode

Show: TypeAlias = Callable[[Any], str]

Fields: TypeAlias = Mapping[str, object]


# -------------------------------------------------------------------------------------------------------------- values


class Forms(dict[type, Show]):
    """How values of a type are shown."""

    def __missing__(self, kind: type) -> Show:
        return shown


class Texts:
    """The texts of values; those of amounts are kept as long as they are few."""

    def __init__(self) -> None:
        self._sound: dict[int, Sequence[str]] = {}
        self.forms = Forms({**FORMS, OnAxes: _AmountTexts().__getitem__})

    def show(self, value: object) -> str:
        """The text of one value."""
        return self.forms[type(value)](value)

    def column(self, values: Sequence[Any]) -> Sequence[str]:
        """The texts of values of one type."""
        kind = type(values[0])
        return values if kind is str else list(map(self.forms[kind], values))

    def on_one_line(self, column: Sequence[str]) -> Sequence[str]:
        """The texts of a column without characters that would begin another line, or command a terminal.

        Users write some of them.  The same pods and nodes are told under several keys, so a column is looked at once.
        """
        if id(column) in self._sound:
            return column
        every = "".join(column)
        if not every.isascii() or every.encode().translate(None, _PRINTED):
            return _escaped(column)
        if len(self._sound) >= _COLUMNS:
            self._sound.clear()
        self._sound[id(column)] = column
        return column


class _AmountTexts(dict[OnAxes, str]):
    """Texts of amounts of one numbering: every session has its own, and nothing asks for those of an earlier one."""

    _axes: Axes | None = None

    def __missing__(self, amounts: OnAxes) -> str:
        if amounts.axes is not self._axes or len(self) >= _AMOUNTS:
            self.clear()
            self._axes = amounts.axes
        text = self[amounts] = str(amounts)
        return text


class _RowTexts(dict[bytes, str]):
    """Texts of amounts that stand side by side, with the literals between them, by the bytes of their rows."""

    def __init__(self, axes: Axes, literals: Sequence[str], column: Callable[[list[OnAxes]], Sequence[str]]) -> None:
        super().__init__()
        self.axes, self._literals, self._column = axes, literals, column

    def __missing__(self, row: bytes) -> str:
        if len(self) >= _AMOUNTS:
            self.clear()
        vectors = np.frombuffer(row, np.int64).reshape(len(self._literals) + 1, -1).tolist()
        texts = self._column([OnAxes(self.axes, tuple(vector)) for vector in vectors])
        text = self[row] = texts[0] + "".join(map(add, self._literals, texts[1:]))
        return text


def _formatted(form: str, texts: Texts) -> Show:
    """How a field with the format ``form`` is shown."""
    if not form:
        return texts.show
    return lambda value: format(value, form) if isinstance(value, (int, float)) else texts.show(value)


def _quoted(values: Sequence[str]) -> Sequence[str]:
    """What stands between the quotation marks of a structured line."""
    every = "".join(values)
    if every.isprintable() and '"' not in every and "\\" not in every:
        return values
    return [_ENCODE(value).decode()[1:-1] for value in values]


_CONTROLS: Final = {number: _ENCODE(chr(number)).decode()[1:-1] for number in range(32)} | {
    number: f"\\u{number:04x}" for number in range(127, 160)
}
_PRINTED: Final = bytes(range(32, 127))


def _escaped(values: Iterable[str]) -> list[str]:
    """Texts with control characters spelled out."""
    return [value.translate(_CONTROLS) for value in values]


# --------------------------------------------------------------------------------------------------------------- lines


class Printer(ABC):
    """Prints one key; every line ends with a line break.  ``urgent`` lines are to be written out at once."""

    def __init__(self, line: Line, texts: Texts) -> None:
        self.line, self.texts, self.fields = line, texts, line.fields
        self.verbosity, self.urgent = line.verbosity, line.severity != "I"
        self._shows = [_formatted(form, texts) for form in line.formats] if any(line.formats) else None

    @abstractmethod
    def lines(self, stamps: Sequence[str], told: Sequence[Fields]) -> Sequence[str]:
        """A line for each of ``told``, at least one; a field that was not told shows as ``(missing)``."""

    def _column(self, place: int, values: Sequence[object]) -> Sequence[str]:
        """The texts of the values, of one type, of the field at ``place``."""
        return list(map(self._shows[place], values)) if self._shows else self.texts.column(values)

    def _columns(self, told: Sequence[Fields]) -> list[Sequence[str]]:
        """The texts of ``told``, field by field."""
        return [self._column(place, self._values(told, name)) for place, name in enumerate(self.fields)]

    def _values(self, told: Sequence[Fields], name: str) -> Sequence[object]:
        """The values of a field; their texts where they are of several types."""
        try:
            values = list(map(itemgetter(name), told))
        except KeyError:
            values = [fields.get(name, _MISSING) for fields in told]
        return values if self._shows or len(set(map(type, values))) == 1 else list(map(self.texts.show, values))

    def many(self, count: int, stamp: str, columns: Columns) -> str:
        """``count`` lines at the time ``stamp``."""
        return "".join(self.lines([stamp] * count, list(each(count, columns))))


class TextPrinter(Printer):
    """Prints as text."""

    def __init__(self, line: Line, texts: Texts, pid: int) -> None:
        super().__init__(line, texts)
        self._severity, (first, *inner) = line.severity, (*line.literals[:-1], line.literals[-1] + "\n")
        self._literals = (f" {pid} {line.component}] {first}", *inner)
        self._structured = line.structured
        self._rows: dict[tuple[int, int], _RowTexts] = {}

    def lines(self, stamps: Sequence[str], told: Sequence[Fields]) -> Sequence[str]:
        """See :meth:`Printer.lines`."""
        cells = zip([stamps, *self._columns(told)], map(repeat, self._literals), strict=True)
        return list(map("".join, zip(repeat(self._severity), *chain.from_iterable(cells), strict=False)))

    def many(self, count: int, stamp: str, columns: Columns) -> str:
        """``count`` lines in one step: literals and the texts of the columns are laid side by side and joined once."""
        literals, cells = [self._severity + stamp + self._literals[0]], []
        for texts, literal in self._cells(columns):
            if len(texts) == 1:
                literals[-1] += texts[0] + literal
            else:
                cells.append(texts)
                literals.append(literal)
        return _side_by_side(literals, cells, count)

    def _cells(self, columns: Columns) -> Iterator[tuple[Sequence[str], str]]:
        """The texts of each column and the literal after it; amounts that stand side by side are one column."""
        told = [columns.get(name, (_MISSING,)) for name in self.fields]
        run: list[AmountRows] = []
        for place, (values, after) in enumerate(pairwise([*told, ()])):
            if not isinstance(values, AmountRows):
                yield self._column(place, values), self._literals[place + 1]
                continue
            run.append(values)
            if not _alike(values, after):
                yield self._amounts(place + 1 - len(run), run), self._literals[place + 1]
                run = []

    def _column(self, place: int, values: Sequence[object]) -> Sequence[str]:
        texts = super()._column(place, values)
        return _quoted(texts) if self._structured else self.texts.on_one_line(texts)

    def _amounts(self, first: int, run: Sequence[AmountRows]) -> Sequence[str]:
        """The texts of ``run``, whose first field is at ``first``, and the literals between them."""
        end, axes = first + len(run), run[0].axes
        texts = self._rows.get((first, end))
        if texts is None or texts.axes is not axes:
            texts = _RowTexts(axes, self._literals[first + 1 : end], partial(self._column, first))
            self._rows[first, end] = texts
        rows = np.concatenate([column.amounts for column in run], axis=1)
        return list(map(texts.__getitem__, np.frombuffer(rows.tobytes(), f"V{rows[0].nbytes}").tolist()))


def _alike(column: AmountRows, other: Sequence[object]) -> bool:
    """Whether rows of ``column`` can be compared with those of ``other``."""
    return isinstance(other, AmountRows) and other.axes is column.axes and other.amounts.shape == column.amounts.shape


def _pattern(line: Line) -> str:
    return "%s".join(literal.replace("%", "%%") for literal in line.literals)


def _side_by_side(literals: list[str], cells: list[Sequence[str]], count: int) -> str:
    """``count`` times the literals, with the cells between them.  ValueError for a column of another length."""
    if not cells:
        return literals[0] * count
    first, *inner, last = literals
    between = [last + first, "", *(piece for literal in inner for piece in (literal, ""))]
    pieces = between * count
    pieces[0] = first
    for place, texts in enumerate(cells):
        pieces[2 * place + 1 :: len(between)] = texts
    pieces.append(last)
    return "".join(pieces)


class JsonPrinter(Printer):
    """Prints as one JSON object."""

    def __init__(self, line: Line, texts: Texts) -> None:
        super().__init__(line, texts)
        self._message = "" if line.structured else _pattern(line)
        self._head = {"severity": line.severity, "v": line.verbosity, "component": line.component, "key": line.key}

    def lines(self, stamps: Sequence[str], told: Sequence[Fields]) -> Sequence[str]:
        """See :meth:`Printer.lines`."""
        return [self._line(*line) for line in zip(stamps, self._messages(told), told, strict=False)]

    def _messages(self, told: Sequence[Fields]) -> Iterable[str]:
        if not (self._message and self.fields):
            return repeat(self._message % () or self.line.message)
        return map(self._message.__mod__, zip(*self._columns(told), strict=True))

    def _line(self, stamp: str, message: str, fields: Fields) -> str:
        values = {self.line.names[name]: self._value(fields.get(name)) for name in self.fields}
        return _ENCODE({"ts": stamp, **self._head, "msg": message, **values}).decode() + "\n"

    def _value(self, value: object) -> object:
        """Numbers, truth values and lists stay what they are; everything else is text."""
        if value is None or type(value) in (bool, int, float):
            return value
        if isinstance(value, float):  # of numpy's make
            return float(value)
        if isinstance(value, (list, tuple)) and type(value) is not OnAxes:
            return [self._value(part) for part in value]
        return self.texts.show(value)
