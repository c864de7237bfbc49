"""Bundles: the tasks of one job in a domain that gang actions evict together, and the order of bundles.

A job has at most two.  Its *surplus* bundle holds tasks that the gang does not need to be complete (or the tasks of a
gang that is incomplete already).  Its *gang* bundle holds the others: evicting it breaks the gang, so it is evicted
entirely or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cmp_to_key

from stromboli.framework.extension import order
from stromboli.model.job import Job
from stromboli.model.jobs.roles import READY, role_counts, roles_apply
from stromboli.model.resources.axes import Vector, add_to, amount_at
from stromboli.model.status import ALLOCATED_STATUS
from stromboli.model.subjobs import SubJob, counts_by_group, min_sub_jobs
from stromboli.model.task import Task


class Kind(IntEnum):
    """What a bundle is to its gang; surplus bundles go first."""

    SURPLUS = 0
    GANG = 1


@dataclass(frozen=True, slots=True)
class Bundle:
    """``tasks`` of ``job`` that are evicted together, lowest priority first.

    ``gain`` is what they request, which the domain gains.  ``loss`` is what the cluster loses: nothing for a surplus
    bundle, the requests of all tasks of the job, in any state and anywhere, for a gang bundle.  Both by column.
    """

    kind: Kind
    job: Job
    tasks: tuple[Task, ...]
    gain: Vector
    loss: Vector = ()

    def allowed(self, uids: Collection[str]) -> Bundle | None:
        """What is left of the bundle if only ``uids`` may be evicted; of a gang bundle all or nothing."""
        tasks = tuple(task for task in self.tasks if task.uid in uids)
        if not tasks or (self.kind is Kind.GANG and len(tasks) < len(self.tasks)):
            return None
        return replace(self, tasks=tasks, gain=total(tasks))

    def is_broken_by(self, uids: Collection[str]) -> bool:
        """Whether ``uids`` contains some of the tasks, but not enough of them for the bundle to be evicted."""
        return self.allowed(uids) is None and any(task.uid in uids for task in self.tasks)

    def worth(self, need: Vector) -> float:
        """Gain divided by loss, each relative to the need; infinite if there is no loss.

        In each needed dimension the gain counts up to the need, and the loss in full.
        """
        wanted = [(column, amount) for column, amount in enumerate(need) if amount > 0]
        gain = sum((min(amount_at(self.gain, column), amount) / amount for column, amount in wanted), 0.0)
        loss = sum((amount_at(self.loss, column) / amount for column, amount in wanted), 0.0)
        return gain / loss if loss else float("inf")


def tasks_of(bundles: Iterable[Bundle]) -> list[Task]:
    """The tasks of ``bundles``, in order."""
    return [task for bundle in bundles for task in bundle.tasks]


def allowed(bundles: Iterable[Bundle], uids: Collection[str]) -> list[Bundle]:
    """What is left of ``bundles`` if only ``uids`` may be evicted."""
    return [rest for bundle in bundles if (rest := bundle.allowed(uids)) is not None]


def total(tasks: Sequence[Task]) -> list[int]:
    """What ``tasks`` request together, by column."""
    amounts: list[int] = []
    for task in tasks:
        add_to(amounts, task.template.vector)
    return amounts


# ---------------------------------------------------------------------- making


def bundles_of(job: Job, tasks: Sequence[Task], parts: Mapping[str, SubJob]) -> list[Bundle]:
    """``tasks`` of ``job`` as bundles; ``parts`` are the job's sub-jobs.

    What is evicted only whole is one gang bundle, and none where others of its tasks have nodes, too.
    """
    in_turn = sorted(tasks, key=lambda task: (task.priority, task.uid))
    spare, whole = Spare(job, parts), job.group.evicted_whole
    if whole and len(in_turn) < job.number(*ALLOCATED_STATUS):
        return []
    surplus = [task for task in in_turn if not whole and spare.take(task)]
    uids = {task.uid for task in surplus}
    gang = [task for task in in_turn if task.uid not in uids]
    found = [Bundle(Kind.SURPLUS, job, tuple(surplus), total(surplus))] if surplus else []
    return [*found, Bundle(Kind.GANG, job, tuple(gang), total(gang), tuple(job.sums.total))] if gang else found


class Spare:
    """What a gang can lose and still be complete, counted down task by task.

    Counted are tasks beyond minMember; for each role those beyond its minimum, if minMember covers all roles; and for
    each policy the ready sub-jobs beyond its number.  The first lost task breaks its sub-job, more cost nothing.
    """

    def __init__(self, job: Job, parts: Mapping[str, SubJob]) -> None:
        self.tasks = job.ready_task_num() - job.min_available
        self.broken_already = self.tasks < 0
        self.roles: dict[str, int] = {}
        if roles_apply(job):
            ready = role_counts(job, *READY, pending_best_effort=True)
            self.roles = {role: ready.get(role, 0) - least for role, least in job.facts.task_min.items()}
        self.parts: dict[str, SubJob] = {}
        if job.facts.is_split:
            self.parts = {uid: part for part in parts.values() for uid in part.task_uids}
        self.broken = {part.uid for part in parts.values() if not part.is_ready()}
        least_parts = min_sub_jobs(job)
        ready_parts = counts_by_group(parts, "is_ready")
        self.groups = {group: ready - least_parts.get(group, 0) for group, ready in ready_parts.items()}

    def take(self, task: Task) -> bool:
        """Whether the gang stays complete without ``task``, too; if so, the task is counted as gone."""
        if self.broken_already:
            return True
        part = self.parts.get(task.uid)
        role = task.role if task.role in self.roles else None
        if self.tasks <= 0 or (role is not None and self.roles[role] <= 0) or not self._part_can_go(part):
            return False
        self.tasks -= 1
        if role is not None:
            self.roles[role] -= 1
        if part is not None and part.uid not in self.broken:
            self.broken.add(part.uid)
            self.groups[part.group] -= 1
        return True

    def _part_can_go(self, part: SubJob | None) -> bool:
        return part is None or part.uid in self.broken or self.groups[part.group] > 0


# ---------------------------------------------------------------------- order


def in_order(bundles: Sequence[Bundle], need: Vector, compare: Callable[[Job, Job], int]) -> list[Bundle]:
    """``bundles`` in the order of eviction.

    Surplus bundles come first; then ``compare`` decides by their jobs (negative: the left one's tasks go first); then
    the bundle that is worth more for ``need``; ties by job and first task.
    """

    def less(left: Bundle, right: Bundle) -> int:
        first = left.kind - right.kind or compare(left.job, right.job)  # of one kind a job has one
        return first or order.compare(right.worth(need), left.worth(need)) or order.compare(_name(left), _name(right))

    return sorted(bundles, key=cmp_to_key(less))


def _name(bundle: Bundle) -> tuple[str, str, int]:
    return bundle.job.uid, bundle.tasks[0].uid, len(bundle.tasks)
