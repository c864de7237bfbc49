"""Random histories of small crowded clusters, lived in virtual time: whatever may happen to a reservation does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from stromboli.cluster.body import meta, part
from stromboli.cluster.lives import OVERSTAY, RUN_FOR, STOP_AFTER
from stromboli.cycle import run_actions
from stromboli.errors import ApiError
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.framework.session.session import Session
from stromboli.model.snapshot import Snapshot
from stromboli.narration.observe import SILENT, Observer
from stromboli.sim.kubelets import Kubelets
from stromboli.sim.owners import Owners
from stromboli.sim.scheduling import Scheduling
from stromboli.sim.timeline import Timeline
from stromboli.sim.world import Hear, SimChange, SimWorld, key_of
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.laws.crowds import CLASSES, TIERS, classes

PERIOD = 10.0
"""Seconds between cycles."""
TIMEOUT = 60
"""Seconds after which a reservation is given up."""
BEGINNING = 1_760_000_000.0


def conf(tiers: str, actions: str, *, early: bool = False) -> str:
    order = f"enqueue, {actions}, allocate" if early else f"enqueue, allocate, {actions}"
    return (
        f'actions: "{order}, backfill"\ntiers:\n{tiers}'
        f"configurations: [{{name: allocate, arguments: {{reservation-timeout: {TIMEOUT}s}}}}]\n"
    )


CONFS = [
    conf(TIERS[tiers], actions)
    for tiers in ("usual", "shares", "capacity")
    for actions in ("preempt, reclaim", "gangpreempt, gangreclaim")
]
CONFS += [conf(TIERS["usual"], "reclaim, preempt", early=True), conf(TIERS["capacity"], "reclaim", early=True)]
ELASTIC = conf(TIERS["usual"].replace("gang}", "gang, enableJobStarving: false}"), "preempt, reclaim")
"""Jobs take room for pods beyond their minimum, too."""


@dataclass(frozen=True)
class Step:
    """Something that happens, ``what`` of :class:`Life`'s methods with two numbers, and cycles that follow."""

    what: str
    first: int = 0
    second: int = 0
    cycles: int = 1


@dataclass(frozen=True)
class History:
    """How a cluster begins, the work that comes, and what happens one after the other."""

    conf: str
    objects: list[Manifest]
    work: list[list[Manifest]]
    steps: list[Step]


# ---------------------------------------------------------------------- what is drawn

CALM = ("nothing", "comes", "comes", "comes", "ends")
NODES = ("leaves", "shrinks", "cordoned", "grows")
WRITES = ("restart", "other_leader", "refuses", "refuses", "deaf", "echo", "fresh")
HAPPENINGS = (*CALM, *NODES, *WRITES)


GRACES = (0, 5, 30, 90, 90)
OVERSTAYS = ("", "", "", "", "30s", "10m")
STAY = ("30s", "1h")
"""Pods stay after their eviction, so that jobs that take room from them hold reservations for a while."""


def member(
    draw: DrawFn, name: str, group: str, importance: str, size: int, on: str = "", runs: str = "",
    overstays: Sequence[str] = OVERSTAYS,
) -> Manifest:  # fmt: skip
    """A pod that takes its whole grace period to end, and perhaps longer; it may have a controller."""
    over = draw(st.sampled_from(overstays))
    lives = {STOP_AFTER: "1h", **({OVERSTAY: over} if over else {}), **({RUN_FOR: runs} if runs else {})}
    made = pod(
        name, group=group, cpu=size, on=on, priority=CLASSES[importance], priorityClassName=importance,
        schedulerName="volcano", annotations=lives, terminationGracePeriodSeconds=draw(st.sampled_from(GRACES)),
    )  # fmt: skip
    if owner := draw(st.sampled_from(("Job", "ReplicaSet", ""))):
        made["metadata"]["ownerReferences"] = [{"kind": owner, "name": group, "controller": True}]
    return made


@st.composite
def full(draw: DrawFn, nodes: Sequence[Manifest], overstays: Sequence[str] = OVERSTAYS) -> list[Manifest]:
    """Unimportant jobs that fill the nodes to the last core."""
    found = []
    for name in "abc":
        home, least = draw(st.sampled_from(("q1", "q2"))), draw(st.sampled_from((0, 0, 1)))
        found.append(pod_group(name, min_member=least, queue=home, phase="Running", priorityClassName="low"))
    for each in nodes:
        left, number = int(each["status"]["allocatable"]["cpu"]), 0
        while left:
            size, group = min(left, draw(st.sampled_from((1, 1, 2)))), draw(st.sampled_from("abc"))
            on = each["metadata"]["name"]
            found.append(member(draw, f"{group}-{on}-{number}", group, "low", size, on, overstays=overstays))
            left, number = left - size, number + 1
    return found


@st.composite
def arriving(draw: DrawFn, name: str, ranks: Sequence[str] = ("high", "high", "mid", "low")) -> list[Manifest]:
    """A gang that waits, mostly one that may take room."""
    importance, home = draw(st.sampled_from(ranks)), draw(st.sampled_from(("q1", "q1", "q2")))
    count, size = draw(st.sampled_from((1, 2, 2, 3))), draw(st.sampled_from((1, 1, 2, 2, 3)))
    least, runs = draw(st.sampled_from((1, count, count))), draw(st.sampled_from(("", "20s", "100s")))
    group = pod_group(name, min_member=least, queue=home, phase="Pending", priorityClassName=importance)
    return [group, *(member(draw, f"{name}-{i}", name, importance, size, runs=runs) for i in range(count))]


def machine(number: int, cpu: int, **spec: Any) -> Manifest:
    return node(f"n{number}", cpu=cpu, memory="64Gi", **spec)


@st.composite
def histories(draw: DrawFn, happenings: Sequence[str] = HAPPENINGS, confs: Sequence[str] = CONFS) -> History:
    """One to three nodes full of small work; a gang comes, and then whatever may happen."""
    nodes = [machine(number, draw(st.integers(2, 4))) for number in range(draw(st.sampled_from((1, 2, 2, 3))))]
    queues = [queue("q1"), queue("q2", weight=draw(st.integers(1, 3)))]
    objects = [*classes(), *queues, *nodes, *draw(full(nodes, draw(st.sampled_from((OVERSTAYS, STAY, STAY)))))]
    work = [draw(arriving("t", ranks=("high",))), *(draw(arriving(name)) for name in "uvwx"[: draw(st.integers(1, 4))])]
    happening = st.builds(
        Step, st.sampled_from(happenings), st.integers(0, 5), st.integers(0, 5), st.sampled_from((1, 1, 1, 2, 4))
    )
    steps = [Step("comes"), Step("comes", cycles=2), *draw(st.lists(happening, min_size=4, max_size=7))]
    return History(draw(st.sampled_from(confs)), objects, work, steps)


@st.composite
def rivalries(draw: DrawFn, happenings: Sequence[str] = (*CALM, "comes", "grows", "restart")) -> History:
    """One or two nodes whose pods stay after their eviction, and equal gangs that all want the room."""
    nodes = [machine(number, draw(st.integers(2, 4))) for number in range(draw(st.integers(1, 2)))]
    objects = [*classes(), queue("q1"), queue("q2"), *nodes, *draw(full(nodes, STAY))]
    work = [draw(arriving(name, ranks=("high", "high", "mid"))) for name in "tuvw"]
    happening = st.builds(Step, st.sampled_from(happenings), st.integers(0, 5), st.integers(0, 5))
    steps = [Step("comes"), Step("comes"), Step("comes"), *draw(st.lists(happening, max_size=3))]
    return History(draw(st.sampled_from(CONFS)), objects, work, steps)


# ---------------------------------------------------------------------- what is lived

Look = Callable[[Session], object]


@dataclass
class Looks:
    """Functions that see a session when it opens, after its actions, and once its plan is made and carried out."""

    opened: list[Look] = field(default_factory=list)
    acted: list[Look] = field(default_factory=list)
    planned: list[Look] = field(default_factory=list)
    carried_out: list[Callable[[Plan], object]] = field(default_factory=list)


class Ear:
    """Stands between the world and a scheduler: loses and repeats as many changes as it is told to."""

    def __init__(self) -> None:
        self.loses = self.repeats = 0
        self.hear: Hear = lambda _: None
        self.last: list[SimChange] = []

    def before(self, hear: Hear) -> Hear:
        self.hear = hear
        return self

    def __call__(self, change: SimChange) -> None:
        if self.loses:
            self.loses -= 1
            return
        self.hear(change)
        if self.repeats:
            self.repeats -= 1
            self.last.append(change)
            for old in self.last:
                self.hear(old)


class Shown(Scheduling):
    """A scheduler that passes each of its sessions to the functions in ``looks``."""

    looks: Looks
    ear: Ear

    def decide(self, snapshot: Snapshot, now: float) -> Plan:
        with Session.open(snapshot, self.config, self.registry, now, self.seed, self.observer) as session:
            for look in self.looks.opened:
                look(session)
            run_actions(session)
            for look in self.looks.acted:
                look(session)
        for look in self.looks.planned:
            look(session)
        return session.plan

    def cycle(self) -> Plan:
        plan = super().cycle()
        for look in self.looks.carried_out:
            look(plan)
        return plan


class Life:
    """A history being lived.  ``leader`` schedules, ``standby`` follows."""

    def __init__(
        self, history: History, config: Config, registry: Registry, looks: Looks, observer: Observer = SILENT
    ) -> None:
        self.history, self.config, self.registry, self.looks = history, config, registry, looks
        self.observer = observer
        self.timeline = Timeline(BEGINNING)
        self.world = SimWorld(self.timeline)
        Kubelets(self.world)
        Owners(self.world)
        for each in history.objects:
            self.world.create(each)
        self.work = iter(history.work)
        self._places: object = None
        self.leader, self.standby = self.scheduler(), self.scheduler()
        self.restarts = self.refusals = 0

    def scheduler(self) -> Shown:
        ear = Ear()
        how: dict[str, Any] = {"period": PERIOD, "through": ear.before, "observer": self.observer}
        made = Shown(self.world, self.config, self.registry, **how)
        made.looks, made.ear = self.looks, ear
        return made

    def live(self) -> None:
        """Let everything happen."""
        for step in self.history.steps:
            getattr(self, step.what)(step.first, step.second)
            self.pass_time(step.cycles)

    def pass_time(self, cycles: int) -> None:
        for _ in range(cycles):
            self.leader.cycle()
            self.timeline.run(self.timeline.now + PERIOD)

    def settle(self) -> None:
        """Nothing is refused, lost or repeated any more."""
        self.leader.carrier.refuse = lambda _verb, _key: None
        self.leader.ear.loses = self.leader.ear.repeats = 0
        self.leader.freshen()

    def happened(self) -> bool:
        """Whether pods have come, gone, begun, ended or got a place, or nodes changed, since this was asked last."""
        pods = [(meta(each)["uid"], part(each, "spec", "nodeName"), part(each, "status", "phase"),
                 meta(each).get("deletionTimestamp")) for each in self.world.all("Pod")]  # fmt: skip
        nodes = [(meta(each)["uid"], each["spec"], each["status"]) for each in self.world.all("Node")]
        before, self._places = self._places, (pods, nodes)
        return before != self._places

    # ------------------------------------------------------------------ what may happen

    def nothing(self, _first: int, _second: int) -> None:
        """Time passes."""

    def comes(self, _first: int, _second: int) -> None:
        for each in next(self.work, ()):
            self.world.create(each)

    def ends(self, first: int, _second: int) -> None:
        running = [each for each in self.world.all("Pod") if part(each, "status", "phase") == "Running"]
        if running:
            self.world.remove("Pod", key_of(running[first % len(running)]))

    def nodes(self) -> list[Manifest]:
        return list(self.world.all("Node"))

    def leaves(self, first: int, _second: int) -> None:
        if nodes := self.nodes():
            self.world.remove("Node", key_of(nodes[first % len(nodes)]))

    def grows(self, first: int, second: int) -> None:
        made = machine(first % 3, 1 + second)
        if self.world.get("Node", key_of(made)) is None:
            self.world.create(made)
        else:
            self.world.patch("Node", key_of(made), {"status": made["status"], "spec": {"unschedulable": None}})

    def shrinks(self, first: int, second: int) -> None:
        if nodes := self.nodes():
            chosen = nodes[first % len(nodes)]
            self.world.patch("Node", key_of(chosen), {"status": {"allocatable": {"cpu": second}}})

    def cordoned(self, first: int, _second: int) -> None:
        if nodes := self.nodes():
            self.world.patch("Node", key_of(nodes[first % len(nodes)]), {"spec": {"unschedulable": True}})

    def restart(self, _first: int, _second: int) -> None:
        """The scheduler ends, and a new one knows only what the world has."""
        self.leader.end()
        self.leader = self.scheduler()
        self.restarts += 1

    def other_leader(self, _first: int, _second: int) -> None:
        """The one that has followed all along decides from now on, after it has read everything again."""
        self.leader, self.standby = self.standby, self.leader
        self.leader.freshen()
        self.restarts += 1

    def refuses(self, first: int, second: int) -> None:
        """Some of the next writes are refused."""
        left = {("annotate", "bind", "annotate", "evict", "annotate", "status")[first]: second + 1}
        self.leader.carrier.refuse = partial(self._refused, left)

    def _refused(self, left: dict[str, int], verb: str, _key: str) -> None:
        if left.get(verb):
            left[verb] -= 1
            self.refusals += verb == "annotate"
            raise ApiError(409, "Conflict", "the object has been modified")

    def deaf(self, first: int, _second: int) -> None:
        """The next news are lost, until a fresh list makes up for them."""
        self.leader.ear.loses = first + 1

    def echo(self, first: int, _second: int) -> None:
        """The next news are heard again, with all those before."""
        self.leader.ear.repeats = first + 1

    def fresh(self, _first: int, _second: int) -> None:
        self.leader.ear.loses = 0
        self.leader.freshen()


def stating(world: SimWorld) -> Iterator[tuple[Manifest, str]]:
    """Pods that state a reservation, with the node."""
    for each in world.all("Pod"):
        if at := (meta(each).get("annotations") or {}).get("volcano.sh/pipelined-node"):
            yield each, str(at)
