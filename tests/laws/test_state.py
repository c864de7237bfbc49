"""The state behind snapshots: whatever order events come in, what it says is what its objects add up to."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from stromboli.cluster.events import Added, Deleted, Event, Modified
from stromboli.cluster.objects import from_value
from stromboli.cluster.state import ClusterState
from stromboli.cycle import run_cycle
from stromboli.model.snapshot import Snapshot
from stromboli.model.status import COMPLETED_STATUS, TaskStatus
from stromboli.sim.between import apply_plan
from stromboli.testing.builders import Manifest, events, node, pod, pod_group, queue, state
from tests.laws.pictures import named, picture
from tests.laws.scenes import NOW, REGISTRY, Scene, scenes, tight_scenes


def columns_of(snapshot: Snapshot, known: ClusterState) -> None:
    """Check a snapshot's node columns against the pods, one by one."""
    table = snapshot.table
    for row, name in enumerate(table.statics.names):
        own = [t for t in known.tasks.values() if t.node_name == name and t.status not in COMPLETED_STATUS]
        used = [t for t in own if t.status is not TaskStatus.Pipelined]
        for column in range(len(snapshot.axes)):
            amounts = [total(tasks, column) for tasks in (used, [t for t in used if t.status is TaskStatus.Releasing])]
            assert [table.used[column, row], table.releasing[column, row]] == amounts
            assert table.idle[column, row] + table.used[column, row] == table.alloc[column, row]
            assert table.requested[column, row] == total(own, column)


def total(tasks: list[Any], column: int) -> int:
    return sum(t.template.vector[column] for t in tasks if column < len(t.template.vector))


# ---------------------------------------------------------------------- random events

NODES, GROUPS, PHASES = ("n1", "n2", "n10"), ("a", "b"), ("Pending", "Inqueue", "Running")
SIZES: tuple[dict[str, Any], ...] = (
    {"cpu": 1}, {"cpu": "300m", "memory": 0}, {"cpu": 0, "memory": 0}, {"requests": {"nvidia.com/gpu": 1}},
    {"memory": 2**33 + 1},
)  # fmt: skip


class Events(RuleBasedStateMachine):
    """Objects come, change and go in any order; snapshots are taken in between."""

    def __init__(self) -> None:
        super().__init__()
        self.known = ClusterState()
        self.objects: dict[tuple[str, str], Manifest] = {}
        self.taken: list[tuple[Snapshot, dict[str, Any]]] = []

    def tell(self, made: Manifest) -> None:
        key = made["kind"], made["metadata"]["name"]
        event: Callable[..., Event] = Modified if key in self.objects else Added
        self.known.apply(event(made["kind"], from_value(made["kind"], made)))
        self.objects[key] = made

    @rule(name=st.sampled_from(NODES), cpu=st.integers(0, 8), gpus=st.integers(0, 2), cordoned=st.booleans())
    def node_comes_or_changes(self, name: str, cpu: int, gpus: int, cordoned: bool) -> None:
        more = {"nvidia.com/gpu": gpus} if gpus else {}
        self.tell(node(name, cpu=cpu, resources=more, unschedulable=cordoned))

    @rule(
        name=st.sampled_from(GROUPS), least=st.integers(0, 3), phase=st.sampled_from(("Pending", "Inqueue", "Running"))
    )
    def group_comes_or_changes(self, name: str, least: int, phase: str) -> None:
        self.tell(pod_group(name, min_member=least, phase=phase, queue=f"q-{name}", minResources={"cpu": "2"}))

    @rule(name=st.sampled_from(GROUPS), weight=st.integers(1, 3))
    def queue_comes_or_changes(self, name: str, weight: int) -> None:
        self.tell(queue(f"q-{name}", weight=weight))

    @rule(
        number=st.integers(0, 5),
        group=st.sampled_from((*GROUPS, "")),
        size=st.sampled_from(SIZES),
        on=st.sampled_from((*NODES, "", "")),
        phase=st.sampled_from(("Running", "Pending", "Succeeded", "Failed", "")),
        deleting=st.booleans(),
    )
    def pod_comes_or_changes(self, number: int, group: str, size: Any, on: str, phase: str, deleting: bool) -> None:
        before = self.objects.get(("Pod", f"p-{number}"))
        if before is not None:  # a pod keeps its group, its request and its node
            changed = deepcopy(before)
            changed["spec"]["nodeName"] = before["spec"]["nodeName"] or on
            changed["status"]["phase"] = phase if changed["spec"]["nodeName"] else before["status"]["phase"]
            self.tell(changed)
        else:
            self.tell(
                pod(f"p-{number}", group=group, on=on, phase=phase if on else "Pending", deleting=deleting, **size)
            )

    @rule(data=st.data())
    def something_goes(self, data: st.DataObject) -> None:
        if self.objects:
            key = data.draw(st.sampled_from(sorted(self.objects)))
            gone = self.objects.pop(key)
            self.known.apply(Deleted(key[0], from_value(key[0], gone)))

    @rule()
    def snapshot_is_taken(self) -> None:
        snapshot = self.known.snapshot()
        columns_of(snapshot, self.known)
        self.taken.append((snapshot, picture(snapshot)))

    def told_anew(self) -> ClusterState:
        """A state of the objects that are left; names that were offered once keep their columns."""
        fresh = ClusterState()
        for name in self.known.axes.names:
            fresh.axes.column(name)
        for event in events(self.objects.values()):
            fresh.apply(event)
        return fresh

    def teardown(self) -> None:
        now = self.known.snapshot()
        columns_of(now, self.known)
        assert picture(now) == picture(self.told_anew().snapshot())
        for snapshot, seen in self.taken:
            assert picture(snapshot) == seen


@pytest.mark.law("after any events the state equals a fresh one of its objects, and old snapshots do not change")
def test_events() -> None:
    run_state_machine_as_test(Events, settings=settings(stateful_step_count=20))


@pytest.mark.law("a node above its capacity counts correctly again as soon as pods leave or it grows")
@given(
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    order=st.randoms(use_true_random=False),
    grown=st.booleans(),
)
def test_healing(sizes: list[int], order: Any, grown: bool) -> None:
    """S1-26: pods beyond the node's size make idle negative only while they are there, in whatever order they go."""
    pods = [pod(f"p-{i}", group="g", on="n1", cpu=size, memory=0) for i, size in enumerate(sizes)]
    known = state(node("n1", cpu=4), pod_group("g"), *pods)
    assert known.snapshot().table.idle[0, 0] == (4 - sum(sizes)) * 1000
    left = list(range(len(sizes)))
    order.shuffle(left)
    while sum(sizes[i] for i in left) > 4 and not grown:
        known.apply(Deleted("Pod", from_value("Pod", pods[left.pop()])))
        assert known.snapshot().table.idle[0, 0] == (4 - sum(sizes[i] for i in left)) * 1000
    if grown:
        known.apply(Modified("Node", from_value("Node", node("n1", cpu=4 + sum(sizes)))))
    assert (known.snapshot().table.idle >= 0).all()


@pytest.mark.law("what is carried out between cycles is counted in the next snapshot")
@given(st.one_of(scenes(), tight_scenes()), st.sampled_from(("", "Bound")), st.sampled_from(("", "terminating")))
def test_cycles(scene: Scene, bound_become: str, evicted_become: str) -> None:
    known = scene.state()
    for _ in range(3):
        plan = run_cycle(known.snapshot(), scene.config, REGISTRY, NOW)
        apply_plan(known, plan, bound_become, evicted_become)
        snapshot = known.snapshot()
        columns_of(snapshot, known)
        for name, sums in snapshot.queue_sums.items():
            jobs = [job for job in snapshot.jobs.values() if job.queue == name]
            for part in ("allocated", "held", "request"):
                expected: dict[str, int] = {}
                for job in jobs:
                    for resource, amount in named(snapshot, getattr(job.sums, part)).items():
                        expected[resource] = expected.get(resource, 0) + amount
                assert named(snapshot, getattr(sums, part)) == expected
        assert {bind.key for bind in plan.binds} <= {key for tasks in snapshot.node_tasks for key in tasks}
