"""The victims on a node, kept while one of them is evicted after the other for tasks that are alike.

A gang of a hundred asks ten times for the victims on a node of which it evicts ten.  Where plugins promise that their
votes follow from the candidates' own jobs (``own=``), the remaining candidates would be named again, in the same order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from stromboli.framework.books.candidates import Reach
from stromboli.framework.session.victim_order import VictimOrder
from stromboli.model.job import Job
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.extension.prefilters import OwnVote
    from stromboli.framework.session.session import Session


@dataclass(slots=True)
class OnNode:
    """What is known of one node: its ``victims`` in order, and the jobs of all candidates there.

    ``jobs`` has each with the number of its moves; ``candidates`` says how many each has, ``count`` how many they are
    together.  ``queues`` are their queues in the order in which these give.
    """

    victims: list[Task]
    jobs: dict[str, tuple[Job, int]]
    candidates: dict[str, int]
    count: int
    queues: list[str]


class KeptVictims:
    """The victims by row for one kind of task after the other, all of one job; ``order`` is that of the job's queue."""

    def __init__(self, session: Session, order: VictimOrder, vote: OwnVote) -> None:
        self._session, self._order, self._vote = session, order, vote
        self._rows: dict[int, OnNode] = {}
        self._asked: tuple[Task, Reach] | None = None

    def of(self, task: Task, row: int, reach: Reach) -> OnNode | None:
        """What is known of ``row`` for ``task``, if a vote would still name the same."""
        if self._asked is None or self._asked[1] is not reach or not alike(self._asked[0], task):
            self._rows.clear()
            self._asked = task, reach
        known = self._rows.get(row)
        return known if known is not None and self._stands(known, reach.count.item(row)) else None

    def left(self, task: Task, row: int) -> OnNode | None:
        """As :meth:`of`, where on no node anything has happened since but the evictions told of.

        :meth:`~stromboli.preemption.node_choice.SameNode.option` asks only then: it compares the length of the journal
        of nodes, in which every placement and every eviction stands, with what it was after those evictions.
        """
        known = self._rows.get(row)
        if known is None or not known.victims or self._asked is None or not alike(self._asked[0], task):
            return None
        return known if self._are_in_turn(known.queues) else None

    def ask(self, task: Task, row: int, candidates: Sequence[Task]) -> OnNode | None:
        """Hold a vote on the ``candidates`` on ``row``, which are in order; None where it cannot be kept."""
        if (jobs := self._order.jobs(candidates)) is None or not (named := self._vote(task, candidates)):
            return None
        count: dict[str, int] = {}
        for candidate in candidates:
            count[candidate.job] = count.get(candidate.job, 0) + 1
        moves = {uid: (job, job.sums.moves) for uid, job in jobs.items()}
        queues = self._order.queues_in_turn(dict.fromkeys([job.queue for job in jobs.values()]))
        known = self._rows[row] = OnNode(named, moves, count, len(candidates), queues)
        return known

    def one_each(self, row: int) -> tuple[list[Task], str]:
        """The first victims on ``row``, until one whose job has other candidates there, and their queue.

        Empty if the candidates there are of several queues: which queue gives next depends on what they hold.
        """
        if (known := self._rows.get(row)) is None or len(known.queues) != 1:
            return [], ""
        return list(takewhile(lambda victim: known.candidates.get(victim.job) == 1, known.victims)), known.queues[0]

    def evicted(self, row: int, victims: Sequence[Task]) -> None:
        """``victims`` on ``row`` have been evicted; what is known of the others there stays."""
        if (known := self._rows.get(row)) is None:
            return
        for victim in victims:
            if known.candidates.get(victim.job) != 1:  # others of its job have to be asked about again
                del self._rows[row]
                return
            del known.candidates[victim.job], known.jobs[victim.job]
        known.count -= len(victims)
        gone = {victim.uid for victim in victims}
        known.victims = [victim for victim in known.victims if victim.uid not in gone]

    def _stands(self, known: OnNode, count: int) -> bool:
        if known.count != count or not known.victims:
            return False
        jobs = self._session.jobs
        for uid, (job, moves) in known.jobs.items():
            if job.sums.moves != moves or jobs.peek_at(uid) is not job:
                return False
        return self._are_in_turn(known.queues)

    def _are_in_turn(self, queues: list[str]) -> bool:
        """Whether queues still give in this order."""
        return len(queues) < 2 or self._order.queues_in_turn(queues) == queues


def alike(task: Task, other: Task) -> bool:
    """Whether two tasks of one job ask for the same, so that plugins name the same victims for both."""
    same = task.template is other.template and task.priority == other.priority and task.role == other.role
    return same and task.labels == other.labels and task.annotations == other.annotations


def placed_alike(session: Session, task: Task, other: Task) -> bool:
    """Whether nodes say the same of both, too: predicates may look at more of a task, or at each by itself."""
    kind = session.placer.kind
    return alike(task, other) and kind(task) == kind(other)
