"""Tasks that take the room of victims in runs get what they would get one by one: same plans, figures and sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from stromboli.cycle import run_cycle
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.framework.engine import remembered
from stromboli.framework.session import closing
from stromboli.framework.session.session import Session
from stromboli.framework.statement.statement import Statement
from stromboli.model.snapshot import Snapshot
from stromboli.model.table import AMOUNTS
from stromboli.model.task import Task
from stromboli.narration.observe import Counting
from stromboli.preemption.runs import GENERAL
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from stromboli.testing.strategies import sometimes
from tests.laws.crowds import (
    CLASSES,
    LABELLED,
    WANTING,
    Step,
    classes,
    configuration,
    configurations,
    contested,
    lived,
    staffed,
    steps,
)
from tests.laws.scenes import NOW, REGISTRY, Scene, digest

FIGURES = (
    "metric.preemption_attempt",
    "metric.preemption_victims",
    "metric.eviction_transaction",
    "metric.unschedule_task_count",
    "metric.queue_figures",
    "metric.pipelined_tasks",
)
CONFS = [
    *configurations(["usual", "ranked", "capacity"], ["preempt", "reclaim", "preempt, reclaim"]),
    *configurations(["shares", "guarded"], ["preempt, reclaim"]),
    configuration("usual", "preempt, reclaim", "compat: volcano\n"),
    WANTING,
]
WITHOUT_PDB = [
    text.replace(", {name: pdb}", "") for text in configurations(["ranked", "capacity"], ["preempt", "reclaim"])
]
"""Plugin pdb is told of evictions."""
ODDITIES: tuple[Mapping[str, Any], ...] = (
    {"labels": {"odd": "yes"}},
    {"role": "worker"},
    {"nominated": "n0"},
    {"cpu": 2},
    {"preemptionPolicy": "Never"},
    {"nodeSelector": {"kubernetes.io/hostname": "n1"}},
)
"""What sets one arriving pod apart from the others of its gang."""
RESIDENTS: tuple[Mapping[str, Any], ...] = (
    {"cpu": 2},
    {"cpu": "500m"},
    {"priority": 50},
    {"terminationGracePeriodSeconds": 600},
    {"cpu": 0, "memory": 0},
    {"memory": "3Gi"},
    {"on": "n0"},
)
"""What sets one resident pod apart."""


@st.composite
def layered(draw: DrawFn) -> Scene:
    """Full nodes, each with a pod of every resident job, few of them odd, and gangs of pods that are mostly alike."""
    nodes, layers, action = (
        draw(st.integers(2, 4)),
        draw(st.integers(3, 6)),
        draw(st.sampled_from(("preempt", "reclaim"))),
    )
    room, home = nodes * layers, {"preempt": "q1", "reclaim": "q2"}[action]
    found = [*classes(), *(node(f"n{number}", cpu=layers, memory="64Gi") for number in range(nodes))]
    share = {"cpu": draw(st.sampled_from((99, draw(st.integers(2, room))))), "memory": "640Gi"}
    found.append(queue("q1", weight=1, deserved=share if home == "q1" else {"cpu": 1, "memory": "4Gi"}))
    found.append(queue("q2", weight=draw(st.sampled_from((3, 50, 50))), deserved=share))
    odd = draw(st.dictionaries(st.integers(0, room - 1), st.sampled_from(RESIDENTS), max_size=3))
    for layer in range(layers):
        least = draw(st.sampled_from((0, 0, 0, 0, 1, nodes)))
        found.append(pod_group(f"r{layer}", queue="q1", min_member=least, phase="Running", priorityClassName="low"))
        for number in range(nodes):
            one: dict[str, Any] = {"cpu": 1, "priority": CLASSES["low"], "on": f"n{number}", "labels": LABELLED}
            one |= odd.get(layer * nodes + number, {})
            found.append(pod(f"r{layer}-{number}", group=f"r{layer}", **one))
    for gang in range(draw(st.sampled_from((1, 1, 2)))):
        found += draw(arriving(f"x{gang}", home, room))
    return Scene(found, draw(st.sampled_from((*[text for text in WITHOUT_PDB if action in text] * 6, *CONFS))))


@st.composite
def arriving(draw: DrawFn, name: str, home: str, room: int) -> list[Manifest]:
    """A gang of pods, as many as all nodes have ``room`` for or fewer, that are alike but for one now and then."""
    count = draw(st.integers(room // 2, room))
    least = draw(st.sampled_from((1, count // 2, count)))
    group = pod_group(name, queue=home, min_member=least, phase="Inqueue", priorityClassName="high")
    usual = {"cpu": draw(st.sampled_from((1, 1, 1, 1, 2, "500m"))), "priority": CLASSES["high"]}
    odd = draw(sometimes(st.sampled_from(ODDITIES), 3)) or {}
    place = draw(st.integers(0, count - 1))
    return [group, *(pod(f"{name}-{i}", group=name, **{**usual, **(odd if i == place else {})}) for i in range(count))]


def outcome(snapshot: Snapshot, config: Config, registry: Registry, now: float) -> tuple[Plan, list[object]]:
    """The plan of a cycle, and what it tells metrics and leaves in the books."""
    heard, books, close = Counting(FIGURES, keep=100_000), list[object](), closing.close

    def look(session: Session) -> None:
        books.extend(getattr(session.table, name).tolist() for name in AMOUNTS)
        books.extend((name, queue.sums.held, queue.sums.allocated) for name, queue in session.queues.items())
        for job in session.jobs.peek():
            books.append((job.uid, job.sums.held, {status: list(of) for status, of in job.index.items()}))
            books.extend((task.node_name, task.eviction_occurred) for task in job.tasks.values())
        close(session)

    with patch.object(closing, "close", look):
        plan = run_cycle(snapshot, config, registry, now, 7, heard)
    assert books
    return plan, [*((key, repr(fields)) for key, fields in heard.told), *books]


@contextmanager
def lengths() -> Iterator[list[int]]:
    """How many victims each run has that is placed within the block."""
    evict_run, found = Statement.evict_run, list[int]()

    def counted(self: Statement, tasks: Sequence[Task], row: int, reason: str) -> None:
        found.append(len(tasks))
        evict_run(self, tasks, row, reason)

    with patch.object(Statement, "evict_run", counted):
        yield found


def in_runs_or_not(snapshot: Snapshot, config: Config, registry: Registry, now: float) -> Plan:
    """The plan of a cycle; it, all figures and all sums are the same whether tasks are placed in runs or one by one."""
    with patch.object(remembered, "WORTH_IT", 0):  # these clusters have few tasks of a kind
        with lengths() as runs:
            plan, told = outcome(snapshot, config, registry, now)
        with patch.dict(GENERAL, {"it is the law's": lambda session: True}):
            single, same = outcome(snapshot, config, registry, now)
    event(f"the longest run has {max(runs, default=0)} victims")
    assert digest(plan) == digest(single)
    assert told == same
    return plan


@pytest.mark.law("victims are evicted in runs as they are one by one")
@settings(max_examples=12)  # each takes two seconds
@given(st.one_of(*(layered() for _ in range(5)), staffed(), contested(CONFS)), steps)
def test_runs(scene: Scene, happenings: list[Step]) -> None:
    for _ in lived(scene, happenings, [], in_runs_or_not):
        pass


def full(action: str, tiers: str, odd: Mapping[str, Mapping[str, Any]]) -> Scene:
    """Four full nodes, each with a pod of five resident jobs, and a gang of fifteen pods that wants their room."""
    found = [*classes(), *(node(f"n{number}", cpu=5, memory="64Gi") for number in range(4))]
    found += [queue(name, weight=weight, **odd.get(name, {})) for name, weight in (("q1", 1), ("q2", 99))]
    for layer in range(5):
        found.append(pod_group(f"r{layer}", queue="q1", min_member=0, phase="Running", priorityClassName="low"))
        for number in range(4):
            one: dict[str, Any] = {"group": f"r{layer}", "on": f"n{number}", "priority": 1}
            found.append(pod(f"r{layer}-{number}", **{**one, **odd.get(f"r{layer}-{number}", {})}))
    home = {"reclaim": "q2", "preempt": "q1"}[action]
    fields = {"min_member": 15, **odd.get("x", {})}
    found.append(pod_group("x", queue=home, phase="Inqueue", priorityClassName="high", **fields))
    found += [pod(f"x-{n:02}", **{"group": "x", "priority": 100, **odd.get(f"x-{n:02}", {})}) for n in range(15)]
    return Scene(found, configuration(tiers, action).replace(", {name: pdb}", ""))


SMALL, BIG = {"memory": "512Mi"}, {"cpu": "1500m"}


@pytest.mark.parametrize(
    ("action", "tiers", "odd", "found"),
    [
        # the first task on each node looks for it, and on the third node the queue would come down to its share
        ("reclaim", "ranked", {}, [4, 4]),
        ("reclaim", "ranked", {"r2-0": {"priority": 50}}, [3]),
        ("reclaim", "ranked", {"r2-0": {"group": "r1"}}, [4]),
        ("reclaim", "ranked", {"r2-0": BIG, "r3-0": {"cpu": "500m"}}, [3, 4]),
        ("reclaim", "ranked", {"r1-0": {"cpu": 0, "memory": 0}, "r2-0": BIG, "r3-0": BIG}, [2, 4]),
        ("reclaim", "ranked", {"x": {"min_member": 8}}, [4, 2]),
        (
            "reclaim",
            "capacity",
            {"q1": {"deserved": {"cpu": 1}}, "q2": {"deserved": {"cpu": 7}}, "x": {"min_member": 9}},
            [4],
        ),
        ("reclaim", "ranked", {"x-03": {"labels": {"odd": "yes"}}}, [2, 4]),
        ("reclaim", "ranked", {"x-03": {"nominated": "n0"}}, [2, 2, 4]),
        ("reclaim", "ranked", {"x-03": {"preemptionPolicy": "Never"}}, [2, 2, 4]),
        # at first no search has found how many victims a node yields
        ("preempt", "ranked", {}, [3, 4]),
        ("preempt", "ranked", {"r2-1": SMALL}, [3]),
        ("preempt", "ranked", {"x-08": {"role": "worker"}}, [4]),
        (
            "preempt",
            "capacity",
            {"q1": {"capability": {"cpu": 20, "memory": "19Gi"}}, "r2-1": SMALL, "r2-2": SMALL},
            [],
        ),
    ],
)
def test_lengths(action: str, tiers: str, odd: Mapping[str, Mapping[str, Any]], found: list[int]) -> None:
    scene = full(action, tiers, odd)
    snapshot = scene.snapshot()
    with lengths() as runs:
        plan, told = outcome(snapshot, scene.config, REGISTRY, NOW)
    with patch.dict(GENERAL, {"it is the law's": lambda session: True}), lengths() as none:
        single, same = outcome(snapshot, scene.config, REGISTRY, NOW)
    assert (digest(plan), told) == (digest(single), same)
    assert (runs, none) == (found, [])
