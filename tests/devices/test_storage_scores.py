"""Nodes are preferred by the volumes that a pod would get there, where ``volumebinding.shape`` says so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from stromboli.filters.selectors import Clauses, clauses, takes
from stromboli.filters.volumes import pools
from stromboli.filters.volumes.book import Gets, VolumeBook
from stromboli.filters.volumes.scoring import curve_of, score_of, shape_problem
from stromboli.model.objects.storage import Storage
from stromboli.model.resources.quantity import whole
from stromboli.model.spec import LabelSelector
from stromboli.model.task import Task
from stromboli.testing.builders import Manifest, cluster, node, pod, pod_group
from tests.acceptance.bench import Bench, binds
from tests.support.device_objects import object_of, storage_class, volume, volume_claim

PAGE = Path(__file__).parents[2] / "docs/volumes.md"
SMALL_REST = "[{utilization: 0, score: 0}, {utilization: 100, score: 10}]"
LARGE_REST = "[{utilization: 0, score: 10}, {utilization: 100, score: 0}]"
SHAPES = (SMALL_REST, LARGE_REST)
CONF = """
actions: "allocate"
{compat}
tiers:
- plugins:
  - name: gang
  - name: predicates
    arguments: {{{arguments}}}
"""


def point(utilization: int, score: int) -> dict[str, int]:
    return {"utilization": utilization, "score": score}


RISING = curve_of([point(0, 0), point(50, 8), point(100, 10)])


@pytest.mark.parametrize(
    ("gets", "score"),
    [
        ([Gets("a", 10, 20)], 80),
        ([Gets("a", 10, 40)], 40),
        ([Gets("a", 3, 40)], 11),
        ([Gets("a", 10, 10)], 100),
        ([Gets("a", 10, 0)], 100),
        ([Gets("a", 5, 20), Gets("a", 15, 20)], 80),  # one class: 20 of 40
        ([Gets("a", 10, 20), Gets("b", 10, 10)], 90),
        ([Gets("a", 10, 20), Gets("m", 100, 100, made=True)], 80),  # volumes that exist count alone
        ([Gets("m", 25, 100, made=True), Gets("m", 25, 100, made=True)], 80),
        ([Gets("m", 25, None, made=True)], 0),
        ([], 0),
    ],
)
def test_a_score_is_the_mean_over_classes(gets: list[Gets], score: int) -> None:
    assert score_of(gets, RISING) == score


def test_beyond_the_first_and_the_last_point_the_curve_is_flat() -> None:
    curve = curve_of([point(20, 4), point(60, 8)])
    assert [score_of([Gets("a", asked, 100)], curve) for asked in (10, 20, 40, 60, 90)] == [40, 40, 60, 80, 80]


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ([point(0, 0), point(100, 10)], ""),
        ([point(50, 5), point(50, 6)], "do not rise"),
        ([point(101, 5)], "beyond 0 to 100"),
        ([point(10, 11)], "beyond 0 to 10"),
        ([{"utilization": 1}], "not of the form"),
        ([point(0, True)], "not of the form"),
        (["x"], "not of the form"),
        ([point(place, 1) for place in range(65)], "more than 64"),
    ],
)
def test_shapes_that_make_no_curve_are_refused(written: list[Any], problem: str) -> None:
    found = shape_problem(written)
    assert found == "" if not problem else problem in found


def claiming(*claims: str) -> list[Manifest]:
    mounts = [{"name": f"v{k}", "persistentVolumeClaim": {"claimName": name}} for k, name in enumerate(claims)]
    return [node(f"n{k}") for k in range(3)] + [pod_group("g"), pod("p", group="g", volumes=mounts)]


LOCAL = [storage_class("local"), volume_claim("c", size="10Gi"), volume("d0", on="n0", size="40Gi"),
         volume("d1", on="n1", size="12Gi"), volume("d2", on="n2", size="20Gi")]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (f"volumebinding.shape: {SMALL_REST}", "n1"),
        (f"volumebinding.shape: {LARGE_REST}, volumebinding.weight: 3", "n0"),
        (f"volumebinding.shape: {SMALL_REST}, volumebinding.weight: 0", "n0"),
        ("", "n0"),
    ],
)
def test_a_claim_prefers_the_volume_that_the_shape_prefers(arguments: str, where: str) -> None:
    bench = Bench([*claiming("c"), *LOCAL], CONF.format(arguments=arguments, compat=""))
    assert binds(bench.cycle()) == {"p": where}


def test_in_compat_mode_the_shape_acts_on_nothing() -> None:
    confs = [CONF.format(arguments=f"volumebinding.shape: {shape}", compat="compat: volcano") for shape in SHAPES]
    first, second = (binds(Bench([*claiming("c"), *LOCAL], conf).cycle()) for conf in confs)
    assert first == second


@pytest.mark.parametrize(
    ("compat", "arguments", "told"),
    [
        ("compat: volcano", f"volumebinding.shape: {SMALL_REST}, volumebinding.weight: 2", ["weight", "shape"]),
        ("compat: volcano", f"volumebinding.shape: {SMALL_REST}", ["shape"]),
        ("compat: volcano", "volumebinding.weight: 2", ["weight"]),
        ("", f"volumebinding.shape: {SMALL_REST}, volumebinding.weight: 2", []),
    ],
)
def test_arguments_that_act_on_nothing_are_told(compat: str, arguments: str, told: list[str]) -> None:
    bench = Bench([*claiming("c"), *LOCAL], CONF.format(arguments=arguments, compat=compat))
    pattern = re.compile(r"argument volumebinding\.(\w+) of predicates is accepted, but has no effect here: ")
    assert [found[1] for line in bench.logged() if (found := pattern.search(line))] == told


def capacity(on: str, size: str) -> Manifest:
    chosen = {"matchLabels": {"kubernetes.io/hostname": on}}
    return object_of("storage.k8s.io/v1", "CSIStorageCapacity", on, "default", storageClassName="made",
                     nodeTopology=chosen, capacity=size)  # fmt: skip


@pytest.mark.parametrize(("shape", "where"), [(SMALL_REST, "n2"), (LARGE_REST, "n1")])
def test_a_volume_is_made_where_the_room_of_the_driver_is_preferred(shape: str, where: str) -> None:
    driver = object_of("storage.k8s.io/v1", "CSIDriver", "csi", spec={"storageCapacity": True})
    rooms = [capacity("n0", "50Gi"), capacity("n1", "90Gi"), capacity("n2", "30Gi")]
    objects = [*claiming("c"), storage_class("made", "csi"), volume_claim("c", of="made", size="10Gi"), driver, *rooms]
    bench = Bench(objects, CONF.format(arguments=f"volumebinding.shape: {shape}", compat=""))
    assert binds(bench.cycle()) == {"p": where}


def test_what_is_taken_within_a_cycle_counts() -> None:
    """The second pod of two finds the tightest volume taken, and goes to the next."""
    mounts = [[{"name": "v", "persistentVolumeClaim": {"claimName": f"c{k}"}}] for k in range(2)]
    pods = [pod(f"p{k}", group="g", volumes=mounts[k]) for k in range(2)]
    claims = [volume_claim(f"c{k}", size="10Gi") for k in range(2)]
    found = [node(f"n{k}") for k in range(3)] + [pod_group("g", min_member=2), *pods, *claims, LOCAL[0], *LOCAL[2:]]
    bench = Bench(found, CONF.format(arguments=f"volumebinding.shape: {SMALL_REST}", compat=""))
    assert sorted(binds(bench.cycle()).values()) == ["n1", "n2"]


MADE = storage_class("made", "csi")
CSI = object_of("storage.k8s.io/v1", "CSIDriver", "csi", spec={"storageCapacity": True})


def making(nodes: int, sizes: list[str], share: int = 0) -> list[Manifest]:
    """Nodes with room for volumes each, and pods that want one made each; the first of them share a claim."""
    names = [f"c{max(number - share + 1, 0) if share else number}" for number in range(len(sizes))]
    found = [node(f"n{k}") for k in range(nodes)] + [capacity(f"n{k}", f"{50 + k}Gi") for k in range(nodes)]
    for number, name in enumerate(names):
        mounts = [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]
        found += [pod_group(f"g{number}"), pod(f"p{number}", group=f"g{number}", volumes=mounts)]
    claims = dict(zip(names, sizes, strict=True))
    return [*found, MADE, CSI, *(volume_claim(name, of="made", size=size) for name, size in claims.items())]


@pytest.mark.parametrize("share", [0, 4])
def test_a_volume_that_is_made_changes_no_other_nodes_score(share: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    original = VolumeBook.would_get

    def counted(book: VolumeBook, task: Task, row: int) -> list[Gets] | None:
        asked.append(task.key)
        return original(book, task, row)

    monkeypatch.setattr(VolumeBook, "would_get", counted)
    objects = making(20, ["10Gi"] * 10, share)
    bench = Bench(objects, CONF.format(arguments=f"volumebinding.shape: {SMALL_REST}", compat=""))
    assert sorted(binds(bench.cycle()).values()) == ["n0"] * 4 + ["n1"] * 4 + ["n2"] * 2
    assert len(asked) == (20 if not share else 3 * 20)  # the claim that pods share, before and after it is given


def test_topologies_are_matched_with_nodes_once_whatever_sizes_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def counted(selector: LabelSelector | None) -> Clauses | None:
        asked.append(selector)
        return clauses(selector)

    def never(*_: object) -> bool:
        raise AssertionError("a label was compared node by node")

    monkeypatch.setattr(pools, "clauses", counted)
    monkeypatch.setattr(pools, "takes", never)
    found = binds(Bench(making(12, [f"{size}Gi" for size in range(40, 64)])).cycle())
    assert len(found) == 22  # up to the 61Gi of the largest room
    assert found["p21"] == "n11"
    assert len(asked) == 12


EVERYWHERE: dict[str, Any] = {}
ROOMS: list[tuple[Any, dict[str, str]]] = [
    ({"matchLabels": {"rack": "a"}}, {"capacity": "5Gi"}),
    ({"matchLabels": {"rack": "a", "zone": "z"}}, {"capacity": "30Gi", "maximumVolumeSize": "20Gi"}),
    ({"matchExpressions": [{"key": "zone", "operator": "NotIn", "values": ["z"]}]}, {"maximumVolumeSize": "12Gi"}),
    ({"matchExpressions": [{"key": "rack", "operator": "In", "values": ["a", "b"]}]}, {"capacity": "10Gi"}),
    ({"matchExpressions": [{"key": "rack", "operator": "Near"}]}, {"capacity": "90Gi"}),
    (None, {"capacity": "90Gi"}),
    (EVERYWHERE, {}),
    (EVERYWHERE, {"capacity": "1Gi"}),
]
PLACES = [{}, {"rack": "a"}, {"rack": "a", "zone": "z"}, {"rack": "b", "zone": "y"}, {"zone": "z"}]


@pytest.mark.parametrize("gi", [1, 2, 5, 6, 10, 12, 13, 20, 21])
def test_the_room_of_a_node_is_that_of_the_first_capacity_that_takes_it(gi: int) -> None:
    found = [node(f"n{k}", labels=labels) for k, labels in enumerate(PLACES)]
    for number, (topology, amounts) in enumerate(ROOMS):
        parts = {**amounts, **({} if topology is None else {"nodeTopology": topology})}
        found.append(object_of("storage.k8s.io/v1", "CSIStorageCapacity", f"r{number}", "default",
                               storageClassName="made", **parts))  # fmt: skip
    snapshot = cluster(*found, MADE, CSI)
    storage, table = snapshot.storage, snapshot.table
    provisioning = pools.Provisioning(storage, table, pools.Reach(table), True)
    for row, labels in enumerate(PLACES):
        assert provisioning.room("made", gi << 30, row) == first_room(storage, labels, gi << 30)


def first_room(storage: Storage, labels: dict[str, str], size: int) -> int | None:
    """Bytes of the first capacity, by name, that takes a node and volumes of a size."""
    for _, one in sorted(storage.capacities.items()):
        limit = one.maximum_volume_size or one.capacity
        if limit and whole(limit) >= size and takes(clauses(one.node_topology), labels):
            return whole(one.capacity or limit)
    return None


def test_the_configuration_of_the_page_prefers_the_tightest_volume() -> None:
    text = PAGE.read_text(encoding="utf-8").split("## Which volume")[1].split("```yaml")[1].split("```")[0]
    assert binds(Bench([*claiming("c"), *LOCAL], text).cycle()) == {"p": "n1"}
