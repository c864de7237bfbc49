"""The scheduler's log: an observer that prints the lines of the catalogue.

As text, ``I1121 10:03:04.123456 4711 allocate] Binding Task <ns/a> to node <n1>``, or as JSON, one object a line with
``ts``, ``severity``, ``v``, ``component``, ``key``, ``msg`` and every placeholder.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, Literal, TextIO, TypeAlias

import msgspec

from stromboli.framework.catalogue import LINES, Line, shown
from stromboli.framework.observe import OnAxes

Clock: TypeAlias = Callable[[], float]
Form: TypeAlias = Literal["text", "json"]
Printer: TypeAlias = Callable[[str, Mapping[str, object]], str]
"""Makes the line, its end included, from a time stamp and the fields."""

_BUFFER: Final = 1 << 16
"""Characters that are held back before they are written."""

_AMOUNTS: Final = 1 << 16
"""Different amounts whose texts are remembered; nodes of one kind pass through few."""

_MISSING: Final = "(missing)"


class LogObserver:
    """Prints lines up to a level to a stream.

    ``level`` is the N of ``-v N`` and may be changed at any time: what is more verbose ends at once, what is less so is
    asked for from the next session on.  ``clock`` gives seconds since 1970.  Lines are held back until there is a
    buffer full of them; errors, warnings, the end of a cycle and :meth:`flush` write them out.  Any thread may tell.
    """

    def __init__(
        self, stream: TextIO, level: int = 0, form: Form = "text", clock: Clock = time.time, pid: int | None = None
    ) -> None:
        self.level = level
        self._stream = stream
        texts = _Texts()
        pid = os.getpid() if pid is None else pid
        self._stamp = _Stamp(clock, _klog_time if form == "text" else _rfc3339)
        self._printers = {
            key: (line.verbosity, _text_printer(line, texts, pid) if form == "text" else _json_printer(line, texts))
            for key, line in LINES.items()
        }
        self._urgent = frozenset(key for key, line in LINES.items() if line.severity != "I")
        self._held: list[str] = []
        self._room = _BUFFER
        self._writing = threading.Lock()

    def wants(self, key: str) -> bool:
        """Whether lines of this key are printed at the present level."""
        line = LINES.get(key)
        return line is not None and line.verbosity <= self.level

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        """Print the line; a field that was not told shows as ``(missing)``."""
        found = self._printers.get(key)
        if found is None or found[0] > self.level:
            return
        text = found[1](self._stamp(), fields)
        self._held.append(text)
        self._room -= len(text)
        if self._room <= 0 or key in self._urgent:
            self.flush()

    def started(self, kind: str, name: str) -> None:
        """Spans are not logged."""

    def ended(self, kind: str, name: str) -> None:
        """Write out what a cycle has told."""
        if kind == "cycle":
            self.flush()

    def flush(self) -> None:
        """Write out what is held back."""
        with self._writing:
            # Others may append meanwhile, so only what was counted is taken.
            count = len(self._held)
            text = "".join(self._held[:count])
            del self._held[:count]
            self._room = _BUFFER
            self._stream.write(text)
            self._stream.flush()


class _Stamp:
    """The time as text, made anew once a millisecond."""

    def __init__(self, clock: Clock, write: Callable[[float], str]) -> None:
        self._clock = clock
        self._write = write
        self._last = (-1, "")

    def __call__(self) -> str:
        now = self._clock()
        tick = int(now * 1000)
        last = self._last
        if last[0] != tick:
            self._last = last = (tick, self._write(now))
        return last[1]


def _klog_time(now: float) -> str:
    """Month, day and time of this machine's zone."""
    return time.strftime("%m%d %H:%M:%S", time.localtime(now)) + f".{int(now % 1 * 1e6):06d}"


def _rfc3339(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class _Texts(dict[OnAxes, str]):
    """Texts of amounts, kept as long as they are few."""

    def __missing__(self, amounts: OnAxes) -> str:
        if len(self) >= _AMOUNTS:
            self.clear()
        text = self[amounts] = str(amounts)
        return text

    def show(self, value: object) -> str:
        """The text of a field."""
        if type(value) is str:
            return value
        return self[value] if type(value) is OnAxes else shown(value)


def _text_printer(line: Line, texts: _Texts, pid: int) -> Printer:
    pattern = f"{line.severity}%s {pid} {line.component}] {_pattern(line)}\n"
    shows = tuple((name, _show(line, form, texts)) for name, form in zip(line.fields, line.formats, strict=True))

    def printed(stamp: str, fields: Mapping[str, object]) -> str:
        return pattern % (stamp, *[show(fields.get(name, _MISSING)) for name, show in shows])

    return printed


def _pattern(line: Line) -> str:
    return "%s".join(literal.replace("%", "%%") for literal in line.literals)


def _show(line: Line, form: str, texts: _Texts) -> Callable[[object], str]:
    if form:
        return lambda value: format(value, form) if isinstance(value, (int, float)) else texts.show(value)
    if line.structured:
        return lambda value: json.dumps(texts.show(value), ensure_ascii=False)[1:-1]
    return texts.show


def _json_printer(line: Line, texts: _Texts) -> Printer:
    encode = msgspec.json.Encoder().encode
    shows = tuple((name, _show(line, form, texts)) for name, form in zip(line.fields, line.formats, strict=True))
    pattern = line.message.replace("%", "%%") if line.structured else _pattern(line)
    told = () if line.structured else shows
    head = {"severity": line.severity, "v": line.verbosity, "component": line.component, "key": line.key}

    def printed(stamp: str, fields: Mapping[str, object]) -> str:
        message = pattern % tuple([show(fields.get(name, _MISSING)) for name, show in told])
        values = {line.names[name]: _value(fields.get(name), texts) for name in line.fields}
        return encode({"ts": stamp, **head, "msg": message, **values}).decode() + "\n"

    return printed


def _value(value: object, texts: _Texts) -> object:
    """Numbers, truth values and lists stay what they are in JSON; everything else is text."""
    if value is None or type(value) in (bool, int, float):
        return value
    if isinstance(value, float):  # of numpy's make
        return float(value)
    if isinstance(value, (list, tuple)) and type(value) is not OnAxes:
        return [_value(part, texts) for part in value]
    return texts.show(value)
