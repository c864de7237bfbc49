"""What the disruption controller of a live cluster writes into the status of a PodDisruptionBudget."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from stromboli.cluster.kinds import DisruptionBudgetSpec, DisruptionBudgetStatus, PodDisruptionBudget
from stromboli.errors import ManifestError
from stromboli.filters.selectors import clauses, takes
from stromboli.model.status import COMPLETED_STATUS, TaskStatus
from stromboli.model.task import Task

_PERCENT: Final = re.compile(r"([0-9]{1,3})%", re.ASCII)


def is_bare(budget: PodDisruptionBudget) -> bool:
    """Whether no status has been written yet."""
    return budget.status == DisruptionBudgetStatus()


def with_status(budget: PodDisruptionBudget, tasks: Iterable[Task]) -> PodDisruptionBudget:
    """``budget`` with the status that follows from the pods there are: those that run count as healthy.

    Raises :class:`~stromboli.errors.ManifestError` for a number that is neither whole nor a percentage.
    """
    wanted, namespace = clauses(budget.spec.selector), budget.metadata.namespace
    pods = [task for task in tasks if task.namespace == namespace and takes(wanted, task.labels)]
    expected = [task for task in pods if task.status not in COMPLETED_STATUS]
    healthy = sum(task.status is TaskStatus.Running for task in expected)
    desired = _desired(budget.spec, len(expected))
    status = DisruptionBudgetStatus(
        disruptions_allowed=max(0, healthy - desired),
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=len(expected),
    )
    return replace(budget, status=status)


def _desired(spec: DisruptionBudgetSpec, expected: int) -> int:
    if spec.max_unavailable is not None:
        return max(0, expected - _number(spec.max_unavailable, expected, "spec.maxUnavailable"))
    return 0 if spec.min_available is None else _number(spec.min_available, expected, "spec.minAvailable")


def _number(written: int | str, expected: int, path: str) -> int:
    if isinstance(written, int):
        return written
    match = _PERCENT.fullmatch(written)
    if match is None:
        raise ManifestError(f"{written!r:.40} is neither a whole number nor a percentage such as 30%", path=path)
    return math.ceil(int(match[1]) * expected / 100)
