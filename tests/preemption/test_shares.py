"""Which victims their queues hold beyond what they deserve."""

from __future__ import annotations

import pytest

from stromboli.framework.session.session import Session
from stromboli.model.resources.axes import PODS
from stromboli.model.resources.resource import Resource
from stromboli.preemption.shares import beyond_shares, exceeds, stays_beyond
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.acceptance.bench import GPU, Bench, conf

GIB = 2**30


def bench(*, compat: bool = False) -> Bench:
    """Queues a and b hold three pods each, of a core and a GiB, and queue g two with a GPU; z is of no job."""
    pods = [pod(f"{name}-{i}", group=name, on="n", requests={}) for name in "ab" for i in range(3)]
    pods += [pod(f"g-{i}", group="g", on="n", requests={GPU: 1}) for i in range(2)]
    groups = [pod_group(name, queue=name, min_member=0, phase="Running") for name in "abg"]
    other = pod("z", on="n", schedulerName="other")
    big = node("n", cpu=16, memory="64Gi", resources={GPU: 4})
    return Bench([big, *map(queue, "abg"), *groups, *pods, other], conf("gang"), compat=compat)


def beyond(session: Session, deserved: dict[str, Resource], names: str) -> str:
    for name, share in deserved.items():
        session.queues[name].figures["deserved"] = share
    tasks = {task.name: task for task, _ in session.snapshot.pods_on_nodes()}
    return " ".join(task.name for task in beyond_shares(session, [tasks[name] for name in names.split()]))


ONE, TWO, ALL = (Resource(cores * 1000, cores * GIB) for cores in (1, 2, 16))
MEMORY_ALONE = Resource(16_000, GIB)
NO_GPU = Resource(16_000, 16 * GIB)
ONE_GPU = Resource(16_000, 16 * GIB, {GPU: 1000})


@pytest.mark.parametrize(
    ("deserved", "victims", "expected"),
    [
        pytest.param({}, "a-0 a-1 a-2", "a-0 a-1 a-2", id="no share is known"),
        pytest.param({"a": ONE}, "a-0 a-1 a-2", "a-0 a-1", id="down to the share"),
        pytest.param({"a": ONE}, "a-2 a-0 a-1", "a-2 a-0", id="in the order in which they are given"),
        pytest.param({"a": ALL}, "a-0 a-1", "", id="the queue holds less than it deserves"),
        pytest.param({"a": MEMORY_ALONE}, "a-0 a-1 a-2", "a-0 a-1", id="it exceeds its share of memory alone"),
        pytest.param({"a": ONE, "b": TWO}, "a-0 b-0 a-1 b-1 a-2", "a-0 b-0 a-1", id="each queue by its own share"),
        pytest.param({"a": ONE, "b": TWO}, "a-0 b-0 b-1", "a-0 b-0", id="one queue stays beyond its share"),
        pytest.param({"a": ONE}, "a-0 b-0 a-1 b-1 a-2 b-2", "a-0 b-0 a-1 b-1 b-2", id="only one queue has a share"),
        pytest.param({"a": ONE}, "a-0 z a-1 a-2", "a-0 z a-1", id="a pod of no job has no queue"),
        pytest.param({"g": ONE_GPU}, "g-0 g-1", "g-0", id="it exceeds its share of GPUs alone"),
        pytest.param({"g": NO_GPU}, "g-0 g-1", "g-0 g-1", id="it deserves no GPU"),
        pytest.param({"a": ONE}, "", "", id="no victims"),
    ],
)
def test_victims_go_as_long_as_their_queues_hold_more_than_they_deserve(
    deserved: dict[str, Resource], victims: str, expected: str
) -> None:
    with bench().open() as session:
        held = {name: session.queues[name].sums.held[:] for name in "abg"}
        assert beyond(session, deserved, victims) == expected
        assert {name: session.queues[name].sums.held for name in "abg"} == held


def test_in_the_mode_of_the_reference_shares_protect_nobody() -> None:
    with bench(compat=True).open() as session:
        assert beyond(session, {"a": ALL}, "a-0 a-1") == "a-0 a-1"


@pytest.mark.parametrize(
    ("share", "cores", "gib", "stays"),
    [
        pytest.param(ONE, 1, 3, True, id="by cores"), pytest.param(ONE, 3, 1, True, id="by memory"),
        pytest.param(ONE, 2, 2, False, id="just the share is left"), pytest.param(TWO, 1, 1, False, id="or less"),
        pytest.param(Resource(3000, 3 * GIB), 0, 0, False, id="it holds just its share"),
        pytest.param(Resource(2000.5, ALL.memory), 0, 0, True, id="a share that is no whole number"),
        pytest.param(None, 3, 3, True, id="no share is known"),
    ],
)  # fmt: skip
def test_a_queue_stays_beyond_its_share_without_all_its_victims(
    share: Resource | None, cores: int, gib: int, stays: bool
) -> None:
    """It holds three cores and three GiB."""
    with bench().open() as session:
        if share is not None:
            session.queues["a"].figures["deserved"] = share
        assert stays_beyond(session, "a", [1000 * cores, gib * GIB].__getitem__) is stays
        assert stays_beyond(session, "none", [0, 0].__getitem__)


def test_a_queue_that_holds_nothing_is_not_beyond_its_share() -> None:
    with bench().open() as session:
        session.queues["default"].figures["deserved"] = ONE
        assert not stays_beyond(session, "default", [0, 0].__getitem__)


@pytest.mark.parametrize(
    ("held", "deserved", "expected"),
    [
        ([2, 0, 0, 0], [1, 5, 0, 0], True), ([1, 0, 0, 0], [1, 5, 0, 0], False), ([0, 6, 0, 0], [1, 5, 0, 0], True),
        ([0, 0, 9, 0], [1, 5, 0, 0], False), ([0, 0, 9, 0], [1, 5, 8, 0], True), ([0, 0, 0, 1], [1, 5, 0, 0], True),
        ([0, 0, 8, 0], [1, 5, 8, 0], False), ([0, 0, 0, 0], [-1, 0, 0, 0], False), ([], [1, 5, 0, 0], False),
    ],
)  # fmt: skip
def test_pods_exceed_a_share_only_where_one_of_them_is_stated(
    held: list[int], deserved: list[int], expected: bool
) -> None:
    assert PODS == 2
    assert exceeds(held, deserved) is expected
