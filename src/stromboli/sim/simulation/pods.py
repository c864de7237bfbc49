"""The pods of simulated jobs: when they have nodes, what they do there, and how they begin again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Final

from stromboli.cluster.body import Body, meta, part, stamp, with_meta
from stromboli.cluster.events import Added, Deleted
from stromboli.cluster.lives import EXIT_CODE, RUN_FOR, START_AFTER, STOP_AFTER
from stromboli.sim.simulation.accounts import Accounts
from stromboli.sim.simulation.job_objects import objects_of, unplaced
from stromboli.sim.simulation.lives import Lives
from stromboli.sim.simulation.workload import SimJob, amount_of
from stromboli.sim.world import SimChange, SimWorld, key_of

AGAIN: Final = 1.0
"""Seconds until a pod that has left is recreated."""


@dataclass(slots=True)
class JobRun:
    """What became of a job, in seconds from the workload's beginning; None: it has not started, or not ended.

    ``held`` is how long its pods had their nodes, added up, ``useful`` how much of its work was done meanwhile and
    remains, ``lost`` the work that was done in vain.  ``evictions`` counts pods that the scheduler told to go,
    ``failures`` those that failed or lost their nodes, ``restarts`` those that began again with others of the job.
    ``company`` is the mean number of jobs that waited or ran while it was there, known once it has ended.
    """

    job: SimJob
    start: float | None = None
    end: float | None = None
    evictions: int = 0
    failures: int = 0
    restarts: int = 0
    held: float = 0.0
    useful: float = 0.0
    lost: float = 0.0
    company: float = 0.0
    failed: bool = False
    done: int = 0
    bound: int = 0
    round: int = 0
    present: float = 0.0


@dataclass(slots=True)
class SimPod:
    """A pod: its job, how it was made, the seconds of work that are left, the round of its job, and its present stay.

    A round begins when all pods of the job begin again.  ``sent`` is set where that is why the pod goes.
    """

    run: JobRun
    body: Body
    requests: Mapping[str, float]
    work: float
    uid: str = ""
    round: int = 0
    stays: int = 0
    since: float | None = None
    told: float | None = None
    node: str = ""
    sent: bool = False


class SimPods:
    """All pods that have not ended; follows a world, and says to ``wake`` whether a cycle has anything to do."""

    def __init__(
        self, world: SimWorld, lives: Lives, accounts: Accounts, seed: int, wake: Callable[[bool], object]
    ) -> None:
        self.world, self.lives, self.accounts, self.seed, self._wake = world, lives, accounts, seed, wake
        self.began = world.timeline.now
        self.pods: dict[str, SimPod] = {}
        self.placed = self.changes = self.ended = 0
        self.node_lost: Callable[[], bool] = lambda: False
        self.left: Callable[[SimPod], object] = lambda _: None
        self._unmade: dict[str, list[tuple[str, SimPod]]] = {}
        self._delayed = 0
        world.follow(self._hear)

    @property
    def now(self) -> float:
        """Seconds from the workload's beginning."""
        return self.world.timeline.now - self.began

    @property
    def pending(self) -> int:
        """How many pods have no node."""
        return len(self.pods) - self.placed

    @property
    def to_come(self) -> bool:
        """Whether pods of jobs that are admitted are about to be made."""
        return self._delayed > 0

    # ------------------------------------------------------------------ coming and going

    def come(self, number: int, run: JobRun) -> None:
        """A job comes, with its PodGroup and its pods, unless these are made later."""
        job = run.job
        self.accounts.advance(self.now)
        self.accounts.came(job)
        self.accounts.waits(job, 1)
        run.present = self.accounts.integrals.present
        group, *bodies = objects_of(job, number, stamp(self.world.timeline.now))
        amounts = [{name: amount_of(text) for name, text in some.requests.items()} for some in job.pods]
        each = (found for found, some in zip(amounts, job.pods, strict=True) for _ in range(some.count))
        found = [
            (key_of(body), SimPod(run, body, requests, _work(job, body)))
            for body, requests in zip(bodies, each, strict=True)
        ]
        self.pods.update(found)
        if job.pods_delay is not None:
            self._unmade[job.key] = found
            self._wake(True)
        self.world.create(group)
        if job.pods_delay is None:
            self._make(found)
        if job.cancelled is not None:
            self.world.timeline.at(self.began + job.cancelled, partial(self._cancel, run))

    def close(self) -> None:
        """Count what pods have done that are still there."""
        self.accounts.advance(self.now)
        for pod in self.pods.values():
            if pod.since is not None:
                held, done, _ = self._stay(pod)
                pod.run.held += held
                pod.run.useful += done

    def _make(self, found: list[tuple[str, SimPod]]) -> None:
        """Make the pods of a job for the first time."""
        for key, pod in found:
            self._create(key, pod)
            pod.body = unplaced(pod.body)

    def _create(self, key: str, pod: SimPod) -> None:
        """Make a pod as it was, with the time that its next stay takes, unless its job has gone meanwhile."""
        if self.pods.get(key) is not pod:
            return
        pod.uid = f"{meta(pod.body)['uid']}-{pod.stays}" if pod.stays else meta(pod.body)["uid"]
        told = {**meta(pod.body)["annotations"], **self._life(pod)}
        self.world.create(with_meta(pod.body, uid=pod.uid, annotations=told))

    def _life(self, pod: SimPod) -> dict[str, str]:
        """How the next stay of a pod goes, as the kubelets of the simulation read it."""
        lives = self.lives
        runs = inf if pod.work == inf else lives.stay(pod.work, pod.stays > 0)
        fails = lives.fails_after(self.seed, pod.uid)
        told = {} if runs == inf else {RUN_FOR: f"{runs:.3f}"}
        if fails is not None and fails < runs:
            told = {RUN_FOR: f"{fails:.3f}", EXIT_CODE: "1"}
        for name, seconds in ((START_AFTER, lives.start_after), (STOP_AFTER, lives.stop_after)):
            if seconds:
                told[name] = f"{seconds:.3f}"
        return told

    # ------------------------------------------------------------------ news

    def _hear(self, change: SimChange) -> None:
        self.changes += 1
        if change.kind == "PodGroup" and self._unmade:
            self._admitted(change)
        if change.kind != "Pod":
            self._wake(change.kind != "PodGroup" and change.kind != "Queue")
            return
        body, how = change.body, change.how
        pod = self.pods.get(key := key_of(body))
        if pod is None or pod.uid != meta(body)["uid"]:
            return
        if how is Added:
            self._wake(True)
        elif how is Deleted:
            self._gone(key, pod)
        else:
            self._changed(key, pod, body)

    def _admitted(self, change: SimChange) -> None:
        """A PodGroup has changed: once it is admitted, the pods of its job are made."""
        key = key_of(change.body)
        is_gone = change.how is Deleted
        if (part(change.body, "status", "phase") or "Pending") == "Pending" and not is_gone:
            return
        found = self._unmade.pop(key, None)
        if found and not is_gone:
            self._delayed += 1
            self.world.timeline.after(found[0][1].run.job.pods_delay or 0.0, partial(self._make_late, found))

    def _make_late(self, found: list[tuple[str, SimPod]]) -> None:
        self._delayed -= 1
        self._make(found)

    def _changed(self, key: str, pod: SimPod, body: Body) -> None:
        phase = part(body, "status", "phase")
        if phase == "Succeeded":
            self._succeeded(key, pod)
        elif phase == "Failed":
            self._again(key, pod, failed=True)
            self.world.timeline.after(0, partial(self._remove, key, meta(body)["uid"]))
        elif pod.since is None and (node := part(body, "spec", "nodeName")):
            self._bound(pod, node)
        elif pod.told is None and "deletionTimestamp" in meta(body):
            pod.told = self.now

    def _bound(self, pod: SimPod, node: str) -> None:
        run, now = pod.run, self.now
        self.accounts.advance(now)
        self.accounts.placed(run.job, pod.requests, node)
        pod.since, pod.node = now, node
        self.placed += 1
        run.bound += 1
        if run.start is None and run.bound >= (run.job.least or run.job.size):
            run.start = now
            self.accounts.waits(run.job, -1)
            self.accounts.running += 1

    def _stay(self, pod: SimPod) -> tuple[float, float, float]:
        """How long a pod has had its node, and the work that it did there, and saved."""
        since = self.now if pod.since is None else pod.since
        until = self.now if pod.told is None else pod.told
        done, saved = self.lives.progress(max(until - since - self.lives.start_after, 0.0), pod.work, pod.stays > 0)
        return self.now - since, done, saved

    def _leaves(self, pod: SimPod) -> None:
        """A pod's stay is over: its node is free of it."""
        if pod.since is None:
            return
        self.accounts.advance(self.now)
        self.accounts.placed(pod.run.job, pod.requests, pod.node, -1)
        pod.run.bound -= 1
        self.placed -= 1
        pod.since = pod.told = None

    def _succeeded(self, key: str, pod: SimPod) -> None:
        run = pod.run
        run.held += self._stay(pod)[0]
        run.useful += pod.work
        self._leaves(pod)
        run.bound += 1
        del self.pods[key]
        run.done += 1
        self.left(pod)
        if run.done == run.job.size:
            self._end(run)

    def _gone(self, key: str, pod: SimPod) -> None:
        """A pod was told to go, or its node is lost."""
        pod.run.restarts += pod.sent
        pod.run.evictions += not (pod.sent or self.node_lost())
        self._again(key, pod, failed=self.node_lost())

    def _again(self, key: str, pod: SimPod, failed: bool) -> None:
        """A pod has left before its end: it comes again a second later, and others of its job with it if they must.

        Of pods that fail together, as with a node, only the first counts where the job begins again as a whole.
        """
        run, retries = pod.run, self.lives.retries
        run.failures += failed and pod.round == run.round
        held, done, saved = self._stay(pod)
        run.held, run.useful, run.lost = run.held + held, run.useful + saved, run.lost + done - saved
        self._leaves(pod)
        self._wake(True)
        if retries is not None and run.failures > retries:
            self._fail(run)
            return
        pod.work, pod.stays, pod.sent, pod.uid = pod.work - saved, pod.stays + 1, False, ""
        if self.lives.restarts == "job" and pod.round == run.round:
            run.round += 1
            self._send_others(run)
        pod.round = run.round
        self.world.timeline.after(AGAIN, partial(self._create, key, pod))

    def _send_others(self, run: JobRun) -> None:
        """Tell the other pods of a job to go, so that all begin again together."""
        for key in _keys(run.job):
            other = self.pods.get(key)
            if other is not None and other.since is not None and other.told is None:
                other.sent = True
                self.world.timeline.after(0, partial(self._send, key, other))
            elif other is not None and other.told is None:
                other.round = run.round

    def _send(self, key: str, pod: SimPod) -> None:
        if self.pods.get(key) is pod and pod.sent and self.world.get("Pod", key) is not None:
            self.world.delete(key)

    def _end(self, run: JobRun) -> None:
        """A job has ended, well or not."""
        run.end = self.now
        self._depart(run)
        there = run.end - run.job.submit
        run.company = (self.accounts.integrals.present - run.present) / there if there > 0 else 1.0

    def _depart(self, run: JobRun) -> None:
        """A job is there no longer."""
        job = run.job
        self.accounts.advance(self.now)
        self.accounts.came(job, -1)
        if run.start is None:
            self.accounts.waits(job, -1)
        else:
            self.accounts.running -= 1
        self.ended += 1
        self.world.timeline.after(0, partial(self._clear, job))

    def _fail(self, run: JobRun) -> None:
        """A job has failed for good: all that it did is lost."""
        self._forget(run)
        run.failed, run.lost, run.useful = True, run.lost + run.useful, 0.0
        self._end(run)

    def _forget(self, run: JobRun) -> None:
        """The pods of a job leave, and what they did is lost."""
        for key in _keys(run.job):
            pod = self.pods.pop(key, None)
            if pod is not None and pod.since is not None:
                held, done, _ = self._stay(pod)
                run.held, run.lost = run.held + held, run.lost + done
                self._leaves(pod)

    def _cancel(self, run: JobRun) -> None:
        """Its user takes the job away, unless it has started; it has no end then."""
        if run.start is None and run.end is None:
            self._forget(run)
            self._depart(run)
            self._wake(True)

    def _clear(self, job: SimJob) -> None:
        self.world.remove("PodGroup", job.key)
        for key in _keys(job):
            if self.world.get("Pod", key) is not None:
                self.world.remove("Pod", key)

    def _remove(self, key: str, uid: str) -> None:
        """Take a failed pod away, which was counted."""
        found = self.world.get("Pod", key)
        if found is not None and meta(found)["uid"] == uid:
            self.world.remove("Pod", key)


def _keys(job: SimJob) -> list[str]:
    return [f"{job.key}-{number}" for number in range(job.size)]


def _work(job: SimJob, body: Body) -> float:
    """The seconds of work of a pod: what its annotation says, else its job's runtime; infinite for ever."""
    said = meta(body)["annotations"].get(RUN_FOR)
    return float(said) if said else inf if job.runtime is None else job.runtime
