"""The checker itself: lawful plans pass, and each broken law is named, in exactly the sentences expected."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from stromboli.testing.builders import resources_of
from tests.support.checker import check_plan
from tests.support.checker_objects import Obj, Pod, affinity_matches, node_from, pod_request, quantity, tolerates
from tests.support.checker_reasons import claims_of

CASES = Path(__file__).resolve().parents[2].parent / "shared" / "cases" / "generated"
KINDS = {"nodes": "Node", "pods": "Pod", "podGroups": "PodGroup", "namespaces": "Namespace"}
Manifest = dict[str, Any]


# ---------------------------------------------------------------- small clusters


def node(name: str, cpu: str = "4", labels: dict[str, str] | None = None, **spec: Any) -> Manifest:
    room = {"cpu": cpu, "memory": "8Gi", "pods": "10", "ephemeral-storage": "100Gi", "nvidia.com/gpu": "2"}
    name_label = {"kubernetes.io/hostname": name}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": {**name_label, **(labels or {})}},
        "spec": spec,
        "status": {"allocatable": room},
    }


def group(name: str, least: int = 1, **spec: Any) -> Manifest:
    return {"kind": "PodGroup", "metadata": {"name": name, "namespace": "ns"}, "spec": {"minMember": least, **spec}}


def pod(name: str, of: str = "job", requests: dict[str, str] | None = None, **more: Any) -> Manifest:
    """A pending pod; `on`, `phase`, `labels`, `role`, `deleted` and `ports` say more, the rest goes into its spec."""
    notes = {"scheduling.k8s.io/group-name": of, "volcano.sh/task-spec": more.pop("role", "")}
    metadata = {"name": name, "namespace": "ns", "annotations": notes, "labels": more.pop("labels", {})}
    if more.pop("deleted", False):
        metadata["deletionTimestamp"] = "2025-01-01T00:00:00Z"
    phase = more.pop("phase", "Running" if "on" in more else "Pending")
    place = {"nodeName": more.pop("on")} if "on" in more else {}
    wanted = {"cpu": "1"} if requests is None else requests
    container = {"name": "c", "resources": resources_of(wanted), "ports": more.pop("ports", [])}
    spec = {"schedulerName": "volcano", **place, **more, "containers": [container]}
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def plan(binds: dict[str, str] | None = None, *, says: dict[str, str] | None = None, **outcome: Any) -> Manifest:
    """A plan whose names lack the namespace `ns`; `says` are the messages of its pod conditions."""
    conditions = {f"ns/{key}": {"reason": "Unschedulable", "message": text} for key, text in (says or {}).items()}
    placed = {f"ns/{key}": place for key, place in (binds or {}).items()}
    return {"name": "p", "outcome": {"binds": placed, "podConditions": conditions, **outcome}, "reasons": {}}


def with_terms(kind: str, app: str, key: str = "zone", **term: Any) -> Manifest:
    stated = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key, **term}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [stated]}}


def on_nodes(*expressions: Manifest) -> Manifest:
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def spread(skew: int = 1, **more: Any) -> list[Manifest]:
    selector = {"matchLabels": {"app": "web"}}
    base = {"maxSkew": skew, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return [{**base, **more}]


ZONES = [node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"}), node("n3", labels={"zone": "c"})]
TAINT = {"key": "only", "value": "gpu", "effect": "NoSchedule"}
AFFINITY = "node(s) didn't match Pod's node affinity/selector"
PORTS = "node(s) didn't have free ports for the requested pod ports"
TOLERATION = {"key": "only", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}
WEB = {"app": "web"}
HOST_PORT = [{"containerPort": 80, "hostPort": 80}]
PROMISE = "Pod ns/{} can possibly be assigned to {}, once minAvailable is satisfied"
LATER = "Pod ns/{} can possibly be assigned to {}, once resource is released and minAvailable is satisfied"


def unavailable(nodes: int, histogram: str) -> str:
    return f"0/{nodes} nodes are unavailable: {histogram}."


# ---------------------------------------------------------------- lawful plans

ROOMY = [node("n1"), node("n2"), group("job", 2)]
FULL = [node("n1", "1"), node("n2", "1"), group("job"), pod("old-1", on="n1"), pod("old-2", on="n2")]

LAWFUL: dict[str, tuple[list[Manifest], Manifest]] = {
    "gang bound whole": ([*ROOMY, pod("a"), pod("b")], plan({"a": "n1", "b": "n2"})),
    "running member completes the gang": ([*ROOMY, pod("a", on="n1"), pod("b")], plan({"b": "n1"})),
    "pending best-effort member counts": (
        [*ROOMY, pod("a", requests={}), pod("b")],
        plan({"b": "n1"}, says={"a": "all nodes are unavailable"}),
    ),
    "filled to the brim": ([*ROOMY, pod("a", requests={"cpu": "3500m"}), pod("b", requests={"cpu": ".5"})],
                           plan({"a": "n1", "b": "n1"})),
    "tolerated taint and matching selector": (
        [node("n1", labels={"gpu": "A10"}, taints=[TAINT]), group("job"),
         pod("a", nodeSelector={"gpu": "A10"}, tolerations=[TOLERATION],
             affinity=on_nodes({"key": "gpu", "operator": "In", "values": ["A10", "T4"]}))],
        plan({"a": "n1"}),
    ),
    "first of a series, and the next beside it": (
        [*ZONES, group("job"), pod("a", labels=WEB, affinity=with_terms("podAffinity", "web")),
         pod("b", labels=WEB, affinity=with_terms("podAffinity", "web"))],
        plan({"a": "n2", "b": "n2"}),
    ),
    "apart as asked": (
        [*ZONES, group("job"), pod("a", labels=WEB, affinity=with_terms("podAntiAffinity", "web")),
         pod("b", labels=WEB, affinity=with_terms("podAntiAffinity", "web"))],
        plan({"a": "n1", "b": "n2"}),
    ),
    "spread evenly": (
        [*ZONES, group("job"), *(pod(name, labels=WEB, topologySpreadConstraints=spread()) for name in "abcd")],
        plan({"a": "n1", "b": "n2", "c": "n3", "d": "n1"}),
    ),
    "spread of a pod that others without the constraint crowd": (
        [*ZONES, group("job"), pod("a", labels=WEB, topologySpreadConstraints=spread()), pod("b", labels=WEB)],
        plan({"a": "n1", "b": "n1"}),
    ),
    "ports on two addresses": (
        [node("n1"), group("job"), pod("a", ports=[{"hostPort": 80, "hostIP": "10.0.0.1"}]),
         pod("b", ports=[{"hostPort": 80, "hostIP": "10.0.0.2"}])],
        plan({"a": "n1", "b": "n1"}),
    ),
    "room promised that a leaving pod gives back": (
        [node("n1", "1"), group("job"), pod("old", on="n1", deleted=True), pod("a")],
        plan(pipelined={"ns/a": "n1"}, says={"a": LATER.format("a", "n1")}),
    ),
    "room promised that a victim gives back": (
        [node("n1", "1"), group("job"), pod("old", on="n1"), pod("a")],
        plan(pipelined={"ns/a": "n1"}, evictions=["ns/old"], says={"a": LATER.format("a", "n1")}),
    ),
    "no room is a true reason": ([*FULL, pod("a")], plan(says={"a": unavailable(2, "2 Insufficient cpu")})),
    "the job's reason is enough": (
        [*FULL, pod("a")], {**plan(), "reasons": {"ns/job": [unavailable(2, "2 Insufficient cpu")]}}
    ),
    "static reasons counted right": (
        [node("n1", unschedulable=True), node("n2", taints=[TAINT]), node("n3"), group("job"),
         pod("a", nodeSelector={"disk": "ssd"})],
        plan(says={"a": unavailable(
            3, f"1 node(s) were unschedulable, 2 {AFFINITY}")}),
    ),
    "a gang that gave its places back": (
        [node("n1", "2"), group("job", 3), pod("a"), pod("b"), pod("c")],
        plan(says={"a": PROMISE.format("a", "n1"), "b": PROMISE.format("b", "n1"),
                   "c": "pod group is not ready, 3 Pending, 3 minAvailable; Pending: 2 Schedulable, 1 Unschedulable. "
                        "Origin reason is c: 0/1 nodes are unavailable: 1 Insufficient cpu."}),
    ),
    "a reason of a filter unknown here": (
        [node("n1"), group("job"), pod("a")], plan(says={"a": unavailable(1, "1 node group label not found")})
    ),
    "a gated pod needs no reason": ([node("n1"), group("job"), pod("a", schedulingGates=[{"name": "g"}])], plan()),
    "another scheduler's pod needs no reason": (
        [node("n1"), group("job"), pod("a", schedulerName="default-scheduler")], plan()
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LAWFUL)
def test_a_lawful_plan_passes(name: str) -> None:
    assert check_plan(*LAWFUL[name]) == []


# ---------------------------------------------------------------- broken plans

ONE = [node("n1"), group("job")]

BROKEN: dict[str, tuple[list[Manifest], Manifest, list[str]]] = {
    "unknown node": ([*ONE, pod("a")], plan({"a": "n9"}),
                     ["ns/a is bound to n9 but there is no such node", "ns/a waits without a reason"]),
    "unknown pod": (ONE, plan({"ghost": "n1"}), ["ns/ghost is bound but there is no such pod"]),
    "unknown victim": (ONE, plan(evictions=["ns/ghost"]), ["ns/ghost is evicted but there is no such pod"]),
    "bound though running": ([*ONE, pod("a", on="n1")], plan({"a": "n1"}),
                             ["ns/a is bound to n1 but already runs on n1"]),
    "bound and pipelined": ([*ONE, pod("a")], plan({"a": "n1"}, pipelined={"ns/a": "n1"}),
                            ["ns/a is bound to n1 but is pipelined by the same plan"]),
    "bound though finished": ([*ONE, pod("a", phase="Failed")], plan({"a": "n1"}),
                              ["ns/a is bound to n1 but is Failed"]),
    "bound though deleted": ([*ONE, pod("a", deleted=True)], plan({"a": "n1"}),
                             ["ns/a is bound to n1 but is being deleted"]),
    "bound though gated": ([*ONE, pod("a", schedulingGates=[{"name": "g"}])], plan({"a": "n1"}),
                           ["ns/a is bound to n1 but is held by a scheduling gate"]),
    "bound though not ours": (
        [*ONE, pod("a", of="lost")], plan({"a": "n1"}),
        ["ns/a is bound to n1 but belongs to another scheduler or to a PodGroup that is missing"],
    ),
    "evicted from nowhere": (
        [*ONE, pod("a")], plan(evictions=["ns/a"], says={"a": "evicted"}), ["ns/a is evicted but stands on no node"]
    ),
    "too much cpu": ([*ONE, pod("a", requests={"cpu": "2"}), pod("b", requests={"cpu": "2001m"})],
                     plan({"a": "n1", "b": "n1"}), ["n1 is over capacity: cpu 4.001 of 4"]),
    "too much memory next to a terminating pod": (
        [*ONE, pod("old", on="n1", deleted=True, requests={"memory": "7Gi"}), pod("a", requests={"memory": "2Gi"})],
        plan({"a": "n1"}), ["n1 is over capacity: memory 9.66368e+09 of 8.58993e+09"],
    ),
    "too many pods": (
        [*ONE, *(pod(f"old-{i}", on="n1", requests={}) for i in range(10)), pod("a", requests={})],
        plan({"a": "n1"}), ["n1 is over capacity: pods 11 of 10"],
    ),
    "too many GPUs, one of an init container": (
        [*ONE, pod("a", requests={"nvidia.com/gpu": "1"}, initContainers=[
            {"name": "i", "resources": resources_of({"nvidia.com/gpu": "3"})}])],
        plan({"a": "n1"}), ["n1 is over capacity: nvidia.com/gpu 3 of 2"],
    ),
    "too much ephemeral storage": ([*ONE, pod("a", requests={"ephemeral-storage": "101Gi"})], plan({"a": "n1"}),
                                   ["n1 is over capacity: ephemeral-storage 1.08448e+11 of 1.07374e+11"]),
    "a resource the node does not have": ([*ONE, pod("a", requests={"rdma/hca": "1"})], plan({"a": "n1"}),
                                          ["n1 is over capacity: rdma/hca 1 of 0"]),
    "promised room that no pod leaves": (
        [node("n1", "1"), group("job"), pod("old", on="n1"), pod("a")],
        plan(pipelined={"ns/a": "n1"}, says={"a": LATER.format("a", "n1")}),
        ["promised: n1 is over capacity: cpu 2 of 1"],
    ),
    "half a gang": (
        [*ROOMY, pod("a"), pod("b")], plan({"a": "n1"}, says={"b": "waits"}),
        ["gang ns/job is bound in part: 1 of at least 2"],
    ),
    "a gang completed by a failed pod": (
        [*ROOMY, pod("a", on="n1", phase="Failed"), pod("b")], plan({"b": "n1"}),
        ["gang ns/job is bound in part: 1 of at least 2"],
    ),
    "a gang without its role": (
        [node("n1"), group("job", 2, minTaskMember={"ps": 1, "worker": 1}), pod("a", role="worker"),
         pod("b", role="worker")],
        plan({"a": "n1", "b": "n1"}), ["gang ns/job is bound with 0 of at least 1 in the role ps"],
    ),
    "node selector": (
        [*ONE, pod("a", nodeSelector={"gpu": "A10"})], plan({"a": "n1"}),
        [f"ns/a is placed on n1 against: {AFFINITY}"],
    ),
    "required node affinity, for a reserved place too": (
        [*ONE, pod("a", affinity=on_nodes({"key": "gpu", "operator": "Exists"}))],
        plan(pipelined={"ns/a": "n1"}, says={"a": LATER.format("a", "n1")}),
        [f"ns/a is placed on n1 against: {AFFINITY}"],
    ),
    "taint": (
        [node("n1", taints=[{**TAINT, "effect": "NoExecute"}]), group("job"), pod("a", tolerations=[TOLERATION])],
        plan({"a": "n1"}), ["ns/a is placed on n1 against: node(s) had untolerated taint(s)"],
    ),
    "cordoned node": ([node("n1", unschedulable=True), group("job"), pod("a")], plan({"a": "n1"}),
                      ["ns/a is placed on n1 against: node(s) were unschedulable"]),
    "host port": ([*ONE, pod("old", on="n1", ports=HOST_PORT), pod("a", ports=HOST_PORT)], plan({"a": "n1"}),
                  ["ns/old and ns/a claim the same host port on n1"]),
    "own anti-affinity": (
        [*ZONES, group("job"), pod("old", on="n1", labels=WEB),
         pod("a", affinity=with_terms("podAntiAffinity", "web"))],
        plan({"a": "n1"}), ["ns/old on n1 breaks the anti-affinity of ns/a on n1"],
    ),
    "anti-affinity of a pod that is there": (
        [*ZONES, node("n4", labels={"zone": "a"}), group("job"), pod("a", labels=WEB),
         pod("old", on="n1", affinity=with_terms("podAntiAffinity", "web"))],
        plan({"a": "n4"}), ["ns/a on n4 breaks the anti-affinity of ns/old on n1"],
    ),
    "affinity to a pod that is not near": (
        [*ZONES, group("job"), pod("old", on="n1", labels=WEB), pod("a", affinity=with_terms("podAffinity", "web"))],
        plan({"a": "n2"}), ["ns/a on n2 has no pod near that its affinity requires"],
    ),
    "affinity that looks into another namespace": (
        [*ZONES, group("job"), pod("old", on="n2", labels=WEB),
         pod("a", affinity=with_terms("podAffinity", "web", namespaces=["other"]))],
        plan({"a": "n2"}), ["ns/a on n2 has no pod near that its affinity requires"],
    ),
    "two first pods of one series": (
        [*ZONES, group("job"), pod("a", labels=WEB, affinity=with_terms("podAffinity", "web")),
         pod("b", labels=WEB, affinity=with_terms("podAffinity", "web"))],
        plan({"a": "n1", "b": "n2"}), ["ns/b on n2 is apart from the first pod of its affinity"],
    ),
    "spread": (
        [*ZONES, group("job"), pod("old", on="n1", labels=WEB),
         pod("a", labels=WEB, topologySpreadConstraints=spread())],
        plan({"a": "n1"}), ["ns/a on n1: 2 pods in zone=a break the topology spread"],
    ),
    "spread over too few domains": (
        [*ZONES, group("job"), pod("old", on="n1", labels=WEB), pod("old-2", on="n2", labels=WEB),
         pod("old-3", on="n3", labels=WEB), pod("a", labels=WEB, topologySpreadConstraints=spread(minDomains=4))],
        plan({"a": "n1"}), ["ns/a on n1: 2 pods in zone=a break the topology spread"],
    ),
    "spread on a node without the key": (
        [*ONE, pod("a", labels=WEB, topologySpreadConstraints=spread())],
        plan({"a": "n1"}), ["ns/a on n1, which lacks the topology key zone"],
    ),
    "waits without a reason": ([*ONE, pod("a")], plan(), ["ns/a waits without a reason"]),
    "bound and said to wait": ([*ONE, pod("a")], plan({"a": "n1"}, says={"a": "no"}),
                               ["ns/a is bound and yet has the condition Unschedulable"]),
    "wrong number of nodes": (
        [*FULL, pod("a")], plan(says={"a": unavailable(3, "3 Insufficient cpu")}),
        ["reason of ns/a speaks of 3 nodes; the cluster has 2",
         "reason of ns/a claims 'Insufficient cpu' of 3 nodes; it holds for 2"],
    ),
    "not every node explained": ([*FULL, pod("a")], plan(says={"a": unavailable(2, "1 Insufficient cpu")}),
                                 ["reason of ns/a gives reasons for 1 of 2 nodes"]),
    "a node that has the room": (
        [*FULL, node("n3"), pod("a")], plan(says={"a": unavailable(3, "3 Insufficient cpu")}),
        ["reason of ns/a claims 'Insufficient cpu' of 3 nodes; it holds for 2",
         "reason of ns/a claims no node fits, but n3 would take it"],
    ),
    "the wrong resource": (
        [*FULL, pod("a")], plan(says={"a": unavailable(2, "2 Insufficient memory")}),
        ["reason of ns/a claims 'Insufficient memory' of 2 nodes; it holds for 0"],
    ),
    "a taint that is tolerated": (
        [node("n1", "0", taints=[TAINT]), group("job"), pod("a", tolerations=[TOLERATION])],
        plan(says={"a": unavailable(1, "1 node(s) had untolerated taint(s)")}),
        ["reason of ns/a claims 'node(s) had untolerated taint(s)' of 1 nodes; it holds for 0"],
    ),
    "a refusal counted too seldom": (
        [node("n1"), node("n2", "0"), group("job"), pod("a", nodeSelector={"disk": "ssd"})],
        plan(says={"a": unavailable(2, "2 Insufficient cpu")}),
        ["reason of ns/a claims 'Insufficient cpu' of 2 nodes; it holds for 1",
         f'reason of ns/a claims "{AFFINITY}" of 0 nodes; it is what refuses 1'],
    ),
    "ports that are free": (
        [*FULL, pod("a", ports=HOST_PORT)],
        plan(says={"a": unavailable(2, f"1 Insufficient cpu, 1 {PORTS}")}),
        [f'reason of ns/a claims "{PORTS}" of 1 nodes; it holds for 0'],
    ),
    "a gang-mate blamed for more than it takes": (
        [node("n1", "3"), group("job", 4), pod("a"), pod("b"), pod("c"), pod("d")],
        plan(says={"a": PROMISE.format("a", "n1"), "b": PROMISE.format("b", "n1"), "c": "pod group is not ready, "
                   "Origin reason is c: 0/1 nodes are unavailable: 1 Insufficient cpu.", "d": "waits"}),
        ["reason of ns/c claims 'Insufficient cpu' of 1 nodes; it holds for 0",
         "reason of ns/c claims no node fits, but n1 would take it"],
    ),
    "the job's reason is untrue": (
        [*ONE, pod("a")], {**plan(says={"a": "see the job"}),
                           "reasons": {"ns/job": {"text": "Origin reason is a: 0/1 nodes are unavailable: 1 "
                                                          "Insufficient cpu."}}},
        ["reason of ns/a claims 'Insufficient cpu' of 1 nodes; it holds for 0",
         "reason of ns/a claims no node fits, but n1 would take it"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_plan_is_caught(name: str) -> None:
    manifests, given, sentences = BROKEN[name]
    assert check_plan(manifests, given) == sentences


def test_compat_forgives_a_pod_that_does_not_yet_repel_others() -> None:
    repelling = pod("a", affinity=with_terms("podAntiAffinity", "web"))
    manifests = [*ZONES, group("job"), repelling, pod("b", labels=WEB)]
    given = plan({"a": "n1", "b": "n1"})
    assert check_plan(manifests, given) == ["ns/b on n1 breaks the anti-affinity of ns/a on n1"]
    assert check_plan(manifests, given, compat=True) == []


def test_the_checker_brings_nothing_of_the_package_along() -> None:
    listing = "import sys, tests.support.checker; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    root = Path(__file__).resolve().parents[2]
    run = subprocess.run([sys.executable, "-c", listing], cwd=root, capture_output=True, text=True, check=True)
    assert "tests" in run.stdout.split()
    assert not {"stromboli", "numpy"} & set(run.stdout.split())


# ---------------------------------------------------------------- the parts


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1500m", Fraction(3, 2)),
        ("0.1", Fraction(1, 10)),
        ("4Gi", Fraction(2**32)),
        ("1E", Fraction(10**18)),
        ("1e3", Fraction(1000)),
        ("12E2", Fraction(1200)),
        ("5n", Fraction(5, 10**9)),
        (3, Fraction(3)),
    ],
)
def test_quantities_are_exact(text: object, value: Fraction) -> None:
    assert quantity(text) == value


@pytest.mark.parametrize("text", ["", "1ki", "Gi", "1 Gi", "nan", "1e"])
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        quantity(text)


def test_a_sidecar_runs_along_with_what_starts_after_it() -> None:
    def container(cpu: str, **more: str) -> Manifest:
        return {"resources": {"requests": {"cpu": cpu}}, **more}

    steps = [container("1"), container("2", restartPolicy="Always"), container("5")]
    raw = {"spec": {"initContainers": steps, "containers": [container("4")], "overhead": {"cpu": "250m"}}}
    assert pod_request(raw) == {"cpu": Fraction(29, 4)}


@pytest.mark.parametrize(
    ("operator", "values", "matches"),
    [
        ("In", ["7"], True),
        ("NotIn", ["7"], False),
        ("Gt", ["6"], True),
        ("Lt", ["7"], False),
        ("Gt", ["x"], False),
        ("DoesNotExist", [], False),
    ],
)
def test_operators_of_node_affinity(operator: str, values: list[str], matches: bool) -> None:
    raw = pod("a", affinity=on_nodes({"key": "gen", "operator": operator, "values": values}))
    asked = Pod("ns/a", raw, {})
    assert affinity_matches(asked, node_from(node("n1", labels={"gen": "7"}))) is matches


@pytest.mark.parametrize(
    ("toleration", "covered"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "only", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "only", "value": "gpu"}, True),
        ({"key": "only", "value": "cpu"}, False),
        ({"value": "gpu"}, False),
    ],
)
def test_tolerations(toleration: Obj, covered: bool) -> None:
    assert tolerates(toleration, TAINT) is covered


def test_a_text_is_taken_apart() -> None:
    text = "pod group is not ready. Origin reason is w-1: In hyperNode s0: 0/3 nodes are unavailable: 2 a, b, 1 c.d/e."
    [claim] = claims_of(text, "team/w-2")
    assert (claim.subject, claim.nodes, claim.within_hyper_node) == ("team/w-1", 3, True)
    assert claim.reasons == {"a, b": 2, "c.d/e": 1}


# ---------------------------------------------------------------- the reference's own outcomes


def recorded() -> Iterator[tuple[str, list[Manifest], Manifest]]:
    """A few one-cycle cases of every family with the outcome that the reference scheduler gave."""
    for folder in sorted(CASES.iterdir()):
        for file in sorted(folder.glob("*.json*"))[:12]:
            raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
            case = json.loads(raw)
            outcome = case["oracle"]["outcomes"][0]["outcome"]
            if int(case["scenario"].get("cycles") or 1) == 1 and "podConditions" in outcome:
                yield f"{folder.name}/{file.name}", objects_of(case["scenario"]), {"outcome": outcome}


def objects_of(scenario: Manifest) -> list[Manifest]:
    """A scenario's lists as manifests with their kind."""
    return [{**raw, "kind": kind} for field, kind in KINDS.items() for raw in scenario.get(field) or []]


if CASES.is_dir():

    def test_the_reference_itself_is_lawful() -> None:
        faults = {name: check_plan(manifests, given, compat=True) for name, manifests, given in recorded()}
        assert len(faults) > 100
        assert {name: found for name, found in faults.items() if found} == {}
