"""Runs a workload in virtual time, and counts what it came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from benchmarks.pipelined.workloads import CONFIGURATION, Happening, Workload, history
from stromboli.builtin import builtin_registry
from stromboli.cluster.body import Body, meta, part
from stromboli.cluster.events import Deleted
from stromboli.errors import ApiError
from stromboli.framework.books.plan import Bind, Plan, Reservation
from stromboli.framework.config.config import Config, load_config
from stromboli.framework.config.gates import PIPELINED_STATE, switched_on
from stromboli.model.reservation import read
from stromboli.model.task import GRACE
from stromboli.sim.kubelets import Kubelets
from stromboli.sim.owners import Owners, group_of
from stromboli.sim.scheduling import Scheduling
from stromboli.sim.timeline import Timeline
from stromboli.sim.world import SimChange, SimWorld

BEGINNING: Final = 1_760_000_000.0
"""When workloads begin, in seconds since 1970."""
SLOW: Final = 60
"""From how many seconds of grace a victim is slow: twice the usual."""
REGISTRY: Final = builtin_registry()


@dataclass
class Outcome:
    """What a workload came to.

    ``evictions`` counts pods, ``slow`` those of :data:`SLOW` seconds and more among them, ``repeated`` those that went
    for a pod which held room already, ``taken`` reservations that ended because a pod of no higher class took the
    room.  ``waits`` are seconds until gangs ran, by name; those that never did waited to the end.  ``use`` is the share
    of the cluster's cores that worked.
    """

    evictions: int = 0
    slow: int = 0
    repeated: int = 0
    taken: int = 0
    waits: dict[str, float] = field(default_factory=dict)
    use: float = 0.0
    cycles: int = 0
    given_up: Counter[str] = field(default_factory=Counter)


def config_of(keep: bool) -> Config:
    """The configuration of all workloads, reservations kept or not."""
    plugins, actions = REGISTRY.plugin_names, REGISTRY.action_names
    config = load_config(CONFIGURATION, source="benchmark", known_plugins=plugins, known_actions=actions)
    return replace(config, features=switched_on({PIPELINED_STATE: keep}))


def run(workload: Workload, seed: int, keep: bool, seconds: float = 1800.0, period: float = 5.0) -> Outcome:
    """Let a workload happen, with a cycle every ``period`` seconds."""
    timeline = Timeline(BEGINNING)
    world = SimWorld(timeline)
    Kubelets(world)
    Owners(world)
    clock = Clock(world)
    for happening in history(workload, seed, seconds):
        timeline.at(BEGINNING + happening.when, partial(_happen, world, happening))
    timeline.run(BEGINNING)
    decisions = Decisions(world, keep)
    scheduling = Scheduling(
        world, config_of(keep), REGISTRY, period=period, observer=decisions, when_planned=decisions.planned
    )
    scheduling.start()
    timeline.run(BEGINNING + seconds)
    if scheduling.problems:
        raise scheduling.problems[0]
    clock.read(decisions.outcome)
    return decisions.outcome


def _happen(world: SimWorld, happening: Happening) -> None:
    if happening.leaves:
        if world.get("Node", happening.leaves) is not None:
            world.remove("Node", happening.leaves)
        return
    for body in happening.come:
        try:
            world.create(body)
        except ApiError:  # a node that has left twice comes back once
            continue


class Clock:
    """Follows a world for how much of it works, and since when its gangs run."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self._working: dict[str, int] = {}
        self._offered: dict[str, int] = {}
        self._since = world.timeline.now
        self._worked = self._all = 0.0
        self._came: dict[str, float] = {}
        self._runs: dict[str, float] = {}
        world.follow(self._hear)

    def _hear(self, change: SimChange) -> None:
        if change.kind == "Node":
            self._tick()
            self._set(
                self._offered, str(meta(change.body)["name"]), 0 if change.how is Deleted else _offer(change.body)
            )
        elif change.kind == "PodGroup" and change.how is not Deleted:
            self._came.setdefault(str(meta(change.body)["name"]), self._world.timeline.now)
        elif change.kind == "Pod":
            self._tick()
            works = change.how is not Deleted and _works(change.body)
            self._set(self._working, str(meta(change.body)["uid"]), _cores(change.body) if works else 0)
            if works:
                self._note_start(group_of(change.body))

    def _set(self, where: dict[str, int], name: str, cores: int) -> None:
        if cores:
            where[name] = cores
        else:
            where.pop(name, None)

    def _tick(self) -> None:
        passed = self._world.timeline.now - self._since
        if passed:
            self._worked += passed * sum(self._working.values())
            self._all += passed * sum(self._offered.values())
            self._since += passed

    def _note_start(self, key: str) -> None:
        name = key.partition("/")[2]
        group = self._world.get("PodGroup", key)
        if group is None or name in self._runs:
            return
        pods = [pod for pod in self._world.all("Pod") if group_of(pod) == key]
        if sum(map(_works, pods)) >= group["spec"]["minMember"]:
            self._runs[name] = self._world.timeline.now

    def read(self, outcome: Outcome) -> None:
        """Write down what was seen."""
        self._tick()
        outcome.use = self._worked / self._all
        end = self._world.timeline.now
        outcome.waits = {
            name: self._runs.get(name, end) - came for name, came in self._came.items() if name.startswith("gang-")
        }


def _works(pod: Body) -> bool:
    return part(pod, "status", "phase") == "Running" and "deletionTimestamp" not in meta(pod)


def _cores(pod: Body) -> int:
    return int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def _offer(node: Body) -> int:
    return int(node["status"]["allocatable"]["cpu"])


class Decisions:
    """Hears statements and plans: the pods that each eviction is for, and what becomes of reservations."""

    _STATEMENTS: Final = frozenset({"committing", "keeping", "discarding", "evict_operation", "pipeline_operation"})

    def __init__(self, world: SimWorld, keep: bool) -> None:
        self._world, self._keep = world, keep
        self.outcome = Outcome()
        self._committing = False
        self._going: list[str] = []
        self._coming: list[tuple[str, str]] = []
        self._statements: list[tuple[list[str], list[tuple[str, str]]]] = []
        self._held: dict[str, Reservation] = {}
        self._ended: set[str] = set()

    # ------------------------------------------------------------------ an observer

    def wants(self, key: str) -> bool:
        """Statements, and reservations that are given up."""
        return key in self._STATEMENTS or key == "reservation_given_up"

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        """Note the evictions and reservations of committed ones, and what is given up by rule."""
        if key == "reservation_given_up":
            task = fields["task"]
            self._ended.add(str(getattr(task, "uid", task)))
            self.outcome.given_up[str(fields["reason"])] += 1
        elif key in ("committing", "keeping", "discarding"):
            self._committing = key == "committing"
            if self._committing:
                self._statements.append(([], []))
        elif self._committing:
            going, coming = self._statements[-1]
            task = fields["task"]
            name, node = str(getattr(task, "key", task)), str(fields["node"])
            if key == "evict_operation":
                going.append(node)
            else:
                coming.append((name, node))

    def started(self, kind: str, name: str) -> None:
        """Not heard."""

    def ended(self, kind: str, name: str) -> None:
        """Not heard."""

    # ------------------------------------------------------------------ plans

    def planned(self, plan: Plan) -> None:
        """A cycle is over."""
        outcome = self.outcome
        outcome.cycles += 1
        outcome.evictions += len(plan.evictions)
        outcome.slow += sum(self._grace(one.key) >= SLOW for one in plan.evictions)
        held = {one.key: one for one in self._held.values() if self._stands(one)}
        for going, coming in self._statements:
            again = {node for key, node in coming if key in held}
            outcome.repeated += sum(node in again for node in going)
        self._statements = []
        outcome.taken += self._taken(plan, held)
        self._held = {one.uid: one for one in _waiting(plan)}
        self._ended = set()

    def _stands(self, one: Reservation) -> bool:
        """Whether a reservation still stood when a cycle began: its pod and node are there, and it was not given up.

        Where reservations are kept it is also written on its pod; those of a job that cools down are not.
        """
        pod = self._world.get("Pod", one.key)
        if pod is None or meta(pod)["uid"] != one.uid or self._world.get("Node", one.node) is None:
            return False
        held = read(meta(pod)["annotations"])
        return one.uid not in self._ended and (not self._keep or (held is not None and held.node == one.node))

    def _taken(self, plan: Plan, held: Mapping[str, Reservation]) -> int:
        """How many reservations are no more although a pod of no higher class has come to that node."""
        placed: list[Bind | Reservation] = [*plan.binds, *_waiting(plan)]
        has = {one.uid for one in placed}
        came: dict[str, int] = {}
        for one in placed:
            if self._held.get(one.uid) is None:
                came[one.node] = min(came.get(one.node, 1 << 31), self._class(one.key))
        return sum(one.uid not in has and came.get(one.node, 1 << 31) <= self._class(one.key) for one in held.values())

    def _grace(self, key: str) -> int:
        return int(part(self._world.get("Pod", key) or {}, "spec", "terminationGracePeriodSeconds") or GRACE)

    def _class(self, key: str) -> int:
        return int(part(self._world.get("Pod", key) or {}, "spec", "priority") or 0)


def _waiting(plan: Plan) -> list[Reservation]:
    """The tasks that have room at the end of a cycle without being bound."""
    return [*plan.reservations, *plan.allocated_not_bound]
