"""One look at a job: what an action does to its pods, its PodGroup and its status."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from stromboli.api.batch import FAILED as JOB_FAILED
from stromboli.api.batch import PENDING, Job, JobStatus, Task
from stromboli.api.bus import RESTART_PARTITION, RESTART_POD, SYNC_JOB
from stromboli.api.kinds import JOBS, POD_GROUPS
from stromboli.api.scheduling import PodGroup
from stromboli.cluster.job_pods import ANY_OF, MOST_PODS, why_never_started
from stromboli.controllers.changes import (
    Change,
    Create,
    Delete,
    Drop,
    Json,
    Keep,
    KillPod,
    Outcome,
    Patch,
    Subject,
    builtins,
    difference,
    normal,
    warning,
)
from stromboli.controllers.jobs import volumes
from stromboli.controllers.jobs.counting import Counts
from stromboli.controllers.jobs.groups import Groups, gate_is_open, group_of, slim
from stromboli.controllers.jobs.kept import FRESH, RECHECK
from stromboli.controllers.jobs.plugins import FAILED, MARK, Plugged
from stromboli.controllers.jobs.pods import YES, Maker, owner_of
from stromboli.controllers.jobs.requests import Request
from stromboli.controllers.jobs.states import FINISHED, How, Step, failure, most_retries, stay, step_for, total
from stromboli.controllers.jobs.status import (
    CLEAR,
    COUNTED_REST,
    Obstacle,
    OutdatedCounts,
    obstacle_of,
    running_duration,
    stamped,
    status_after,
    with_obstacle,
)
from stromboli.controllers.pods import JOB_API, JOB_KIND, PodView
from stromboli.controllers.world import World
from stromboli.crds.admission.defaults import least
from stromboli.errors import ManifestError, PluginError
from stromboli.job_plugins.hosts import pod_name
from stromboli.model.names import (
    CONDITION_TRUE,
    JOB_FORWARDING,
    POD_FAILED,
    POD_GROUP_NOT_ADMITTED,
    POD_GROUP_SCHEDULED,
    POD_RUNNING,
    POD_SUCCEEDED,
)

PODS = "pods"
MADE_AT_ONCE = 5_000
"""Pods that one look makes at most, as their bodies are made before the first is sent; the next look goes on."""


class Look:
    """What one action leads to; ask :meth:`outcome` once.  ``ending`` is the final phase that it means, if any."""

    def __init__(
        self, job: Job, world: World, groups: Groups, plugged: Plugged, outdated: OutdatedCounts, now: float
    ) -> None:
        self._job, self._world, self._groups, self._plugged, self._now = job, world, groups, plugged, now
        self._outdated = outdated
        key = (job.metadata.namespace, job.metadata.name)
        uid = job.metadata.uid
        self._pods: Mapping[str, PodView] = {
            name: pod for name, pod in world.pods.of_job(key).items() if pod.job_uid == uid
        }
        self._about = about(job)
        self._counts = Counts()
        self._outcome = Outcome()
        self._obstacle = obstacle_of(job)
        self.ending = ""
        self._makes_pods = False

    def outcome(self, action: str, request: Request) -> Outcome:
        """What ``action`` leads to, which ``request`` asked for or a policy chose for it."""
        if self._job.metadata.deletion_timestamp is not None:
            return self._outcome
        step = step_for(stay(self._job, self._counts), action)
        if action != SYNC_JOB and step.how is not How.SYNC:
            self._outcome.then(
                normal(self._about, "ExecuteAction", f"Start to execute action {action} ", happened=True)
            )
        if step.how is How.SYNC:
            return self._sync(step)
        if step.how is How.KILL_TARGET:
            return self._kill_target(step, action, request)
        return self._kill(step)

    # -- Killing -----------------------------------------------------------------------------------------------------

    def _kill(self, step: Step) -> Outcome:
        """Kill all pods, or those that are alive, and with them the PodGroup: a restarted job waits in its queue."""
        job = self._job
        last_try = job.status.retry_count >= most_retries(job) - 1
        kept = (POD_SUCCEEDED, POD_FAILED) if last_try or step.how is How.KILL_ALIVE else ()
        doomed = [pod for pod in self._pods.values() if not pod.terminating and pod.phase not in kept]
        self._end(doomed)
        self._outcome.then(*self._dropped())
        status = self._unmarked(step)
        if doomed or step.begins:
            status = replace(status, version=job.status.version + 1)
        if status != job.status:
            status = replace(status, running_duration=running_duration(job, self._now))
        self._write(status)
        group = group_of(job, self._world)
        if group is not None and group.metadata.deletion_timestamp is None:
            meta = group.metadata
            self._outcome.then(Delete(POD_GROUPS, meta.namespace, meta.name, meta.uid))
        return self._outcome

    def _kill_target(self, step: Step, action: str, request: Request) -> Outcome:
        """Kill a task, a pod or a partition; the PodGroup, the other pods and what plugins made stay."""
        self._end([pod for pod in self._pods.values() if not pod.terminating and _is_target(pod, action, request)])
        self._write(self._settled(step))
        return self._outcome

    def _end(self, doomed: list[PodView]) -> None:
        """Kill ``doomed`` and count everything."""
        names = {pod.name for pod in doomed}
        self._counts.add_all(pod for pod in self._pods.values() if pod.name not in names)
        self._counts.terminating += len(doomed)
        self._outcome.then(*(KillPod(pod.namespace, pod.name, pod.uid) for pod in doomed))

    # -- Syncing -----------------------------------------------------------------------------------------------------

    def _sync(self, step: Step) -> Outcome:
        job = self._job
        self._obstacle = CLEAR
        queue = self._world.queues.named(job.spec.queue)
        if queue is None:
            self._hinder("QueueError", f"queue {job.spec.queue} of the job is not there", again=True)
            self._write(job.status)
            return self._outcome
        if not job.status.state.phase:
            self._counts.add_all(self._pods.values())
            self._write(self._marked(step))
        if queue.spec.extend_clusters and job.metadata.annotations.get(JOB_FORWARDING) != YES:
            marks: Json = {"metadata": {"annotations": {JOB_FORWARDING: YES}}}
            self._outcome.then(Patch(JOBS, job.metadata.namespace, job.metadata.name, marks))
        prepared = self._prepared()
        if not job.status.state.phase:
            return self._outcome
        if total(job) > MOST_PODS:  # what keeps it back is said already; so many names are not even made
            self._counts.add_all(self._pods.values())
            self._write(self._settled(step))
        else:
            self._sync_pods(step, may_make=prepared, forwarding=bool(queue.spec.extend_clusters))
        return self._outcome

    def _marked(self, step: Step) -> JobStatus:
        """The status that follows, with what is made for the job."""
        return replace(
            self._settled(step), controlled_resources={**self._plugged.marks, **volumes.controlled(self._job)}
        )

    def _unmarked(self, step: Step) -> JobStatus:
        """The status that follows, without what plugins made."""
        made = self._job.status.controlled_resources.items()
        return replace(
            self._settled(step), controlled_resources={key: name for key, name in made if not key.startswith(MARK)}
        )

    def _prepared(self) -> bool:
        """See to what the pods need; False when they have to wait for it."""
        if self._plugged.problem:
            return self._hinder("PluginError", self._plugged.problem)
        self._keep_objects()
        missing = volumes.missing_claim(self._job, self._world)
        if missing:
            text = f"pvc {missing} is not found, the job will be in the Pending state until the PVC is created"
            return self._hinder("PVCError", text, again=True)
        if too_many := volumes.too_many(self._job):
            return self._hinder("PVCError", too_many)
        self._outcome.then(*volumes.claim_changes(self._job, self._world, owner_of(self._job)))
        try:
            self._outcome.then(*self._groups.changes(self._job, self._world))
        except ManifestError as error:
            return self._hinder("PodGroupError", str(error), again=True)
        self._tell_that_it_never_starts()
        return True

    def _tell_that_it_never_starts(self) -> None:
        spec = self._job.spec
        if stay(self._job, self._counts) != PENDING:
            return
        if text := why_never_started(spec.tasks, spec.min_available):
            self._hinder("GangWaitsForItself", f"{text}: lower it, or order the parts of the job in a JobFlow")
        elif not total(self._job):
            self._hinder("NoReplicas", "no task has replicas: the job goes on once one has")

    def _keep_objects(self) -> None:
        """Have the objects of plugins made, or read again those that were not lately.

        What takes long to make, a key, comes first: objects made meanwhile would have to be read again afterwards.
        """
        known, marks = self._world.kept.of(self._job.metadata.uid), self._job.status.controlled_resources
        if not known:
            self._outcome.then(*(warning(self._about, "PluginError", text) for text in self._plugged.warnings))
        owner, namespace = owner_of(self._job), self._job.metadata.namespace
        first, changes = list[Change](), list[Change]()
        for plugin, wanted in self._plugged.wanted:
            kept = known.get((wanted.resource, wanted.name))
            if kept is None or kept.wanted != wanted or not 0 <= self._now - kept.at < FRESH:
                is_known = kept is not None or f"{MARK}{plugin}" in marks
                (first if wanted.maker else changes).append(Keep(plugin, namespace, wanted, owner, is_known))
        names = {(wanted.resource, wanted.name) for _, wanted in self._plugged.wanted}
        changes += [Drop(resource, namespace, name, self._job.metadata.uid) for resource, name in known.keys() - names]
        self._outcome.then(*first).then(*changes)
        if names:
            self._outcome.again(RECHECK)

    def _dropped(self) -> list[Change]:
        """Objects of plugins go with the pods: what the status says is there, and what is known to be."""
        meta, marks = self._job.metadata, self._job.status.controlled_resources
        names = {
            (wanted.resource, wanted.name) for plugin, wanted in self._plugged.wanted if f"{MARK}{plugin}" in marks
        }
        names.update(self._world.kept.of(meta.uid))
        return [Drop(resource, meta.namespace, name, meta.uid) for resource, name in sorted(names)]

    def _hinder(self, reason: str, text: str, *, again: bool = False) -> bool:
        """Say by event and status what keeps the job back, or ended it; look at it ``again`` if wished; False."""
        self._obstacle = Obstacle(reason, text)
        self._outcome.then(warning(self._about, reason, text))
        if again:
            self._outcome.error = text
        return False

    def _sync_pods(self, step: Step, *, may_make: bool, forwarding: bool) -> None:
        group = group_of(self._job, self._world)
        self._tell_why_waiting(group)
        changes: list[Change] = []
        maker = None
        if may_make and group is not None and gate_is_open(group):
            maker = Maker(self._job, slim(self._job), group.metadata.name, self._plugged, forwarding=forwarding)
        expected: set[str] = set()
        missing: list[tuple[int, int]] = []
        for number, task in enumerate(self._job.spec.tasks):
            names = [pod_name(self._job.metadata.name, task.name, index) for index in range(task.replicas)]
            expected.update(names)
            may_start = maker is not None and self._may_start(task)
            for index, name in enumerate(names):
                pod = self._pods.get(name)
                if pod is not None:
                    changes += self._sync_pod(pod)
                elif may_start:
                    missing.append((number, index))
        changes += self._left_over(expected)
        if maker is not None:
            changes += self._made(maker, missing)
        self._outcome.then(*changes)
        self._write(self._marked(step) if may_make else self._settled(step))

    def _made(self, maker: Maker, missing: list[tuple[int, int]]) -> list[Change]:
        """The first pods that are missing, by number of the task and within it; none where a plugin fails for one."""
        if len(missing) > MADE_AT_ONCE:
            missing = missing[:MADE_AT_ONCE]
            self._outcome.again(0.0)
        try:
            bodies = [maker.body(*place) for place in missing]
        except PluginError as error:
            self._hinder("PluginError", f"{FAILED}{error}")
            return []
        self._makes_pods = bool(bodies)
        for number, _ in missing:
            self._counts.add(self._job.spec.tasks[number].name, "Pending")
        return [Create(PODS, self._job.metadata.namespace, body) for body in bodies]

    def _sync_pod(self, pod: PodView) -> list[Change]:
        if pod.out_of_sync and not pod.terminating:
            self._counts.terminating += 1
            return [KillPod(pod.namespace, pod.name, pod.uid)]
        self._counts.add_all([pod])
        return []

    def _left_over(self, expected: set[str]) -> list[Change]:
        """Pods beyond the replicas have to go, and it is the controller's doing."""
        changes: list[Change] = []
        for name, pod in self._pods.items():
            if name not in expected:
                self._counts.terminating += 1
                if not pod.terminating:
                    changes.append(KillPod(pod.namespace, pod.name, pod.uid))
        return changes

    def _may_start(self, task: Task) -> bool:
        """Whether the tasks are ready that ``task`` waits for."""
        needs = task.depends_on
        if needs is None or not needs.name:
            return True
        ready = [self._is_ready(name) for name in needs.name]
        return any(ready) if needs.iteration == ANY_OF else all(ready)

    def _is_ready(self, name: str) -> bool:
        task = next((task for task in self._job.spec.tasks if task.name == name), None)
        if task is None or task.min_available is None:
            return True
        pods = [pod for pod in self._pods.values() if pod.task == name]
        ready = [pod for pod in pods if pod.phase == POD_SUCCEEDED or (pod.phase == POD_RUNNING and pod.ready)]
        return len(ready) >= least(task)

    def _tell_why_waiting(self, group: PodGroup | None) -> None:
        """The scheduler's reason, as an event on the job."""
        if group is None:
            return
        true = [condition for condition in group.status.conditions if condition.status == CONDITION_TRUE]
        refused = [condition for condition in true if condition.type == POD_GROUP_NOT_ADMITTED]
        newest = max(refused or true, key=lambda condition: condition.last_transition_time or "", default=None)
        if newest is not None and newest.type != POD_GROUP_SCHEDULED:
            meta = self._job.metadata
            text = f"PodGroup {meta.namespace}:{meta.name} unschedulable, reason: {newest.message}"
            self._outcome.then(warning(self._about, "PodGroupPending", text))

    # -- The status --------------------------------------------------------------------------------------------------

    def _settled(self, step: Step) -> JobStatus:
        """The status that follows; its phase depends on how the pods are now."""
        status = status_after(self._job, self._counts, step.settle(self._job, self._counts), self._now)
        return replace(status, retry_count=status.retry_count + 1) if step.retry else status

    def _write(self, status: JobStatus) -> None:
        meta, phase = self._job.metadata, status.state.phase
        ends = phase in FINISHED and phase != self._job.status.state.phase
        if ends and phase == JOB_FAILED:
            self._hinder(*failure(self._job, self._counts))
        status = stamped(self._job, with_obstacle(status, self._obstacle), self._now)
        patch = difference(builtins(self._job.status), builtins(status))
        if pause := self._outdated.pause(self._job, patch, self._now, makes_pods=self._makes_pods):
            self._outcome.again(pause)
            if not self._outcome.batches:
                self._outcome.rest = COUNTED_REST
        elif patch:
            body = {"metadata": {"resourceVersion": meta.resource_version}, "status": patch}
            self._outcome.then(Patch(JOBS, meta.namespace, meta.name, body, status=True))
        if ends:
            self.ending = phase


def _is_target(pod: PodView, action: str, request: Request) -> bool:
    if action == RESTART_POD:
        return pod.name == request.pod
    if action == RESTART_PARTITION:
        return pod.task == request.task and pod.partition == request.partition
    return pod.task == request.task


def about(job: Job) -> Subject:
    """A job as events name it."""
    meta = job.metadata
    return Subject(JOB_API, JOB_KIND, meta.namespace, meta.name, meta.uid)
