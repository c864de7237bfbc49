"""What became of the jobs of a record: when they came and started, how long their pods ran, what else changed.

Moments are those of cycles: what happened between two of them counts as seen at the later one, a bind as decided at the
earlier one.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

from stromboli.cluster.files.written import Manifest, as_read, group_manifest, manifests, node_manifest, pod_manifest
from stromboli.cluster.rim import Applied, Change, Decided, Gone, Rim
from stromboli.cluster.state import ClusterState
from stromboli.errors import RecordError
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.journal.entries import Planned
from stromboli.journal.segments import segments
from stromboli.model.job import Job, JobFacts
from stromboli.model.names import JOB_NAME
from stromboli.model.podgroup import is_volcano_jobs
from stromboli.model.status import COMPLETED_STATUS
from stromboli.model.task import Task
from stromboli.study.recorded.past_jobs import LONE, Changed, GroupWithoutPods, PastJob, Slot, stem
from stromboli.study.replay import Moment, Reading

GAP: Final = 30.0
"""Seconds between two cycles in which others may have decided, or nothing was recorded."""


class History:
    """The past of a record between two times; :meth:`read` reads it.

    ``withdrawn`` counts Volcano Jobs that went before they had pods: nothing is known of what they would have done.
    ``objects`` are those at the ``first`` cycle other than jobs; ``last`` is the last cycle; ``cuts`` are the times of
    all.
    """

    def __init__(self, record: Path, registry: Registry, since: float = 0.0, until: float = float("inf")) -> None:
        self._segments, self._reading = segments(record, since), Reading(registry)
        self._since, self._until = since, until
        self.jobs: dict[str, PastJob] = {}
        self.objects: list[Manifest] = []
        self.changes: list[Changed] = []
        self.cuts: list[float] = []
        self._period = 0, 1.0  # of so many cycles: every pod of a trace asks for it
        self._config: Config | None = None
        self._slots: dict[str, tuple[PastJob, Slot]] = {}
        self._uid_of: dict[str, str] = {}
        self._nodes: dict[str, object] = {}
        self._dirty: dict[str, None] = {}
        self._others: dict[tuple[str, str, str], Manifest] = {}
        self._evicted: set[str] = set()
        self._lost_nodes: set[str] = set()
        self._told: list[Applied] = []
        self._groups: dict[str, GroupWithoutPods] = {}
        self._before: Counter[str] = Counter()
        self.withdrawn, self.default_queue = 0, ""
        self._fresh, self._gap = True, False

    @property
    def first(self) -> float:
        """The time of the first cycle."""
        return self.cuts[0] if self.cuts else 0.0

    @property
    def last(self) -> float:
        """The time of the last cycle."""
        return self.cuts[-1] if self.cuts else 0.0

    @property
    def period(self) -> float:
        """The median of the seconds between two cycles; 1 without any."""
        if self._period[0] != len(self.cuts):
            steps = sorted(b - a for a, b in zip(self.cuts, self.cuts[1:], strict=False))
            self._period = len(self.cuts), steps[len(steps) // 2] if steps else 1.0
        return self._period[1]

    @property
    def config(self) -> Config:
        """The configuration of the last cycle.  Raises RecordError where there was none."""
        if self._config is None:
            raise RecordError(self._segments[0].path, 0, "there is no cycle in that part of the record")
        return self._config

    @property
    def not_admitted(self) -> dict[str, GroupWithoutPods]:
        """By ``namespace/podgroup``, the Volcano Jobs that were not admitted by the last cycle, in order of coming."""
        return {uid: one for uid, one in self._groups.items() if one.admitted is None and is_volcano_jobs(uid)}

    def read(self) -> History:
        """Read all, and return itself.  Raises RecordError."""
        for segment in self._segments:
            self._dirty.update(dict.fromkeys(self._uid_of))
            self._fresh = True
            if not self._reading.skim(segment, self._begun, self._planned, self._changed, until=self._until):
                break
        return self

    # ------------------------------------------------------------------ entries

    def _planned(self, planned: Planned) -> None:
        self._evicted |= {one.uid for one in planned.evictions}

    def _changed(self, rim: Rim, change: Change) -> None:
        if isinstance(change, Gone | Decided):
            self._dirty[change.key] = None
        elif isinstance(change, Applied):
            meta = change.object.metadata
            if change.kind == "Pod":
                self._dirty[f"{meta.namespace}/{meta.name}"] = None
            elif change.kind == "PodGroup":
                self._group(f"{meta.namespace}/{meta.name}", rim.state, change.stays)
            else:
                self._told.append(change)

    def _group(self, uid: str, state: ClusterState, stays: bool) -> None:
        """A PodGroup has come, changed or gone; it is kept as it came, until the first of its pods has come, too."""
        live = state.jobs.get(uid)
        if not stays or live is None:
            self.withdrawn += self._groups.pop(uid, None) is not None and is_volcano_jobs(uid)
        elif (known := self.jobs.get(uid)) is not None and not known.group:
            facts = live.facts
            known.group, known.least = group_manifest(facts.group), max(facts.min_available, 1)
            known.queue = facts.queue or known.queue
        elif known is None and self.cuts:
            self._wait(uid, live)

    def _wait(self, uid: str, live: Job) -> None:
        """Note how a PodGroup stands that no pod has come of."""
        waiting = self._groups.get(uid)
        if waiting is None and live.is_pending():
            self._groups[uid] = GroupWithoutPods(group_manifest(live.facts.group))
        elif waiting is not None and waiting.admitted is None and not live.is_pending() and is_volcano_jobs(uid):
            waiting.admitted = self.cuts[-1]

    def _begun(self, moment: Moment) -> None:
        now, state = moment.cut.now, moment.rim.state
        if now < self._since:
            self._told.clear()
            return
        if not self.cuts:
            self._open(state, now)
        elif self._fresh:
            self._dirty.update(dict.fromkeys([*state.tasks, *self._uid_of]))
            self._groups = {uid: one for uid, one in self._groups.items() if uid in state.jobs}
            self._note_groups(state, now)
        self._fresh = False
        self._gap = bool(self.cuts) and now - self.cuts[-1] > GAP
        for waiting in self._groups.values():
            waiting.came = waiting.came or now
        self._note_objects(state, now)
        self._note_pods(state, now)
        self.cuts.append(now)
        self._config, self.default_queue = moment.config, state.default_queue

    def _open(self, state: ClusterState, now: float) -> None:
        """What is there at the beginning."""
        every = manifests(state, now)
        self.objects = [one for one in every if one["kind"] not in ("Pod", "PodGroup")]
        self._others = {_title(one): one for one in self.objects}
        self._told.clear()
        self._dirty = dict.fromkeys(state.tasks)
        self._note_groups(state, now)

    def _note_groups(self, state: ClusterState, now: float) -> None:
        """PodGroups that wait to be admitted, and came while nothing was recorded."""
        for uid, job in state.jobs.items():
            if job.is_pending() and not job.tasks and job.group.uid and uid not in self.jobs:
                self._groups.setdefault(uid, GroupWithoutPods(group_manifest(job.group), now))

    def _note_objects(self, state: ClusterState, now: float) -> None:
        for change in self._told:
            meta = change.object.metadata
            title = (change.kind, meta.namespace, meta.name)
            found, known = _stands(change, state), self._others.get(title)
            if found is not None and (known is None or _essence(found) != _essence(known)):
                self._others[title] = found
                self.changes.append(Changed(now, found, True))
            elif found is None and known is not None:
                self.changes.append(Changed(now, self._others.pop(title), False))
                self._lost_nodes |= {meta.name} if change.kind == "Node" else set()
        self._told.clear()

    # ------------------------------------------------------------------ pods

    def _note_pods(self, state: ClusterState, now: float) -> None:
        for key in self._dirty:
            task = state.tasks.get(key)
            known = self._uid_of.get(key)
            if known is not None and (task is None or task.uid != known):
                self._over(key, known, now)
            if task is not None:
                self._stands(state, task, now)
        self._dirty.clear()
        self._lost_nodes.clear()

    def _over(self, key: str, uid: str, now: float) -> None:
        """The pod of that uid is gone."""
        del self._uid_of[key]
        job, slot = self._slots.pop(uid)
        if slot.ended is None:
            self._end(job, slot, uid, now)

    def _end(self, job: PastJob, slot: Slot, uid: str, now: float) -> None:
        slot.ended, job.unseen = now, job.unseen or self._gap
        if uid in self._evicted or _node_of(slot.pod) in self._lost_nodes:
            slot.evictions += 1
            slot.waits = True
            self._evicted.discard(uid)
        ended = [one.ended for one in job.slots.values()]
        if None not in ended:
            job.ended = now
            if job.started is None:
                job.cancelled = now

    def _stands(self, state: ClusterState, task: Task, now: float) -> None:
        over = task.status in COMPLETED_STATUS
        found = self._slots.get(task.uid)
        if found is None and not over:
            found = self._slots[task.uid] = self._came(state, task, now)
            self._uid_of[task.key] = task.uid
        if found is None:
            return
        if found[0].uid == _alone(task) and task.job and found[1].bound is None:
            found = self._grouped(state, task, *found)
        job, slot = found
        if not over:
            self._placed(job, slot, task.own_node, now)
        elif slot.ended is None:
            self._end(job, slot, task.uid, now)

    def _placed(self, job: PastJob, slot: Slot, node: str, now: float) -> None:
        """The pod has ``node``, or none (any more)."""
        if not node:
            slot.bound = None
        elif slot.bound is None:
            job.unseen = job.unseen or self._gap
            slot.bound = self.cuts[-1] if self.cuts and not self._gap else now
            slot.pod["spec"]["nodeName"] = node
            if job.started is None and sum(one.bound is not None for one in job.slots.values()) >= job.least:
                job.started = slot.bound

    def _came(self, state: ClusterState, task: Task, now: float) -> tuple[PastJob, Slot]:
        job = self._job(state, task, now)
        again = next(
            (one for one in job.slots.values() if one.waits and one.pod["metadata"]["name"] == task.name), None
        )
        again = again or next((one for one in job.slots.values() if one.waits), None)
        if again is not None:
            again.renew(task.uid, now)
            job.ended = None
            return job, again
        slot = job.slots[task.uid] = Slot(task.uid, pod_manifest(task, now), now)
        slot.pod["spec"].pop("nodeName", None)
        return job, slot

    def _grouped(self, state: ClusterState, task: Task, lone: PastJob, slot: Slot) -> tuple[PastJob, Slot]:
        """A pod that came by itself is in a PodGroup now, as controllers put the pods of other operators into one."""
        came, ran = slot.came, slot.earlier if lone.started is not None else None
        if ran is not None:  # another pod, which had no PodGroup: a job of its own
            lone.slots, lone.ended, came = {ran.uid: ran}, ran.ended, slot.last_came
        elif self.jobs.get(lone.uid) is lone:
            del self.jobs[lone.uid]
        job, new = self._slots[task.uid] = self._came(state, task, came)
        job.came, job.before = min(job.came, came if ran else lone.came), job.before or (ran is None and lone.before)
        return job, new

    def _job(self, state: ClusterState, task: Task, now: float) -> PastJob:
        uid = task.job or _alone(task)
        known = self.jobs.get(uid)
        if known is not None and known.goes_on:
            return known
        if known is not None:  # another job of the same name
            self._before[uid] += 1
            self.jobs[f"{uid} until {known.ended:.0f}, {self._before[uid]}"] = self.jobs.pop(uid)
        facts = _facts(state, uid)
        waiting = self._groups.pop(uid, None) or GroupWithoutPods({})
        if facts is not None and waiting.made_at_once(now):
            waiting = GroupWithoutPods(group_manifest(facts.group))
        least, queue = (1, "") if facts is None else (max(facts.min_available, 1), facts.queue)
        found = self.jobs[uid] = PastJob(
            uid, waiting.came or now, waiting.group, queue or state.default_queue, _owner(task), least, not self.cuts,
            admitted=waiting.admitted,
        )  # fmt: skip
        return found


def _alone(task: Task) -> str:
    """The name of the job that a pod is without a PodGroup."""
    return f"{task.namespace}/{LONE}{task.name}"


def _facts(state: ClusterState, uid: str) -> JobFacts | None:
    """What the PodGroup of a job says; None without one."""
    job = state.jobs.get(uid)
    return job.facts if job is not None and job.facts.group.uid else None


def _stands(change: Applied, state: ClusterState) -> Manifest | None:
    """The object that news is of, as it stands after it; None if it is gone."""
    if change.kind != "Node":
        return as_read(change.kind, change.object) if change.stays else None
    entry = state.nodes.entries().get(change.object.metadata.name)
    return node_manifest(entry.spec) if entry is not None and entry.spec is not None else None


def _owner(task: Task) -> str:
    """Whose pod it is: its namespace and what made it, without the number at the end."""
    name = task.annotations.get(JOB_NAME) or task.owner or task.job.rpartition("/")[2] or task.name
    return f"{task.namespace}/{stem(name)}"


def _node_of(pod: Manifest) -> str:
    return str(pod["spec"].get("nodeName", ""))


def _title(found: Manifest) -> tuple[str, str, str]:
    meta = found["metadata"]
    return found["kind"], meta.get("namespace", ""), meta["name"]


def _essence(found: Manifest) -> Any:
    """What of an object matters: of a Queue what its users say, as the scheduler writes the rest."""
    return {key: value for key, value in found.items() if key != "status" or found["kind"] != "Queue"}
