"""Records that tests write entry by entry, as the recorder of a live scheduler does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from stromboli.builtin import full_registry
from stromboli.cluster.objects import from_value
from stromboli.cluster.rim import Applied, Change, Cut, Decided, Learned, Rim
from stromboli.cluster.state import ClusterState
from stromboli.cycle import run_cycle
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.config import DEFAULT_CONFIG
from stromboli.journal import segments
from stromboli.journal.checkpoint import Checkpoint
from stromboli.journal.entries import Batch, Configured, Planned
from stromboli.model.status import TaskStatus
from stromboli.model.task import twin

BEGIN = 1_700_000_000.0


class WrittenRecord:
    """A record in ``folder``; ``rim`` is the state that it tells of.  Times count from :data:`BEGIN`."""

    def __init__(self, folder: Path, conf: str = DEFAULT_CONFIG, state: ClusterState | None = None) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.rim = folder, Rim(state or ClusterState())
        self.registry = full_registry("")
        self.config = self.registry.configured_by(conf, "conf")
        self._conf, self._waiting, self._first = conf, Batch(), 0
        self.rim.tell = self.note
        self._file: Any = None

    def begin(self, at: float) -> None:
        """A new segment, which begins with the whole state."""
        self.close()
        name = f"rec-{int((BEGIN + at) * 1000):0{segments.STAMP}d}-000{segments.SUFFIX}"
        self._file, self._first = (self.folder / name).open("wb"), 0
        self._waiting = Batch()
        segments.write(self._file, segments.ABOUT, 0, BEGIN + at, msgspec.msgpack.encode({"stromboli": "test"}))
        segments.write(self._file, segments.CHECKPOINT, 0, BEGIN + at, Checkpoint(self.rim.state).encode())
        self.note(Configured(self._conf, False, False, [], None))

    def note(self, change: Change) -> None:
        """Write an entry that changes no state."""
        self._waiting.add(change)

    def apply(self, *objects: dict[str, Any], stays: bool = True) -> None:
        """News of objects."""
        for one in objects:
            self.rim.do(Applied(one["kind"], stays, from_value(one["kind"], one)))

    def cycle(self, at: float, *, binds: bool = True) -> Plan:
        """A cycle; what it binds stands on its node afterwards."""
        now = BEGIN + at
        plan = run_cycle(self.rim.do(Cut(now, 0, 0)), self.config, self.registry, now, 0)
        self.note(Planned.of(plan))
        for bind in plan.binds if binds else ():
            task = twin(self.rim.state.tasks[bind.key])
            task.status, task.node_name = TaskStatus.Bound, bind.node
            self.rim.do(Decided.to(task))
        self.rim.do(Learned.of(plan, self.rim.state))
        self.flush(now)
        return plan

    def flush(self, now: float = BEGIN) -> None:
        """Write what waits as one frame."""
        if self._waiting.count:
            segments.write(self._file, segments.ENTRIES, self._first, now, self._waiting.content())
            self._first += self._waiting.count
            self._waiting = Batch()

    def close(self) -> None:
        """End the segment in order."""
        if self._file is not None:
            self.flush()
            segments.write(self._file, segments.END, 0, 0.0, b"")
            self._file.close()
            self._file = None
