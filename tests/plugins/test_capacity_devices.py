"""Quotas of device classes: claims of pods against what a queue's capability names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stromboli.cluster.decoding import decode
from stromboli.cluster.objects import from_value
from stromboli.framework.books.cycle_state import CycleState
from stromboli.model.claims import Devices, read_classes
from stromboli.model.codec import decode_snapshot, encode_snapshot
from stromboli.plugins.capacity import devices
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.acceptance.bench import Bench, conf, messages, task_of

CLASS = "gpu.example.com"


def text(tree=False, actions="allocate", **arguments):
    named = ", ".join(f"capacity.{name}: {str(on).lower()}" for name, on in arguments.items())
    plugin = f"{{name: capacity, enableHierarchy: {str(tree).lower()}, arguments: {{{named}}}}}"
    quotas_alone = "arguments: {predicate.DynamicResourceAllocationEnable: false}"  # no device is there to be had
    return conf(f"[{{name: gang}}, {{name: predicates, {quotas_alone}}}, {plugin}]", actions=actions)


def claim(name, count=0, mode="", capacity=None):
    exact = {"deviceClassName": CLASS, "count": count, "allocationMode": mode}
    if capacity:
        exact["capacity"] = {"requests": capacity}
    spec = {"devices": {"requests": [{"name": "r", "exactly": exact}]}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": metadata, "spec": spec}


def job(name, queue_, claims, running=0, phase="Inqueue", **fields):
    """A PodGroup with one pod a claim."""
    pods = [
        pod(f"{name}-{i}", group=name, cpu=0, memory="1Mi", role="w", on="n1" if i < running else "",
            resourceClaims=[{"name": "c", "resourceClaimName": each}] if each else [])
        for i, each in enumerate(claims)
    ]  # fmt: skip
    return [pod_group(name, queue=queue_, phase="Running" if running else phase, **fields), *pods]


def limited(name, count=0, **more):
    named = {f"deviceclass/{CLASS}": count} if count else {}
    return queue(name, capability={**named, **more.pop("capability", {})}, **more)


def bound(*objects, conf_text=None):
    return sorted(
        bind.key.partition("/")[2] for bind in Bench([node("n1"), *objects], conf_text or text()).cycle().binds
    )


def test_names_of_classes_and_dimensions():
    found = read_classes(
        {f"deviceclass/{CLASS}": "2", f"memory.deviceclass/{CLASS}": "8Gi", "cpu": 1, "deviceclass/": 1}
    )
    assert found == {CLASS: Devices(2, {"memory": 8 * 2**30 * 1000})}


@pytest.mark.parametrize(
    ("limit", "claims", "placed"),
    [
        pytest.param(2, [claim("a", 1), claim("b", 1), claim("c", 1)], ["j-0", "j-1"], id="one-each"),
        pytest.param(2, [claim("a", 3)], [], id="too-many"),
        pytest.param(2, [claim("a"), claim("b", 1)], ["j-0", "j-1"], id="no-count-is-one"),
        pytest.param(1, [claim("a", 9, "All")], ["j-0"], id="all-there-are-is-not-counted"),
        pytest.param(0, [claim("a", 9)], ["j-0"], id="a-class-that-is-not-named"),
    ],
)
def test_devices_of_a_queue(limit, claims, placed):
    names = [each["metadata"]["name"] for each in claims]
    assert bound(limited("q", limit), *claims, *job("j", "q", names)) == placed


def test_a_claim_that_pods_share_counts_once_and_until_the_last_has_gone():
    objects = [node("n1"), limited("q", 1), claim("shared", 1), claim("other", 1),
               *job("j", "q", ["shared", "shared", "other"], running=2)]  # fmt: skip
    with Bench(objects, text()).open() as session:
        info, other, first = session.queues["q"], task_of(session, "j-2"), task_of(session, "j-0")
        assert not session.ask.allocatable(info, other)
        with session.statement() as statement:
            statement.evict(first, "test")
            assert not session.ask.allocatable(info, other)
            statement.evict(task_of(session, "j-1"), "test")
            assert session.ask.allocatable(info, other)
            assert session.ask.allocatable(info, first)
            statement.discard()
        assert not session.ask.allocatable(info, other)


def test_claims_made_from_a_template_are_those_that_the_status_names():
    made = pod("p", group="g", resourceClaims=[{"name": "c", "resourceClaimTemplateName": "t"}])
    unmade = pod("q", group="g", resourceClaims=[{"name": "c", "resourceClaimTemplateName": "t"}])
    made["status"]["resourceClaimStatuses"] = [{"name": "c", "resourceClaimName": "p-c"}]
    with Bench([node("n1"), pod_group("g"), made, unmade]).open() as session:
        assert [task_of(session, name).claims for name in ("p", "q")] == [("default/p-c",), ()]


@pytest.mark.parametrize(
    ("capability", "arguments", "placed"),
    [
        pytest.param({f"memory.deviceclass/{CLASS}": "8Gi"}, {}, ["j-0", "j-1"], id="up-to-the-amount"),
        pytest.param({f"cores.deviceclass/{CLASS}": 9}, {}, [], id="a-dimension-that-is-not-named"),
        pytest.param({f"memory.deviceclass/{CLASS}": "8Gi"}, {"DRAConsumableCapacityEnable": False},
                     ["j-0", "j-1", "j-2"], id="not-looked-at"),
        pytest.param({f"deviceclass/{CLASS}": 1}, {"DynamicResourceAllocationEnable": False},
                     ["j-0", "j-1", "j-2"], id="switched-off"),
    ],
)  # fmt: skip
def test_amounts_of_dimensions(capability, arguments, placed):
    """Each claim asks for two devices with 2Gi each."""
    claims = [claim(name, 2, capacity={"memory": "2Gi"}) for name in "abc"]
    objects = [limited("q", capability=capability), *claims, *job("j", "q", list("abc"))]
    assert bound(*objects, conf_text=text(**arguments)) == placed


def test_every_queue_above_counts():
    queues = [queue("root"), limited("A", 3), limited("A1", 2, parent="A"), queue("A2", parent="A")]
    claims = [claim(name, 1) for name in "abcdef"]
    found = bound(
        *queues, *claims, *job("j", "A1", list("abc")), *job("k", "A2", list("def")), conf_text=text(tree=True)
    )
    assert len(found) == 3
    assert [name for name in found if name.startswith("j")] == ["j-0", "j-1"]


def test_in_compat_mode_a_queue_that_names_no_devices_admits_whatever_root_names():
    waits = [job(name, "A", [name], phase="Pending", minResources={"memory": "1Mi"}) for name in "ab"]
    claims = [claim(name, 1) for name in "ab"]
    root = limited("root", 1, capability={"cpu": 9, "memory": "9Gi"})
    objects = [node("n1"), root, queue("A"), *claims, *(each for group in waits for each in group)]
    plan = Bench(objects, text(tree=True, actions="enqueue"), compat=True).cycle()
    assert sorted(u.key for u in plan.pod_groups if u.phase == "Inqueue") == ["default/a", "default/b"]


@pytest.mark.parametrize(
    ("limits", "placed"),
    [({}, ["j-0", "k-0"]), ({"B": 2}, ["j-0", "k-0", "k-1"]), ({"A": 2, "A1": 1}, ["j-0", "k-0"])],
)
def test_S4_23_the_devices_of_root_are_inherited_and_limit_no_others(limits, placed):
    """Root names one."""
    tree = [limited("root", 1), *(limited(name, limits.get(name, 0)) for name in "AB")]
    tree.append(limited("A1", limits.get("A1", 0), parent="A"))
    claims = [claim(name, 1) for name in "abcd"]
    jobs = [*job("j", "A1", list("ab")), *job("k", "B", list("cd"))]
    assert bound(*tree, *claims, *jobs, conf_text=text(tree=True)) == placed
    asking = (("j-0", "A1", "a"), ("j-1", "A1", "b"), ("k-0", "B", "c"), ("k-1", "B", "d"))
    waits = [job(name, where, [each], phase="Pending", minResources={"memory": "1Mi"}) for name, where, each in asking]
    objects = [node("n1"), *tree, *claims, *(each for group in waits for each in group)]
    plan = Bench(objects, text(tree=True, actions="enqueue")).cycle()
    assert sorted(u.key.partition("/")[2] for u in plan.pod_groups if u.phase == "Inqueue") == placed


@pytest.mark.parametrize(
    ("fields", "claims", "enters"),
    [
        pytest.param({"min_member": 2}, ["a", "b", "c"], True, id="the-first-two"),
        pytest.param({"min_member": 3}, ["a", "b", "c"], False, id="three"),
        pytest.param({"min_member": 3, "minTaskMember": {"w": 3}}, ["a"], False, id="one-of-a-role-stands-for-all"),
        pytest.param({"min_member": 3, "minTaskMember": {"w": 2}}, ["a"], True, id="two-of-a-role"),
        pytest.param({"min_member": 3, "minResources": {}}, ["a", "b", "c"], False, id="nothing-else-is-stated"),
    ],
)
def test_admission(fields, claims, enters):
    """Two devices; each claim asks for one."""
    made = [claim(name, 1) for name in claims]
    group = job("g", "q", claims, phase="Pending", **{"minResources": {"memory": "1Mi"}, **fields})
    bench = Bench([node("n1"), limited("q", 2), *made, *group], text(actions="enqueue"))
    plan = bench.cycle()
    assert bool([u for u in plan.pod_groups if u.phase == "Inqueue"]) is enters
    refused = "queue resource quota insufficient: insufficient dra-resource-exceeded"
    assert (refused in messages(plan, "default/g")) is not enters


def test_admitted_jobs_count_for_later_ones():
    groups = [job(name, "q", [name], phase="Pending", created=i + 1, minResources={"memory": "1Mi"})
              for i, name in enumerate("abc")]  # fmt: skip
    objects = [
        node("n1"),
        limited("q", 2),
        *(claim(name, 1) for name in "abc"),
        *(o for group in groups for o in group),
    ]
    plan = Bench(objects, text(actions="enqueue")).cycle()
    assert sorted(u.key for u in plan.pod_groups if u.phase == "Inqueue") == ["default/a", "default/b"]


def test_tried_moves():
    objects = [node("n1"), limited("q", 1), claim("a", 1), claim("b", 1), *job("j", "q", ["a", "b"], running=1)]
    with Bench(objects, text()).open() as session:
        state, where = CycleState(), session.nodes["n1"]
        held, waiting = task_of(session, "j-0"), task_of(session, "j-1")
        assert not session.ask.simulate_allocatable(state, session.queues["q"], waiting)
        assert session.ask.simulate_remove_task(state, waiting, held, where) is None
        assert session.ask.simulate_allocatable(state, session.queues["q"], waiting)
        assert not session.ask.allocatable(session.queues["q"], waiting), "it was only tried"
        assert session.ask.simulate_add_task(state, waiting, held, where) is None
        assert not session.ask.simulate_allocatable(state, session.queues["q"], waiting)


def test_snapshots_carry_claims():
    bench = Bench([node("n1"), claim("a", 2, capacity={"memory": "1Gi"}), *job("j", "default", ["a"])])
    again = decode_snapshot(encode_snapshot(bench.snapshot()))
    assert again.claims == {"default/a": {CLASS: Devices(2, {"memory": 2 * 2**30 * 1000})}}
    assert again.jobs["default/j"].tasks["default/j-0"].claims == ("default/a",)


@pytest.mark.parametrize("named", ["deserved", "guarantee", "capability"])
def test_queues_that_name_a_device_class_anywhere_are_counted(named):
    """A queue that names none in its capability has no limit of its own; it counts among its parent's."""
    amounts = {f"deviceclass/{CLASS}": 1}
    spec = {named: {"resource": amounts} if named == "guarantee" else amounts}
    account: Any = SimpleNamespace(name="q", ancestors=(), queue=SimpleNamespace(spec=decode.queue_of(made(spec)).spec))
    limits = {CLASS: Devices(1)} if named == "capability" else {}
    assert list(devices._named([account], inherit=False)) == [("q", limits)]
    plain: Any = SimpleNamespace(name="p", ancestors=(), queue=SimpleNamespace(spec=decode.queue_of(made({})).spec))
    assert list(devices._named([plain], inherit=True)) == []


def made(spec):
    return from_value("Queue", {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
                                "metadata": {"name": "q"}, "spec": spec})  # fmt: skip
