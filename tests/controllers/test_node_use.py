"""How much pods request of each node's CPUs, and when nodes are to be divided again."""

from __future__ import annotations

import pytest

from stromboli.api.read import read
from stromboli.controllers.manager import Settings
from stromboli.controllers.pod_groups import Grouping
from stromboli.controllers.sharding.configuration import Sharding
from stromboli.controllers.sharding.policies import NodeLimit, NodeUse, Policy
from stromboli.controllers.sharding.usage import PodOnNode, SizedNode, Usage
from stromboli.errors import ManifestError


def node(name: str = "n", cpu: object = 4, **labels: str) -> SizedNode:
    capacity = {} if cpu is None else {"cpu": cpu}
    return read(SizedNode, {"metadata": {"name": name, "labels": labels}, "status": {"capacity": capacity}})


def pod(*cpu: object, on: str = "n", phase: str = "Running", name: str = "p", mirror: bool = False) -> PodOnNode:
    notes = {"kubernetes.io/config.mirror": "x"} if mirror else {}
    rows = [{"resources": {"requests": {} if each is None else {"cpu": each}}} for each in cpu]
    metadata = {"name": name, "namespace": "ns", "annotations": notes}
    return read(
        PodOnNode, {"metadata": metadata, "spec": {"nodeName": on, "containers": rows}, "status": {"phase": phase}}
    )


@pytest.mark.parametrize(
    ("found", "milli"),
    [
        (pod(1, "500m", None), 1500),
        (pod(1, phase="Succeeded"), 0),
        (pod(1, phase="Failed"), 0),
        (pod(1, phase="Pending"), 1000),
        (pod(1, mirror=True), 0),
        (pod(), 0),
    ],
)
def test_what_a_pod_requests(found: PodOnNode, milli: int) -> None:
    assert found.milli_cpu == milli


def test_an_amount_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ManifestError, match="cpu: "):
        assert pod("much").milli_cpu
    with pytest.raises(ManifestError, match="cpu: "):
        Usage().put_node(node(cpu="much"), ())


def uses(found: Usage) -> dict[str, float | None]:
    return {one.name: one.utilisation for one in found.nodes()}


@pytest.mark.parametrize(
    ("before", "after", "matters"),
    [
        (node(), node(), False),
        (node(), node(other="x"), False),
        (node(), node(zone="x"), True),
        (node(zone="x"), node(zone="y"), True),
        (node(zone="x"), node(), True),
        (node(zone="x", rack="1"), node(zone="y", rack="1"), True),
        (node(zone="x", rack="1"), node(zone="x", rack="2"), True),
        (node(cpu=4), node(cpu=6), False),
        (node(cpu=4), node(cpu="6001m"), True),
        (node(cpu=4), node(cpu=2), False),
        (node(cpu=4), node(cpu="1999m"), True),
        (node(cpu=None), node(cpu=1), True),
    ],
)
def test_which_news_of_a_node_matter(before: SizedNode, after: SizedNode, matters: bool) -> None:
    found = Usage()
    assert found.put_node(before, ["zone", "rack"]) is True
    assert found.put_node(after, ["zone", "rack"]) is matters
    assert (len(found), found.drop_node("n"), found.drop_node("n"), len(found)) == (1, True, False, 0)


def test_a_node_is_used_as_its_pods_say_until_they_are_gone() -> None:
    found = Usage()
    found.put_node(node(), ())
    found.put_node(node("none", cpu=None), ())
    assert uses(found) == {"n": 0.0, "none": None}
    for name, cpu in (("a", 1), ("b", 2)):
        found.put_pod(pod(cpu, name=name))
    found.put_pod(pod(9, on="none", name="c"))
    found.put_pod(pod(9, on="", name="d"))
    assert uses(found) == {"n": 0.75, "none": None}
    found.put_pod(pod(5, name="b"))
    assert uses(found)["n"] == 1.0
    found.drop_pod(("ns", "a"))
    assert uses(found)["n"] == 1.0
    found.put_pod(pod(5, name="b", phase="Succeeded"))
    assert uses(found)["n"] == 0.0
    assert found.drop_pod(("ns", "b")) is False
    assert list(found._requested) == ["none"]


@pytest.mark.parametrize(("cpu", "matters"), [(2, False), ("2001m", True), (9, True)])
def test_pods_matter_once_they_move_a_node_by_more_than_half(cpu: object, matters: bool) -> None:
    found = Usage()
    found.put_node(node(), ())
    assert uses(found) == {"n": 0.0}
    assert found.put_pod(pod(cpu)) is matters
    assert found.put_pod(pod(cpu)) is False, "no news"
    used = uses(found)
    assert found.drop_pod(("ns", "p")) is matters
    assert used["n"]
    assert uses(found) == {"n": 0.0}
    assert found.put_pod(pod(cpu, on="")) is False


def test_the_smallest_node_may_be_used_too() -> None:
    found = Usage()
    found.put_node(node(cpu="1m"), ())
    assert uses(found) == {"n": 0.0}
    found.put_pod(pod("1m"))
    assert uses(found) == {"n": 1.0}


def test_a_pod_that_moves_frees_the_node_that_it_leaves() -> None:
    found = Usage()
    for name in ("n", "m"):
        found.put_node(node(name), ())
    found.put_pod(pod(4))
    assert uses(found) == {"n": 1.0, "m": 0.0}
    assert found.put_pod(pod(1, on="m")) is True
    assert uses(found) == {"n": 0.0, "m": 0.25}


def test_what_holds_unless_it_is_said_otherwise() -> None:
    assert (Grouping().inherit, Grouping().by) == (True, frozenset())
    assert Settings().inherit_owner_annotations
    assert (Sharding().schedulers, Sharding().period, Sharding().follows_nodes) == ((), 60.0, True)
    nodes = [NodeUse(f"n{at}", 0.0, {}) for at in range(3)]
    policy = Policy()
    assert (policy.reads, [policy.accepts(node) for node in nodes]) == (frozenset(), [True] * 3)
    assert ([policy.score(node) for node in nodes], policy.select(nodes)) == ([0.0] * 3, nodes)
    assert (NodeLimit().least, NodeLimit().select(nodes), NodeLimit(most=2).select(nodes)) == (0, nodes, nodes[:2])


def test_little_more_on_a_full_node_does_not_matter_and_nothing_on_one_that_is_gone_does() -> None:
    found = Usage()
    found.put_node(node(), ())
    found.put_pod(pod(3))
    assert uses(found) == {"n": 0.75}
    assert found.put_pod(pod("500m", name="q")) is False
    assert found.put_pod(pod(9, on="gone", name="r")) is False
