"""What another configuration would have decided in each recorded cycle, with the inputs that there were.

Each cycle begins from what was recorded: what follows from another decision is not followed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from stromboli.cycle import run_cycle
from stromboli.framework.books.plan import Bind, Eviction, Plan
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.journal.entries import Planned
from stromboli.journal.segments import Segment
from stromboli.study.replay import Reading, SeenMoment

Decision = tuple[str, str, str, str]
"""Bind or evict, the pod, its node and its job."""


class Row(NamedTuple):
    """At ``now`` (seconds since 1970) one side decided something of ``pod`` that the other one did not: on which node.

    ``recorded`` or ``other`` is empty where that side decided nothing.
    """

    now: float
    what: str
    job: str
    pod: str
    recorded: str
    other: str


class PolicyDiff:
    """Compares recorded cycles with those of ``config``; ``rows`` are the differences, ``cycles`` counts.

    ``jobs`` are the uids of all that were there meanwhile.

    What one side decides again and again, as the other one never does it, counts once.
    """

    def __init__(self, config: Config, registry: Registry, since: float = 0.0) -> None:
        self._config, self._since = config, since
        self._reading = Reading(registry)
        self._last: tuple[SeenMoment, Plan] | None = None
        self._seen: set[Decision] = set()
        self.rows: list[Row] = []
        self.cycles = 0
        self.jobs: set[str] = set()

    def read(self, segment: Segment, until: float = float("inf")) -> bool:
        """Compare a segment; False once a cycle begins later than ``until``.  Raises RecordError."""
        self._last = None
        return self._reading.read(segment, self._run, self._compare, until=until)

    def _run(self, moment: SeenMoment) -> None:
        if moment.cut.now >= self._since:
            self.jobs.update(moment.rim.state.jobs)
            config = replace(self._config, features=moment.config.features, sampling=moment.config.sampling)
            cut = moment.cut
            self._last = moment, run_cycle(moment.snapshot, config, self._reading.registry, cut.now, cut.seed)

    def _compare(self, planned: Planned) -> None:
        if self._last is None:
            return
        (moment, plan), self._last = self._last, None
        self.cycles += 1
        then = dict(_decided(planned.binds, planned.evictions))
        now = dict(_decided(plan.binds, plan.evictions))
        for key in sorted(then.keys() | now.keys()):
            recorded, other = then.get(key), now.get(key)
            fresh = {one for one in (recorded, other) if one is not None} - self._seen
            if recorded != other and fresh:
                self._seen |= fresh
                self.rows.append(_row(moment.cut.now, recorded, other))


def _decided(binds: list[Bind], evictions: list[Eviction]) -> Iterator[tuple[tuple[str, str], Decision]]:
    for what, some in (("bind", binds), ("evict", evictions)):
        for one in some:
            yield (what, one.key), (what, one.key, one.node, one.job)


def _row(now: float, recorded: Decision | None, other: Decision | None) -> Row:
    what, pod, _, job = recorded or other or ("", "", "", "")
    return Row(now, what, job, pod, recorded[2] if recorded else "", other[2] if other else "")
