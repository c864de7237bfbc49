"""pdb: disruption budgets limit the scheduler's evictions, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stromboli.filters.disruption import counts_against
from stromboli.filters.selectors import Clauses, clauses
from stromboli.framework.extension.handlers import TaskEvent
from stromboli.model.disruption import DisruptionBudget
from stromboli.model.job import RELEASING, RUNNING
from stromboli.model.task import Task
from stromboli.plugin import (
    Hook,
    Plugin,
    on_allocate,
    on_deallocate,
    preemptable,
    reclaimable,
    unified_evictable,
    victim_tasks,
)

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

OWN_WAY_ONLY = ("unified_evictable", "on_allocate", "on_deallocate")
"""Points that the reference's plugin does not answer."""


class Pdb(Plugin, trusted=True):
    """Takes from a list of victims those whose PodDisruptionBudgets allow no further disruption.

    Candidates are gone through in order and each that may go uses up its budgets, so that the first ones of a budget
    go.  What is left of a budget is its ``status.disruptionsAllowed`` less the evictions that stand in this cycle.  A
    pod without labels is never let go, as in the reference.
    """

    name = "pdb"
    _fresh = _names = False

    def on_session_open(self, session: ClusterView) -> None:
        """Read the budgets as they stand."""
        self._wanted: list[tuple[DisruptionBudget, Clauses]] = [
            (budget, wanted) for budget in session.snapshot.budgets if (wanted := clauses(budget.selector))
        ]
        self._of_namespace: dict[str, list[int]] = {}
        for number, (budget, _) in enumerate(self._wanted):
            self._of_namespace.setdefault(budget.namespace, []).append(number)
        self.left = [budget.allowed for budget, _ in self._wanted]
        self._covering: dict[str, tuple[int, ...]] = {}
        self._fresh = session.compat.asks("protections-absolute")
        self._names = session.compat.asks("pdb-shuffle")
        self.say_violated = session.tells("pdb_violated")
        self.say_spared = session.tells("spared")
        self.say_left = session.tells("pdb_left")
        if say := session.tells("pdb_entered"):
            say()

    def on_session_close(self, session: ClusterView) -> None:
        """Nothing is kept."""
        if self.say_left:
            self.say_left()

    def hooks(self) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        """All of them, or in the reference's way those that start from the whole budget at each question."""
        for hook, function in super().hooks():
            if not (self._fresh and hook.point.name in OWN_WAY_ONLY):
                names = self._names and hook.point.name == "victim_tasks"
                yield replace(hook, protects=False) if names else hook, function

    # ------------------------------------------------------------------ which tasks may go

    @victim_tasks(protects=True)
    def within_budgets(self, tasks: Sequence[Task]) -> list[Task]:
        """The tasks whose budgets bear it, each counted against those after it."""
        left = self.left.copy()
        return [task for task in tasks if self._take(task, left)]

    @preemptable(protects=True)
    def within_budgets_of_queue(self, preemptor: Task, preemptees: Sequence[Task]) -> list[Task]:
        """See :meth:`within_budgets`."""
        return self.within_budgets(preemptees)

    @reclaimable(protects=True)
    def within_budgets_of_others(self, reclaimer: Task, reclaimees: Sequence[Task]) -> list[Task]:
        """See :meth:`within_budgets`."""
        return self.within_budgets(reclaimees)

    @unified_evictable(protects=True)
    def within_budgets_for_gang(self, context: object, candidates: Sequence[Task]) -> list[Task]:
        """See :meth:`within_budgets`."""
        return self.within_budgets(candidates)

    def _take(self, task: Task, left: list[int]) -> bool:
        """Take ``task`` off its budgets in ``left``; False if one of them does not allow the eviction.

        A refused task costs the budgets that would allow it nothing, but in the reference's way.
        """
        if not task.labels:
            if self.say_spared:
                self.say_spared(plugin=self.name, task=task.key, why="it has no labels")
            return False
        covering = self.covering(task)
        allowed = all(left[number] > 0 for number in covering)
        if allowed or self._fresh:
            for number in covering:
                left[number] -= 1
        if not allowed:
            self._tell_refusal(task, [number for number in covering if left[number] < (0 if self._fresh else 1)])
        return allowed

    def _tell_refusal(self, task: Task, short: Sequence[int]) -> None:
        if self.say_violated:
            self.say_violated(pod=task.name, name=task.name)
        if self.say_spared:
            budgets = (self._wanted[number][0] for number in short)
            names = ", ".join(f"{budget.name} allows {budget.allowed}" for budget in budgets)
            self.say_spared(plugin=self.name, task=task.key, why=f"budget {names}, and no more are left")

    def covering(self, task: Task) -> tuple[int, ...]:
        """Which budgets the eviction of ``task`` uses up, by their places in :attr:`left`."""
        found = self._covering.get(task.uid)
        if found is None:
            there = self._of_namespace.get(task.namespace, ())
            found = self._covering[task.uid] = tuple(
                number for number in there if counts_against(*self._wanted[number], task)
            )
        return found

    # ------------------------------------------------------------------ what has been decided

    @on_deallocate
    def removed(self, event: TaskEvent) -> None:
        """Count an eviction; tasks that only lose a reservation or a place given in this session don't count."""
        if event.task.status is RELEASING:
            self._count(event.task, -1)

    @on_allocate
    def placed(self, event: TaskEvent) -> None:
        """Count an eviction that is taken back."""
        if event.task.status is RUNNING:
            self._count(event.task, 1)

    @on_deallocate.many
    def run_removed(self, task: Task, rows: Sequence[int]) -> None:
        """Runs are placements; evictions come one by one."""

    @on_allocate.many
    def run_placed(self, task: Task, rows: Sequence[int]) -> None:
        """See :meth:`run_removed`."""

    def _count(self, task: Task, sign: int) -> None:
        for number in self.covering(task):
            self.left[number] += sign
