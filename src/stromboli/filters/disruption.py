"""Which disruption budgets an eviction uses up."""

from __future__ import annotations

from stromboli.filters.selectors import Clauses, takes
from stromboli.model.disruption import DisruptionBudget
from stromboli.model.task import Task


def counts_against(budget: DisruptionBudget, wanted: Clauses | None, task: Task) -> bool:
    """Whether evicting ``task`` uses up ``budget``, whose selector says ``wanted``: nothing if that is none or empty.

    A pod whose eviction was let through before is counted in the budget already.
    """
    return (
        bool(wanted)
        and budget.namespace == task.namespace
        and task.name not in budget.disrupted
        and takes(wanted, task.labels)
    )
