"""What evictions take from disruption budgets, until the status of these tells of it.

A budget's ``disruptionsAllowed`` is what its controller has counted; it learns of an eviction only later, and cycles
do not wait for it.  A charge ends when both have been heard of since: the pod's going, and a new status of the budget.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from stromboli.cluster.rim import BudgetSet, Rim
from stromboli.filters.disruption import counts_against
from stromboli.filters.selectors import clauses
from stromboli.model.disruption import DisruptionBudget
from stromboli.model.task import Task


class Charge:
    """An eviction's claim on budgets: ``unheard`` are those whose status has not come since, ``gone`` the pod's end."""

    __slots__ = ("budgets", "gone", "unheard")

    def __init__(self, budgets: list[str]) -> None:
        self.budgets, self.unheard, self.gone = budgets, set(budgets), False

    def holds(self, budget: str) -> bool:
        """Whether the budget has to be counted down for it."""
        return budget in self.budgets and not (self.gone and budget not in self.unheard)


class Charges:
    """Keeps the budgets of the state behind ``rim``, by namespace/name, less what has been charged to them."""

    def __init__(self, rim: Rim) -> None:
        self._rim = rim
        self._said: dict[str, DisruptionBudget] = {}
        self._of: dict[str, Charge] = {}

    @property
    def _budgets(self) -> Mapping[str, DisruptionBudget]:
        return self._rim.state.budgets

    def charge(self, task: Task) -> None:
        """``task`` is being evicted."""
        there = [(key, budget) for key, budget in self._budgets.items() if budget.namespace == task.namespace]
        covering = [key for key, budget in there if counts_against(budget, clauses(budget.selector), task)]
        if not covering:
            return
        self._of[task.key] = Charge(covering)
        for key in covering:
            self._said.setdefault(key, self._budgets[key])
            self._settle(key)

    def heard(self, key: str) -> None:
        """Handle a new status of the budget ``key``, or its deletion."""
        if key not in self._said:
            return
        for charge in self._of.values():
            charge.unheard.discard(key)
        if (budget := self._budgets.get(key)) is None:
            del self._said[key]
        else:
            self._said[key] = budget
        self._settle(key)
        self._drop_done()

    def gone(self, pod: str) -> None:
        """The pod ``pod`` (namespace/name) is seen to end, or to be another one by now."""
        if (charge := self._of.get(pod)) is not None:
            charge.gone = True
            for key in charge.budgets:
                self._settle(key)
            self._drop_done()

    def failed(self, pod: str) -> None:
        """The pod goes on: nothing is taken from its budgets."""
        if (charge := self._of.pop(pod, None)) is not None:
            for key in charge.budgets:
                self._settle(key)

    def _settle(self, key: str) -> None:
        said = self._said.get(key)
        if said is None:
            return
        number = sum(charge.holds(key) for charge in self._of.values())
        budget = replace(said, allowed=max(0, said.allowed - number)) if number else said
        if budget != self._budgets.get(key):
            self._rim.do(BudgetSet(key, budget))
        if not number:
            del self._said[key]

    def _drop_done(self) -> None:
        for pod in [pod for pod, charge in self._of.items() if not any(map(charge.holds, charge.budgets))]:
            del self._of[pod]
