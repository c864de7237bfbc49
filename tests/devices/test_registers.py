"""What nodes say of their cards and locks, and how much a plugin's weight makes of the scores."""

from __future__ import annotations

import json

import pytest

from stromboli.plugins.deviceshare import DeviceShare
from stromboli.plugins.deviceshare.kind import MOST_CARDS
from stromboli.plugins.deviceshare.locks import LOCKED_FOR, is_fresh
from stromboli.plugins.deviceshare.vgpu_register import Registered, registered
from stromboli.testing.builders import Manifest, node, pod, pod_group
from tests.acceptance.bench import Bench, conf, task_of

CARD = "u,10,1000,T4,true,hami-core:"
REGISTER, SHARE, CORE = "volcano.sh/node-vgpu-register", "volcano.sh/vgpu-", "huawei.com/npu-core"


@pytest.mark.parametrize(
    ("text", "age", "fresh"),
    [
        ("2027-01-15T08:00:00Z", LOCKED_FOR - 1, True),
        ("2027-01-15T08:00:00Z", LOCKED_FOR, False),
        ("", 0, False),
        ("lately", 0, False),
    ],
)
def test_a_lock_counts_for_five_minutes(text: str, age: float, fresh: bool) -> None:
    assert is_fresh(text, 1_800_000_000.0 + age) is fresh


@pytest.mark.parametrize(
    ("text", "cards"),
    [
        ("", 0),
        (CARD, 1),
        (CARD + CARD, 2),
        (CARD + "u,10,1000,T4:", 0),
        (CARD + "u,ten,1000,T4,true,hami-core:", 0),
        (CARD * MOST_CARDS, MOST_CARDS),
        (CARD * (MOST_CARDS + 1), 0),
    ],
    ids=["none", "one", "two", "one that is cut off", "one without a number", "as many as are read", "one more"],
)
def test_a_register_is_read_as_a_whole_or_not_at_all(text: str, cards: int) -> None:
    assert len(registered(text)) == cards
    assert isinstance(registered(text), tuple)


@pytest.mark.parametrize(("health", "healthy"), [("true", True), ("", True), ("false", False), ("0", False)])
def test_fields_of_a_card(health: str, healthy: bool) -> None:
    assert registered(f"u,10,1000,T4,{health},mig:") == (Registered("u", 10, 1000, "T4", "mig", healthy),)


def machine(name: str) -> list[Manifest]:
    """A node with two NPUs of eight cores, and what its device plugin reports."""
    labels = {"accelerator": "huawei-Ascend310P", "servertype": "Ascend310P-8"}
    lists = {"huawei.com/Ascend310P": "Ascend310P-0,Ascend310P-1", "huawei.com/Ascend310P-Unhealthy": ""}
    data = {"DeviceInfoCfg": json.dumps({"DeviceInfo": {"DeviceList": lists, "UpdateTime": 1}, "CheckCode": "x"})}
    meta = {"name": f"mindx-dl-deviceinfo-{name}", "namespace": "kube-system", "labels": {"mx-consumer-cim": "true"}}
    made = node(name, cpu=64, memory="64Gi", resources={CORE: 16}, labels=labels)
    return [made, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}]


def opened(kind: str, weight: int, *objects: Manifest) -> Bench:
    arguments = (
        f"{{deviceshare.{kind}: true, deviceshare.SchedulePolicy: binpack, deviceshare.ScheduleWeight: {weight}}}"
    )
    return Bench([*objects], conf("gang", f"[{{name: predicates}}, {{name: deviceshare, arguments: {arguments}}}]"))


def plugin_of(session: object) -> DeviceShare:
    found = session.plugins["deviceshare"]  # type: ignore[attr-defined]
    assert isinstance(found, DeviceShare)
    return found


def test_scores_of_cards_are_multiplied_by_the_weight() -> None:
    offer = {f"{SHARE}number": 10, f"{SHARE}memory": 1000, f"{SHARE}cores": 100}
    asks = {f"{SHARE}number": "1", f"{SHARE}memory": "500"}
    objects = [node("n", resources=offer, annotations={REGISTER: CARD}), pod_group("p"),
               pod("p", group="p", requests=asks)]  # fmt: skip
    found = []
    for weight in (-1, 0, 1, 3):
        with opened("VGPUEnable", weight, *objects).open() as session:
            plugin = plugin_of(session)
            found.append(plugin.suits(task_of(session, "p"), session.nodes["n"]))
            assert "batch_node_order" not in {hook.point.name for hook, _ in plugin.hooks()}
    assert found[:2] == [0, 0]
    assert found[2] > 1
    assert found[3] == 3 * found[2]


@pytest.mark.parametrize(("weight", "is_asked"), [(0, False), (1, True), (3, True)])
def test_scores_of_whole_nodes_are_multiplied_by_the_weight(weight: int, is_asked: bool) -> None:
    asking = pod("p", group="p", requests={CORE: "4"})
    objects = [*machine("a"), *machine("b"), pod_group("p"), asking]
    with opened("AscendMindClusterVNPUEnable", weight, *objects).open() as session:
        plugin = plugin_of(session)
        found = plugin.by_free_cores(task_of(session, "p"), [session.nodes[name] for name in "ab"])
        assert found == ({"a": 8 * weight} if weight else {"a": 0})
        assert ("batch_node_order" in {hook.point.name for hook, _ in plugin.hooks()}) is is_asked
