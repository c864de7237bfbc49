"""Reservations in the state of a cluster: which pods hold one, what it counts in, and how it starts and ends."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.cluster.mirror import Mirror
from stromboli.cluster.state import ClusterState
from stromboli.framework.books.plan import Bind
from stromboli.model.codec import decode_snapshot, encode_snapshot
from stromboli.model.names import GROUP_NAME
from stromboli.model.reservation import Held, restated, stated
from stromboli.model.status import TaskStatus
from stromboli.testing.builders import events, node, pod, pod_group, queue

FOREIGN = {"example.com/a": "b", GROUP_NAME: "g"}
ON_N1 = stated(Held("n1", evicted=True))


def state(*pods: Any, reserving: bool = True) -> ClusterState:
    found = ClusterState()
    found.reserving = reserving
    objects = [node("n1", cpu=4), queue("default"), pod_group("g", minResources={"cpu": 2}), *pods]
    for event in events(objects):
        found.apply(event)
    return found


def columns(found: ClusterState) -> tuple[int, int]:
    """Thousandths of a core that are used and reserved on n1."""
    table = found.nodes.snapshot()
    return int(table.used[0, 0]), int(table.pipelined[0, 0])


def test_S4_07_a_waiting_pod_holds_what_its_annotations_state() -> None:
    found = state(pod("p", group="g", cpu=2, annotations=ON_N1))
    task = found.tasks["default/p"]
    assert (task.status, task.node_name, task.eviction_occurred) == (TaskStatus.Pipelined, "n1", True)
    assert task.own_node == ""
    assert columns(found) == (0, 2000)
    snapshot = found.snapshot()
    sums = snapshot.queue_sums["default"]
    assert (sums.allocated[0], sums.held[0], sums.request[0]) == (0, 2000, 2000)
    again = decode_snapshot(encode_snapshot(snapshot))
    assert [task.key for task in again.reserved] == [task.key for task in snapshot.reserved] == ["default/p"]


def test_pods_that_hold_reservations_are_shown_in_the_order_of_their_names() -> None:
    """Whatever order they came in, so that each process decides alike."""
    names = [f"p{number:02}" for number in range(20)]
    found = state(*(pod(name, group="g", cpu="10m", annotations=ON_N1) for name in reversed(names)))
    assert [task.name for task in found.snapshot().reserved] == names


@pytest.mark.parametrize(
    ("fields", "status"),
    [({"on": "n1"}, TaskStatus.Running), ({"on": "n1", "phase": "Pending"}, TaskStatus.Bound),
     ({"deleting": True}, TaskStatus.Releasing), ({"phase": "Succeeded"}, TaskStatus.Succeeded),
     ({"phase": "Failed"}, TaskStatus.Failed), ({"schedulingGates": [{"name": "wait"}]}, TaskStatus.Pending)],
)  # fmt: skip
def test_S4_08_pods_that_do_not_wait_ignore_stale_keys(fields: dict[str, Any], status: TaskStatus) -> None:
    found = state(pod("p", group="g", cpu=2, annotations=ON_N1, **fields))
    assert found.tasks["default/p"].status is status
    assert columns(found)[1] == 0


def test_with_the_gate_off_the_annotations_mean_nothing() -> None:
    found = state(pod("p", group="g", annotations=ON_N1), reserving=False)
    assert found.tasks["default/p"].status is TaskStatus.Pending
    assert found.snapshot().reserved == []


def test_a_reservation_is_written_changed_and_taken_back() -> None:
    found = state(pod("p", group="g", cpu=2, annotations=FOREIGN))
    uid = found.tasks["default/p"].uid
    for held, used in (
        (Held("n1"), (0, 2000)),
        (Held("n2"), (0, 0)),
        (Held("n1", evicted=True), (0, 2000)),
        (None, (0, 0)),
    ):
        assert found.set_reservation("default/p", uid, held)
        task = found.tasks["default/p"]
        assert columns(found) == used
        assert task.annotations == restated(FOREIGN, held)
        assert task.node_name == (held.node if held else "")
        assert [one.key for one in found.snapshot().reserved] == (["default/p"] if held else [])
    assert not found.set_reservation("default/p", "another", Held("n1"))
    assert not found.set_reservation("default/q", uid, Held("n1"))


def test_a_bind_takes_the_reservation_off_its_node_and_its_failure_brings_it_back() -> None:
    found = state(pod("p", group="g", cpu=2, annotations=ON_N1))
    mirror = Mirror(found)
    bind = Bind(found.tasks["default/p"].uid, "default/p", "default/g", "n1")
    assert mirror.assume_bound(bind)
    assert columns(found) == (2000, 0)
    news = pod("p", group="g", cpu=2, annotations=ON_N1, schedulerName="volcano")
    for event in events([news]):  # it does not confirm the bind
        mirror.take(event)
    assert columns(found) == (2000, 0)
    mirror.forget("default/p", bind.uid)
    assert found.tasks["default/p"].node_name == "n1"
    assert columns(found) == (0, 2000)
