"""What the laws of eviction are tried on: full clusters at which gangs arrive, and what is watched while they do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from stromboli.cluster.files.scenario import ScenarioChange
from stromboli.cluster.state import ClusterState
from stromboli.cycle import run_cycle
from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.framework.statement.operation import Evict, Operation, Unpipeline, split
from stromboli.framework.statement.session_state import SessionState
from stromboli.framework.statement.statement import Statement
from stromboli.model.job import BOUND, RUNNING
from stromboli.model.names import GPU, PREEMPTABLE
from stromboli.model.resources.axes import PODS, add_to
from stromboli.model.snapshot import Snapshot
from stromboli.model.task import Task
from stromboli.sim.between import apply_change, apply_plan
from stromboli.testing.builders import Manifest, events, node, pod, pod_group, queue
from stromboli.testing.strategies import closeness, hyper_nodes, sometimes
from tests.laws.scenes import NOW, REGISTRY, Scene, fitted
from tests.support.checker_objects import amounts, name_of

CLASSES = {"low": 1, "mid": 50, "high": 100}
CRITICAL = "system-cluster-critical"
GROUPS = ("a", "b", "c", "d")
ARRIVING = ("x", "y", "z")
LABELLED = {"app": "resident"}
"""Labels of pods that may go: pdb lets no pod go that has none."""
SIZES: tuple[dict[str, Any], ...] = (
    {"cpu": 1},
    {"cpu": 1, "memory": "3Gi"},
    {"cpu": 2},
    {"cpu": "500m", "memory": "2Gi"},
)
LARGE: tuple[dict[str, Any], ...] = ({"cpu": 2}, {"cpu": 2}, {"cpu": "2500m"}, {"cpu": 3})
"""What arriving pods ask for besides: more than one victim frees."""

TIERS: dict[str, str] = {
    "usual": """\
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
""",
    "guarded": """\
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: binpack}]
- plugins: [{name: conformance}, {name: pdb}]
""",
    "shares": """\
- plugins: [{name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}]
""",
    "ranked": """\
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: proportion}, {name: nodeorder}]
""",
    "capacity": """\
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}]
- plugins: [{name: predicates}, {name: capacity}, {name: nodeorder}]
""",
}
"""Sets of plugins by name."""

TREE = """\
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: capacity, enableHierarchy: true}, {name: nodeorder}]
"""
"""Queues have queues below them."""

WANTING = """\
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang, enableJobStarving: false}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
"""Jobs starve as long as any of their pods wait, so they may take room from their own."""

ACTIONS = ("preempt", "reclaim", "preempt, reclaim", "gangpreempt", "gangreclaim", "gangpreempt, gangreclaim")


def configuration(tiers: str, actions: str, *more: str, early: bool = False) -> str:
    """The text of a configuration, in which the actions come after allocate, or before it."""
    order = f"enqueue, {actions}, allocate" if early else f"enqueue, allocate, {actions}"
    return f'actions: "{order}, backfill"\ntiers:\n{TIERS[tiers]}' + "\n".join(more)


EARLY = tuple(configuration(tiers, actions, early=True) for tiers, actions in product(TIERS, ACTIONS))
"""Every set of plugins with every set of actions, room being taken before allocate has had its turn."""

EVERY = (*(configuration(tiers, actions) for tiers, actions in product(TIERS, ACTIONS)), *EARLY)
"""Every set of plugins with every set of actions in both orders."""


def configurations(tiers: Sequence[str] = tuple(TIERS), actions: Sequence[str] = ACTIONS, *more: str) -> list[str]:
    """Some of the configurations."""
    return [configuration(each, action, *more) for each, action in product(tiers, actions)]


# ---------------------------------------------------------------------- what is drawn


def classes() -> list[Manifest]:
    known = {**CLASSES, CRITICAL: 2_000_000_000}
    return [
        {"kind": "PriorityClass", "metadata": {"name": name, "uid": f"pc-{name}"}, "value": value}
        for name, value in known.items()
    ]


@st.composite
def budgets(draw: DrawFn) -> Manifest:
    """A disruption budget over the pods of one app, with what its controller allows at this moment."""
    name = draw(st.sampled_from(GROUPS))
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"budget-{name}", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": name}}},
        "status": {"disruptionsAllowed": draw(st.integers(0, 2))},
    }


@st.composite
def gangs(draw: DrawFn, name: str, queues: Sequence[str], nodes: Sequence[str], calm: bool) -> list[Manifest]:
    """A PodGroup and its equal pods: on nodes where ``nodes`` are given, else waiting."""
    count, running = draw(st.integers(1, 4)), bool(nodes)
    least = draw(st.sampled_from((0, 1, 1, count)) if running else st.integers(1, count))
    importance = draw(st.sampled_from(("low", "low", "mid", "high") if running else ("high", "high", "mid")))
    own = {"app": name} if draw(st.booleans()) else {}
    says = draw(sometimes(st.sampled_from(("true", "false")), 4))
    notes: dict[str, str] = {} if says is None else {PREEMPTABLE: says}
    sizes = SIZES if running else (*SIZES[:2], *LARGE)
    more: dict[str, Any] = {**draw(st.sampled_from(sizes)), "annotations": notes, "labels": own}
    if running:
        more["terminationGracePeriodSeconds"] = draw(st.sampled_from((30, 30, 30, 35)))  # slow ones are waited for once
    pod_class = importance
    if not calm:
        pod_class = CRITICAL if draw(sometimes(st.just(True), 6)) else importance
        more["container"] = draw(sometimes(st.just({"ports": [{"hostPort": 80}]}), 6)) or {}
        more["preemptionPolicy"] = draw(sometimes(st.just("Never"), 6))
    group = pod_group(
        name, min_member=least, queue=draw(st.sampled_from(queues)),
        phase="Running" if running else "Inqueue", priorityClassName=importance, created=draw(st.integers(1, 5)),
    )  # fmt: skip
    pods = [
        pod(
            f"{name}-{number}", group=name, on=draw(st.sampled_from(nodes)) if running else "",
            created=draw(st.integers(1, 3)), priority=CLASSES.get(pod_class, 2_000_000_000),
            priorityClassName=pod_class, **more,
        )
        for number in range(count)
    ]  # fmt: skip
    return [group, *pods]


@st.composite
def crowds(draw: DrawFn, texts: Sequence[str] = EVERY, calm: bool | None = None) -> Scene:
    """One to three small nodes full of running gangs, up to three queues, and gangs that wait.

    ``calm`` ones have no ports, critical pods or policies; by default some are.
    """
    quiet = draw(st.booleans()) if calm is None else calm
    nodes = [f"n{number}" for number in range(draw(st.integers(1, 3)))]
    found = [*classes(), *(node(name, cpu=draw(st.integers(2, 4))) for name in nodes)]
    queues = ["q1", "q2", "q3"][: draw(st.integers(1, 3))]
    for name in queues:
        deserved = draw(sometimes(st.integers(0, 6).map(lambda cpu: {"cpu": cpu, "memory": f"{2 * cpu}Gi"}), 2))
        fields: dict[str, Any] = {"reclaimable": draw(st.sampled_from((True, True, True, False)))}
        if deserved is not None:
            fields["deserved"] = deserved
        found.append(queue(name, weight=draw(st.integers(1, 3)), **fields))
    for name in GROUPS[: draw(st.integers(1, len(GROUPS)))]:
        found += draw(gangs(name, queues, nodes, quiet))
    for name in ARRIVING[: draw(st.integers(1, len(ARRIVING)))]:
        found += draw(gangs(name, queues, (), quiet))
    if not quiet:
        found += {each["metadata"]["name"]: each for each in draw(st.lists(budgets(), max_size=2))}.values()
    room = {name_of(each): amounts(each["status"]["allocatable"]) for each in found if each["kind"] == "Node"}
    objects = [fitted(each, room) if each["kind"] == "Pod" else each for each in found]
    return Scene(objects, draw(st.sampled_from(list(texts))))


@st.composite
def roomy(draw: DrawFn, texts: Sequence[str] = EVERY) -> Scene:
    """A crowd next to one to three empty nodes, too small for some of the pods that come."""
    scene = draw(crowds(texts))
    spare = [node(f"s{number}", cpu=draw(st.integers(1, 4))) for number in range(draw(st.integers(1, 3)))]
    return Scene([*scene.objects, *spare], scene.conf)


@st.composite
def uneven(draw: DrawFn, texts: Sequence[str] = EVERY) -> Scene:
    """A full node or two with jobs of unequal pods, and one important job that needs room of several sizes."""
    found = [*classes(), queue("q1"), queue("q2", weight=draw(st.integers(1, 2)))]
    home = draw(st.sampled_from(("q1", "q2")))
    for number in range(draw(st.integers(1, 2))):
        sizes = draw(st.lists(st.sampled_from((1, 2, 3)), min_size=2, max_size=4))
        found.append(node(f"n{number}", cpu=sum(sizes), memory="64Gi"))
        for place, size in enumerate(sizes):
            name, small = f"r{number}{place}", size == 1
            importance = "low" if small else draw(st.sampled_from(("low", "mid", "mid")))  # the small ones go first
            found.append(pod_group(name, queue="q1", min_member=0, phase="Running", priorityClassName=importance))
            one: dict[str, Any] = {"cpu": size, "on": f"n{number}", "priority": CLASSES[importance], "labels": LABELLED}
            found.append(pod(f"{name}-0", group=name, **one))
    count = draw(st.integers(1, 3))
    found.append(pod_group("x", queue=home, min_member=count, priorityClassName="high"))
    found += [pod(f"x-{i}", group="x", cpu=draw(st.sampled_from((2, 3))), priority=100) for i in range(count)]
    return Scene(found, draw(st.sampled_from(list(texts))))


@st.composite
def unlike(draw: DrawFn) -> Scene:
    """A full node, and jobs with some pods running there and some waiting, all of different priority.

    Jobs want all of their pods, and can do without those beyond the first: they take room from their own.
    """
    found = [*classes(), queue("q1")]
    placed = 0
    for name in GROUPS[: draw(st.integers(1, 2))]:
        found.append(pod_group(name, queue="q1", min_member=1, phase="Running", priorityClassName="mid"))
        running = draw(st.integers(1, 3))
        placed += running
        for number in range(running + draw(st.integers(1, 2))):
            on = "n0" if number < running else ""
            found.append(pod(f"{name}-{number}", group=name, cpu=1, on=on, priority=draw(st.sampled_from((1, 5, 9)))))
    return Scene([*found, node("n0", cpu=placed)], WANTING)


@st.composite
def contested(draw: DrawFn, texts: Sequence[str] = EVERY) -> Scene:
    """Full nodes that two queues share in small pods, and a third that has nothing yet: room is taken in most of them.

    Gangs that come ask for unequal pods, of which some may find no room, and are content with a part of them.
    """
    found = list(classes())
    for name in ("q1", "q2", "q3"):
        cpu = draw(st.sampled_from((1, 2, 2, 4)))
        found.append(queue(name, weight=draw(st.integers(1, 3)), deserved={"cpu": cpu, "memory": f"{cpu}Gi"}))
    owners = ("q1", "q3", *draw(st.lists(st.sampled_from(("q3", "both")), max_size=2)))
    for number, owner in enumerate(draw(st.permutations(owners))):
        found.append(node(f"n{number}", cpu=4, memory="4Gi"))
        for place, size in enumerate(draw(st.sampled_from(((1, 1, 1, 1), (2, 1, 1), (2, 2), (3, 1))))):
            name = f"r{number}{place}"
            home = ("q1", "q3")[place % 2] if owner == "both" else owner
            found.append(pod_group(name, queue=home, min_member=0, phase="Running", priorityClassName="low"))
            one: dict[str, Any] = {"cpu": size, "memory": f"{size}Gi", "on": f"n{number}", "labels": LABELLED}
            found.append(pod(f"{name}-0", group=name, priority=1, **one))
    for gang in range(draw(st.integers(1, 2))):
        name, home = f"x{gang}", draw(st.sampled_from(("q2", "q2", "q2", "q1")))
        sizes = draw(st.lists(st.sampled_from((1, 1, 2, 3, 5)), min_size=1, max_size=3))
        least = draw(st.integers(1, len(sizes)))
        found.append(pod_group(name, queue=home, min_member=least, priorityClassName="high", phase="Inqueue"))
        found += [
            pod(f"{name}-{i}", group=name, cpu=size, memory=f"{size}Gi", priority=100) for i, size in enumerate(sizes)
        ]
    return Scene(found, draw(st.sampled_from(list(texts))))


@st.composite
def staffed(draw: DrawFn) -> Scene:
    """Full nodes that several jobs of several queues share, each with pods on most of them, and gangs of equal pods."""
    nodes = [f"n{number}" for number in range(draw(st.integers(2, 4)))]
    found = [*classes(), *(node(name, cpu=6, memory="64Gi") for name in nodes)]
    queues = ("q1", "q2", "q3")[: draw(st.integers(2, 3))]
    for name in queues:
        found.append(queue(name, weight=draw(st.integers(1, 3)), deserved={"cpu": draw(st.integers(1, 6))}))
    owners = draw(st.lists(st.sampled_from(GROUPS), min_size=6 * len(nodes), max_size=6 * len(nodes)))
    for name in GROUPS:
        home, least = draw(st.sampled_from(queues[:-1])), draw(st.integers(0, 3))
        importance = draw(st.sampled_from(("low", "low", "mid")))
        found.append(pod_group(name, queue=home, min_member=least, phase="Running", priorityClassName=importance))
        places = [place for place, owner in enumerate(owners) if owner == name]
        one: dict[str, Any] = {"group": name, "cpu": 1, "priority": CLASSES[importance], "labels": LABELLED}
        found += [pod(f"{name}-{place}", on=nodes[place // 6], **one) for place in places]
    for name in ARRIVING[: draw(st.integers(1, 2))]:
        count, home = draw(st.integers(2, 8)), draw(st.sampled_from(queues))
        least = draw(st.sampled_from((1, count, count)))
        found.append(pod_group(name, queue=home, min_member=least, phase="Inqueue", priorityClassName="high"))
        cpu = draw(st.sampled_from((1, 1, 2)))
        found += [pod(f"{name}-{number}", group=name, cpu=cpu, priority=100) for number in range(count)]
    texts = configurations(["usual", "ranked", "shares", "capacity"], ["preempt", "reclaim", "preempt, reclaim"])
    return Scene(found, draw(st.sampled_from(texts)))


@st.composite
def lending(draw: DrawFn, texts: Sequence[str] = EVERY) -> Scene:
    """Full nodes, now and then ten of them, where one queue holds more than it deserves and another has nothing yet.

    The gangs that come to the other one mostly deserve what they ask for.  Now and then all jobs want devices, too,
    the queues lie in a tree, and there are switches.
    """
    text, many = draw(st.sampled_from(list(texts))), draw(st.sampled_from((False, False, True)))
    names = [f"n{number}" for number in range(draw(st.integers(10, 12)) if many else draw(st.integers(1, 3)))]
    gpus = draw(st.booleans())
    more: dict[str, Any] = {"requests": {GPU: 1}} if gpus else {}
    found = [*classes(), *(node(name, cpu=4, memory="64Gi", resources={GPU: 4} if gpus else {}) for name in names)]
    half = {"cpu": 2 * len(names), "memory": f"{32 * len(names)}Gi", **({GPU: 2 * len(names)} if gpus else {})}
    found += _lending_queues(half, tree="enableHierarchy" in text)
    for name in names:
        least, important = draw(st.sampled_from((0, 0, 1))), draw(st.sampled_from(("low", "low", "mid")))
        found.append(pod_group(f"r-{name}", queue="q1", min_member=least, phase="Running", priorityClassName=important))
        one = {"group": f"r-{name}", "on": name, "cpu": 1, "priority": CLASSES[important], "labels": LABELLED, **more}
        found += [pod(f"r-{name}-{number}", **one) for number in range(4)]
    found += draw(sometimes(hyper_nodes(names), 3)) or []
    for gang in range(draw(st.integers(1, 2))):
        name, count = f"x{gang}", draw(st.integers(1, min(4, 2 * len(names))))
        group = pod_group(name, queue="q2", min_member=draw(st.sampled_from((1, count))), priorityClassName="high")
        group["spec"] |= draw(sometimes(st.builds(dict, networkTopology=closeness), 4)) or {}
        one = {"group": name, "cpu": draw(st.sampled_from((1, 1, 1, 2))), "priority": 100, **more}
        found += [group, *(pod(f"{name}-{number}", **one) for number in range(count))]
    return Scene(found, text)


def _lending_queues(half: Mapping[str, Any], tree: bool) -> list[Manifest]:
    """Two queues that deserve half of the cluster each, in a tree each below one of its own."""
    above = {"q1": "team1", "q2": "team2"} if tree else {}
    teams = [queue("root"), *(queue(team, parent="root", deserved=half) for team in above.values())] if tree else []
    return [*teams, *(queue(name, deserved=half, parent=above.get(name, "")) for name in ("q1", "q2"))]


# ---------------------------------------------------------------------- what is watched


@dataclass
class Decision:
    """A statement with evictions as it commits: its victims, the job they go for, and what the job's gang has then."""

    reason: str
    actor: str
    victims: list[Task]
    held: list[Task]
    vote: bool
    ready: int
    least: int
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def within(self) -> bool:
        """Whether the victims are of the job itself."""
        return all(victim.job == self.actor for victim in self.victims)


Question = Callable[[SessionState, Statement], Any]


@contextmanager
def watching(**questions: Question) -> Iterator[list[Decision]]:
    """Collects the decisions of every session within; ``questions`` are asked of each before it is committed."""
    found: list[Decision] = []
    commit = Statement.commit

    def watched(statement: Statement) -> None:
        if statement.has_evictions:
            found.append(_decision(statement, questions))
        commit(statement)

    with patch.object(Statement, "commit", watched):
        yield found


def _decision(statement: Statement, questions: dict[str, Question]) -> Decision:
    session = statement.session
    evicted, others = split(statement.operations)
    placed = [operation for operation in others if not isinstance(operation, Unpipeline)]  # lower jobs lose theirs
    job = placed[0].job if placed else evicted[0].job
    tasks = job.tasks.values()
    counted = ("Allocated", "Binding", "Bound", "Running", "Succeeded", "Pipelined")
    ready = sum(t.status.name in counted or (t.status.name == "Pending" and t.best_effort) for t in tasks)
    decision = Decision(
        evicted[0].reason, job.uid, statement.evicted,
        [task for operation in placed for task in operation.tasks], bool(session.ask.job_pipelined(job)), ready,
        job.group.spec.min_member,
    )  # fmt: skip
    decision.facts = {name: ask(session, statement) for name, ask in questions.items()}
    return decision


def spareable(session: SessionState, statement: Statement) -> list[str]:
    """Victims that were not needed: every pod of the statement would have its place without their eviction.

    Each is tried by itself; what breaks a gang goes together in gang actions, so it is tried together.  The statement
    is taken back, done again without them, and left as it was found.
    """
    saved, evicted = statement.save(), statement.evicted
    statement.rollback(0)
    units: dict[str, set[str]] = {}
    for task in evicted:
        units.setdefault(_unit(session, task), set()).add(task.uid)
    found = []
    for name, uids in units.items():
        with session.statement() as trial:
            if _works(session, trial, [step for step in saved if step.tasks[0].uid not in uids]):
                found.append(name)
    statement.recover(saved)
    return found


def _unit(session: SessionState, victim: Task) -> str:
    """The victim itself, or its job where a gang action breaks the gang with it; nothing is evicted yet."""
    job = session.job_of(victim)
    assert job is not None
    spare = job.ready_task_num() - job.min_available
    gang = {"gangpreempt", "gangreclaim"} & set(session.config.actions)
    if not gang or spare < 0:
        return victim.key
    offered = (task for task in job.of(BOUND, RUNNING) if task.preemptable)
    in_turn = sorted(offered, key=lambda task: (task.priority, task.uid))
    return victim.key if [task.uid for task in in_turn].index(victim.uid) < spare else job.uid


def last_one_spareable(session: SessionState, statement: Statement) -> list[str]:
    """The last victim of a statement for one pod, if the pod would have its place without it."""
    evicted = [task.key for task in statement.evicted]
    alone = len(statement.save()) == len(evicted) + 1
    return [key for key in spareable(session, statement) if key == evicted[-1]] if alone else []


def _works(session: SessionState, trial: Statement, steps: Sequence[Operation]) -> bool:
    for step in steps:
        if isinstance(step, Evict):
            trial.evict(step.tasks[0], step.reason)
            continue
        if isinstance(step, Unpipeline):
            trial.unpipeline(step.tasks[0])
            continue
        for task, row in zip(step.tasks, step.rows, strict=True):
            if reason_against(session, task, row):
                return False
            trial.pipeline(task, session.table.statics.names[row])
    return True


def reason_against(session: SessionState, task: Task, row: int) -> str:
    """What speaks against reserving ``row`` for ``task`` now; empty if nothing does."""
    job = session.job_of(task)
    assert job is not None
    if not session.ask.allocatable(session.queues[job.queue], task):
        return "quota"
    future = session.table.future[:, row].tolist()
    if any(amount > future[column] for column, amount in enumerate(task.template.vector) if amount):
        return "room"
    return "" if session.placer.passes(task, row) else "predicate"


def below_share(session: SessionState, statement: Statement) -> list[str]:
    """Victims whose queue held, when their turn came, no more than it deserves in every dimension."""
    held: dict[str, list[int]] = {}
    evicted = statement.evicted
    for task in evicted:
        queue = queue_of(session, task)
        add_to(held.setdefault(queue.name, session.axes.full(queue.sums.held)), task.template.vector)
    found = []
    for task in evicted:
        queue = queue_of(session, task)
        deserved = session.axes.vector(queue.deserved)
        amounts = held[queue.name]
        if all(amount <= deserved[c] for c, amount in enumerate(amounts) if c != PODS or deserved[PODS]):
            found.append(task.key)
        add_to(amounts, task.template.vector, -1)
    return found


def queue_of(session: SessionState, task: Task) -> QueueInfo:
    job = session.job_of(task)
    assert job is not None
    return session.queues[job.queue]


# ---------------------------------------------------------------------- histories


@dataclass(frozen=True)
class Step:
    """What happens besides between two cycles: a running pod succeeds, a gang comes; negative numbers: nothing does."""

    done: int
    comes: int
    terminating: bool


newcomers = st.lists(gangs("fresh", ("q1",), (), True), max_size=2)
"""Gangs that may come between cycles."""

steps = st.lists(st.builds(Step, st.integers(-6, 6), st.integers(-3, 2), st.booleans()), min_size=1, max_size=3)


Cycle = Callable[[Snapshot, Config, Registry, float], Plan]


def lived(
    scene: Scene,
    happenings: Sequence[Step],
    newcomers: Sequence[list[Manifest]] = (),
    cycle: Cycle = run_cycle,
) -> Iterator[Plan]:
    """The plans of one cycle after another: what is decided comes true, victims come back as waiting pods."""
    state, manifests = scene.state(), {key(each): each for each in scene.objects if each["kind"] == "Pod"}
    ending: list[str] = []
    for number, step in enumerate(happenings):
        plan = cycle(state.snapshot(), scene.config, REGISTRY, NOW + number)
        yield plan
        apply_plan(state, plan, evicted_become="terminating" if step.terminating else "")
        now = [eviction.key for eviction in plan.evictions]
        for victim in ending if step.terminating else ending + now:
            resubmit(state, manifests[victim])
        ending = now if step.terminating else []
        running = sorted(task.key for task in state.tasks.values() if task.status is RUNNING)
        if running and step.done >= 0:
            apply_change(state, ScenarioChange(succeed_pods=(running[step.done % len(running)],)))
        if 0 <= step.comes < len(newcomers):
            come(state, manifests, renamed(newcomers[step.comes], number))


def come(state: ClusterState, manifests: dict[str, Manifest], objects: Sequence[Manifest]) -> None:
    for event in events(objects):
        state.apply(event)
    manifests.update({key(each): each for each in objects if each["kind"] == "Pod"})


def key(pod: Manifest) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def renamed(objects: Sequence[Manifest], number: int) -> list[Manifest]:
    """The same gang under a name of its own."""
    text = json.dumps(objects)
    name = objects[0]["metadata"]["name"]
    return list(json.loads(text.replace(f'"{name}', f'"{name}{number}')))


def resubmit(state: ClusterState, manifest: Manifest) -> None:
    """The victim's controller replaces the pod: the new one waits."""
    old = state.tasks.get(key(manifest))
    if old is not None:
        state.remove_task(old)
    waits = {**manifest, "spec": {**manifest["spec"], "nodeName": ""}, "status": {"phase": "Pending"}}
    for event in events([waits]):
        state.apply(event)
