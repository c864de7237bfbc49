"""A record, asked from Python: what was decided and why, what another policy had decided, and what had followed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from stromboli.builtin import full_registry
from stromboli.errors import RecordError, StudyError
from stromboli.framework.config.registry import Registry
from stromboli.journal.segments import segments
from stromboli.model.values.times import moment, stamp
from stromboli.sim.explanation.explain import Explanation
from stromboli.sim.simulation.workload import Workload
from stromboli.study.closed_loop import ClosedLoop, JobRow, ModelError
from stromboli.study.conf import Conf
from stromboli.study.contents import contents
from stromboli.study.diff import PolicyDiff
from stromboli.study.past import Past
from stromboli.study.recorded.history import History
from stromboli.study.recorded.trace import recorded_trace
from stromboli.study.replay import Difference, Replay, need_cycles, read_span
from stromboli.study.report.plots import waits
from stromboli.study.simulating import objects_in
from stromboli.study.story import Span
from stromboli.study.tables import Table

Time = float | str
"""Seconds since 1970, a time such as ``2026-11-20T10:00:00Z``, or of the record's first day, such as ``10:00``; UTC."""


class Replayed(NamedTuple):
    """Recorded cycles that were run once more: ``equal`` gave the recorded plan, ``outside`` cannot be replayed."""

    equal: int
    outside: int
    difference: Difference | None

    def assert_equal(self) -> None:
        """Raise StudyError at a plan that is another one now, with what differs."""
        if self.difference is not None:
            found = self.difference
            where = f"{found.file}, entry {found.entry}: the plan of {stamp(found.now)} is another one now"
            raise StudyError("; ".join([where, *found.lines]))


class Explained(NamedTuple):
    """Why a job waited: its ``spans`` of equal standing, and the first of each cause ``explained`` by its cycle."""

    spans: list[Span]
    explained: list[tuple[Span, Explanation]]

    def __str__(self) -> str:
        return "\n".join(map(str, self.spans))


class Plots:
    """Pictures of a comparison, as matplotlib Figures."""

    def __init__(self, found: ClosedLoop) -> None:
        self._found = found

    def waits(self) -> Any:
        """Which part of the jobs waited at most so long, under both configurations.  Raises StudyError."""
        found = self._found

        def waited(row: JobRow, start: float | None) -> float:
            return (found.seconds if start is None else start) - row.submit

        figure = waits({
            "recorded": [waited(row, row.start) for row in found.jobs],
            "other": [waited(row, row.other) for row in found.jobs],
        })  # fmt: skip
        figure.axes[0].legend(frameon=False)
        return figure


class Diff:
    """What would have followed from another configuration; ``model_error`` comes first: what it does not exceed twice
    says nothing.
    """

    def __init__(self, found: ClosedLoop) -> None:
        self._found = found
        self.model_error: ModelError = found.model_error
        self.plot = Plots(found)

    @property
    def jobs(self) -> Table:
        """A row for each job, under both configurations."""
        return _jobs(self._found.jobs)

    @property
    def by_queue(self) -> Table:
        """A row for each queue: pairs are of the recorded configuration and of the other one."""
        pairs = ("started", "wait", "hours", "evictions")
        rows = [row._asdict() for row in self._found.queues()]
        return Table([
            {key: value for key, value in row.items() if key not in pairs}
            | {f"{key} {side}": row[key][at] for key in pairs for at, side in enumerate(("recorded", "other"))}
            for row in rows
        ])  # fmt: skip

    def losers(self, most: int) -> Table:
        """The jobs that wait longer with the other configuration, the worst first."""
        return _jobs(self._found.losers(most))

    def winners(self, most: int) -> Table:
        """The jobs that wait less, the best first."""
        return _jobs(self._found.winners(most))


def _jobs(rows: Iterable[JobRow]) -> Table:
    return Table([row._asdict() for row in rows])


@dataclass(frozen=True)
class Record:
    """A record in ``folder``, which each question reads again; all raise RecordError at damage, and OSError."""

    folder: Path
    registry: Registry

    @cached_property
    def since(self) -> float:
        """The time of the first cycle, in seconds since 1970."""
        return next((one.since for one in contents(self.folder) if one.since), 0.0)

    @property
    def segments(self) -> Table:
        """A row for each file: times, cycles, entries, bytes, and what is damaged."""
        return Table([{**vars(one), "file": str(one.file)} for one in contents(self.folder)])

    def workload(self, since: Time = 0.0, until: Time = inf) -> Workload:
        """The record's jobs as a trace, to be simulated."""
        return recorded_trace(self._history(since, until), self.folder.name).workload

    def replay(self, since: Time = 0.0, until: Time = inf) -> Replayed:
        """Run the cycles once more and compare every plan, up to the first that differs.

        Raises StudyError where there is no cycle that can be compared.
        """
        begin = self._time(since)
        found = Replay(self.registry, since=begin)
        read_span(self.folder, begin, self._time(until), found.read)
        found.check(self.folder)
        return Replayed(found.equal, found.outside, found.difference)

    def explain(self, job: str, since: Time = 0.0, until: Time = inf) -> Explained:
        """When and why the standing of a job (``namespace/podgroup`` or ``namespace/job``) changed."""
        past = Past(self.folder, job, self.registry, self._time(since), self._time(until))
        spans = past.spans()
        return Explained(spans, list(past.explained()))

    def each_cycle(self, conf: str | Path | Conf, since: Time = 0.0, until: Time = inf) -> Table:
        """In which binds and evictions each recorded cycle differs with another configuration.

        Raises ConfigError, and StudyError where there is no cycle.
        """
        begin = self._time(since)
        found = PolicyDiff(Conf.of(conf).config(self.registry), self.registry, begin)
        read_span(self.folder, begin, self._time(until), found.read)
        need_cycles(self.folder, found.cycles)
        return Table([row._asdict() for row in found.rows])

    def diff(
        self, conf: str | Path | Conf, *, queues: str | Path = "", since: Time = 0.0, until: Time = inf,
        workers: int = 1,
    ) -> Diff:  # fmt: skip
        """What would have followed from another configuration, and other queues (a file of manifests).

        With more than one of ``workers`` both configurations are simulated at the same time.  Raises ConfigError,
        ManifestError and PluginError.
        """
        config, history = Conf.of(conf).config(self.registry), self._history(since, until)
        objects = objects_in(queues) if queues else ()
        return Diff(ClosedLoop(history, config, self.registry, objects, workers=workers))

    def _history(self, since: Time, until: Time) -> History:
        return History(self.folder, self.registry, self._time(since), self._time(until)).read()

    def _time(self, when: Time) -> float:
        if not isinstance(when, str):
            return when
        day = datetime.fromtimestamp(self.since, UTC).date()
        try:
            return moment(when if "-" in when else f"{day}T{when}")
        except ValueError:
            raise StudyError(f"{when!r} is no time; write e.g. 10:00 or 2026-11-20T10:00:00Z") from None


def open_record(folder: str | Path, plugins_dir: str | Path = "") -> Record:
    """The record in a folder, or of one segment.  Raises RecordError where there is none, and PluginError."""
    path = Path(folder)
    if not path.exists():
        raise RecordError(path, 0, "there is no such folder or file")
    segments(path)
    return Record(path, full_registry(str(plugins_dir)))
