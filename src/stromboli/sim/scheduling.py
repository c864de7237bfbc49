"""The scheduler on a world in virtual time: the cycle and the mirror that run live, with writes that land at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from msgspec import structs

from stromboli.cluster.body import Body, Key, meta
from stromboli.cluster.events import Deleted, Event, Modified
from stromboli.cluster.kinds import Object
from stromboli.cluster.mirror import Mirror
from stromboli.cluster.objects import absent
from stromboli.cluster.rim import Cut, GatesSet, Learned
from stromboli.cluster.state import ClusterState
from stromboli.cycle import run_cycle
from stromboli.errors import ManifestError
from stromboli.framework.books.plan import Plan, PodGroupUpdate
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.model.job import PENDING
from stromboli.model.snapshot import Snapshot
from stromboli.narration.observe import SILENT, Observer
from stromboli.sim.carrying import Carrier
from stromboli.sim.world import Hear, SimChange, SimWorld

PERIOD: Final = 1.0
"""Seconds between cycles, as live."""


class Scheduling:
    """One scheduler.  It follows the world from the moment it is made, and schedules from :meth:`start` to :meth:`end`.

    A new one knows only what the world has: that is a restart.  One that has followed all along and starts when
    another ends: that is a change of leaders.  ``through`` lets a test stand between the world and what is heard of it.
    """

    def __init__(
        self, world: SimWorld, config: Config, registry: Registry, *, period: float = PERIOD, seed: int = 0,
        observer: Observer = SILENT, when_planned: Callable[[Plan], object] = lambda _: None,
        through: Callable[[Hear], Hear] = lambda hear: hear,
    ) -> None:  # fmt: skip
        self.world, self.config, self.registry = world, config, registry
        self.period, self.seed, self.observer = period, seed, observer
        self.mirror = Mirror(ClusterState())
        self.mirror.rim.do(GatesSet(sorted(config.gates)))
        self.carrier = Carrier(world, self.mirror, self.hear)
        self.problems: list[ManifestError] = []
        self._read: tuple[Body | None, Event] = None, Event("", Object())
        self._when_planned = when_planned
        self._hear = through(self.hear)
        self._runs = False
        world.follow(self._hear)
        self.freshen()

    @property
    def state(self) -> ClusterState:
        """The cluster as this scheduler knows it."""
        return self.mirror.state

    # ------------------------------------------------------------------ hearing

    def hear(self, change: SimChange, *, force: bool = False) -> None:
        """Take news in; what cannot be used is one of the ``problems``, and leaves everything else as it is."""
        try:
            self.mirror.take(self._event_of(change), force=force)
        except ManifestError as error:
            self.problems.append(error)

    def _event_of(self, change: SimChange) -> Event:
        """What ``change`` says; the answer to a write is the news of it once more, which need not be read again."""
        body, event = self._read
        if body is not change.body or type(event) is not change.how:
            event = change.event
            self._read = change.body, event
        return event

    def freshen(self) -> None:
        """Read everything again: what is not there any more is known to be gone, and what was missed is made up for."""
        listed = list(self.world.listed())
        there = {(change.kind, *_named(change.body)) for change in listed}
        for kind in list(self.mirror.versions):
            for key, version in self.mirror.known(kind).items():
                if (kind, *key) not in there:
                    self.mirror.take(Deleted(kind, absent(kind, key, version.uid)))
        for change in listed:
            self.hear(change)

    # ------------------------------------------------------------------ cycles

    def start(self) -> None:
        """Run a cycle now, and another every ``period`` seconds."""
        self._runs = True
        self.world.timeline.after(0, self._turn)

    def end(self) -> None:
        """Run no more cycles and hear no more."""
        self._runs = False
        self.world.leave(self._hear)

    def _turn(self) -> None:
        if self._runs:
            self.cycle()
            self.world.timeline.after(self.period, self._turn)

    def cycle(self) -> Plan:
        """Run one cycle and carry its plan out."""
        now = self.world.timeline.now
        self._ask_for_overdue(now)
        plan = self.decide(self._snapshot(), now)
        self._when_planned(plan)
        self._carry_out(plan)
        return plan

    def note(self) -> None:
        """Write the phases of jobs as a cycle without actions finds them.

        Jobs of which pods still wait and that stay in their phase are left alone, and so are the conditions of all
        pods: only the last whole cycle knows why they wait.
        """
        config = replace(self.config, actions=())
        plan = run_cycle(self._snapshot(), config, self.registry, self.world.timeline.now, self.seed, self.observer)
        told = [one for one in plan.pod_groups if self._is_news(one)]
        self._carry_out(structs.replace(plan, pod_groups=told, pod_conditions=[]))

    def _is_news(self, update: PodGroupUpdate) -> bool:
        """Whether a job has another phase now, or has no pod left that waits."""
        job = self.state.jobs.get(update.key)
        return job is not None and (PENDING not in job.index or update.phase != job.phase)

    def decide(self, snapshot: Snapshot, now: float) -> Plan:
        """What one cycle decides."""
        return run_cycle(snapshot, self.config, self.registry, now, self.seed, self.observer)

    def _snapshot(self) -> Snapshot:
        cut: Snapshot = self.mirror.rim.do(Cut(self.world.timeline.now, 0, self.seed))
        return cut

    def _carry_out(self, plan: Plan) -> None:
        self.carrier.carry_out(plan)
        self.mirror.rim.do(Learned.of(plan, self.state))

    def _ask_for_overdue(self, now: float) -> None:
        """Ask for pods whose news should have come by now."""
        for key, uid in self.mirror.overdue(now):
            body = self.world.get("Pod", key)
            if body is not None:
                self.hear(SimChange(Modified, "Pod", body), force=True)
            self.mirror.forget(key, uid)


def _named(body: Body) -> Key:
    return meta(body).get("namespace", ""), str(meta(body)["name"])
