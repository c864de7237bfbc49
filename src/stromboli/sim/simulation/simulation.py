"""A workload run by the scheduler in virtual time: the cycle and the mirror of production decide, pods live as told.

A cycle runs when something has happened that it may answer to: a job came, a job ended and left room in which one of
the pods that wait may fit, the last cycle decided something and left others waiting, or a plugin or a reservation looks
at the clock.  All other cycles would decide nothing, so leaving them out changes no schedule.  What one of them would
have noted, that jobs which were placed now run, is noted before the next job comes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil, inf
from typing import Final

from stromboli.api.scheduling import POD_GROUP_COMPLETED, POD_GROUP_RUNNING
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.reservations.memory import MEMORY
from stromboli.sim.collecting import seldom_collecting
from stromboli.sim.kubelets import Kubelets
from stromboli.sim.scheduling import PERIOD, Scheduling
from stromboli.sim.simulation.accounts import Accounts
from stromboli.sim.simulation.job_objects import opened
from stromboli.sim.simulation.lives import PLAIN, Lives
from stromboli.sim.simulation.outages import Outages
from stromboli.sim.simulation.pods import JobRun, SimPod, SimPods
from stromboli.sim.simulation.room import Room
from stromboli.sim.simulation.workload import TimedChange, Workload
from stromboli.sim.timeline import Timeline
from stromboli.sim.traces.trace_objects import START
from stromboli.sim.world import SimWorld, key_of

IDLE: Final = 3_600
"""Cycles in a row that decide nothing while nothing else is to come, after which a simulation ends."""

SETTLED: Final = frozenset({POD_GROUP_RUNNING, POD_GROUP_COMPLETED})
"""Phases of jobs that are placed."""


class Simulation:
    """One run of ``workload``; ``runs`` are its jobs in order, ``cycles`` counts, ``accounts`` are its sums over time.

    ``period`` is None for a cycle at each event, otherwise seconds between the moments at which cycles may begin.
    ``skips`` is False to run those cycles, too, that would decide nothing: the law that this changes nothing is tested.
    """

    def __init__(
        self, workload: Workload, config: Config, registry: Registry, *, period: float | None = None, seed: int = 0,
        lives: Lives = PLAIN, skips: bool = True, progress: Callable[[Simulation], object] = lambda _: None,
    ) -> None:  # fmt: skip
        self.workload, self.period, self._progress = workload.whole(), period, progress
        self.began = START.timestamp()
        self.timeline = Timeline(self.began)
        self.world = SimWorld(self.timeline)
        for body in self.workload.objects:
            self.world.create(opened(body))
        for change in self.workload.changes:
            self.timeline.at(self.began + change.at, partial(self._change, change))
        self.scheduling = Scheduling(self.world, config, registry, seed=seed, when_planned=self._look)
        Kubelets(self.world)
        self.accounts = Accounts(self.workload)
        self.pods = SimPods(self.world, lives, self.accounts, seed, self._wake)
        self.runs = [JobRun(job) for job in self.workload.jobs]
        self._outages = Outages(self.world, lives.node_mtbf, lives.node_mttr, seed, self._over)
        self.pods.node_lost = lambda: self._outages.losing
        self.cycles = 0
        self.pods.left = self._pod_left
        self._always = not skips or any(one.depends_on_time for one in registry.built(config))
        self._room, self._left, self._must = Room(config.actions), list[SimPod](), True
        self._decided = self._reserved = self._only_places = False
        self._placed: set[str] = set()
        self._due, self._last, self._unnoted = inf, -inf, inf
        self._fails = bool(lives.pod_mtbf or lives.node_mtbf)
        self._idle = self._next = 0

    @property
    def ended(self) -> int:
        """How many jobs have ended."""
        return self.pods.ended

    @property
    def now(self) -> float:
        """Seconds from the workload's beginning."""
        return self.timeline.now - self.began

    @seldom_collecting()
    def run(self, until: float = inf) -> list[JobRun]:
        """Run until all jobs have ended, or nothing more can happen, or ``until`` seconds from the beginning."""
        self._arrive()
        while not self._over() and self.timeline.due <= self.began + until and self.timeline.step():
            pass
        self.pods.close()
        return self.runs

    def _change(self, change: TimedChange) -> None:
        """An object of the cluster comes, changes or goes."""
        self._note()
        body = opened(dict(change.object))
        kind, key = body["kind"], key_of(body)
        there = self.world.get(kind, key) is not None
        if kind == "Node" and self._outages.changed(body, stays=change.stays):
            return
        if not change.stays:
            if there:
                self.world.remove(kind, key)
        elif there:
            self.world.replace(body)
        else:
            self.world.create(body)
        self._wake(True)

    def _over(self) -> bool:
        return self._idle >= IDLE or self.ended == len(self.runs)

    def _arrive(self) -> None:
        """Let all jobs come whose time it is, and the others at theirs."""
        jobs = self.runs
        self._note()
        while self._next < len(jobs) and jobs[self._next].job.submit <= self.now:
            self.pods.come(self._next, jobs[self._next])
            self._next += 1
        if self._next < len(jobs):
            self.timeline.at(self.began + jobs[self._next].job.submit, self._arrive)

    # ------------------------------------------------------------------ cycles

    def _wake(self, wakes: bool) -> None:
        """Let a cycle run: at once, or when the next period begins."""
        if wakes:
            self._must = True
            self._ask(self.timeline.now)

    def _pod_left(self, pod: SimPod) -> None:
        """A pod has left because its work is done: let a cycle run if any that waits may have its room."""
        if self.pods.pending:
            self._left.append(pod)
            self._ask(self.timeline.now)

    def _ask(self, when: float) -> None:
        """Let a cycle run at ``when``, or when the next period begins, unless there is one until then.

        It comes last of what happens at its moment, so it knows all of that.
        """
        when = self._moment(when)
        if when < self._due:
            self._due = when
            self.timeline.at(when, self._turn, last=True)

    def _moment(self, when: float) -> float:
        """The first moment from ``when`` on at which a cycle may begin: periods have one each."""
        if self.period is None:
            return when
        periods = ceil((when - self.began) / self.period)
        found = self.began + self.period * periods
        return found if found > self._last else self.began + self.period * (periods + 1)

    def _turn(self) -> None:
        if self.timeline.now < self._due:  # another cycle came before this one, and stood in for it
            return
        self._due, self._last = inf, self.timeline.now
        if self._decides_nothing():
            return
        self.cycles += 1
        self._must, self._unnoted = False, inf
        self.scheduling.cycle()
        self._idle = 0 if self._decided or self._goes_on() else self._idle + 1
        if self.cycles % 256 == 0:
            self._progress(self)
        self._ask_again()

    def _ask_again(self) -> None:
        """Let another cycle follow if this one decided something and left others waiting, or a clock is looked at.

        Where pods may fail, it follows whatever waits: jobs that run go on otherwise than those not known to run.
        """
        looks = self._always or self._reserved
        follows = self.timeline.now + (self.period or PERIOD)
        if looks or (self._decided and (self.pods.pending or self._fails)):
            self._must |= looks or self._fails or not self._is_settled()
            if self.ended < len(self.runs):
                self._ask(follows)
        if self._decided:
            self._unnoted = self._moment(follows)

    def _note(self) -> None:
        """Note that the jobs run which the last cycle placed, where the cycle that would have has been left out."""
        if self._unnoted < self.timeline.now:
            self._unnoted = inf
            self.scheduling.note()

    def _decides_nothing(self) -> bool:
        """Whether a cycle is known to decide nothing: in the last one pods were bound, or since then jobs have ended,
        and nothing that waits fits where there is room.
        """
        left, self._left = self._left, []
        may_skip = not self._must and all(pod.run.end is not None for pod in left)
        if may_skip and self._room.is_full(self.scheduling.state, {pod.node for pod in left}):
            return True
        self._room.forget()
        return False

    def _goes_on(self) -> bool:
        """Whether something is to come, whatever cycles decide: jobs, pods that are made, or ends of pods."""
        return self._next < len(self.runs) or self.pods.to_come or bool(self.pods.placed)

    def _look(self, plan: Plan) -> None:
        self._decided = bool(
            plan.binds or plan.evictions or plan.gates or plan.annotations or self._phases_matter(plan)
        )
        kept = plan.memory.get(MEMORY, self.scheduling.state.memory.get(MEMORY))  # evictions that are put off
        self._reserved = bool(plan.reservations or kept)
        self._placed = {bind.job for bind in plan.binds}
        self._only_places = not (plan.evictions or plan.gates or plan.annotations)

    def _is_settled(self) -> bool:
        """Whether the last cycle did no more than place jobs, or admit them, and the next will say nothing of those."""
        jobs = self.scheduling.state.jobs
        return self._only_places and all(jobs[uid].phase in SETTLED for uid in self._placed if uid in jobs)

    def _phases_matter(self, plan: Plan) -> bool:
        """Whether phases change in a way that a later cycle may answer to.

        That a job runs, or is complete, matters only to jobs that wait to be admitted.
        """
        jobs = self.scheduling.state.jobs
        told = (one for one in plan.pod_groups if one.key in jobs)
        changed = {one.key: one.phase for one in told if one.phase != jobs[one.key].phase}
        if SETTLED.issuperset(changed.values()):
            undecided = (job for job in jobs.values() if not job.settled) if changed else ()
            return any(job.is_pending() and job.uid not in changed for job in undecided)
        return True
