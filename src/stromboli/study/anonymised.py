"""A record with other names: its cycles run on the renamed inputs, and a new record of that."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from stromboli.cluster.rim import Applied, Change, Cut, Rim
from stromboli.cluster.state import ClusterState
from stromboli.cycle import run_cycle
from stromboli.errors import RecordError, SnapshotError, StudyError, in_words
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.journal import segments
from stromboli.journal.checkpoint import Checkpoint, restored
from stromboli.journal.entries import Batch, Configured, Planned, decode
from stromboli.journal.pseudonyms import Pseudonyms
from stromboli.journal.segments import ABOUT, CHECKPOINT, END, ENTRIES, Frame, Segment
from stromboli.model.snapshot import Snapshot
from stromboli.narration.observe import SILENT
from stromboli.plugins.extender.calls import Recorded
from stromboli.study.replay import Entry, Reading, entries


class Anonymised:
    """Writes the record at ``record`` into folder ``into`` with other names.

    ``cycles`` counts, ``alike`` those that bind and evict the same, by their other names.  ``left_out`` are the plans
    of cycles that cannot be run on the renamed inputs, and ``why`` says it of the first: nothing of them is written.
    """

    def __init__(self, record: Path, into: Path, registry: Registry) -> None:
        self._segments, self._into = segments.segments(record), into
        self._reading, self._names = Reading(registry), Pseudonyms()
        self.cycles = self.alike = self.left_out = 0
        self.why = ""

    def write(self) -> None:
        """Read twice, write once.  Raises RecordError, FileExistsError and OSError."""
        self._into.mkdir(mode=0o700, parents=True, exist_ok=True)
        for segment in self._segments:
            self._look(segment)
        self._names.settle()
        for segment in self._segments:
            self._rewrite(segment)

    def _look(self, segment: Segment) -> None:
        for found in entries(segment):
            try:
                self._see(found)
            except SnapshotError as error:
                place = found.frame.at if isinstance(found, Entry) else 0
                raise RecordError(segment.path, place, str(error)) from error

    def _see(self, found: tuple[ClusterState, None] | Entry) -> None:
        if not isinstance(found, Entry):
            self._names.seen(_whole(found[0]), found[0].nodes.entries())
        elif not isinstance(found.change, Configured | Planned):
            self._names.seen(_plain(found.change), _node_of(found.change))

    def _rewrite(self, segment: Segment) -> None:
        path = self._into / segment.path.name
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            since = segments.begun(segment.path)
            segments.write(file, ABOUT, 0, since, msgspec.msgpack.encode({"stromboli": "anonymised"}))
            cycles, first = _Cycles(Rim(ClusterState()), self._reading.registry), 0
            for found, made in groupby(self._made(segment, cycles), itemgetter(0)):
                if isinstance(found, bytes):
                    segments.write(file, CHECKPOINT, 0, since, found)
                    continue
                for some in _parts((change for _, change in made if change is not None), segments.FRAME):
                    segments.write(file, ENTRIES, first, found.time, Batch(some).content())
                    first += len(some)
            segments.write(file, END, 0, 0.0, b"")

    def _made(self, segment: Segment, cycles: _Cycles) -> Iterator[tuple[bytes | Frame, Change | None]]:
        """The checkpoint with other names, then each change with its frame; None for one that is left out."""
        for found in entries(segment):
            if not isinstance(found, Entry):
                kind, version, body = _whole(found[0])
                content = msgspec.msgpack.encode((kind, version, self._names.told(body)))
                cycles.rim = Rim(self._readable(segment, found[0], content))
                yield content, None
            elif isinstance(found.change, Configured):
                cycles.config = self._reading.configured(found.change, segment)
                yield found.frame, found.change
            elif isinstance(found.change, Planned):
                yield found.frame, self._planned(found.change, cycles, segment, found.frame)
            else:
                (told,) = decode(msgspec.msgpack.encode([self._names.told(_plain(found.change))]))
                cycles.make(told)
                yield found.frame, told

    def _readable(self, segment: Segment, state: ClusterState, content: bytes) -> ClusterState:
        try:
            return restored(content)
        except SnapshotError as error:
            raise RecordError(
                segment.path, 0,
                f"its checkpoint cannot be read with other names: {error}; leave this segment out, and tell us",
            ) from error  # fmt: skip

    def _planned(self, then: Planned, cycles: _Cycles, segment: Segment, frame: Frame) -> Planned | None:
        """What is planned by the other names; what was planned by the real ones is never written."""
        try:
            decided = [(self._names.told(key), self._names.told(node)) for key, node in _decided(then)]
        except KeyError as error:
            raise RecordError(segment.path, frame.at, f"a plan names {error}, which no state has") from error
        try:
            plan = cycles.planned(_offered(then))
        except Exception as error:  # noqa: BLE001  # whatever is wrong with renamed inputs, nothing else may be written
            self.left_out += 1
            self.why = self.why or in_words(error)
            return None
        self.cycles += 1
        self.alike += decided == _decided(plan)
        return Planned.of(plan)


class _Cycles:
    """The cycles of a segment on its renamed inputs."""

    def __init__(self, rim: Rim, registry: Registry) -> None:
        self.rim, self._registry = rim, registry
        self.config: Config | None = None
        self._cut: tuple[Cut, Snapshot] | None = None
        self._refused: Exception | None = None

    def make(self, change: Change) -> None:
        """Let a change happen; what the state refused live it refuses again, when the new record is replayed."""
        found: Any = None
        try:
            found = self.rim.do(change)
        except Exception as error:  # noqa: BLE001  # told where a plan depends on it
            self._refused = error if isinstance(change, Cut) else self._refused
        if isinstance(change, Cut):
            self._cut = (change, found) if isinstance(found, Snapshot) else None

    def planned(self, offered: Mapping[str, object]) -> Plan:
        """What the last cut leads to.  Raises what kept its snapshot from being taken, and what the cycle raises."""
        if self._cut is None or self.config is None:
            raise self._refused or StudyError("no cycle begins before this plan")
        (cut, snapshot), self._cut = self._cut, None
        return run_cycle(snapshot, self.config, self._registry, cut.now, cut.seed, SILENT, offered)


def _parts(changes: Iterable[Change], most: int) -> Iterator[list[Change]]:
    every = iter(changes)
    while some := list(islice(every, most)):
        yield some


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


def _whole(state: ClusterState) -> Any:
    """The checkpoint of a state as plain values: kind, version, body."""
    return msgspec.msgpack.decode(Checkpoint(state).encode())
