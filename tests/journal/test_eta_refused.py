"""No number for jobs that no end of another lets start, but one for those that wait merely for room."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.builtin import full_registry
from stromboli.cluster.files.usage_file import usage_of
from stromboli.model.names import DEFAULT_QUEUE, QUEUE_ALLOCATION_GATE
from stromboli.sim.planning import Planning
from stromboli.study.calibration import LEVELS, Calibration
from stromboli.study.eta import Eta, Forecaster, rules_of, scene_of
from stromboli.study.runtimes import EXPECTED, Runtimes
from stromboli.study.submitting import withheld
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue, state

NODE = node("n1", cpu=4)
FULL = [pod_group("long"), pod("long-0", group="long", cpu=4, on="n1", annotations={EXPECTED: "20m"})]
"""A job that holds the whole node for twenty minutes."""
BACK = (1200.0,) * len(LEVELS)


def waits(name: str = "waits", **spec: Any) -> Manifest:
    """A pod of job ``waits`` that asks for the whole node."""
    return pod(name, group="waits", **{"cpu": 4, **spec})


def answer(objects: list[Manifest], config: str = "", *, complete: bool = True, loads: bytes = b"") -> Eta:
    """What is answered for job ``waits`` after a cycle on the cluster that ``objects`` make."""
    registry = full_registry("")
    loaded = registry.configured("") if not config else registry.configured_by(config, "conf")
    planning = Planning(loaded, registry, now=0.0)
    planning.state = state(*objects, complete=complete)
    if loads:
        planning.state.measured(usage_of(loads, 0.0, "loads"))
    scene = scene_of(planning.state, 0.0, rules=rules_of(loaded))
    planning.run()
    (found,) = Forecaster(Runtimes(), Calibration()).etas(scene, ["default/waits"])
    return withheld(planning, found)


MATCHLESS: dict[str, Any] = {"nodeSelector": {"no": "such"}}
CAPPED = queue("capped", capability={"cpu": 2})
QUOTA = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: resourcequota}]
"""


@pytest.mark.parametrize(
    ("objects", "why"),
    [
        pytest.param([pod_group("waits"), waits(**MATCHLESS)], "didn't match Pod's node affinity", id="no such node"),
        pytest.param(
            [pod_group("waits"), waits(requests={"example.com/card": 1})],
            "no node offers example.com/card",
            id="what no node offers",
        ),
        pytest.param([pod_group("waits", queue="gone"), waits()], "queue gone does not exist", id="no queue"),
        pytest.param(
            [queue("shut", state="Closed"), pod_group("waits", queue="shut"), waits()],
            "queue shut is Closed, not Open",
            id="a closed queue",
        ),
        pytest.param(
            [CAPPED, pod_group("waits", queue="capped", phase="Pending", minResources={"cpu": 3}), waits(cpu=1)],
            "cpu: minResources 3 > real capability 2",
            id="more minResources than the queue may have",
        ),
        pytest.param(
            [pod_group("waits", phase="Pending", minResources={"cpu": 40}), waits(cpu=1)],
            "minResources 40 > ",
            id="more minResources than the cluster is counted for",
        ),
        pytest.param(
            [pod_group("waits"), waits(schedulingGates=[{"name": "later"}])],
            "scheduling gates hold its pods back: later",
            id="gated",
        ),
        pytest.param(
            [pod_group("waits", min_member=2), waits("a", cpu=1), waits("b", cpu=1, schedulingGates=[{"name": "x"}])],
            "scheduling gates hold its pods back: x",
            id="too few of a gang without gates",
        ),
        pytest.param([pod_group("waits", min_member=3), waits()], "valid: 1, min: 3", id="lacking"),
        pytest.param(
            [pod_group("waits", min_member=2), waits("a", cpu=1), waits("b", cpu=1, **MATCHLESS)],
            "didn't match Pod's node affinity",
            id="too few of a gang have a node",
        ),
    ],
)
@pytest.mark.parametrize("held", [[], FULL], ids=["an empty node", "a full node"])
def test_a_job_that_is_refused_for_good_gets_no_number_and_the_cause(
    held: list[Manifest], objects: list[Manifest], why: str
) -> None:
    found = answer([NODE, *held, *objects])
    assert (found.quantiles, found.basis) == ((None,) * len(LEVELS), "")
    assert found.why.startswith("the scheduler refuses it, whatever ends: ")
    assert why in found.why


def test_pods_whose_group_is_missing_get_no_number() -> None:
    found = answer([NODE, queue(DEFAULT_QUEUE), waits()], complete=False)
    assert (found.basis, found.quantiles[0]) == ("", None)
    assert "there is no PodGroup default/waits, which the pods' annotation names" in found.why


def test_a_job_beyond_the_quota_of_its_namespace_gets_no_number() -> None:
    def found(hard: int, used: int) -> Eta:
        amounts = {"hard": {"requests.cpu": hard}, "used": {"requests.cpu": used}}
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q", "namespace": "default"}}
        asked = {"requests.cpu": 4, "cpu": 4}
        group = pod_group("waits", phase="Pending", minResources=asked)
        return answer([NODE, *FULL, {**quota, "spec": {}, "status": amounts}, group, waits()], QUOTA)

    assert "minResources 4 > limit 2" in found(hard=2, used=0).why
    assert found(hard=4, used=4).quantiles == BACK, "what is used comes back"


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param([pod_group("waits"), waits()], id="a full node"),
        pytest.param([pod_group("waits", min_member=2), waits("a", cpu=2), waits("b", cpu=2)], id="room for a gang"),
        pytest.param([pod_group("waits", phase="Pending", minResources={"cpu": 4}), waits()], id="admission"),
        pytest.param(
            [pod_group("waits"), waits("a"), waits("b", **MATCHLESS)], id="a gang of which enough may have a node"
        ),
        pytest.param(
            [pod_group("waits"), waits("a"), waits("b", schedulingGates=[{"name": "x"}])],
            id="a gang of which enough have no gate",
        ),
        pytest.param(
            [pod_group("waits"), waits(schedulingGates=[{"name": QUEUE_ALLOCATION_GATE}])], id="the scheduler's gate"
        ),
    ],
)
def test_a_job_that_waits_for_room_keeps_its_number(objects: list[Manifest]) -> None:
    found = answer([NODE, *FULL, *objects])
    assert (found.quantiles, found.basis) == (BACK, "not calibrated")


def test_a_job_that_waits_for_what_others_of_its_queue_hold_keeps_its_number() -> None:
    holder = pod("long-0", group="long", cpu=2, on="n1", annotations={EXPECTED: "20m"})
    held = [NODE, CAPPED, pod_group("long", queue="capped"), holder]
    for group in (
        pod_group("waits", queue="capped"),
        pod_group("waits", queue="capped", phase="Pending", minResources={"cpu": 2}),
    ):
        assert answer([*held, group, waits(cpu=2)]).quantiles == BACK


PRESSURE = {"key": "node.kubernetes.io/memory-pressure", "effect": "NoSchedule"}
RESERVED = {"key": "example.com/reserved", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    "closed", [{"taints": [PRESSURE]}, {"unschedulable": True}, {"taints": [PRESSURE], "unschedulable": True}]
)
def test_a_job_whose_nodes_are_closed_for_a_while_keeps_its_number(closed: dict[str, Any]) -> None:
    found = answer([node("n1", cpu=4, **closed), *FULL, pod_group("waits"), waits()])
    assert (found.quantiles, found.basis) == (BACK, "not calibrated")


@pytest.mark.parametrize(
    ("closed", "why"),
    [
        ({"taints": [RESERVED]}, "untolerated taint"),
        ({"taints": [RESERVED, PRESSURE], "unschedulable": True}, "were unschedulable"),
    ],
)
def test_a_job_whose_nodes_have_a_taint_that_stays_too_gets_no_number(closed: dict[str, Any], why: str) -> None:
    found = answer([node("n1", cpu=4, **closed), *FULL, pod_group("waits"), waits()])
    assert found.basis == ""
    assert why in found.why


def test_a_job_that_no_node_suits_even_once_it_is_open_gets_no_number() -> None:
    found = answer([node("n1", cpu=4, unschedulable=True), *FULL, pod_group("waits"), waits(**MATCHLESS)])
    assert found.basis == ""


LOADED = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: usage, arguments: {thresholds: {cpu: 80}}}]
"""


def test_a_job_that_waits_until_loads_fall_keeps_its_number() -> None:
    """What a plugin says that depends on the time is not said for good."""
    found = answer([NODE, *FULL, pod_group("waits"), waits()], LOADED, loads=b"n1: {cpu: 95}")
    assert found.quantiles == BACK


def test_a_job_beside_another_that_must_end_first_keeps_its_number() -> None:
    """Anti-affinity is cured by an end; the sketch does not know it, and its error is part of the calibration."""
    term = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "kubernetes.io/hostname"}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    holder = pod("long-0", group="long", cpu=1, on="n1", labels={"a": "b"}, annotations={EXPECTED: "20m"})
    found = answer([NODE, pod_group("long"), holder, pod_group("waits"), waits(cpu=1, affinity=apart)])
    assert found.basis == "not calibrated"
