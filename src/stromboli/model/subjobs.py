"""Which sub-job each task of a job belongs to."""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.api.fields import NetworkTopology
from stromboli.api.scheduling import PODS_OF_A_PART, SubGroupPolicy
from stromboli.model.job import ALLOCATED, BINDING, BOUND, PENDING, PIPELINED, RUNNING, SUCCEEDED, Job
from stromboli.model.selectors import selects
from stromboli.model.status import TaskStatus
from stromboli.model.task import Task

SAFE = "bcdfghjklmnpqrstvwxz2456789"
"""Letters that Kubernetes uses for generated names; no vowels, so no words."""

LONGEST_ID = 128
"""Joined label values longer than this are replaced by a hash."""


class SubJob:
    """Some tasks of a job that form a gang of their own.

    ``group`` is the id of the policy it comes from; ``match_index`` the integer of its first label value.
    ``lies_in`` is the hypernode of what is placed of it while its tasks are being placed, and empty otherwise.
    """

    __slots__ = (
        "allocated_hyper_node", "group", "job", "lies_in", "match_index", "min_available", "network_topology",
        "task_uids", "uid",
    )  # fmt: skip

    def __init__(self, job: Job, uid: str, group: str, min_available: int) -> None:
        self.job, self.uid, self.group, self.min_available = job, uid, group, min_available
        self.match_index = 0
        self.network_topology: NetworkTopology | None = None
        self.allocated_hyper_node = self.lies_in = ""
        self.task_uids: list[str] = []

    @property
    def tasks(self) -> list[Task]:
        """The sub-job's tasks."""
        return [self.job.tasks[uid] for uid in self.task_uids]

    def number(self, *statuses: TaskStatus) -> int:
        """How many of its tasks are in any of ``statuses``."""
        return sum(task.status in statuses for task in self.tasks)

    def ready_task_num(self) -> int:
        """Tasks that run, will run, or have succeeded."""
        return self.number(BOUND, BINDING, RUNNING, ALLOCATED, SUCCEEDED)

    def pending_best_effort_num(self) -> int:
        """Pending tasks that ask for nothing."""
        return sum(task.best_effort and task.status is PENDING for task in self.tasks)

    def is_ready(self) -> bool:
        """Whether this part's gang is complete."""
        return self.ready_task_num() + self.pending_best_effort_num() >= self.min_available

    def is_pipelined(self, more: int = 0) -> bool:
        """Whether it is complete once pipelined tasks, and so many ``more``, have their room."""
        coming = self.number(PIPELINED) + more
        return self.ready_task_num() + coming + self.pending_best_effort_num() >= self.min_available

    @property
    def priority(self) -> int:
        """Highest priority of its tasks, at least 0."""
        return max((0, *(task.priority for task in self.tasks)))


def min_sub_jobs(job: Job) -> dict[str, int]:
    """How many sub-jobs of each group must be ready, by group id."""
    return {f"{job.uid}/{policy.name}": policy.min_sub_groups for policy in job.group.spec.sub_group_policy}


def assign(job: Job) -> dict[str, SubJob]:
    """The sub-jobs of ``job`` by id, in order of their first task; without policies one with the job's own id."""
    policies = job.group.spec.sub_group_policy
    found: dict[str, SubJob] = {}
    if not policies:
        found[job.uid] = _default(job)
    for task in job.tasks.values():
        policy, values = _taker(policies, task)
        sub = _sub_job(job, found, policy, values)
        sub.task_uids.append(task.uid)
    return found


def _taker(policies: tuple[SubGroupPolicy, ...], task: Task) -> tuple[SubGroupPolicy | None, tuple[str, ...]]:
    """The first policy that takes ``task``, and the label values that name its part."""
    for policy in policies:
        if policy.label_selector is not None and not selects(policy.label_selector, task.labels):
            continue
        values = tuple(task.labels.get(key, "") for key in policy.match_label_keys)
        if values and all(values):
            return policy, values
    return None, ()


def _sub_job(job: Job, found: dict[str, SubJob], policy: SubGroupPolicy | None, values: tuple[str, ...]) -> SubJob:
    uid = job.uid if policy is None else f"{job.uid}/{policy.name}-{_joined(values)}"
    if uid not in found:
        found[uid] = _default(job) if policy is None else _part(job, uid, policy, values)
    return found[uid]


def _default(job: Job) -> SubJob:
    sub = SubJob(job, job.uid, job.uid, 1 if job.facts.is_split else job.min_available)
    sub.network_topology = job.facts.network_topology
    return sub


def _part(job: Job, uid: str, policy: SubGroupPolicy, values: tuple[str, ...]) -> SubJob:
    size = policy.sub_group_size
    sub = SubJob(job, uid, f"{job.uid}/{policy.name}", PODS_OF_A_PART if size is None else size)
    sub.match_index = int(values[0]) if values[0].isascii() and values[0].isdigit() else 0
    sub.network_topology = policy.network_topology
    return sub


def _joined(values: tuple[str, ...]) -> str:
    joined = "-".join(values)
    return joined if len(joined) <= LONGEST_ID else safe_hash(joined)


def safe_hash(text: str) -> str:
    """32-bit FNV-1a of ``text``, its decimal digits spelt in :data:`SAFE`."""
    value = 2166136261
    for byte in text.encode():
        value = ((value ^ byte) * 16777619) & 0xFFFFFFFF
    return "".join(SAFE[ord(digit) % len(SAFE)] for digit in str(value))


def counts_by_group(subs: Mapping[str, SubJob], holds: str) -> dict[str, int]:
    """How many sub-jobs of each group satisfy the check named ``holds`` (``is_ready``, ``is_pipelined``)."""
    counts: dict[str, int] = {}
    for sub in subs.values():
        counts[sub.group] = counts.get(sub.group, 0) + bool(getattr(sub, holds)())
    return counts
