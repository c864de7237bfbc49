"""A record with other names: its cycles run on the renamed inputs, and a new record of that."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from stromboli.cluster.files.written import manifests
from stromboli.cluster.objects import from_value
from stromboli.cluster.rim import Applied, Change, Cut, Rim
from stromboli.cluster.state import ClusterState
from stromboli.cycle import run_cycle
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.journal import segments
from stromboli.journal.checkpoint import Checkpoint
from stromboli.journal.entries import Configured, Planned, decode, encode
from stromboli.journal.pseudonyms import Pseudonyms
from stromboli.journal.segments import ABOUT, CHECKPOINT, END, ENTRIES, Segment
from stromboli.model.snapshot import Snapshot
from stromboli.narration.observe import SILENT
from stromboli.plugins.extender.calls import Recorded
from stromboli.study.replay import Entry, Reading, entries


class Anonymised:
    """Writes the record at ``record`` into folder ``into`` with other names.

    ``cycles`` counts, ``alike`` those that bind and evict the same, by their other names.
    """

    def __init__(self, record: Path, into: Path, registry: Registry) -> None:
        self._segments, self._into, self._registry = segments.segments(record), into, registry
        self._reading, self._names = Reading(registry), Pseudonyms()
        self._rim = Rim(ClusterState())
        self._snapshot: Snapshot | None = None
        self._cut: Cut | None = None
        self._config: Config | None = None
        self.cycles = self.alike = 0

    def write(self) -> None:
        """Read twice, write once.  Raises RecordError, FileExistsError and OSError."""
        self._into.mkdir(mode=0o700, parents=True, exist_ok=True)
        for segment in self._segments:
            self._look(segment)
        self._names.settle()
        for number, segment in enumerate(self._segments):
            self._rewrite(segment, first=number == 0)

    def _look(self, segment: Segment) -> None:
        for found in entries(segment):
            if not isinstance(found, Entry):
                nodes = list(found[0].nodes.entries())
                self._names.seen(_objects(found[0]), nodes)
            elif not isinstance(found.change, Configured):
                self._names.seen(_plain(found.change), _node_of(found.change))

    def _rewrite(self, segment: Segment, *, first: bool) -> None:
        path = self._into / segment.path.name
        made: list[Change] = []
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            since = segments.begun(segment.path)
            segments.write(file, ABOUT, 0, since, msgspec.msgpack.encode({"stromboli": "anonymised"}))
            segments.write(file, CHECKPOINT, 0, since, Checkpoint(self._rim.state).encode())
            for found in entries(segment):
                if isinstance(found, Entry):
                    made.append(self._made(found.change, segment))
                elif first:
                    made += self._begin(found[0])
            segments.write(file, ENTRIES, 0, since, encode(made))
            segments.write(file, END, 0, 0.0, b"")

    def _begin(self, state: ClusterState) -> Sequence[Change]:
        """What was there at first, as news."""
        found = [Applied(one["kind"], True, from_value(one["kind"], self._names.told(one))) for one in _objects(state)]
        for change in found:
            self._do(change)
        return found

    def _made(self, change: Change, segment: Segment) -> Change:
        if isinstance(change, Configured):
            self._config = self._reading.configured(change, segment)
            return change
        if isinstance(change, Planned):
            return self._planned(change)
        (told,) = decode(msgspec.msgpack.encode([self._names.told(_plain(change))]))
        found = self._do(told)
        if isinstance(told, Cut):
            self._cut, self._snapshot = told, found
        return told

    def _do(self, change: Change) -> Any:
        try:
            return self._rim.do(change)
        except Exception:  # noqa: BLE001  # what the state refused live it refuses again, when this record is replayed
            return None

    def _planned(self, then: Planned) -> Change:
        if self._snapshot is None or self._cut is None or self._config is None:
            return then
        cut, told = self._cut, self._names.told
        plan = run_cycle(self._snapshot, self._config, self._registry, cut.now, cut.seed, SILENT, _offered(then))
        decided, now = _decided(then), _decided(plan)
        self.cycles += 1
        self.alike += [(told(key), told(node)) for key, node in decided] == now
        return Planned.of(plan)


def _decided(found: Planned | Plan) -> list[tuple[str, str]]:
    """Pods and nodes of all binds, then of all evictions."""
    return [(one.key, one.node) for one in found.binds] + [(one.key, one.node) for one in found.evictions]


def _offered(then: Planned) -> dict[str, object]:
    """Extenders were asked about other names: they have no answers here."""
    return {"extender": Recorded(())} if then.answers else {}


def _node_of(change: Change) -> list[str]:
    """The name of the node that a change is news of."""
    return [change.object.metadata.name] if isinstance(change, Applied) and change.kind == "Node" else []


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value, builtin_types=(bytes,))


def _objects(state: ClusterState) -> list[dict[str, Any]]:
    return list(manifests(state, 0.0))
