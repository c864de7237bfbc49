"""Recording a scheduler: what changes its state goes to files, which a thread of its own compresses and writes.

Scheduling never waits for it.  Where the disk is full or too slow the record ends, which is told; it goes on later in a
new segment, whose checkpoint makes up for what is missing.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from pathlib import Path
from queue import Full, Queue
from threading import Thread
from typing import BinaryIO, Final, NamedTuple

import msgspec
import numpy as np
import yaml

from stromboli.cluster.rim import Change, Cut, Rim
from stromboli.errors import in_words
from stromboli.framework.books.plan import Plan
from stromboli.journal import segments
from stromboli.journal.checkpoint import Checkpoint
from stromboli.journal.entries import Batch, Configured, Planned
from stromboli.journal.scrubbing import Scrub
from stromboli.live.process.events import Telling
from stromboli.live.scheduler.configuration import Configuration
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.model.values.redaction import shown

WAITING: Final = 64
"""Pieces of work that may wait for the writer."""
PIECE: Final = 1 << 20
"""Bytes of entries, about, that are handed over to it even if no cycle begins; or ``segments.FRAME`` entries."""
AGAIN: Final = 60
"""Seconds after a failure until recording is tried again."""


class Limits(NamedTuple):
    """Seconds, bytes and entries of a segment, and how many bytes of them are kept for how many seconds.

    To find a cycle, its segment is read from the beginning: ``segment_entries`` bounds what that takes.  Where
    there are more than half as many pods the whole state takes as long, and there are twice as many entries as pods.
    """

    segment_seconds: float = 600.0
    segment_bytes: int = 1 << 26
    segment_entries: int = 80_000
    bytes: int = 10 << 30
    seconds: float = 7 * 86400.0


USUAL: Final = Limits()
"""What holds unless flags say otherwise."""


class Recorder:
    """Records what ``rim`` is told from its first cut on; ``clock`` gives seconds since 1970.

    ``configured`` is the configuration of the moment.  ``failures`` counts how often recording has ended before its
    time, ``bytes`` what was written.  To be used in the thread of the state, which ends it with :meth:`close`.
    """

    def __init__(
        self, folder: Path, rim: Rim, configured: Callable[[], Configured], tell: Telling, clock: Callable[[], float],
        limits: Limits = USUAL, scrub: Scrub | None = None,
    ) -> None:  # fmt: skip
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._rim, self._configured, self._tell, self._clock, self.limits = rim, configured, tell, clock, limits
        self._work: Queue[Callable[[], None] | None] = Queue(WAITING)
        self._writer = _Writer(folder, limits)
        self._thread: Thread | None = None
        self._waiting = Batch()
        self._first = self.failures = 0
        self._since: float | None = None
        self._again = 0.0
        self._conf: Configured | None = None
        rim.tell = self.hear
        rim.scrub = (Scrub() if scrub is None else scrub).clean

    @property
    def bytes(self) -> int:
        """Bytes written so far."""
        return self._writer.bytes

    @property
    def waiting(self) -> int:
        """How many pieces of work wait for the writer."""
        return self._work.qsize()

    def hear(self, change: Change) -> None:
        """Note a change that is about to be made."""
        if isinstance(change, Cut):
            self._safely(lambda: self._begin_cycle(change.now))
        if self._since is None:
            return
        try:
            if self._waiting.add(change) >= PIECE or self._waiting.count >= segments.FRAME:
                self._hand_over()
        except Exception as error:  # noqa: BLE001  # as in _safely; written out, as it runs for every change
            self._stop(in_words(error))

    def planned(self, plan: Plan) -> None:
        """Note what the last cut has led to."""
        if self._since is not None:
            self._safely(lambda: self._waiting.add(Planned.of(plan)))

    def close(self) -> None:
        """Write what waits, and end.  The writer has as long as it needs."""
        self._rim.tell = None
        if self._thread is not None:
            self._hand_over()
            self._work.put(self._writer.end)
            self._work.put(None)
            self._thread.join()
            self._thread = None

    # ------------------------------------------------------------------ inside

    def _safely(self, work: Callable[[], object]) -> None:
        """Do ``work``; whatever is wrong with it ends the record, and nothing else."""
        try:
            work()
        except Exception as error:  # noqa: BLE001  # scheduling does not hang on its record
            self._stop(in_words(error))

    def _begin_cycle(self, now: float) -> None:
        if error := self._writer.error:
            self._writer.error = ""
            self._stop(error)
        self._hand_over()
        if self._is_due(now):
            self._begin(now)
        if self._since is not None and (conf := self._configured()) != self._conf:
            self._conf = conf
            self._waiting.add(conf)

    def _is_due(self, now: float) -> bool:
        if self._since is None:
            return now >= self._again and self._work.empty()
        most = max(self.limits.segment_entries, 2 * len(self._rim.state.tasks))
        grown = self._writer.size >= self.limits.segment_bytes or self._first >= most
        return grown or not 0 <= now - self._since < self.limits.segment_seconds

    def _begin(self, now: float) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._writer.run, args=(self._work,), name="recorder")
            self._thread.start()
        checkpoint = Checkpoint(self._rim.state)
        self._since, self._first, self._conf = now, 0, None
        self._put(lambda: self._writer.begin(now, checkpoint))

    def _hand_over(self) -> None:
        if self._waiting.count and self._since is not None:
            first, now, batch = self._first, self._clock(), self._waiting
            self._first += batch.count
            self._put(lambda: self._writer.entries(first, now, batch))
        self._waiting = Batch()

    def _put(self, work: Callable[[], None]) -> None:
        try:
            self._work.put_nowait(work)
        except Full:
            self._stop("the disk is too slow")

    def _stop(self, error: str) -> None:
        self._since, self._again = None, self._clock() + AGAIN
        self._waiting = Batch()
        self.failures += 1
        self._tell("record_stopped", error=error, seconds=AGAIN)


class _Writer:
    """What the thread does.  After an ``error`` nothing is written until a new segment begins."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        self._folder, self._limits = folder, limits
        self._file: BinaryIO | None = None
        self.error = ""
        self.size = self.bytes = 0

    def run(self, work: Queue[Callable[[], None] | None]) -> None:
        while (call := work.get()) is not None:
            try:
                call()
            except Exception as error:  # noqa: BLE001  # whatever cannot be written ends the record, and nothing else
                self._close()
                self.error = in_words(error)

    def begin(self, now: float, checkpoint: Checkpoint) -> None:
        self.end()
        self._file, self.size = self._opened(now), 0
        about = {"stromboli": _version(), "python": platform.python_version(), "numpy": np.__version__}
        self._write(segments.ABOUT, 0, now, msgspec.msgpack.encode(about))
        self._write(segments.CHECKPOINT, 0, now, checkpoint.encode())
        self._tidy(now)

    def _opened(self, now: float) -> BinaryIO:
        """A new file; several schedulers may write to one folder."""
        for number in range(1000):
            path = self._folder / f"rec-{int(now * 1000):0{segments.STAMP}d}-{number:03d}{segments.SUFFIX}"
            try:
                found = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                continue
            return os.fdopen(found, "wb", buffering=0)
        raise FileExistsError(f"{self._folder} has a thousand segments of this moment")

    def entries(self, first: int, now: float, batch: Batch) -> None:
        if self._file is not None:
            self._write(segments.ENTRIES, first, now, batch.content())

    def end(self) -> None:
        if self._file is not None:
            self._write(segments.END, 0, 0.0, b"")
        self._close()

    def _write(self, kind: bytes, first: int, now: float, content: bytes | bytearray) -> None:
        if self._file is not None:
            written = segments.write(self._file, kind, first, now, content)
            self.size += written
            self.bytes += written

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _tidy(self, now: float) -> None:
        """Remove what is beyond the limits, the oldest first."""
        found = [
            (path, path.stat().st_size, segments.begun(path))
            for path in sorted(self._folder.glob(f"rec-*{segments.SUFFIX}"))
        ]
        for path in segments.surplus(found, self._limits.bytes, now - self._limits.seconds):
            path.unlink(missing_ok=True)


def record(scheduler: LiveScheduler, folder: Path, limits: Limits = USUAL) -> Recorder:
    """Record ``scheduler`` in ``folder`` from its next cycle on; to be closed in the end.  Raises OSError."""
    configuration = scheduler.configuration
    registry, options = configuration.source.registry, configuration.current.plugins()
    classes = [registry.plugin_class(option.name) for option in options if option.name in registry.plugin_names]
    scrub = Scrub([domain for one in classes if one is not None for domain in one.annotations])
    found = Recorder(
        folder, scheduler.mirror.rim, Configurations(configuration), scheduler.tell, scheduler.clock, limits, scrub
    )
    before = scheduler.when_planned

    def when_planned(plan: Plan) -> None:
        found.planned(plan)
        before(plan)

    scheduler.when_planned = when_planned
    return found


class Configurations:
    """The entry of the configuration of the moment, made once for each; secrets in settings are hidden."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._of: object = None
        self._entry: Configured | None = None

    def __call__(self) -> Configured:
        """The entry.  Raises ConfigError and OSError."""
        config, source = self._configuration.current, self._configuration.source
        if self._entry is None or self._of is not config:
            features, sampling = sorted(config.features), config.sampling
            given = None if sampling is None else (sampling.minimum, sampling.least_percent, sampling.percent)
            self._entry = Configured(_without_secrets(source.text()), config.compat, source.lenient, features, given)
            self._of = config
        return self._entry


def _without_secrets(text: str) -> str:
    """A configuration's text; rewritten if a secret had to be hidden."""
    found = yaml.safe_load(text)
    safe = shown("", found)
    return text if safe == found else yaml.safe_dump(safe, sort_keys=False)


def _version() -> str:
    from importlib.metadata import version

    return version("stromboli")
