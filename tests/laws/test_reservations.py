"""What holds of reservations through restarts, conflicts, lost and repeated news, and whatever becomes of nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.framework.books.cluster_view import ClusterView
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.gates import PIPELINED_STATE, switched_on
from stromboli.framework.extension.handlers import TaskEvent
from stromboli.framework.session.session import Session
from stromboli.model.job import PIPELINED, RELEASING, Job
from stromboli.model.jobs.roles import roles_pipelined
from stromboli.model.jobs.sums import COUNTED
from stromboli.model.names import GROUP_NAME
from stromboli.model.status import ALLOCATED_STATUS
from stromboli.model.task import GRACE
from stromboli.narration.observe import SILENT, Counting, Observer
from stromboli.plugin import Plugin, on_allocate, on_deallocate
from stromboli.preemption.eviction_delay import MAX_RECHECKS, PATIENCE
from stromboli.testing.builders import Manifest
from tests.laws.bookkeeping import below_zero, trimmed
from tests.laws.histories import (
    CONFS,
    ELASTIC,
    GRACES,
    HAPPENINGS,
    PERIOD,
    TIMEOUT,
    History,
    Life,
    Looks,
    histories,
    rivalries,
    stating,
)
from tests.laws.scenes import config_of, with_plugins

some, few = settings(max_examples=25), settings(max_examples=15)
"""A history takes as long as ten sessions.  Floors are held from 25 examples on (tests/laws/floors.toml)."""


class Events(Plugin):
    """Counts from events alone which tasks hold a place and what each queue holds."""

    name = "events"

    def on_session_open(self, session: ClusterView) -> None:
        self.held: Counter[str] = Counter()
        self.came: Counter[str] = Counter()
        for job in session.jobs.peek():
            for task in job.of(*ALLOCATED_STATUS, PIPELINED):
                self.held[task.uid] += 1

    @on_allocate
    def comes(self, event: TaskEvent) -> None:
        self.held[event.task.uid] += 1
        self.came[event.task.uid] += 1

    @on_deallocate
    def leaves(self, event: TaskEvent) -> None:
        self.held[event.task.uid] -= 1


def born(history: History, observer: Observer = SILENT, **looks: Callable[..., object]) -> Life:
    """The life of a history, to be lived, its sessions shown to ``looks`` and heard by ``observer``."""
    config = replace(config_of(history.conf), features=switched_on({PIPELINED_STATE: True}))
    config, registry = with_plugins(config, Events)
    return Life(history, config, registry, Looks(**{when: [look] for when, look in looks.items()}), observer)


def lived(history: History, **looks: Callable[..., object]) -> Life:
    """The same, lived."""
    life = born(history, SILENT, **looks)
    life.live()
    return life


# ---------------------------------------------------------------------- sums


@pytest.mark.law("no sum is ever below zero, whatever becomes of reservations")
@few
@given(histories())
def test_below_zero(history: History) -> None:  # S4-34
    def look(session: Session) -> None:
        assert below_zero(session) == []
        assert session.plan.inconsistencies == []

    lived(history, opened=look, acted=look, planned=look)


def total(vectors: Iterable[Sequence[int]]) -> tuple[int, ...]:
    return trimmed(sum(column) for column in zip_longest(*vectors, fillvalue=0))


def recounted(session: Session) -> dict[str, Any]:
    """What nodes, jobs and queues hold, counted afresh from the tasks."""
    tasks = [task for job in session.jobs.peek() for task in job.tasks.values()]
    apart = [task for task, _ in session.snapshot.pods_on_nodes() if session.job_of(task) is None]
    found: dict[str, Any] = {}
    for name in session.table.statics.names:
        here = [task for task in (*tasks, *apart) if task.node_name == name]
        groups = {"used": (*ALLOCATED_STATUS, RELEASING), "releasing": (RELEASING,), "pipelined": (PIPELINED,)}
        for column, statuses in groups.items():
            found[f"{name} {column}"] = total(task.template.vector for task in here if task.status in statuses)
    for job in session.jobs.peek():
        for part in ("allocated", "held", "request"):
            found[f"{job.uid} {part}"] = of_job(job, part)
    for name in session.queues:
        jobs = [job for job in session.jobs.peek() if job.queue == name]
        for part in ("allocated", "held"):
            found[f"{name} {part}"] = total(of_job(job, part) for job in jobs)
    return found


def of_job(job: Job, part: str) -> tuple[int, ...]:
    return total(task.template.vector for task in job.tasks.values() if part in COUNTED[task.status])


def kept(session: Session) -> dict[str, Any]:
    """What nodes, jobs, queues and plugins say that they hold."""
    found: dict[str, Any] = {}
    for row, name in enumerate(session.table.statics.names):
        for column in ("used", "releasing", "pipelined"):
            found[f"{name} {column}"] = trimmed(getattr(session.table, column)[:, row].tolist())
    for job in session.jobs.peek():
        for part in ("allocated", "held", "request"):
            found[f"{job.uid} {part}"] = trimmed(getattr(job.sums, part))
    for name, queue in session.queues.items():
        for part in ("allocated", "held"):
            found[f"{name} {part}"] = trimmed(getattr(queue.sums, part))
    return found


def agree(session: Session) -> None:
    counted = recounted(session)
    assert kept(session) == counted
    for name in ("proportion", "capacity"):
        for queue, account in getattr(session.plugins.get(name), "accounts", {}).items():
            assert trimmed(account.held) == counted[f"{queue} held"], f"{name} {queue}"
    events = session.plugins["events"]
    assert isinstance(events, Events)
    held = {task.uid for job in session.jobs.peek() for task in job.of(*ALLOCATED_STATUS, PIPELINED)}
    assert {uid for uid, number in events.held.items() if number} == held


@pytest.mark.law("the sums that plugins keep equal a fresh count of the tasks, reservations included")
@some
@given(histories())
def test_recount(history: History) -> None:  # S4-34
    lived(history, opened=agree, acted=agree)


@pytest.mark.law("plugins hear of each bound task exactly once, whether it held a reservation or not")
@few
@given(histories())
def test_events(history: History) -> None:
    def look(session: Session) -> None:
        events = session.plugins["events"]
        assert isinstance(events, Events)
        assert all(number in (0, 1) for number in events.held.values())
        for bind in session.plan.binds:
            assert (events.held[bind.uid], events.came[bind.uid] > 0) == (1, True)
        assert len({bind.uid for bind in session.plan.binds}) == len(session.plan.binds)

    lived(history, acted=look)


# ---------------------------------------------------------------------- reservations


def partly(session: Session) -> list[str]:
    """Jobs that hold reservations without being whole with them."""
    waiting = [job for job in session.jobs.peek() if PIPELINED in job.index]
    return [job.uid for job in waiting if not job.is_ready() and not (job.is_pipelined() and roles_pipelined(job))]


@pytest.mark.law("a gang holds reservations for all tasks that it lacks, or for none")
@some
@given(histories())
def test_whole(history: History) -> None:
    def opened(session: Session) -> None:
        assert partly(session) == []

    def carried_out(_plan: Plan) -> None:
        if not life.leader.carrier.refused and not life.leader.ear.loses:
            assert halves(life) == []

    life = born(history, opened=opened, carried_out=carried_out)
    life.live()


def halves(life: Life) -> list[str]:
    """Gangs that, as the cluster has them, hold room for some and not for all that they lack."""
    jobs = [job for job in life.leader.state.jobs.values() if PIPELINED in job.index]
    return [job.uid for job in jobs if not job.is_ready() and not job.is_pipelined()]


class Ages:
    """How long each reservation has stood, as a scheduler that never forgets would count it.

    Time in which a terminating pod may still occupy a node of the gang does not count.  A refused write may leave
    what was given up on its pod for one cycle more.
    """

    def __init__(self) -> None:
        self.looked = 0.0
        self.ends: dict[str, float] = {}
        self.ages: dict[tuple[str, str, int], float] = {}

    def overdue(self, life: Life) -> list[str]:
        """Pods that have held room on one node for longer than they may, by now."""
        holding, now, ages = list(stating(life.world)), life.timeline.now, dict[tuple[str, str, int], float]()
        for each, node in holding:
            key = each["metadata"]["uid"], node, life.restarts
            counted = max(0.0, now - max(self.looked, self.ends.get(gang_of(each), 0.0)))
            ages[key] = self.ages[key] + counted if key in self.ages else 0.0
        self.looked, self.ages, self.ends = now, ages, {}
        for each, node in holding:  # a gang waits for the slowest of all pods that terminate on its nodes
            self.ends[gang_of(each)] = max([self.ends.get(gang_of(each), 0.0), *endings(life, node)])
        late = TIMEOUT + (2 + life.refusals) * PERIOD
        return [uid for (uid, _, _), age in ages.items() if age > late]


def gang_of(each: Manifest) -> str:
    return str(each["metadata"]["annotations"][GROUP_NAME])


def endings(life: Life, node: str) -> list[float]:
    return [
        float(task.ends)
        for task in life.leader.state.tasks.values()
        if task.node_name == node and task.status is RELEASING
    ]


@pytest.mark.law("every reservation ends in time: its pod is bound, or it is given up")
@some
@given(histories())
def test_in_time(history: History) -> None:
    ages = Ages()

    def carried_out(_plan: Plan) -> None:
        assert ages.overdue(life) == []

    life = born(history, carried_out=carried_out)
    life.live()
    life.settle()
    life.pass_time(20)


class Patience:
    """Hears which jobs wait for slow victims, and since when, as a scheduler that never forgets would count it."""

    def __init__(self) -> None:
        self.heard = Counting({"eviction_postponed", "eviction_not_sought"})
        self.since: dict[tuple[str, int], float] = {}

    def look(self, life: Life, session: Session) -> None:
        """No waiting job has waited for longer than the slowest possible victim allows."""
        wanting = {job.uid for job in session.jobs.peek() if not job.is_ready() or session.ask.job_starving(job)}
        self.since = {key: when for key, when in self.since.items() if key[0] in wanting}
        patient = {str(fields["job"].uid) for _, fields in self.heard.told}  # type: ignore[attr-defined]
        self.heard.told.clear()
        for uid in patient:
            began = self.since.setdefault((uid, life.restarts), session.now)
            assert session.now - began < PATIENCE * (max(GRACES) - GRACE), uid


@pytest.mark.law("no job waits for slow victims for longer than the patience argument allows")
@few
@given(histories(confs=[*CONFS[::2], *[ELASTIC] * 3]), st.sampled_from((0, 1, MAX_RECHECKS)))
def test_patience(history: History, looks: int) -> None:
    patience = Patience()
    with patch("stromboli.preemption.eviction_delay.MAX_RECHECKS", looks):
        life = born(history, patience.heard, acted=lambda session: patience.look(life, session))
        life.live()
        life.settle()
        life.pass_time(5)


QUIET = 3
"""Cycles after which decisions that follow from each other have been made."""


REST = "without events reservations settle: no two jobs take them from each other for ever"


def resting(history: History) -> tuple[Life, Callable[[], None]]:
    """A life in which nothing grows too old, and what to call when its quiet cycles count from now on."""
    quiet, since = 0, False

    def carried_out(plan: Plan) -> None:
        nonlocal quiet
        quiet = 0 if life.happened() or not since else quiet + 1
        assert quiet <= QUIET or plan.annotations == []

    def begin() -> None:
        nonlocal since
        since = True

    life = born(replace(history, conf=history.conf.replace(f"{TIMEOUT}s", "10h")), carried_out=carried_out)
    return life, begin


@pytest.mark.law(REST)
@few
@given(rivalries())
def test_rest(history: History) -> None:
    life, begin = resting(history)
    begin()
    life.live()
    life.pass_time(20)


@pytest.mark.law(REST)
@few
@given(st.one_of(rivalries(HAPPENINGS), histories()))
def test_rest_whatever_has_happened(history: History) -> None:
    """Also where writes were refused, news lost, and nodes have gone or shrunk."""
    life, begin = resting(history)
    life.live()
    life.settle()
    begin()
    life.pass_time(20)
