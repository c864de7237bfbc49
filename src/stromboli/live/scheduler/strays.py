"""Pods that no cycle looks at, because their PodGroup or its queue is not there: pods and PodGroup are told so.

Objects come in any order, so nothing is told of what is missing only for a moment.
"""

from __future__ import annotations

from typing import Final

from stromboli.api.scheduling import POD_GROUP_PENDING, PodGroupCondition
from stromboli.cluster.executor import StatusUpdater
from stromboli.cluster.state import ClusterState
from stromboli.framework.books.plan import PodConditionUpdate, PodGroupUpdate
from stromboli.kube.recorder import Regarding
from stromboli.kube.turns import Slices
from stromboli.live.scheduler.context import Context
from stromboli.model import names
from stromboli.model.job import Job
from stromboli.model.podgroup import is_upstream
from stromboli.model.status import TaskStatus
from stromboli.model.task import Task
from stromboli.model.values.times import stamp

MOST: Final = 100
"""Objects that are told in one look; the others are told in the next ones."""

NO_GROUP: Final = (
    "there is no PodGroup {group}, which the annotation scheduling.k8s.io/group-name names; the pod waits for it"
)
NO_UPSTREAM_GROUP: Final = (
    "there is no PodGroup {group}, which spec.schedulingGroup names; the pod waits for it, if the server has that kind"
)
NOT_MADE: Final = (
    "the pod has no PodGroup yet; the controllers make one: do they run (stromboli controllers), "
    "or does an event PodGroupError say what keeps them from it?"
)
NO_NAMED_QUEUE: Final = (
    "queue {queue} does not exist, which the {place}'s annotation scheduling.volcano.sh/queue-name names; "
    "the pod gets no PodGroup before it does"
)
NO_QUEUE: Final = "queue {queue} of PodGroup {group} does not exist"

AT_ONCE: Final = 256
"""Objects that are looked at before the event loop may have its turn."""

_Key = tuple[str, str]
"""Uid of what waits in vain, and the text about it."""

_Found = dict[_Key, Task | Job]


class Strays:
    """Looks for such pods and PodGroups from time to time."""

    def __init__(self, context: Context, updater: StatusUpdater) -> None:
        self._context, self._updater = context, updater
        self._before: _Found = {}
        self._told: set[_Key] = set()

    async def look(self) -> None:
        """Tell what was missing at the last look already, each object once as long as the reason is the same."""
        if not self._context.may_write():
            return
        found, told, late = _Found(), set[_Key](), list[_Key]()
        busy, state = Slices(), self._context.mirror.state
        known: list[Task | Job] = [*state.tasks.values(), *state.jobs.values()]
        for start in range(0, len(known), AT_ONCE):
            for one in known[start : start + AT_ONCE]:
                if not (text := self._why(one)):
                    continue
                key = one.uid, text
                found[key] = one
                if key in self._told:
                    told.add(key)
                elif key in self._before and len(late) < MOST:
                    late.append(key)
            await busy.give_way()
        self._before, self._told = found, told
        for key in late:
            self._tell_unless_changed(found[key], key)

    def _why(self, one: Task | Job) -> str:
        """What the object waits for in vain, by the state of the moment; empty if nothing, or if it is gone."""
        state, now = self._context.mirror.state, self._now(one)
        if isinstance(now, Task):
            return why_astray(state, now) if now.status is TaskStatus.Pending else ""
        if now is None or not now.facts.queue or now.facts.queue in state.queues:
            return ""
        return NO_QUEUE.format(queue=now.facts.queue, group=now.uid)

    def _now(self, one: Task | Job) -> Task | Job | None:
        """The object as it stands; None when it is gone."""
        state = self._context.mirror.state
        now = state.tasks.get(one.key) if isinstance(one, Task) else state.jobs.get(one.uid)
        return now if now is not None and now.uid == one.uid else None

    def _tell_unless_changed(self, one: Task | Job, key: _Key) -> None:
        """Tell an object what was found; the look has let others work meanwhile."""
        now = self._now(one)
        if now is not None and self._why(now) == key[1] and self._context.may_write():
            self._told.add(key)
            self._tell(now, key[1])

    def _tell(self, found: Task | Job, text: str) -> None:
        if isinstance(found, Task):
            about = Regarding("v1", "Pod", found.namespace, found.name, found.uid)
            reason = names.REASON_SCHEDULER_ERROR  # "Unschedulable" has autoscalers add nodes, which would not help
            self._updater.update_pod_condition(PodConditionUpdate(found.uid, found.key, reason, text))
        else:
            about = self._context.group_of(found.uid, found.group.uid)
            self._tell_group(found, text)
        self._context.recorder.record(about, names.EVENT_WARNING, names.EVENT_FAILED_SCHEDULING, text)

    def _tell_group(self, job: Job, text: str) -> None:
        """The condition that enqueue would give it, which takes it away again."""
        status = job.group.status
        if status.phase not in ("", POD_GROUP_PENDING):
            return
        kept = [condition for condition in status.conditions if condition.type != names.POD_GROUP_NOT_ADMITTED]
        condition = PodGroupCondition(
            names.POD_GROUP_NOT_ADMITTED,
            names.CONDITION_TRUE,
            last_transition_time=stamp(self._context.clock()),
            reason=names.REASON_REFUSED,
            message=f"not admitted: {text}",
        )
        counts = (status.running, status.succeeded, status.failed)
        update = PodGroupUpdate(job.uid, POD_GROUP_PENDING, (*kept, condition), *counts)
        self._updater.update_pod_group(update)


def why_astray(state: ClusterState, task: Task) -> str:
    """Why no cycle looks at a pending pod; empty when cycles do."""
    if task.own_node:
        return ""
    if not task.job:
        return _why_not_made(state, task)
    job = state.jobs.get(task.job)
    if job is None or not job.facts.queue:
        return (NO_UPSTREAM_GROUP if is_upstream(task.job) else NO_GROUP).format(group=task.job)
    return "" if job.facts.queue in state.queues else NO_QUEUE.format(queue=job.facts.queue, group=task.job)


def _why_not_made(state: ClusterState, task: Task) -> str:
    """Why a pod has no PodGroup: its queue, which admission asks for, is not there, or the controllers are not."""
    queue, place = task.annotations.get(names.QUEUE_NAME, ""), "pod"
    if queue in ("", names.DEFAULT_QUEUE) and (own := state._upstream.of_namespace(task.namespace)):
        queue, place = own, "namespace"
    return NO_NAMED_QUEUE.format(queue=queue, place=place) if queue and queue not in state.queues else NOT_MADE
