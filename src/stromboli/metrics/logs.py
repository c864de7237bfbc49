"""The scheduler's log: an observer that prints the lines of the catalogue.

As text, ``I1121 10:03:04.123456 4711 allocate] Binding Task <ns/a> to node <n1>``, or as JSON, one object a line with
``ts``, ``severity``, ``v``, ``component``, ``key``, ``msg`` and every placeholder.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Literal, Protocol, TypeAlias

from stromboli.metrics.printers import Fields, JsonPrinter, Printer, TextPrinter, Texts
from stromboli.narration.catalogue import LINES
from stromboli.narration.observe import Columns, Silent, Teller


class Stream(Protocol):
    """Where lines go; what cannot be written raises OSError or ValueError."""

    def write(self, text: str, /) -> int:
        """Take text."""

    def flush(self) -> object:
        """Pass it on."""


Clock: TypeAlias = Callable[[], float]
Form: TypeAlias = Literal["text", "json"]

Held: TypeAlias = tuple[Printer, int, float, Mapping[str, Any]]
"""The printer, how many lines (0: one, of fields; else of columns), the unix time, and the fields."""

_TELLS: Final = 1 << 9
"""Tells that are held back before they are printed: together that is much cheaper than each between other work."""

_LINES: Final = 1 << 13
"""Lines that are held back in tells of many."""


class LogObserver(Silent):
    """Prints lines up to a level to a stream.

    ``level`` is the N of ``-v N`` and may be changed at any time: what is more verbose ends at once, what is less so is
    asked for from the next session on.  ``clock`` gives seconds since 1970.  Lines are held back, with what they are
    about, until there are many of them; errors, warnings, the end of a cycle and :meth:`flush` write them out.  Any
    thread may tell.  What cannot be written (a full disk, a reader that is gone) is counted in ``lost``, and told once
    writing works again: no work fails because of logging.
    """

    def __init__(
        self, stream: Stream, level: int = 0, form: Form = "text", clock: Clock = time.time, pid: int | None = None
    ) -> None:
        self.level = level
        self._stream = stream
        self._texts = texts = Texts()
        pid = os.getpid() if pid is None else pid
        self._clock = clock
        self._stamp = _Stamp(_klog_time, "") if form == "text" else _Stamp(_rfc3339, "Z")
        self._printers: dict[str, Printer] = {
            key: TextPrinter(line, texts, pid) if form == "text" else JsonPrinter(line, texts)
            for key, line in LINES.items()
        }
        self._held: list[Held] = []
        self._room = _LINES
        self._writing = threading.Lock()
        self.lost = self._untold = 0
        self._failure: Exception | None = None

    def wants(self, key: str) -> bool:
        """Whether lines of this key are printed at the present level."""
        line = LINES.get(key)
        return line is not None and line.verbosity <= self.level

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        """Print the line; a field that was not told shows as ``(missing)``."""
        if key in self._printers:
            self.teller(key)(**fields)

    def teller(self, key: str) -> Teller:
        """:meth:`tell` of one key, which takes the fields by name."""
        printer, held, clock = self._printers[key], self._held, self._clock
        verbosity, most = printer.verbosity, 1 if printer.urgent else _TELLS

        def told(**fields: object) -> None:
            if verbosity <= self.level:
                held.append((printer, 0, clock(), fields))
                if len(held) >= most:
                    self.flush()

        return told

    def tell_all(self, key: str, count: int, columns: Columns) -> None:
        """Print ``count`` lines under one time."""
        printer = self._printers.get(key)
        if printer is not None and printer.verbosity <= self.level:
            self._held.append((printer, count, self._clock(), columns))
            self._room -= count
            if printer.urgent or self._room <= 0 or len(self._held) >= _TELLS:
                self.flush()

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
            text = "".join(self._printed([*self._missed(), *held]))
            try:
                self._write(text)
            except (OSError, ValueError) as error:  # the latter is what closed streams say
                self._lose(sum(max(count, 1) for _, count, _, _ in held), error)

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()
        self._untold = 0

    def _missed(self) -> Iterator[Held]:
        """The line on those that could not be written, if that has not been told."""
        if self._untold:
            fields = {"count": self._untold, "error": self._failure}
            yield self._printers["log_lines_lost"], 0, self._clock(), fields

    def _lose(self, lines: int, error: Exception) -> None:
        self.lost += lines
        self._untold += lines
        self._failure = error

    def _printed(self, held: Sequence[Held]) -> list[str]:
        """The texts in the order of the tells; the single lines of a key are made together, column by column."""
        stamps = self._stamp.each([now for _, _, now, _ in held])
        alone: dict[Printer, list[tuple[str, Fields]]] = defaultdict(list)
        for (printer, count, _, fields), stamp in zip(held, stamps, strict=True):
            if not count:
                alone[printer].append((stamp, fields))
        lines = {printer: iter(printer.lines(*zip(*told, strict=True))) for printer, told in alone.items()}
        return [
            printer.many(count, stamp, fields) if count else next(lines[printer])
            for (printer, count, _, fields), stamp in zip(held, stamps, strict=True)
        ]


class _Stamp:
    """A time as text, rendered once a millisecond; ``write`` renders the part that holds for a second."""

    def __init__(self, write: Callable[[float], str], end: str) -> None:
        self._write, self._end = write, end
        self._second = (-1, "")
        self._last = (0.0, 0.0, "")  # from when until when it counts

    def each(self, times: Iterable[float]) -> list[str]:
        """The texts of times."""
        began, ends, text = self._last
        texts = []
        for now in times:
            if not began <= now < ends:
                began, ends, text = now, now + 0.001, self._made(now)
            texts.append(text)
        self._last = began, ends, text
        return texts

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
