"""What PodGroups and pods say while their queue gives them nothing, or no domain can be trusted."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.model.names import GPU
from stromboli.testing.builders import Manifest, hyper_node, node, pod, pod_group, queue
from tests.acceptance.bench import Bench, conf

CLOSE = {"mode": "hard", "highestTierAllowed": 1}


def gang(name: str, count: int, gpus: int = 0, queue_name: str = "q", cpu: int = 1, **spec: Any) -> list[Manifest]:
    """A gang without minResources, whose pods state GPUs as a server stores them."""
    made = pod_group(name, phase="Inqueue", queue=queue_name, **{"min_member": count, **spec})
    asked = {GPU: str(gpus)} if gpus else {}
    container = {"image": "busybox", "resources": {"limits": asked, "requests": {"cpu": str(cpu), **asked}}}
    return [made, *(pod(f"{name}-{number}", group=name, container=container) for number in range(count))]


def said(plugin: str, *objects: Manifest, compat: str = "") -> dict[str, str]:
    """Messages of pods' conditions and of PodGroups' events after a cycle."""
    nodes = [queue("root"), *(node(f"n{number}", cpu=8, resources={GPU: "8"}) for number in range(2))]
    tier = f"[{{name: predicates}}, {{name: {plugin}, enableHierarchy: {str(plugin == 'capacity').lower()}}}]"
    text = compat + conf("gang", tier, actions="allocate")
    plan = Bench([*nodes, *objects], text).cycle()
    groups = {event.key: event.message for event in plan.events if event.kind == "PodGroup"}
    return groups | {update.key: update.message for update in plan.pod_conditions}


@pytest.mark.parametrize(("plugin", "asked"), [("proportion", f"cpu, {GPU}"), ("capacity", GPU)])
def test_a_gang_that_its_queue_cannot_hold_names_queue_and_resource(plugin: str, asked: str) -> None:
    """Of what the pods ask for all that is limited is named: which of it is short changes too often."""
    found = said(plugin, queue("q", capability={GPU: "4"}), *gang("fits", 1, 1), *gang("g", 2, 3))
    reason = f"queue q has no quota left for a pod that asks for {asked}"
    assert found["default/g"].endswith(f"Origin reason is: {reason}")
    assert found["default/g-1"] == reason


def test_a_queue_above_is_named_where_it_is_the_one_that_lacks() -> None:
    below = [queue(name, parent="above", capability={GPU: "4"}) for name in ("q", "other")]
    tree = [queue("above", parent="root", capability={GPU: "4"}), *below]
    holding = {"image": "busybox", "resources": {"limits": {GPU: "3"}, "requests": {GPU: "3"}}}
    held = [pod_group("held", phase="Running", queue="other"), pod("held-0", group="held", on="n0", container=holding)]
    found = said("capacity", *tree, *held, *gang("g", 1, 3))
    assert found["default/g-0"] == f"queue above has no quota left for a pod that asks for {GPU}"


def test_a_queue_that_is_not_open_says_so() -> None:
    closed = queue("q", state="Closed")
    assert said("proportion", closed, *gang("g", 1))["default/g-0"] == "queue q is Closed, not Open"


def test_jobs_of_a_queue_that_holds_its_share_say_so_and_no_others() -> None:
    objects = [queue("q", capability={"cpu": "2", "pods": "2"}), queue("other")]
    objects += gang("first", 2) + gang("second", 2) + gang("wide", 2, queue_name="other", cpu=9)
    found = said("proportion", *objects)
    assert {key for key in found if "first" in key} == set()
    assert found["default/second-0"] == found["default/second-1"] == "queue q holds all that it deserves"
    assert "Insufficient cpu" in found["default/wide-0"]


@pytest.mark.parametrize("objects", [
    pytest.param([queue("q", capability={GPU: "4"}), *gang("g", 2, 3)], id="quota"),
    pytest.param([hyper_node("a", 2, below=["a"]), queue("q"), *gang("g", 1, networkTopology=CLOSE)], id="hypernodes"),
])  # fmt: skip
def test_compat_mode_leaves_it_to_the_log(objects: list[Manifest]) -> None:
    found = said("proportion", *objects, compat="compat: volcano\n")["default/g"]
    assert "Origin reason" not in found


def test_a_job_that_must_lie_close_names_the_hyper_node_that_is_wrong() -> None:
    wrong = hyper_node("bad", 2, below=["bad"])
    found = said("proportion", wrong, queue("q"), *gang("g", 2, networkTopology=CLOSE))
    reason = "hyperNodes are not ready for scheduling: cyclic dependency detected: HyperNode bad"
    assert reason in found["default/g"]
    assert found["default/g-0"].startswith(reason)
    apart = said("proportion", wrong, queue("q"), *gang("g", 2))
    assert "default/g" not in apart
