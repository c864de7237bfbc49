"""Snapshots and plans survive the way to bytes and back, and what cannot be read says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.builtin import builtin_registry
from stromboli.cycle import run_cycle
from stromboli.errors import SnapshotError
from stromboli.framework.books.plan import Answer, Plan, PodGroupUpdate, Reservation
from stromboli.framework.books.plan_codec import decode_plan, encode_plan
from stromboli.framework.config.config import DEFAULT_CONFIG, load_config
from stromboli.model.codec import decode_snapshot, encode_snapshot
from stromboli.model.disruption import DisruptionBudget
from stromboli.model.job import Job
from stromboli.model.snapshot import HyperNodeInfo, Snapshot
from stromboli.model.spec import LabelSelector, Requirement
from stromboli.model.table import AMOUNTS
from stromboli.model.task import Task
from stromboli.model.usage import NodeUsage
from stromboli.testing.builders import cluster, node, pod, pod_group, queue

REGISTRY = builtin_registry()
CONFIG = load_config(
    DEFAULT_CONFIG, source="default", known_plugins=REGISTRY.plugin_names, known_actions=REGISTRY.action_names
)


def a_cluster() -> Snapshot:
    """Something of everything that a snapshot holds."""
    found = cluster(
        node("n1", cpu=4, resources={"nvidia.com/gpu": 2}, labels={"zone": "a"}, taints=[{"key": "k", "value": "v"}]),
        node("n2", cpu="1500m", memory=2**40 + 1, annotations={"note": "ü"}),
        queue("default", weight=2, capability={"cpu": 3}, guarantee={"resource": {"memory": "1Gi"}}),
        queue("other", affinity={"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["g"]}}),
        pod_group("train", min_member=2, minResources={"cpu": "2"}, minTaskMember={"worker": 2}, phase="Pending"),
        pod_group("old", queue="other", networkTopology={"mode": "hard", "highestTierAllowed": 1}, created=7),
        *(pod(f"train-worker-{i}", group="train", role="worker", requests={"nvidia.com/gpu": 1}) for i in range(3)),
        pod("train-worker-9", group="train", role="worker", schedulingGates=[{"name": "quota"}]),
        pod("old-0", group="old", on="n1", deleting=True),
        pod("old-1", group="old", on="n2", cpu="100m", annotations={"volcano.sh/preemptable": "false"}),
        pod("alone", on="n2", container={"ports": [{"hostPort": 80}]}),
    )
    found.hyper_nodes = {"s0": HyperNodeInfo("s0", 1, [0], "s1"), "s1": HyperNodeInfo("s1", 2, [0, 1])}
    found.hyper_nodes["s1"].children = ["s0"]
    found.hyper_node_tiers, found.hyper_nodes_ready = {"rack": 1}, False
    found.usage = {"n1": NodeUsage(12.5, {"10m": 40.0}, {})}
    selector = LabelSelector({"app": "web"}, (Requirement("tier", "Exists"),))
    found.budgets = [DisruptionBudget("default", "web", selector, 2, ("old-0",)), DisruptionBudget("default", "none")]
    found.memory, found.utc_offset = {"tdm": {"last": 1.5}}, -3600
    found.inconsistencies = ["node n3 is not there"]
    return found


DERIVED = {"_labels", "_changing", "states", "moves", "open_jobs", "holdings", "jobs_by_priority"}
"""Slots that hold nothing of their own: what is made when it is needed, views of other slots, counts of changes."""


def as_text(value: Any) -> Any:
    """A comparable picture of everything in ``value``: classes with slots by their slots, mappings in their order."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tolist()
    if isinstance(value, dict):
        return [(as_text(key), as_text(inner)) for key, inner in value.items()]
    if isinstance(value, list | tuple):
        return [as_text(inner) for inner in value]
    if isinstance(value, Task):
        return [as_text(inner) for inner in msgspec.structs.astuple(value)]
    slots = [slot for kind in type(value).__mro__ for slot in getattr(kind, "__slots__", ())]
    if slots and not isinstance(value, msgspec.Struct):
        return type(value).__name__, [(slot, as_text(getattr(value, slot))) for slot in slots if slot not in DERIVED]
    return repr(value)


def test_a_snapshot_comes_back_as_it_was() -> None:
    snapshot = a_cluster()
    again = decode_snapshot(encode_snapshot(snapshot))
    for slot in set(Snapshot.__slots__) - DERIVED:
        assert as_text(getattr(again, slot)) == as_text(getattr(snapshot, slot)), slot


def test_what_was_shared_is_shared_again() -> None:
    again = decode_snapshot(encode_snapshot(a_cluster()))
    tasks = list(again.jobs["default/train"].tasks.values())
    assert tasks[0].template is tasks[1].template
    job = again.jobs["default/old"]
    assert next(iter(again.node_tasks[0].values())) is job.tasks["default/old-0"]
    assert job.index[job.tasks["default/old-0"].status]["default/old-0"] is job.tasks["default/old-0"]


def test_the_plan_of_a_decoded_snapshot_is_the_same() -> None:
    plans = [
        run_cycle(one, CONFIG, REGISTRY, now=5.0)
        for one in (a_cluster(), decode_snapshot(encode_snapshot(a_cluster())))
    ]
    assert plans[0].binds
    assert plans[0] == plans[1]


def test_amounts_may_be_larger_than_64_bits() -> None:
    snapshot = a_cluster()
    job: Job = snapshot.jobs["default/train"]
    job.sums.total[0] = 2**80 + 1
    snapshot.queue_sums["default"].request[1] = -(2**70)
    again = decode_snapshot(encode_snapshot(snapshot))
    assert again.jobs["default/train"].sums.total[0] == 2**80 + 1
    assert again.queue_sums["default"].request[1] == -(2**70)


def test_a_cluster_of_nothing() -> None:
    again = decode_snapshot(encode_snapshot(cluster()))
    assert (len(again.table), list(again.queues)) == (0, ["default"])
    assert [getattr(again.table, name).shape[1] for name in AMOUNTS] == [0] * len(AMOUNTS)


def test_a_plan_comes_back_as_it_was() -> None:
    plan = run_cycle(a_cluster(), CONFIG, REGISTRY)
    assert plan.binds
    assert plan.pod_groups
    assert decode_plan(encode_plan(plan)) == plan


@pytest.mark.parametrize(
    ("record", "said", "left_out"),
    [
        (
            PodGroupUpdate, {"key": "default/g", "phase": "Pending"},
            {"conditions": (), "running": 0, "succeeded": 0, "failed": 0, "annotations": None},
        ),
        (Reservation, {"uid": "u", "key": "default/p", "job": "default/g", "node": "n"}, {"evicted": False}),
        (Answer, {"url": "http://e", "request": "0"}, {"body": "", "problem": "", "seconds": 0.0}),
        (Plan, {}, {"binds": [], "evictions": [], "replayable": True, "is_empty": True}),
    ],
)  # fmt: skip
def test_what_a_plan_does_not_say_is_nothing(record: type, said: dict[str, Any], left_out: dict[str, Any]) -> None:
    found: Any = msgspec.convert(said, record)
    assert {name: getattr(found, name) for name in left_out} == left_out


SNAPSHOT, PLAN = encode_snapshot(a_cluster()), encode_plan(Plan("s"))


def changed(data: bytes, change: Callable[[list[Any]], object]) -> bytes:
    """``data`` with its header or body changed."""
    parts = msgspec.msgpack.decode(data)
    change(parts)
    return msgspec.msgpack.encode(parts)


def set_to(key: str, value: object) -> Callable[[list[Any]], object]:
    return lambda parts: parts[2].__setitem__(key, value)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "these bytes are no Stromboli snapshot"),
        (b"{}", "these bytes are no Stromboli snapshot"),
        (SNAPSHOT[:40], "these bytes are no Stromboli snapshot"),
        (b"\xc1" * 20, "these bytes are no Stromboli snapshot"),
        (PLAN, "this is 'stromboli plan', not a Stromboli snapshot"),
        (changed(SNAPSHOT, lambda parts: parts.__setitem__(1, 99)), "has version 99, but version 4 is read here"),
        (changed(SNAPSHOT, lambda parts: parts[2].pop("jobs")), "damaged: .*missing required field `jobs`"),
        (changed(SNAPSHOT, set_to("number", "seven")), r"damaged: .*Expected `int`, got `str` - at `\$.number`"),
        (changed(SNAPSHOT, set_to("templates", [])), r"damaged: KeyError: \d"),
        (changed(SNAPSHOT, set_to("node_tasks", [[77]])), "damaged: IndexError"),
        (changed(SNAPSHOT, lambda parts: parts[2]["amounts"].pop("used")), "damaged: KeyError: 'used'"),
        (changed(SNAPSHOT, lambda parts: parts[2]["amounts"].update(used=b"1234567")), "damaged: ValueError"),
        (changed(SNAPSHOT, lambda parts: parts[2]["jobs"][0][4].update(total=["x"])), "damaged: ValueError"),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, text: str) -> None:
    with pytest.raises(SnapshotError, match=text):
        decode_snapshot(data)


def test_a_snapshot_is_no_plan() -> None:
    with pytest.raises(SnapshotError, match="not a Stromboli plan"):
        decode_plan(SNAPSHOT)
    with pytest.raises(SnapshotError, match="damaged"):
        decode_plan(changed(PLAN, set_to("binds", 3)))


def test_what_cannot_be_written_says_why() -> None:
    snapshot = a_cluster()
    snapshot.number = 2**70
    with pytest.raises(SnapshotError, match="cannot be written"):
        encode_snapshot(snapshot)
    snapshot = a_cluster()
    snapshot.quotas = {"default": {"q": object()}}  # type: ignore[dict-item]
    with pytest.raises(SnapshotError, match="cannot be written"):
        encode_snapshot(snapshot)


@pytest.mark.law("a damaged record is refused with a message")
@given(place=st.integers(0, len(SNAPSHOT) - 1), byte=st.integers(0, 255), cut=st.booleans())
def test_damage_raises_nothing_else(place: int, byte: int, cut: bool) -> None:
    data = SNAPSHOT[:place] if cut else SNAPSHOT[:place] + bytes([byte]) + SNAPSHOT[place + 1 :]
    refused = False
    try:
        decode_snapshot(data)
    except SnapshotError:
        refused = True
    assert refused or not cut
