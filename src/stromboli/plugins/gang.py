"""gang: all of a job's required tasks, or none."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from stromboli.api.scheduling import PodGroupCondition
from stromboli.framework.books.phases import releasing_scheduled_num, scheduled_task_num
from stromboli.framework.engine.messages import fit_error
from stromboli.framework.session.orphans import known_job
from stromboli.model import names
from stromboli.model.job import PENDING, PIPELINED, Job
from stromboli.model.jobs.roles import READY, role_counts, roles_apply, roles_pipelined, roles_ready, roles_valid
from stromboli.model.status import READY_STATUS, TaskStatus, is_allocated
from stromboli.model.subjobs import SubJob, counts_by_group, min_sub_jobs
from stromboli.model.task import Task
from stromboli.plugin import (
    Plugin,
    job_order,
    job_pipelined,
    job_ready,
    job_starving,
    job_valid,
    preemptable,
    reclaimable,
    sub_job_order,
    sub_job_pipelined,
    sub_job_ready,
    unified_evictable,
)

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

PERMIT, REJECT = 1, -1

NO_TASKS: Mapping[str, Task] = {}


class Gang(Plugin, trusted=True):
    """Holds a job back until its PodGroup's minimums are reached, and protects the minimum from eviction.

    Minimums are minMember, by role minTaskMember (where minMember covers their sum), and by policy minSubGroups.
    Tasks that run, will run or have succeeded count, and pending ones that ask for nothing.  At the end of the session
    every job's PodGroup states whether it is complete.
    """

    name = "gang"

    def on_session_open(self, session: ClusterView) -> None:
        """Prepare the questions and the lines."""
        self.session = session
        self.say_order = session.tells("gang_job_order")
        self.say_refused = session.tells("gang_refused")
        self.say_victims = session.tells("gang_victims")

    # ------------------------------------------------------------------ can the job start at all

    @job_valid
    def has_pods_enough(self, job: Job) -> tuple[str, str] | None:
        """None, or (reason, message) of the first minimum for which the job has too few pods."""
        if job.facts.task_min and not roles_valid(job):
            return names.REASON_NOT_ENOUGH_PODS_OF_TASK, names.NOT_ENOUGH_VALID_PODS
        if job.facts.is_split and not self._groups_reach(job, ""):
            return names.REASON_NOT_ENOUGH_PODS_OF_TASK, names.NOT_ENOUGH_VALID_SUB_GROUPS
        if (valid := job.valid_task_num()) < job.min_available:
            message = names.NOT_ENOUGH_VALID_TASKS.format(valid=valid, minimum=job.min_available)
            return names.REASON_NOT_ENOUGH_TASKS, message
        return None

    # ------------------------------------------------------------------ is it complete

    @job_ready
    def is_complete(self, job: Job) -> bool:
        """Whether every minimum is reached."""
        if lacking(job) > 0:
            return False
        if job.facts.task_min and not roles_ready(job):
            return False
        return not job.facts.is_split or self._groups_reach(job, "is_ready")

    @job_ready.many
    def complete_after(self, job: Job, task: Task, k: int) -> int:
        """After how many more tasks like ``task`` the job is complete, at least 1; k + 1 if not within k.

        The tasks are of one role and one sub-job.
        """
        gain = not task.best_effort  # a pending task that asks for nothing counts before it is placed
        needed = lacking(job)
        if job.facts.task_min:
            needed = max(needed, *_roles_lacking(job, task))
        if job.facts.is_split:
            needed = max(needed, self._groups_lacking(job, task))
        return max(needed, 1) if needed <= (k if gain else 0) else k + 1

    @job_pipelined
    def will_be_complete(self, job: Job) -> int:
        """Permit if every minimum is reached once pipelined tasks have their room, else reject."""
        if not (roles_pipelined(job) and job.is_pipelined()):
            return REJECT
        return PERMIT if not job.facts.is_split or self._groups_reach(job, "is_pipelined") else REJECT

    @sub_job_ready
    def part_is_complete(self, sub_job: SubJob) -> bool:
        """Whether the sub-job has its minimum."""
        return sub_job.is_ready()

    @sub_job_ready.many
    def part_complete_after(self, sub_job: SubJob, task: Task, k: int) -> int:
        """After how many more of its tasks the sub-job is complete, at least 1; k + 1 if not within k."""
        needed = _part_lacking(sub_job)
        return max(needed, 1) if needed <= (0 if task.best_effort else k) else k + 1

    @sub_job_pipelined
    def part_will_be_complete(self, sub_job: SubJob) -> int:
        """Permit if the sub-job has its minimum once pipelined tasks have their room, else reject."""
        if sub_job.is_pipelined():
            return PERMIT
        again = self.session.ledger.second_places.counted
        return PERMIT if again and sub_job.is_pipelined(len(again.intersection(sub_job.task_uids))) else REJECT

    @job_starving(own=True)
    def lacks_tasks(self, job: Job) -> bool:
        """Whether minMember is not reached even with pipelined tasks; minimums by role are not looked at."""
        return job.is_starving()

    @job_starving.many
    def sated_after(self, job: Job, task: Task, k: int) -> int:
        """After how many more tasks, at least 1, minMember is reached with pipelined tasks; k + 1 if not within k."""
        return min(max(job.min_available - job.ready_task_num() - job.waiting_task_num(), 1), k + 1)

    def _groups_reach(self, job: Job, check: str) -> bool:
        """Whether every policy has its number of sub-jobs that satisfy ``check`` (empty: that exist)."""
        subs = self.session.sub_jobs(job)
        counts = counts_by_group(subs, check) if check else _members(subs)
        return all(counts.get(group, 0) >= least for group, least in min_sub_jobs(job).items())

    def _groups_lacking(self, job: Job, task: Task) -> int:
        """How many more tasks of the sub-job of ``task`` the policies wait for; more than there are: in vain."""
        subs = self.session.sub_jobs(job)
        counts = counts_by_group(subs, "is_ready")
        short = {group: least - counts.get(group, 0) for group, least in min_sub_jobs(job).items()}
        waiting = {group: number for group, number in short.items() if number > 0}
        if not waiting:
            return 0
        own = next((sub for sub in subs.values() if task.uid in sub.task_uids), None)
        if own is None or own.is_ready() or waiting != {own.group: 1}:
            return len(job.tasks) + 1
        return _part_lacking(own)

    # ------------------------------------------------------------------ orders

    @job_order
    def incomplete_first(self, left: Job, right: Job) -> int:
        """Jobs that lack tasks come before those that can run as they are."""
        ready = self.turn(left), self.turn(right)
        if self.say_order:
            self.say_order(left=left.uid, left_ready=ready[0], right=right.uid, right_ready=ready[1])
        return int(ready[0]) - int(ready[1])

    @job_order.key(own=True)
    def turn(self, job: Job) -> bool:
        """Whether minMember is reached."""
        return lacking(job) <= 0

    @sub_job_order
    def incomplete_part_first(self, left: SubJob, right: SubJob) -> int:
        """Sub-jobs that lack tasks come first."""
        return int(left.is_ready()) - int(right.is_ready())

    @sub_job_order.key
    def part_turn(self, sub_job: SubJob) -> bool:
        """Whether the sub-job has its minimum."""
        return sub_job.is_ready()

    # ------------------------------------------------------------------ victims

    @preemptable(own=True)
    def spare_minimum(self, preemptor: Task, preemptees: Sequence[Task]) -> list[Task]:
        """The first candidates of each job that it has beyond its minMember."""
        spare: dict[str, int] = {}
        victims = [task for task in preemptees if self._spends(task, spare)]
        if self.say_victims:
            self.say_victims(victims=[task.key for task in victims], task=preemptor.key)
        return victims

    @preemptable.job(own=True)
    def has_spare_tasks(self, preemptor: Task, job: Job) -> bool:
        """Whether the job has tasks beyond its minMember; evictions only make that less."""
        return job.ready_task_num() > job.min_available

    @reclaimable.job(own=True)
    def has_spare_tasks_for_others(self, reclaimer: Task, job: Job) -> bool:
        """As for preemption."""
        return job.ready_task_num() > job.facts.min_available

    @reclaimable(own=True)
    def spare_minimum_of_others(self, reclaimer: Task, reclaimees: Sequence[Task]) -> list[Task]:
        """As for preemption."""
        return self.spare_minimum(reclaimer, reclaimees)

    @unified_evictable
    def allow_bundles(self, context: object, candidates: Sequence[Task]) -> Sequence[Task]:
        """All candidates: gang actions take whole gangs, or what is beyond a minimum, by themselves."""
        return candidates

    def _spends(self, task: Task, spare: dict[str, int]) -> bool:
        """Whether the task's job can do without it; ``spare`` counts by job how many more it can do without."""
        left = spare.get(task.job)
        if left is None:
            job = known_job(self.session, self.name, task, "preemptee")
            if job is None:
                return False
            left = job.ready_task_num() - job.min_available
        if left > 0:
            spare[task.job] = left - 1
            return True
        spare[task.job] = left
        if (say := self.say_refused) and (job := self.session.jobs.peek_at(task.job)):
            ready = left + job.min_available
            say(task=task.key, name=job.name, ready=ready, min_available=job.min_available)
        return False

    # ------------------------------------------------------------------ the end of the session

    def on_session_close(self, session: ClusterView) -> None:
        """Tell every PodGroup with pods whether its gang is complete."""
        report = _Report(session)
        for job in session.active_jobs():
            report.add(job)
        report.tell()


class LackingTasks(Mapping[str, int]):
    """How many tasks each gang of ``jobs`` lacks: 0 where no number is ``known``; ``without`` are no gang."""

    __slots__ = ("_jobs", "known", "without")

    def __init__(self, jobs: Collection[str]) -> None:
        self._jobs = jobs
        self.known: dict[str, int] = {}
        self.without: set[str] = set()

    def __getitem__(self, uid: str) -> int:
        if uid in self.without or uid not in self._jobs:
            raise KeyError(uid)
        return self.known.get(uid, 0)

    def __iter__(self) -> Iterator[str]:
        return (uid for uid in self._jobs if uid not in self.without)

    def __len__(self) -> int:
        return len(self._jobs) - len(self.without)

    def __repr__(self) -> str:
        return repr(dict(self))


class _Report:
    """What gang says of the jobs at the end of a session."""

    def __init__(self, session: ClusterView) -> None:
        self.session = session
        self.complete = _condition(session, names.POD_GROUP_SCHEDULED, names.REASON_GANG_READY)
        self.say_counts = session.tells("metric.unschedule_task_count")
        self.counts = LackingTasks(session.jobs.uids if self.say_counts else ())
        self.unready: list[str] = []

    def add(self, job: Job) -> None:
        """Set the job's condition and count it; what is not added is complete."""
        missing = lacking(job)
        if job.tasks and missing <= 0:
            self.session.pod_groups.set_condition(job, self.complete)
        elif job.tasks and not _awaits_endings(job):
            self._add_unready(job)
        else:
            self.counts.without.add(job.uid)

    def _add_unready(self, job: Job) -> None:
        missing = job.min_available - job.ready_task_num() - _could_be_placed(job)
        message = names.TASKS_IN_GANG_UNSCHEDULABLE.format(
            missing=missing, total=len(job.tasks), fit_error=fit_error(job)
        )
        reason = names.REASON_NOT_ENOUGH_RESOURCES
        condition = _condition(self.session, names.POD_GROUP_UNSCHEDULABLE, reason, message)
        self.session.pod_groups.set_condition(job, condition)
        self.counts.known[job.uid] = missing
        self.unready.append(job.uid)

    def tell(self) -> None:
        """Tell the figures."""
        if say := self.session.tells("metric.unschedule_job_count"):
            say(count=len(self.unready))
        if say := self.session.tells("metric.job_retry_counts"):
            say(jobs=self.unready)
        if self.say_counts:
            self.say_counts(counts=self.counts)


def lacking(job: Job) -> int:
    """How many tasks the job lacks to its minMember; 0 or less: it has them all."""
    # Asked twice a placed task and once a job of the cluster, so it walks the few statuses that there are.
    missing = job.facts.min_available - job.best_effort
    for status, members in job.index.items():
        if status in READY_STATUS:
            missing -= len(members)
    return missing


def _roles_lacking(job: Job, task: Task) -> list[int]:
    """0, and how many tasks each role lacks; more than the job has where tasks of the role of ``task`` do not help."""
    if not roles_apply(job):
        return [0]
    counts = role_counts(job, *READY, pending_best_effort=True)
    short = {role: least - counts.get(role, 0) for role, least in job.facts.task_min.items()}
    vain = len(job.tasks) + 1
    return [0, *(number if role == task.role else vain for role, number in short.items() if number > 0)]


def _part_lacking(sub: SubJob) -> int:
    return sub.min_available - sub.ready_task_num() - sub.pending_best_effort_num()


def _members(subs: Mapping[str, SubJob]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for sub in subs.values():
        counts[sub.group] = counts.get(sub.group, 0) + 1
    return counts


def _awaits_endings(job: Job) -> bool:
    """Whether nothing is left to place and ending tasks still hold the places that the job lacks."""
    ending = releasing_scheduled_num(job)
    if not ending or PENDING in job.index or PIPELINED in job.index:
        return False
    return scheduled_task_num(job) + ending >= job.min_available


def _could_be_placed(job: Job) -> int:
    """Pending tasks that had a place until the gang turned out to be incomplete."""
    pending = job.index.get(TaskStatus.Pending, NO_TASKS).values()
    return sum(task.last is not None and is_allocated(task.last.status) for task in pending)


def _condition(session: ClusterView, kind: str, reason: str, message: str = "") -> PodGroupCondition:
    return PodGroupCondition(
        type=kind, status=names.CONDITION_TRUE, transition_id=session.uid, reason=reason, message=message
    )
