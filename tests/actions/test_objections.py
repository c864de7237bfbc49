"""A plugin objects to a placement: no action places the pod or evicts pods for it."""

from __future__ import annotations

from typing import Any, cast

import pytest

from stromboli.model.task import Task
from stromboli.narration.observe import Counting
from stromboli.plugin import Plugin, on_allocate
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.acceptance.bench import Bench, binds, conf

CLASS: Manifest = {
    "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10,
}  # fmt: skip


class Objects(Plugin):
    """Objects to pods whose names end with one of some letters."""

    name = "objects"
    to = "wx"

    @on_allocate
    def come(self, event: Any) -> None:
        if event.task.name[-1] in self.to:
            event.err = "not here"


class Silent(Objects):
    """Objects to none."""

    to = ""


def cluster(of: str, pods: int) -> list[Manifest]:
    """A node that one job fills, and a more important one of another queue, or of the same, with a pod w."""
    group = pod_group("high", queue=of, min_member=pods, phase="Inqueue", priorityClassName="high")
    names = [f"high-{letter}" for letter in "aw"[-pods:]]
    return [
        CLASS, node("n1", cpu=4), queue("a", weight=1), queue("b", weight=3), group,
        pod_group("low", queue="a", phase="Running"), *(pod(f"low-{i}", group="low", on="n1", cpu=1) for i in range(4)),
        *(pod(name, group="high", cpu=1) for name in names),
    ]  # fmt: skip


@pytest.mark.parametrize("compat", [False, True])
@pytest.mark.parametrize(
    ("pods", "first"), [(1, "priority objects"), (1, "priority gang objects"), (2, "priority gang objects")]
)
@pytest.mark.parametrize(
    ("action", "of"),
    [
        ("allocate", "b"), ("preempt", "a"), ("reclaim", "b"),
        ("gangpreempt", "a"), ("gangreclaim", "b"),
    ],
)  # fmt: skip
def test_a_pod_that_a_plugin_objects_to_is_placed_nowhere_and_evicts_no_other(
    action: str, of: str, pods: int, first: str, compat: bool
) -> None:
    text = conf(first, "predicates proportion", actions=action)
    objects = cluster(of, pods)
    if action == "allocate":
        objects.append(node("n2", cpu=4))
    placed = Bench(objects, text, Silent, compat=compat).cycle()
    assert placed.binds or placed.evictions, "without the objection something happens"
    plan = Bench(objects, text, Objects, compat=compat).cycle()
    assert (binds(plan), plan.evictions, plan.annotations, plan.inconsistencies) == ({}, [], [], [])


@pytest.mark.parametrize(
    ("compat", "least", "bound"),
    [(False, 1, ["best-a"]), (False, 2, ["best-a"]), (True, 1, ["best-a", "best-w"]), (True, 2, ["best-a", "best-w"])],
)
def test_backfill_leaves_a_pod_waiting_that_a_plugin_objects_to(compat: bool, least: int, bound: list[str]) -> None:
    group = pod_group("best", queue="a", min_member=least, phase="Inqueue")
    pods = [pod(f"best-{letter}", group="best", cpu=0, memory=0) for letter in "aw"]
    text = conf("priority gang objects", "predicates", actions="backfill")
    objects = [node("n1"), queue("a"), group, *pods]
    assert list(binds(Bench(objects, text, Silent, compat=compat).cycle())) == ["best-a", "best-w"]
    bench = Bench(objects, text, Objects, compat=compat)
    plan = bench.cycle()
    assert (list(binds(plan)), plan.inconsistencies) == (bound, [])
    assert list(binds(bench.cycle())) == [], "the other goes on waiting, though it counts as ready: it asks for nothing"


def test_a_pod_that_backfill_leaves_waiting_takes_no_place_of_others() -> None:
    pods = [pod(f"best-{letter}", group="best", cpu=0, memory=0) for letter in "awy"]
    group = pod_group("best", queue="a", phase="Inqueue")
    text = conf("priority gang objects", "predicates", actions="backfill")
    objects = [node("n1", pods=2), queue("a"), group, *pods]
    assert list(binds(Bench(objects, text, Silent).cycle())) == ["best-a", "best-w"]
    assert list(binds(Bench(objects, text, Objects).cycle())) == ["best-a", "best-y"]


class TakesRuns(Objects):
    """Is told of a run of equal pods at once, where nothing is told of each of them, and objects to single pods."""

    to = "w"

    @on_allocate
    def come(self, event: Any) -> None:
        super().come(event)

    @on_allocate.many
    def come_together(self, task: Any, rows: Any) -> None:
        """It objects to none of a run."""


def test_after_an_objection_nodes_are_chosen_anew_for_what_is_left_of_a_run() -> None:
    """Of x, w, y and z, two to a node at most, w would have gone to n2: so y does.  Each is told to be looked at."""
    even = {"topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1,
            "labelSelector": {"matchLabels": {"app": "a"}}}  # fmt: skip
    pods = [
        pod(f"g-{number}{letter}", group="g", cpu=1, labels={"app": "a"}, topologySpreadConstraints=[even])
        for number, letter in enumerate("xwyz")
    ]
    nodes = [node(name, cpu=8, labels={"kubernetes.io/hostname": name}) for name in ("n1", "n2")]
    objects = [*nodes, pod_group("g", min_member=3, phase="Inqueue"), *pods]
    text = conf("gang objects", "predicates", actions="allocate")
    told = Counting(("nodes_for_job", "binding"))
    plan = Bench(objects, text, TakesRuns).cycle(told)
    assert binds(plan) == {"g-0x": "n1", "g-2y": "n2", "g-3z": "n1"}
    assert [key for key, _ in told.told] == ["nodes_for_job", "binding"] * 4
    tasks = [cast(Task, fields["task"]) for key, fields in told.told if key == "binding"]
    assert [task.name for task in tasks] == ["g-0x", "g-1w", "g-2y", "g-3z"]
