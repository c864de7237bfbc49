"""A workload run by the scheduler in virtual time: the cycle and the mirror of production decide, pods live as told.

A cycle runs when something has happened that it may answer to: a job came, a pod went while others wait, the last cycle
decided something and left others waiting, or a plugin or a reservation looks at the clock.  All other cycles would
decide nothing, so leaving them out changes no schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import floor, inf
from typing import Any, Final

from stromboli.cluster.body import Body, meta, part, stamp, with_meta
from stromboli.cluster.events import Added, Deleted
from stromboli.cluster.lives import RUN_FOR
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.model.names import GROUP_NAME, SCHEDULER_NAME
from stromboli.sim.kubelets import Kubelets
from stromboli.sim.scheduling import PERIOD, Scheduling
from stromboli.sim.simulation.workload import SimJob, TimedChange, Workload
from stromboli.sim.timeline import Timeline
from stromboli.sim.traces.trace_objects import START, container
from stromboli.sim.world import SimChange, SimWorld, key_of

CLOCKED: Final = frozenset({"cdp", "deviceshare", "rescheduling", "sla", "tdm", "usage"})
"""Plugins whose answers depend on the time; with them no cycle is left out while a job waits."""

IDLE: Final = 3_600
"""Cycles in a row that decide nothing while nothing else is to come, after which a simulation ends."""


@dataclass(slots=True)
class JobRun:
    """What became of a job, in seconds from the workload's beginning; None: it has not started, or not ended.

    ``held`` is how long its pods had their nodes, added up, ``lost`` the part of evicted pods, ``done`` how many ended.
    """

    job: SimJob
    start: float | None = None
    end: float | None = None
    evictions: int = 0
    held: float = 0.0
    lost: float = 0.0
    done: int = 0
    bound: int = 0


class Simulation:
    """One run of ``workload``; ``runs`` are its jobs in order, ``cycles`` and ``changes`` count.

    ``period`` is None for a cycle at each event, otherwise seconds between the moments at which cycles may begin.
    ``skips`` is False to run those cycles, too, that would decide nothing: the law that this changes nothing is tested.
    """

    def __init__(
        self, workload: Workload, config: Config, registry: Registry, *, period: float | None = None, seed: int = 0,
        skips: bool = True, progress: Callable[[Simulation], object] = lambda _: None,
    ) -> None:  # fmt: skip
        self.workload, self.period, self._progress = workload.whole(), period, progress
        self.began = START.timestamp()
        self.timeline = Timeline(self.began)
        self.world = SimWorld(self.timeline)
        for body in self.workload.objects:
            self.world.create(_open(body))
        for change in self.workload.changes:
            self.timeline.at(self.began + change.at, partial(self._change, change))
        self.scheduling = Scheduling(self.world, config, registry, seed=seed, when_planned=self._look)
        Kubelets(self.world)
        self.world.follow(self._hear)
        self.runs = [JobRun(job) for job in self.workload.jobs]
        self.cycles = self.changes = self.ended = 0
        self._always = not skips or any(plugin.name in CLOCKED for plugin in config.plugins())
        self._pods: dict[str, tuple[JobRun, Body]] = {}
        self._since: dict[str, float] = {}
        self._due = self._decided = self._reserved = False
        self._idle = self._next = 0

    @property
    def pending(self) -> int:
        """How many pods have no node yet."""
        return len(self._pods) - len(self._since)

    @property
    def now(self) -> float:
        """Seconds from the workload's beginning."""
        return self.timeline.now - self.began

    def run(self, until: float = inf) -> list[JobRun]:
        """Run until all jobs have ended, or nothing more can happen, or ``until`` seconds from the beginning."""
        self._arrive()
        while self._idle < IDLE and self.timeline.due <= self.began + until and self.timeline.step():
            pass
        return self.runs

    def _change(self, change: TimedChange) -> None:
        """An object of the cluster comes, changes or goes."""
        body: Body = _open(dict(change.object))
        kind, key = body["kind"], key_of(body)
        there = self.world.get(kind, key) is not None
        if not change.stays:
            if there:
                self.world.remove(kind, key)
        elif there:
            self.world.patch(kind, key, body)
        else:
            self.world.create(body)

    # ------------------------------------------------------------------ jobs

    def _arrive(self) -> None:
        """Let all jobs come whose time it is, and the others at theirs."""
        jobs = self.runs
        while self._next < len(jobs) and jobs[self._next].job.submit <= self.now:
            self._come(self._next, jobs[self._next])
            self._next += 1
        if self._next < len(jobs):
            self.timeline.at(self.began + jobs[self._next].job.submit, self._arrive)

    def _come(self, number: int, run: JobRun) -> None:
        group, *pods = objects_of(run.job, number, stamp(self.timeline.now))
        self.world.create(group)
        for pod in pods:
            self._pods[key_of(pod)] = run, _unplaced(pod)
            self.world.create(pod)
        if run.job.cancelled is not None:
            self.timeline.at(self.began + run.job.cancelled, partial(self._cancel, run))

    def _cancel(self, run: JobRun) -> None:
        """Its user takes the job away, unless it has started."""
        if run.start is None:
            keys = [key for key, (whose, _) in self._pods.items() if whose is run]
            for key in keys:
                self._left(key, run)
                del self._pods[key]
            self.ended += 1
            self._clear(run.job)
            self._wake()

    def _hear(self, change: SimChange) -> None:
        self.changes += 1
        if change.kind != "Pod":
            self._wake(change.kind != "PodGroup" and change.kind != "Queue")
            return
        pod, how = change.body, change.how
        found = self._pods.get(key := key_of(pod))
        if found is None:
            return
        if how is Added:
            self._wake()
        elif how is Deleted:
            self._evicted(key, *found)
        elif part(pod, "status", "phase") == "Succeeded":
            self._succeeded(key, found[0])
        elif part(pod, "spec", "nodeName") and key not in self._since:
            self._bound(key, found[0])

    def _bound(self, key: str, run: JobRun) -> None:
        self._since[key] = self.now
        run.bound += 1
        if run.start is None and run.bound >= (run.job.least or run.job.size):
            run.start = self.now

    def _left(self, key: str, run: JobRun) -> float:
        """How long a pod has had its node, which it has left."""
        held = self.now - self._since.pop(key, self.now)
        run.held += held
        return held

    def _succeeded(self, key: str, run: JobRun) -> None:
        self._left(key, run)
        del self._pods[key]
        run.done += 1
        self._wake(self.pending > 0)
        if run.done == run.job.size:
            run.end = self.now
            self.ended += 1
            self.timeline.after(0, partial(self._clear, run.job))

    def _evicted(self, key: str, run: JobRun, made: Body) -> None:
        """The pod comes again, a second later, and begins anew."""
        run.bound -= key in self._since
        run.lost += self._left(key, run)
        run.evictions += 1
        self._wake()
        again = with_meta(made, uid=f"{meta(made)['uid']}-{run.evictions}")
        self.timeline.after(PERIOD, partial(self.world.create, again))

    def _clear(self, job: SimJob) -> None:
        self.world.remove("PodGroup", job.key)
        for number in range(job.size):
            if self.world.get("Pod", f"{job.key}-{number}") is not None:
                self.world.remove("Pod", f"{job.key}-{number}")

    # ------------------------------------------------------------------ cycles

    def _wake(self, wakes: bool = True) -> None:
        """Let a cycle run: at once, or when the next period begins."""
        if wakes and not self._due:
            self._due = True
            self.timeline.at(self._at(0.0), self._turn)

    def _at(self, later: float) -> float:
        """The moment of the cycle that comes ``later`` seconds from now."""
        now, period = self.timeline.now + later, self.period
        if period is None:
            return now
        periods = (now - self.began) / period
        return self.began + period * (periods if periods == floor(periods) else floor(periods) + 1)

    def _turn(self) -> None:
        self._due = False
        self.cycles += 1
        self.scheduling.cycle()
        to_come = self._next < len(self.runs) or bool(self._since)
        self._idle = 0 if self._decided or to_come else self._idle + 1
        if self.cycles % 256 == 0:
            self._progress(self)
        waits = (self._decided and self.pending) or self._reserved
        if (waits or self._always) and self.ended < len(self.runs) and not self._due:
            self._due = True
            self.timeline.at(self._at(self.period or PERIOD), self._turn)

    def _look(self, plan: Plan) -> None:
        jobs = self.scheduling.state.jobs
        admitted = any(one.phase != jobs[one.key].phase for one in plan.pod_groups if one.key in jobs)
        self._decided = bool(plan.binds or plan.evictions or plan.gates or plan.annotations or admitted)
        self._reserved = bool(plan.reservations)


def objects_of(job: SimJob, number: int, created: str) -> Iterator[dict[str, Any]]:
    """The PodGroup and the pods of a job; uids keep the order of jobs that come in the same second."""
    uid = f"job-{number:08d}"
    yield _group_of(job, uid, created)
    urgent = {"priorityClassName": job.priority_class} if job.priority_class else {}
    told = {GROUP_NAME: job.name, **({} if job.runtime is None else {RUN_FOR: f"{job.runtime:.3f}"})}
    index = 0
    for some in job.pods:
        containers = [container(some.requests)]
        spec = {"schedulerName": SCHEDULER_NAME, **urgent, "containers": containers, **some.spec}
        for _ in range(some.count):
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    **some.metadata,
                    "name": f"{job.name}-{index}",
                    "namespace": job.namespace,
                    "uid": f"{uid}-{index:05d}",
                    "creationTimestamp": created,
                    "annotations": {**told, **some.metadata.get("annotations", {})},
                },
                "spec": spec,
                "status": {"phase": "Pending"},
            }
            index += 1


def _group_of(job: SimJob, uid: str, created: str) -> dict[str, Any]:
    more = job.group
    spec = {
        "minMember": job.least or job.size,
        "queue": job.queue,
        **({"priorityClassName": job.priority_class} if job.priority_class else {}),
        "minResources": {name: f"{amount:.3f}".rstrip("0").rstrip(".") for name, amount in job.asks().items()},
        **more.get("spec", {}),
    }
    named = {"name": job.name, "namespace": job.namespace, "uid": uid, "creationTimestamp": created}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {**more.get("metadata", {}), **named},
        "spec": spec,
        "status": {"phase": "Pending", **more.get("status", {})},
    }


def _unplaced(pod: dict[str, Any]) -> Body:
    """The pod as it comes again after an eviction: without the node on which it stood from the beginning."""
    return {**pod, "spec": {key: value for key, value in pod["spec"].items() if key != "nodeName"}}


def _open(body: dict[str, Any]) -> Body:
    """An object as it stands once controllers have seen it: a Queue is open."""
    return {**body, "status": {"state": "Open", **body.get("status", {})}} if body["kind"] == "Queue" else body
