"""Recorded cycles, run once more: the same inputs give the same plans, or the first difference is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from pdb import Pdb
from typing import NamedTuple

from stromboli.builtin import full_registry
from stromboli.cluster.rim import Change, Cut, Rim
from stromboli.cluster.state import ClusterState
from stromboli.cycle import run_cycle
from stromboli.errors import RecordError, SnapshotError, StudyError
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.framework.config.sampling import Sampling
from stromboli.journal.checkpoint import restored
from stromboli.journal.entries import Configured, Planned, decode
from stromboli.journal.segments import CHECKPOINT, ENTRIES, Frame, Segment, segments
from stromboli.model.snapshot import Snapshot
from stromboli.narration.observe import SILENT, Observer
from stromboli.plugins.extender.calls import Recorded
from stromboli.sim.collecting import seldom_collecting
from stromboli.study.story import Story


class Entry(NamedTuple):
    """An entry of a segment: its number, the frame that it stands in, and the change."""

    number: int
    frame: Frame
    change: Change


def entries(segment: Segment) -> Iterator[tuple[ClusterState, None] | Entry]:
    """The state of a segment's checkpoint, with None, then its entries.  Raises RecordError at the first damage."""
    number, begun = 0, False
    for frame in segment.frames():
        try:
            if frame.kind == CHECKPOINT and not begun:
                begun = True
                yield restored(frame.content), None
            elif frame.kind == ENTRIES:
                if not begun or frame.first != number:
                    raise SnapshotError(f"it begins with entry {frame.first}, and {number} is the next")
                for change in decode(frame.content):
                    yield Entry(number, frame, change)
                    number += 1
        except SnapshotError as error:
            raise RecordError(segment.path, frame.at, str(error)) from error


@dataclass(frozen=True)
class Moment:
    """A recorded cycle: the state behind ``rim`` is as it was when the cycle began, ``config`` too.

    ``entry`` is its number in ``segment``.
    """

    segment: Segment
    entry: int
    cut: Cut
    rim: Rim
    config: Config


@dataclass(frozen=True)
class SeenMoment(Moment):
    """A recorded cycle with the ``snapshot`` that it saw."""

    snapshot: Snapshot


def read_span(record: Path, since: float, until: float, read: Callable[[Segment, float], bool]) -> None:
    """Let ``read`` have the segments of a record in turn, with ``until``, until it says that there is no more to do.

    Times are seconds since 1970.  Raises RecordError.
    """
    for segment in segments(record, since):
        if not read(segment, until):
            return


def need_cycles(record: Path, cycles: int) -> None:
    """Raise StudyError where a part of a record held no cycle, so that nothing was compared."""
    if not cycles:
        raise StudyError(
            f"{record}: that part of the record holds no cycle with its plan, so nothing was compared; "
            "stromboli record info says which times it holds"
        )


class Reading:
    """Reads segments.  ``cycles`` and ``changes`` count, ``refused`` those that the state refused, as it did live.

    ``begun`` is called when a cycle begins, ``planned`` with what it led to, ``changed`` after each other change.
    """

    def __init__(self, registry: Registry | None = None) -> None:
        self.registry = registry or full_registry("")
        self.cycles = self.changes = self.refused = 0
        self._config: Config | None = None

    def read(
        self, segment: Segment, begun: Callable[[SeenMoment], None],
        planned: Callable[[Planned], None] = lambda _: None,
        changed: Callable[[Rim, Change], None] = lambda rim, change: None, until: float = float("inf"),
    ) -> bool:  # fmt: skip
        """Read a segment; False once a cycle begins later than ``until``.  Raises RecordError."""

        def see(moment: Moment) -> None:
            snapshot = self._make(moment.rim, moment.cut)
            if isinstance(snapshot, Snapshot):
                self.cycles += 1
                begun(SeenMoment(**vars(moment), snapshot=snapshot))

        return self._read(segment, see, planned, changed, until)

    def skim(
        self, segment: Segment, begun: Callable[[Moment], None], planned: Callable[[Planned], None],
        changed: Callable[[Rim, Change], None], until: float,
    ) -> bool:  # fmt: skip
        """As :meth:`read`, where cycles are not run again: without the snapshots, half of the work with 2,000 nodes.

        What only a snapshot renews stays as it was counted last: priorities of jobs, and the UTC offset.  A cycle
        counts even if the state refused its snapshot.
        """

        def note(moment: Moment) -> None:
            self.cycles, self.changes = self.cycles + 1, self.changes + 1
            begun(moment)

        return self._read(segment, note, planned, changed, until)

    @seldom_collecting()
    def _read(
        self, segment: Segment, begun: Callable[[Moment], None], planned: Callable[[Planned], None],
        changed: Callable[[Rim, Change], None], until: float,
    ) -> bool:  # fmt: skip
        rim = Rim(ClusterState())
        for found in entries(segment):
            if not isinstance(found, Entry):
                rim = Rim(found[0])
                continue
            change = found.change
            if isinstance(change, Configured):
                self._config = self.configured(change, segment)
            elif isinstance(change, Planned):
                planned(change)
            elif isinstance(change, Cut):
                if change.now > until:
                    return False
                if self._config is None:
                    raise RecordError(segment.path, found.frame.at, "a cycle begins before any configuration")
                begun(Moment(segment, found.number, change, rim, self._config))
            else:
                self._make(rim, change)
                changed(rim, change)
        return True

    def _make(self, rim: Rim, change: Change) -> object:
        self.changes += 1
        try:
            return rim.do(change)
        except Exception:  # noqa: BLE001  # what the state refused live, whatever it was, it refuses again
            self.refused += 1
            return None

    def configured(self, entry: Configured, segment: Segment) -> Config:
        """The configuration of an entry.  Raises ConfigError and PluginError."""
        config = self.registry.configured_by(entry.text, str(segment.path), lenient=entry.lenient, compat=entry.compat)
        sampling = None if entry.sampling is None else Sampling(*entry.sampling)
        return replace(config, features=frozenset(entry.features), sampling=sampling)


def standings(segment: Segment, until: float = float("inf")) -> Iterator[tuple[ClusterState, int, float]]:
    """How the cluster stood after each cycle's plan: the state, the entry of its beginning, and when that was.

    Up to ``until``; times are seconds since 1970.  No snapshots are taken, as by :meth:`Reading.skim`.  Raises
    RecordError.
    """
    rim, began = Rim(ClusterState()), list[tuple[int, float]]()
    for found in entries(segment):
        if not isinstance(found, Entry):
            rim = Rim(found[0])
        elif isinstance(found.change, Cut):
            if found.change.now > until:
                return
            began = [(found.number, found.change.now)]
        elif isinstance(found.change, Planned):
            yield from ((rim.state, *one) for one in began)
        elif not isinstance(found.change, Configured):
            with suppress(Exception):  # what the state refused live, whatever it was, it refuses again
                rim.do(found.change)


class Difference(NamedTuple):
    """A cycle whose plan is another one now: where it stands, when it was, and what differs, a line each."""

    file: Path
    entry: int
    now: float
    lines: list[str]


class Replay:
    """Verifies cycles from ``since`` on: ``equal`` gave the recorded plan, ``outside`` asked what no record holds.

    ``story`` follows a job meanwhile; ``now`` is the time of the present cycle, for an ``observer`` with a clock.
    """

    def __init__(
        self, registry: Registry | None = None, observer: Observer = SILENT, story: Story | None = None,
        since: float = 0.0,
    ) -> None:  # fmt: skip
        self.reading, self.observer, self._story, self._since = Reading(registry), observer, story, since
        self.now = 0.0
        self._at: tuple[Segment, int] | None = None
        self.equal = self.outside = 0
        self.difference: Difference | None = None
        self._last: SeenMoment | None = None

    def read(self, segment: Segment, until: float = float("inf")) -> bool:
        """Verify a segment; False once there is nothing more to do.  Raises RecordError."""
        self._last = None
        more = self.reading.read(segment, self._run, self._compare, until=until)
        return more and self.difference is None

    def _run(self, moment: SeenMoment) -> None:
        if self.difference is None and moment.cut.now >= self._since:
            self._last = moment  # the snapshot stands; what the cycle was answered comes with its plan

    def _compare(self, planned: Planned) -> None:
        if self._last is None or self.difference is not None:
            return
        moment, self._last = self._last, None
        self._at = moment.segment, moment.entry
        self.now = moment.cut.now
        cut, registry, offered = moment.cut, self.reading.registry, {"extender": Recorded(planned.answers)}
        plan = run_cycle(moment.snapshot, moment.config, registry, cut.now, cut.seed, self.observer, offered)
        if self._story is not None:
            self._story.look(moment.rim.state, moment.cut.now)
        if not planned.replayable:
            self.outside += 1
        elif (now := Planned.of(plan)).digest == planned.digest:
            self.equal += 1
        else:
            self.difference = Difference(
                moment.segment.path, moment.entry, moment.cut.now, list(differing(planned, now))
            )

    def check(self, record: Path) -> None:
        """Raise StudyError where no plan was compared: there was no cycle, or none that can be replayed."""
        if self.difference is None and not self.equal:
            need_cycles(record, self.outside)
            raise StudyError(
                f"{record}: none of the cycles there can be replayed, as their plugins asked what no record holds; "
                "nothing was compared"
            )

    def debug(self) -> None:
        """Run the cycle that was verified last, the one that differs if any does, once more in Python's debugger."""
        if self._at is None:
            return
        segment, entry = self._at
        moments: list[SeenMoment] = []

        def begun(moment: SeenMoment) -> None:
            if moment.entry == entry:
                moments.append(moment)

        def planned(found: Planned) -> None:
            if moments:
                raise _Found(found)

        try:
            Reading(self.reading.registry).read(segment, begun, planned)
        except _Found as found:
            moment, offered = moments[0], {"extender": Recorded(found.planned.answers)}
            self.now = moment.cut.now
            given = moment.snapshot, moment.config, self.reading.registry, moment.cut.now, moment.cut.seed
            Pdb().runcall(run_cycle, *given, self.observer, offered)


class _Found(Exception):
    """The cycle is reached, and what it led to is known."""

    def __init__(self, planned: Planned) -> None:
        super().__init__()
        self.planned = planned


def differing(then: Planned, now: Planned) -> Iterator[str]:
    """What tells two plans apart: binds and evictions one by one, and the names of all other fields."""
    for what in ("binds", "evictions"):
        before = {one.key: one.node for one in getattr(then, what)}
        after = {one.key: one.node for one in getattr(now, what)}
        for key in sorted(before.keys() | after.keys()):
            if before.get(key) != after.get(key):
                where = [f"on {side[key]}" if key in side else "none" for side in (before, after)]
                yield f"{what} {key}: recorded {where[0]}, now {where[1]}"
    for field in sorted(then.parts.keys() | now.parts.keys()):
        old, new = then.parts.get(field, (0, b"")), now.parts.get(field, (0, b""))
        if old != new:
            yield f"{field}: recorded {old[0]}, now {new[0]}, not the same"
