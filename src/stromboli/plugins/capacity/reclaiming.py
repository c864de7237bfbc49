"""What a queue may take from others: candidates of queues that hold more than they deserve.

One walk goes over the candidates in order with running copies of what their queues hold, so each victim counts for
those behind it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stromboli.model.job import Job
from stromboli.model.resources.axes import PODS, Vector, add_to
from stromboli.model.task import Task
from stromboli.plugins.capacity.accounts import Account, ancestor_at, within_levels
from stromboli.plugins.capacity.lines import CapacityLines

Pair = tuple[Task, Account]
"""A candidate and the account of its queue."""

Running = dict[str, list[int]]
"""What queues would hold after the victims found so far, by name."""


class Reclaiming:
    """The rules of one session; ``levels`` says how many queues above the candidates' are looked at."""

    def __init__(self, lines: CapacityLines, levels: int) -> None:
        self._lines, self._levels = lines, levels

    def victims(self, own: Account, reclaimer: Task, candidates: Iterable[Pair]) -> list[Task]:
        """Those of ``candidates`` that a task of queue ``own`` may take, in their order."""
        request = reclaimer.template.vector
        running: Running = {}
        return [
            task
            for task, account in candidates
            if in_common(task.template.vector, request) and self._take(running, task, account, own, request)
        ]

    def victims_for_gang(self, candidates: Iterable[Pair]) -> list[Task]:
        """The same for a whole gang, whatever it asks for, queues above left out."""
        running: Running = {}
        return [task for task, account in candidates if self._take(running, task, account)]

    def may_give(self, job: Job, account: Account) -> bool:
        """Whether any task of ``job`` could be named now; evictions only make that less likely."""
        held = account.held
        if any(held[column] > account.deserved.limits[column] for column in account.relevant):
            return True
        kinds = {task.template.number: task.template.vector for task in job.tasks.values()}
        return any(not account.deserved.concerns(asked) for asked in kinds.values())

    def _take(
        self, running: Running, task: Task, account: Account, own: Account | None = None, request: Vector = ()
    ) -> bool:
        above = self._checked_above(own, account) if own is not None else []
        holdings = [(one, running.setdefault(one.name, one.held.copy())) for one in (account, *above)]
        if (spared := self._spared(task, holdings, own, request)) is not None:
            self._lines.spared(*spared, task)
            return False
        for _, held in holdings:
            add_to(held, task.template.vector, -1)
        return True

    def _spared(
        self, task: Task, holdings: Sequence[tuple[Account, list[int]]], own: Account | None, request: Vector
    ) -> tuple[str, Account, list[int]] | None:
        """Why the task is not taken: what to tell, the queue that speaks for it, and what that holds by then."""
        asked = task.template.vector
        account, held = holdings[0]
        if not _keeps_guarantee(account, held, asked):
            return "capacity_spared_guarantee", account, held
        undeserved = own is not None and not account.deserved.concerns(asked) and not own.deserved.concerns(request)
        if undeserved and own is not None and self._is_family(own, account):
            return "capacity_spared_family", account, held
        for one, theirs in holdings:
            if one.deserved.concerns(asked) and not one.exceeds(theirs, asked):
                return "capacity_spared_deserved", one, theirs
        return None

    def _is_family(self, own: Account, account: Account) -> bool:
        """Whether a queue other than root stands near above both."""
        near = {one.name for one in within_levels(own, self._levels)}
        return any(one.name in near for one in within_levels(account, self._levels))

    def _checked_above(self, own: Account, account: Account) -> list[Account]:
        """Queues above the candidate's that must have more than they deserve, too: none that is also above ``own``."""
        levels = range(1, self._levels + 1)
        pairs = [(ancestor_at(account, level), ancestor_at(own, level)) for level in levels]
        return [mine for mine, theirs in pairs if mine is not None and mine is not theirs]


def in_common(left: Vector, right: Vector) -> bool:
    """Whether both ask for some of the same, pods aside."""
    return any(one and other and column != PODS for column, (one, other) in enumerate(zip(left, right, strict=False)))


def _keeps_guarantee(account: Account, held: Sequence[int], asked: Vector) -> bool:
    """Whether the queue keeps what it is guaranteed without ``asked``, in every dimension."""
    size = len(asked)
    return all(held[c] - (asked[c] if c < size else 0) >= least for c, least in account.guarantee.floors)
