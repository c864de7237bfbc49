"""How a line of the catalogue is printed: as text or as JSON, alone or many at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from stromboli.framework.catalogue import FORMS, Line, shown
from stromboli.framework.observe import AmountRows, Columns, OnAxes, each
from stromboli.model.axes import Axes
from stromboli.model.task import Task

_AMOUNTS: Final = 1 << 16
"""Different amounts whose texts are remembered; nodes of one kind pass through few."""

_MISSING: Final = "(missing)"

_ENCODE: Final = msgspec.json.Encoder().encode

Show: TypeAlias = Callable[[Any], str]


# -------------------------------------------------------------------------------------------------------------- values


class Texts:
    """The texts of values; those of amounts are kept as long as they are few."""

    def __init__(self) -> None:
        self._amounts: dict[OnAxes, str] = {}
        self._rows = _RowTexts(Axes())
        self._forms: Mapping[type, Show] = {**FORMS, OnAxes: self._amount}

    def show(self, value: object) -> str:
        """The text of one value."""
        return self._forms.get(type(value), shown)(value)

    def of(self, names: Iterable[str], fields: Mapping[str, object]) -> list[str]:
        """The texts of some fields; one that was not told shows as ``(missing)``."""
        forms, get = self._forms, fields.get
        return [forms.get(type(value := get(name, _MISSING)), shown)(value) for name in names]

    def column(self, values: Sequence[Any]) -> Sequence[str]:
        """The texts of values of one type; a single one where all are the same amount."""
        if type(values) is AmountRows:
            return self._column(values)
        kind = type(values[0])
        if kind is str:
            return values
        if kind is Task:
            return [task.key for task in values]
        return [self.show(value) for value in values]

    def _amount(self, amounts: OnAxes) -> str:
        text = self._amounts.get(amounts)
        if text is None:
            if len(self._amounts) >= _AMOUNTS:
                self._amounts.clear()
            text = self._amounts[amounts] = str(amounts)
        return text

    def _column(self, column: AmountRows) -> Sequence[str]:
        if self._rows.axes is not column.axes:
            self._rows = _RowTexts(column.axes)
        count, width = column.amounts.shape[0], column.amounts.shape[1] * column.amounts.itemsize
        data = column.amounts.tobytes()
        first = data[:width]
        if data == first * count:
            return [self._rows[first]]
        return [self._rows[data[at : at + width]] for at in range(0, len(data), width)]


class _RowTexts(dict[bytes, str]):
    """Texts of amounts by the bytes of their columns."""

    def __init__(self, axes: Axes) -> None:
        super().__init__()
        self.axes = axes

    def __missing__(self, row: bytes) -> str:
        if len(self) >= _AMOUNTS:
            self.clear()
        text = self[row] = str(self.axes.resource(memoryview(row).cast("q").tolist()))
        return text


def _quoted(text: str) -> str:
    """What stands between the quotation marks of a structured line."""
    return text if text.isalnum() else _ENCODE(text).decode()[1:-1]


def _show(line: Line, form: str, texts: Texts) -> Show:
    """How a field of ``line`` with the format ``form`` is shown."""
    if form:
        return lambda value: format(value, form) if isinstance(value, (int, float)) else texts.show(value)
    return (lambda value: _quoted(texts.show(value))) if line.structured else texts.show


# --------------------------------------------------------------------------------------------------------------- lines


class Printer(ABC):
    """Prints one key; every line ends with a line break.  ``urgent`` lines are to be written out at once."""

    def __init__(self, line: Line, texts: Texts) -> None:
        self.line, self.texts, self.fields = line, texts, line.fields
        self.verbosity, self.urgent = line.verbosity, line.severity != "I"
        self._plain = not line.structured and not any(line.formats)
        self._shows = [_show(line, form, texts) for form in line.formats]

    @abstractmethod
    def one(self, stamp: str, fields: Mapping[str, object]) -> str:
        """The line at the time ``stamp``."""

    def many(self, stamp: str, count: int, columns: Columns) -> str:
        """``count`` lines at the time ``stamp``."""
        return "".join([self.one(stamp, fields) for fields in each(count, columns)])

    def _values(self, fields: Mapping[str, object]) -> list[str]:
        """The texts of the fields."""
        if self._plain:
            return self.texts.of(self.fields, fields)
        return [show(fields.get(name, _MISSING)) for name, show in zip(self.fields, self._shows, strict=True)]


class TextPrinter(Printer):
    """Prints as text."""

    def __init__(self, line: Line, texts: Texts, pid: int) -> None:
        super().__init__(line, texts)
        head = f"{line.severity}%s {pid} {line.component}] "
        self._pattern = f"{head}{_pattern(line)}\n"
        self._head, self._literals = head, (*line.literals[:-1], line.literals[-1] + "\n")

    def one(self, stamp: str, fields: Mapping[str, object]) -> str:
        """See :meth:`Printer.one`."""
        return self._pattern % (stamp, *self._values(fields))

    def many(self, stamp: str, count: int, columns: Columns) -> str:
        """``count`` lines in one step: literals and the texts of the columns are laid side by side and joined once."""
        if count == 1:
            return self.one(stamp, {name: values[0] for name, values in columns.items()})
        literals, cells = [self._head % stamp + self._literals[0]], []
        for place, name in enumerate(self.fields):
            texts, literal = self._column(place, columns.get(name, (_MISSING,))), self._literals[place + 1]
            if len(texts) == 1:
                literals[-1] += texts[0] + literal
            else:
                cells.append(texts)
                literals.append(literal)
        return _side_by_side(literals, cells, count)

    def _column(self, place: int, values: Sequence[object]) -> Sequence[str]:
        return self.texts.column(values) if self._plain else list(map(self._shows[place], values))


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

    def one(self, stamp: str, fields: Mapping[str, object]) -> str:
        """See :meth:`Printer.one`."""
        message = self._message % tuple(self._values(fields)) if self._message else self.line.message
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
