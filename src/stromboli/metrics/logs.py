"""The scheduler's log: an observer that prints the lines of the catalogue.

As text, ``I1121 10:03:04.123456 4711 allocate] Binding Task <ns/a> to node <n1>``, or as JSON, one object a line with
``ts``, ``severity``, ``v``, ``component``, ``key``, ``msg`` and every placeholder.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Final, Literal, TextIO, TypeAlias

from stromboli.framework.catalogue import LINES
from stromboli.framework.observe import Columns
from stromboli.metrics.printers import JsonPrinter, Printer, TextPrinter, Texts

Clock: TypeAlias = Callable[[], float]
Form: TypeAlias = Literal["text", "json"]

_LINES: Final = 1 << 13
"""Lines that are held back before they are printed: in bulk that is much cheaper than one by one between other work."""

_BUFFER: Final = 1 << 16
"""Characters that are written at once."""


class LogObserver:
    """Prints lines up to a level to a stream.

    ``level`` is the N of ``-v N`` and may be changed at any time: what is more verbose ends at once, what is less so is
    asked for from the next session on.  ``clock`` gives seconds since 1970.  Lines are held back, with what they are
    about, until there are many of them; errors, warnings, the end of a cycle and :meth:`flush` write them out.  Any
    thread may tell.
    """

    def __init__(
        self, stream: TextIO, level: int = 0, form: Form = "text", clock: Clock = time.time, pid: int | None = None
    ) -> None:
        self.level = level
        self._stream = stream
        texts = Texts()
        pid = os.getpid() if pid is None else pid
        self._stamp = _Stamp(clock, _klog_time, "") if form == "text" else _Stamp(clock, _rfc3339, "Z")
        self._printers: dict[str, Printer] = {
            key: TextPrinter(line, texts, pid) if form == "text" else JsonPrinter(line, texts)
            for key, line in LINES.items()
        }
        self._held: list[Callable[[], str]] = []
        self._room = _LINES
        self._writing = threading.Lock()

    def wants(self, key: str) -> bool:
        """Whether lines of this key are printed at the present level."""
        line = LINES.get(key)
        return line is not None and line.verbosity <= self.level

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        """Print the line; a field that was not told shows as ``(missing)``."""
        printer = self._printers.get(key)
        if printer is not None and printer.verbosity <= self.level:
            self._held.append(partial(printer.one, self._stamp(), fields))
            self._count(1, printer.urgent)

    def tell_all(self, key: str, count: int, columns: Columns) -> None:
        """Print ``count`` lines under one time."""
        printer = self._printers.get(key)
        if printer is not None and printer.verbosity <= self.level:
            self._held.append(partial(printer.many, self._stamp(), count, columns))
            self._count(count, printer.urgent)

    def _count(self, lines: int, urgent: bool) -> None:
        self._room -= lines
        if urgent or self._room <= 0:
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
            held = self._held[:count]
            del self._held[:count]
            self._room = _LINES
            for text in _blocks(made() for made in held):
                self._stream.write(text)
            self._stream.flush()


def _blocks(texts: Iterable[str]) -> Iterator[str]:
    """The same joined to texts of at least ``_BUFFER`` characters; the last may be shorter."""
    block: list[str] = []
    room = _BUFFER
    for text in texts:
        block.append(text)
        room -= len(text)
        if room <= 0:
            yield "".join(block)
            block, room = [], _BUFFER
    yield "".join(block)


class _Stamp:
    """The time as text, made anew once a millisecond; ``write`` makes the part that stands for a second."""

    def __init__(self, clock: Clock, write: Callable[[float], str], end: str) -> None:
        self._clock, self._write, self._end = clock, write, end
        self._second = (-1, "")
        self._last = (-1, "")

    def __call__(self) -> str:
        now = self._clock()
        tick = int(now * 1000)
        last = self._last
        if last[0] != tick:
            self._last = last = (tick, self._made(now))
        return last[1]

    def _made(self, now: float) -> str:
        whole = int(now)
        second = self._second
        if second[0] != whole:
            self._second = second = (whole, self._write(now))
        return f"{second[1]}.{int(now % 1 * 1e6):06d}{self._end}"


def _klog_time(now: float) -> str:
    """Month, day and time of this machine's zone."""
    return time.strftime("%m%d %H:%M:%S", time.localtime(now))


def _rfc3339(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S")
