"""What a PodGroup's annotations say of its tasks: which tasks belong together, which apart, and which come first."""

from __future__ import annotations

import pytest

from stromboli.model.job import Job
from stromboli.plugins.task_topology.wishes import AFFINITY, ANTI_AFFINITY, TASK_ORDER, Wishes, read
from stromboli.testing.builders import node, pod, pod_group, state

ROLES = "abcd"


def job(roles: list[str], **annotations: str) -> Job:
    notes = {
        {"near": AFFINITY, "far": ANTI_AFFINITY, "order": TASK_ORDER}[key]: text for key, text in annotations.items()
    }
    pods = [pod(f"p-{role}", group="g", role=role) for role in roles]
    [found] = state(node("n"), pod_group("g", annotations=notes), *pods).snapshot().jobs.values()
    return found


def wishes_of(**annotations: str) -> Wishes:
    found, problem = read(job(list(ROLES), **annotations))
    assert problem == ""
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("near", "far", "weights"),
    [
        ("a,b", "", {"a": 3, "b": 3}),
        ("a", "", {"a": 2}),
        ("", "a", {"a": 4}),
        ("", "a,b", {"a": 1, "b": 1}),
        ("a,b;c", "", {"a": 3, "b": 3, "c": 2}),
        ("a;a,b", "", {"a": 3, "b": 3}),
        ("a,b;a", "", {"a": 3, "b": 3}),
        ("a,b", "a;b,c", {"a": 4, "b": 3, "c": 1}),
        ("a,b,c", "", {"a": 3, "b": 3, "c": 3}),
    ],
)
def test_how_much_names_count(near: str, far: str, weights: dict[str, int]) -> None:
    given = {key: text for key, text in (("near", near), ("far", far)) if text}
    assert wishes_of(**given).weight == weights


@pytest.mark.parametrize(
    ("near", "far", "pair", "attraction"),
    [
        ("a,b", "c", "ab", 1),
        ("a,b", "c", "ba", 1),
        ("a,b", "c", "aa", 0),
        ("a", "c", "aa", 1),
        ("a,b", "a,b", "ab", 0),
        ("a,b", "c", "cc", -1),
        ("a,b", "c,d", "cd", -1),
        ("a,b", "c,d", "cc", 0),
        ("a,b;c", "d", "ac", 0),
        ("a,b", "c", "dd", 0),
    ],
)
def test_roles_attract_or_repel_each_other_as_their_affinities_say(
    near: str, far: str, pair: str, attraction: int
) -> None:
    assert wishes_of(near=near, far=far).attraction(*pair) == attraction


def test_names_in_order_come_first_and_then_those_that_count_most() -> None:
    found = wishes_of(near="a,b", far="c", order="d,b")
    assert {name: found.rank(name) for name in ROLES} == {"a": (0, -3), "b": (-1, -3), "c": (0, -4), "d": (-2, 0)}
    assert found.order == {"d": 2, "b": 1}
    assert wishes_of(near="a,b").order == {}


@pytest.mark.parametrize(
    ("annotations", "problem"),
    [
        ({}, ""),
        ({"near": "a,x"}, "task x do not exist in job <default/g>"),
        ({"near": "a,,x"}, "task x do not exist in job <default/g>"),
        ({"far": "a;x"}, "task x do not exist in job <default/g>"),
        ({"near": "a,b,a"}, "task a is duplicate in job <default/g>"),
        ({"order": "a;b"}, "task a;b do not exist in job <default/g>"),
        ({"near": f"{'x' * 64}"}, f"task {'x' * 63} do not exist in job <default/g>"),
        ({"near": "a" + "," * 65536}, f"{AFFINITY} is too long"),
        ({"near": "a", "far": "x"}, "task x do not exist in job <default/g>"),
    ],
)
def test_wishes_that_cannot_be_read_count_as_none(annotations: dict[str, str], problem: str) -> None:
    assert read(job(list(ROLES), **annotations)) == (None, problem)


def test_an_annotation_of_as_many_characters_as_are_read_counts() -> None:
    assert wishes_of(near="a" + "," * 65535).weight == {"a": 3, "": 3}


@pytest.mark.parametrize(("number", "problem"), [(64, ""), (65, "65 tasks are to be together or apart, more than 64")])
def test_so_many_names_have_wishes(number: int, problem: str) -> None:
    roles = [f"r{place}" for place in range(number)]
    found, told = read(job(roles, near=",".join(roles)))
    assert (found is None, told) == (bool(problem), problem)


def test_a_task_may_be_in_two_groups() -> None:
    assert wishes_of(near="a,b;a,c").together == {"a": {"b", "c"}, "b": {"a"}, "c": {"a"}}
