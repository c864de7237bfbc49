"""Whatever a statement does, taking it back leaves no trace."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import zip_longest
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.errors import PlacementError
from stromboli.framework.engine.class_store import Classes
from stromboli.framework.engine.hooks import hooks_of
from stromboli.framework.engine.placer import Engine
from stromboli.framework.session.session import Session
from stromboli.framework.statement.operation_kind import OperationKind
from stromboli.framework.statement.statement import Statement
from stromboli.model.job import PENDING, PIPELINED, RUNNING
from stromboli.model.jobs.roles import role_counts
from stromboli.model.status import TaskStatus
from stromboli.model.table import Node
from stromboli.model.task import Task
from tests.laws.bookkeeping import Counts, books, trimmed
from tests.laws.scenes import NOW, Scene, held_scenes, scenes, tight_scenes, with_plugins

Picks = st.lists(st.tuples(st.integers(0, 8), st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=14)
"""Operations: the kind, and two numbers that pick the task and the node."""


def opened(scene: Scene) -> Session:
    config, registry = with_plugins(scene.config, Counts)
    return Session.open(scene.snapshot(), config, registry, NOW)


# ---------------------------------------------------------------------- what must not change


def answers(session: Session) -> dict[str, Any]:
    """What the placer and the plugins say to every waiting task."""
    found: dict[str, Any] = {}
    for job in session.jobs.peek():
        found[job.uid] = session.ask.job_ready(job), session.ask.job_pipelined(job), session.ask.job_valid(job)
        for task in job.of(PENDING):
            choice = session.placer.place(task)
            refused = session.placer.refusals(task).text
            found[task.uid] = choice, refused, session.ask.allocatable(session.queues[job.queue], task)
    return found


def scores(session: Session) -> dict[str, Any]:
    """What the engine holds of every waiting task's class: which nodes take it, which now, and their scores."""
    assert isinstance(session.placer, Engine)
    found: dict[str, Any] = {}
    for job in session.jobs.peek():
        for task in job.of(PENDING):
            cls = session.placer.classes.of(task)
            found[task.uid] = cls.open.tolist(), cls.now.tolist(), cls.best_now.tolist()
    return found


# ---------------------------------------------------------------------- random operations


class Walk:
    """A statement on which operations are picked by numbers."""

    def __init__(self, session: Session) -> None:
        self.session, self.statement = session, Statement(session)
        self.marks: list[int] = []

    def take(self, what: int, which: int, where: int) -> None:
        kinds: list[Callable[[int, int], None]] = [
            self.allocate, self.pipeline, self.evict, self.let_go, self.mark, self.back, self.again, self.merge,
            self.run,
        ]  # fmt: skip
        with suppress(PlacementError):
            kinds[what](which, where)

    def tasks(self, *statuses: Any) -> list[Task]:
        names = self.session.table.statics.row
        found = [task for job in self.session.jobs.values() for task in job.of(*statuses)]
        return [task for task in found if not task.node_name or task.node_name in names]

    def row(self, where: int) -> int:
        return where % len(self.session.table)

    def allocate(self, which: int, where: int) -> None:
        if waiting := self.tasks(PENDING, PIPELINED):
            self.statement.allocate(waiting[which % len(waiting)], Node(self.session.table, self.row(where)))

    def pipeline(self, which: int, where: int) -> None:
        if waiting := self.tasks(PENDING, PIPELINED):
            name = self.session.table.statics.names[self.row(where)]
            self.statement.pipeline(waiting[which % len(waiting)], name, eviction_occurred=bool(where % 2))

    def evict(self, which: int, _where: int) -> None:
        if running := self.tasks(RUNNING):
            self.statement.evict(running[which % len(running)], "law")

    def let_go(self, which: int, _where: int) -> None:
        """A reservation, be it of this statement or of an earlier session."""
        if holding := self.tasks(PIPELINED):
            self.statement.unpipeline(holding[which % len(holding)])

    def run(self, which: int, where: int) -> None:
        if waiting := self.tasks(PENDING):
            first = waiting[which % len(waiting)]
            equal = [task for task in waiting if task.job == first.job and task.template is first.template]
            rows = [self.row(where + i * which) for i in range(len(equal))]
            kind = OperationKind.ALLOCATE if where % 3 else OperationKind.PIPELINE
            self.statement.place(self.session.jobs[first.job], equal, rows, kind)

    def mark(self, _which: int, _where: int) -> None:
        self.marks.append(self.statement.checkpoint())

    def back(self, _which: int, _where: int) -> None:
        if self.marks:
            self.statement.rollback(self.marks.pop())

    def again(self, _which: int, _where: int) -> None:
        """Everything taken back, and done once more."""
        saved = self.statement.save()
        self.statement.discard()
        self.marks.clear()
        self.statement.recover(saved)

    def merge(self, which: int, where: int) -> None:
        """An operation recorded elsewhere and taken over."""
        other = Walk(self.session)
        other.take(which % 4, which, where)
        self.statement.merge(other.statement)


@pytest.mark.law("a statement that is reverted restores every sum")
@given(st.one_of(scenes(), tight_scenes(), held_scenes()), Picks, st.sampled_from(("discard", "rollback", "leave")))
def test_rollback(scene: Scene, picks: list[tuple[int, int, int]], ending: str) -> None:
    with opened(scene) as session:
        said, before = answers(session), books(session)
        walk = Walk(session)
        for pick in picks:
            walk.take(*pick)
        if ending == "leave":
            with suppress(ZeroDivisionError), walk.statement:
                raise ZeroDivisionError
        elif ending == "rollback":
            walk.statement.rollback(0)
        else:
            walk.statement.discard()
        assert books(session) == before
        assert answers(session) == said


@pytest.mark.law("rolling back to a checkpoint restores every sum")
@given(st.one_of(tight_scenes(), scenes(), held_scenes()), Picks, Picks)
def test_marks(scene: Scene, first: list[tuple[int, int, int]], then: list[tuple[int, int, int]]) -> None:
    with opened(scene) as session:
        walk = Walk(session)
        for what, which, where in first:
            walk.take(what % 4, which, where)
        said, before, mark = answers(session), books(session), walk.statement.checkpoint()
        for what, which, where in then:
            walk.take(what % 4, which, where)
        walk.statement.rollback(mark)
        assert books(session) == before
        assert answers(session) == said


@pytest.mark.law("arrays that the engine updates row by row equal arrays computed from scratch")
@given(st.one_of(scenes(), tight_scenes(), held_scenes()), Picks)
def test_renewed(scene: Scene, picks: list[tuple[int, int, int]]) -> None:
    with opened(scene) as session:
        walk = Walk(session)
        for pick in picks:
            walk.take(*pick)
            kept = answers(session), scores(session)
            session.placer = Engine(Classes(hooks_of(session.hooks.answers), session.ledger), session.ties)
            assert kept == (answers(session), scores(session))


@pytest.mark.law("a session's sums of nodes, jobs and queues add up after any operations")
@given(st.one_of(scenes(), tight_scenes(), held_scenes()), Picks)
def test_sums(scene: Scene, picks: list[tuple[int, int, int]]) -> None:
    with opened(scene) as session:
        walk = Walk(session)
        for job in session.jobs.values():
            role_counts(job)  # from now on they are kept
        start = session.table.used.copy(), session.table.pipelined.copy()
        for pick in picks:
            walk.take(*pick)
        used, pipelined = start
        moves = {
            OperationKind.ALLOCATE: (used, 1),
            OperationKind.PIPELINE: (pipelined, 1),
            OperationKind.UNPIPELINE: (pipelined, -1),
        }
        for operation in walk.statement.operations:
            for task, row in zip(operation.tasks, operation.rows, strict=True):
                column, sign = moves.get(operation.kind, (used, 0))
                column[: len(task.template.vector), row] += sign * np.array(task.template.vector)
        for job in session.jobs.peek():
            for status in TaskStatus:
                there = [task for task in job.tasks.values() if task.status is status]
                assert +Counter(role_counts(job, status)) == Counter(task.role for task in there)
            assert job.best_effort == sum(task.best_effort for task in job.tasks.values() if task.status is PENDING)
        assert (session.table.used == used).all()
        assert (session.table.pipelined == pipelined).all()
        for name, queue in session.queues.items():
            jobs = [job for job in session.jobs.peek() if job.queue == name]
            for part in ("allocated", "held"):
                total = [sum(column) for column in zip_longest(*(getattr(job.sums, part) for job in jobs), fillvalue=0)]
                assert trimmed(getattr(queue.sums, part)) == trimmed(total)
