"""Nodes are preferred by the volumes that a pod would get there, where ``volumebinding.shape`` says so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stromboli.filters.volumes.book import Gets
from stromboli.filters.volumes.scoring import curve_of, score_of, shape_problem
from stromboli.testing.builders import Manifest, node, pod, pod_group
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


def test_the_configuration_of_the_page_prefers_the_tightest_volume() -> None:
    text = PAGE.read_text(encoding="utf-8").split("## Which volume")[1].split("```yaml")[1].split("```")[0]
    assert binds(Bench([*claiming("c"), *LOCAL], text).cycle()) == {"p": "n1"}
