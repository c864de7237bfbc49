"""A queue that is guaranteed more than the cluster has is taken out with a reason; all other queues go on."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.framework.books.cluster_view import ClusterView
from stromboli.model.resources.resource import Resource
from stromboli.narration.observe import Counting
from stromboli.plugin import Plugin
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.acceptance.bench import Bench, conf

ACTIONS = "enqueue, allocate, reclaim"
PROPORTION = conf("gang", "overcommit predicates proportion", actions=ACTIONS)
CAPACITY = conf("gang", "overcommit predicates capacity", actions=ACTIONS)
TREE = conf("gang", "[{name: predicates}, {name: capacity, enableHierarchy: true}]", actions=ACTIONS)
FLAT = pytest.mark.parametrize("text", [PROPORTION, CAPACITY])
ALL = pytest.mark.parametrize("text", [PROPORTION, CAPACITY, TREE], ids=["proportion", "capacity", "tree"])
AMOUNTS = pytest.mark.parametrize("amount", ["9", "1e30", "1E", "1e400", 2**63])
FAULT = "guarantee is beyond the whole cluster in {}; lower it, or add nodes"
TOGETHER = (
    "all guarantees are beyond the cluster in cpu; lower them, or add nodes"
    " (kept for this queue as far as there is room: cpu {})"
)


def gang(name: str, of: str, phase: str = "Pending", on: str = "") -> list[Manifest]:
    """A PodGroup that wants one core, and its pod."""
    group = pod_group(name, queue=of, phase=phase, minResources={"cpu": "1"})
    return [group, pod(f"{name}-0", group=name, memory=0, on=on)]


def greedy(amounts: dict[str, Any], **spec: Any) -> Manifest:
    """A queue that is guaranteed so much, written as admission wants it."""
    return queue("greedy", guarantee={"resource": amounts}, deserved=amounts, **spec)


def cluster(*queues: Manifest) -> list[Manifest]:
    return [node("n1", cpu=4), node("n2", cpu=4), queue("root"), queue("other"), *queues]


@ALL
@AMOUNTS
def test_other_queues_go_on(text: str, amount: Any) -> None:
    bench = Bench([*cluster(greedy({"cpu": amount})), *gang("a", "greedy"), *gang("b", "other")], text)
    told = Counting()
    plan = bench.cycle(told)
    assert [bind.job for bind in plan.binds] == ["default/b"]
    fault = FAULT.format("cpu")
    assert plan.inconsistencies == [f"queue greedy: {fault}"]
    assert [(event.key, event.reason, event.message) for event in plan.events if event.kind == "Queue"] == [
        ("greedy", "InvalidQueue", fault)
    ]
    assert told.counts["queue_faulty"] == 1
    assert bench.state.queues["greedy"].status.fault == fault
    assert [update.fault for update in bench.cycle().queues] == []  # nothing is written that stands there already


@ALL
def test_a_queue_whose_guarantee_is_lowered_goes_on(text: str) -> None:
    bench = Bench([*cluster(greedy({"cpu": "9"})), *gang("a", "greedy")], text)
    assert bench.cycle().binds == []
    standing = bench.state.queues["greedy"].status.fault
    lowered = greedy({"cpu": "8"})
    bench.tell({**lowered, "status": {**lowered["status"], "fault": standing}})
    plan = bench.cycle()
    assert [bind.job for bind in plan.binds] == ["default/a"]
    assert bench.state.queues["greedy"].status.fault == ""


@FLAT
def test_what_the_whole_cluster_has_may_be_guaranteed(text: str) -> None:
    bench = Bench([*cluster(greedy({"cpu": "8"})), *gang("a", "greedy"), *gang("b", "other")], text)
    plan = bench.cycle()
    assert ([bind.job for bind in plan.binds], plan.inconsistencies) == (["default/a"], [])


@ALL
def test_resources_that_no_node_has_yet_take_nothing_from_any_queue(text: str) -> None:
    bench = Bench([*cluster(greedy({"nvidia.com/gpu": "8"})), *gang("a", "greedy"), *gang("b", "other")], text)
    plan = bench.cycle()
    assert (sorted(bind.job for bind in plan.binds), plan.inconsistencies) == (["default/a", "default/b"], [])


@ALL
def test_pods_of_a_queue_that_cannot_be_used_are_left_alone(text: str) -> None:
    """The other queue could take back what the greedy one holds, if that took part."""
    fleet = [one for n in range(8) for one in gang(f"a{n}", "greedy", "Running", f"n{n % 2 + 1}")]
    bench = Bench([*cluster(greedy({"cpu": "9"})), *fleet, *gang("b", "other", "Inqueue")], text)
    assert bench.cycle().evictions == []


@ALL
def test_a_queue_keeps_its_share_when_nodes_go(text: str) -> None:
    """The guarantee could be kept until n2 went; a later one that never could is a mistake all the same."""
    bench = Bench([*cluster(greedy({"cpu": "6"})), *gang("a", "greedy"), *gang("b", "other")], text)
    assert (len(bench.cycle().binds), bench.state.queues["greedy"].status.fault) == (2, "")
    bench.tell(node("n2", cpu=4), gone=True)
    bench.tell(*gang("c", "greedy", "Inqueue"))
    plan = bench.cycle()
    assert [bind.job for bind in plan.binds] == ["default/c"]
    assert plan.inconsistencies == [f"queue greedy: {TOGETHER.format(6)}"]
    assert bench.state.queues["greedy"].status.fault == TOGETHER.format(6)
    bench.tell(greedy({"cpu": "9"}))
    assert bench.cycle().inconsistencies == [f"queue greedy: {FAULT.format('cpu')}"]


@ALL
def test_a_restarted_scheduler_goes_on_to_keep_a_share(text: str) -> None:
    """What it has no memory of stands in the queue's status, and holds only of the guarantee that it names."""
    bench = Bench(cluster(greedy({"cpu": "6"})), text)
    bench.cycle()
    bench.tell(node("n2", cpu=4), gone=True)
    bench.cycle()
    for guarantee, expected in (("6", TOGETHER.format(6)), ("7", FAULT.format("cpu"))):
        bench.state.memory.clear()
        changed = greedy({"cpu": guarantee})
        bench.tell({**changed, "status": {**changed["status"], "fault": TOGETHER.format(6)}})
        assert bench.cycle().inconsistencies == [f"queue greedy: {expected}"]


@ALL
def test_what_the_cluster_had_is_remembered_as_long_as_some_of_it_is_guaranteed(text: str) -> None:
    """Once nothing of it is, a guarantee is again one of what the cluster has."""
    bench = Bench(cluster(greedy({"cpu": "6"})), text)
    bench.cycle()
    bench.tell(node("n2", cpu=4), gone=True)
    bench.tell(greedy({"memory": "1Gi"}))
    bench.cycle()
    bench.tell(greedy({"cpu": "6"}))
    assert bench.cycle().inconsistencies == [f"queue greedy: {FAULT.format('cpu')}"]


@ALL
def test_guarantees_that_exceed_the_cluster_only_together_are_told_of_each(text: str) -> None:
    second = queue("second", guarantee={"resource": {"cpu": "5"}}, deserved={"cpu": "5"})
    third = queue("third", guarantee={"resource": {"memory": "1Gi"}}, deserved={"memory": "1Gi"})
    objects = [*cluster(greedy({"cpu": "5"}), second, third), *gang("a", "greedy"), *gang("b", "second")]
    bench = Bench(objects, text)
    told = Counting()
    plan = bench.cycle(told)
    assert sorted(bind.job for bind in plan.binds) == ["default/a", "default/b"]
    assert sorted(plan.inconsistencies) == [
        f"queue greedy: {TOGETHER.format(5)}",
        f"queue second: {TOGETHER.format(5)}",
    ]
    assert [(event.key, event.reason) for event in plan.events if event.kind == "Queue"] == [
        ("greedy", "GuaranteeNotKept"),
        ("second", "GuaranteeNotKept"),
    ]
    assert told.counts["queue_faulty"] == 2
    bench.tell(node("n3", cpu=4))
    assert bench.cycle().inconsistencies == []
    assert bench.state.queues["greedy"].status.fault == ""


@AMOUNTS
def test_in_a_tree_the_queue_and_those_below_it_are_taken_out(amount: Any) -> None:
    queues = [queue("above"), greedy({"cpu": amount}, parent="above"), queue("below", parent="greedy")]
    queues.append(queue("beside", parent="above"))
    jobs = [*gang("a", "below"), *gang("b", "beside"), *gang("c", "other")]
    bench = Bench([*cluster(*queues), *jobs], TREE)
    plan = bench.cycle()
    assert sorted(bind.job for bind in plan.binds) == ["default/b", "default/c"]
    fault = FAULT.format("cpu")
    assert sorted(plan.inconsistencies) == [f"queue below: {fault}", f"queue greedy: {fault}"]


@FLAT
def test_compat_keeps_what_the_reference_does(text: str) -> None:
    objects = [*cluster(greedy({"cpu": "1e30"})), *gang("a", "greedy"), *gang("b", "other")]
    plan = Bench(objects, text, compat=True).cycle()
    assert ([bind.job for bind in plan.binds], plan.inconsistencies) == (["default/a"], [])


@pytest.mark.parametrize("plugins", ["{capacity}, {proportion}", "{proportion}, {capacity}"])
def test_a_fault_that_one_of_two_plugins_finds_stands(plugins: str) -> None:
    """Only capacity looks at parents; proportion, which finds nothing, takes nothing back."""
    listed = plugins.format(capacity="{name: capacity, enableHierarchy: true}", proportion="{name: proportion}")
    text = conf("gang", f"[{{name: predicates}}, {listed}]", actions=ACTIONS)
    bench = Bench([*cluster(queue("lost", parent="nowhere")), *gang("a", "lost")], text)
    plan = bench.cycle()
    faults = {update.name: update.fault for update in plan.queues if update.fault}
    assert list(faults) == ["lost"]
    assert "nowhere" in faults["lost"]


def test_a_plugin_named_queues_keeps_its_own_memory() -> None:
    class Queues(Plugin):
        name = "queues"

        def on_session_open(self, session: ClusterView) -> None:
            kept = session.memory(self.name)
            kept["sessions"] = kept.get("sessions", 0.0) + 1

    bench = Bench(cluster(greedy({"cpu": "6"})), conf("queues", "capacity"), Queues)
    assert [bench.cycle().memory["queues"] for _ in range(2)] == [{"sessions": 1.0}, {"sessions": 2.0}]


@pytest.mark.parametrize(
    ("guaranteed", "kept"),
    [
        ("cpu", (4000.0, 0.0, {})),
        ("memory", (0.0, 8.0 * 2**30, {})),
        ("nvidia.com/gpu", (0.0, 0.0, {"nvidia.com/gpu": 2000.0})),
    ],
)
def test_of_nodes_that_are_gone_counts_what_queues_are_guaranteed_alone(
    guaranteed: str, kept: tuple[float, float, dict[str, float]]
) -> None:
    offers = node("n1", resources={"nvidia.com/gpu": 2})
    bench = Bench([offers, queue("root"), queue("q", guarantee={"resource": {guaranteed: 1}})], CAPACITY)
    bench.cycle()
    bench.tell(node("n1"), gone=True)
    with bench.open() as session:
        most = session.queues.most_of(Resource())
    assert (most.milli_cpu, most.memory, {**(most.scalars or {})}) == kept
