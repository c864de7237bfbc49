"""What time does to a cluster: silent nodes, pods that must leave, nodes that are gone, events of long ago."""

from __future__ import annotations

import pytest

from stromboli.cluster.body import stamp
from stromboli.server.controllers.node_lifecycle import FORGOTTEN, GRACE, ORPHANED
from stromboli.server.controllers.outages import NOT_READY, UNREACHABLE
from tests.server.browser import LEASES, PODS, STRATEGIC, Browser, pod


class Cluster(Browser):
    """A server with one node; its kubelet renews its Lease when the test says so."""

    def __init__(self, **lease):
        super().__init__()
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": stamp(0)}
        pressure = {"type": "MemoryPressure", "status": "False"}
        with_status = {"metadata": {"name": "n"}, "status": {"conditions": [pressure, ready]}}
        self.api_post("/api/v1/nodes", with_status)
        self.api_post(LEASES, {"metadata": {"name": "n"}, "spec": {"leaseDurationSeconds": 40, **lease}})
        self.tick()

    def api_post(self, url, body):
        assert self.post(url, body).code == 201

    def beat(self):
        self.patch(f"{LEASES}/n", {"spec": {"renewTime": f"2026-01-01T00:00:00.{int(self.now):012}Z"}})

    def tick(self, seconds=0.0):
        self.now += seconds
        self.api.clockwork.tick()
        self.settle()

    def ready(self, status="True"):
        """The kubelet reports."""
        patch = {"status": {"conditions": [{"type": "Ready", "status": status, "lastHeartbeatTime": stamp(self.now)}]}}
        self.patch("/api/v1/nodes/n/status", patch, STRATEGIC)

    @property
    def conditions(self):
        node = self.get("/api/v1/nodes/n").body
        return {one["type"]: one["status"] for one in node["status"]["conditions"]}

    @property
    def taints(self):
        node = self.get("/api/v1/nodes/n").body
        return [(one["key"], one["effect"]) for one in node["spec"].get("taints", ())]

    def run(self, name, **spec):
        self.api_post(PODS, pod(name, nodeName="n", **spec))

    def going(self):
        return {item["metadata"]["name"] for item in self.get(PODS).body["items"] if _is_going(item)}

    def told(self):
        return [item["reason"] for item in self.get("/api/v1/events").body["items"]]


def _is_going(item):
    return "deletionTimestamp" in item["metadata"]


@pytest.fixture
def cluster():
    found = Cluster()
    with found.runner:
        yield found


def test_a_node_that_falls_silent_is_unknown_until_it_is_heard_again(cluster):
    for _ in range(3):
        cluster.tick(GRACE - 1)
        cluster.beat()
    cluster.tick(GRACE - 1)
    assert cluster.conditions["Ready"] == "True"
    cluster.tick(GRACE + 1)
    cluster.tick(GRACE)
    assert cluster.conditions == {"Ready": "Unknown", "MemoryPressure": "Unknown"}
    assert cluster.taints == [(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]
    assert cluster.told() == ["NodeNotReady"], "once"
    cluster.ready()
    cluster.tick(1)
    assert (cluster.conditions["Ready"], cluster.taints) == ("True", [])


def test_slow_heartbeats_are_waited_for():
    slow = Cluster(leaseDurationSeconds=400)
    with slow.runner:
        slow.tick(399)
        assert slow.conditions["Ready"] == "True"
        slow.tick(2)
        assert slow.conditions["Ready"] == "Unknown"


def test_a_node_without_a_kubelet_is_as_it_was_made(cluster):
    cluster.delete(f"{LEASES}/n")
    cluster.tick(10 * GRACE)
    assert cluster.conditions["Ready"] == "True"


def test_a_cordoned_node_and_one_that_is_not_ready_say_so_by_taints(cluster):
    own = {"key": "own", "effect": "NoSchedule"}
    cluster.patch("/api/v1/nodes/n", {"spec": {"unschedulable": True, "taints": [own]}})
    assert cluster.taints == [("own", "NoSchedule"), ("node.kubernetes.io/unschedulable", "NoSchedule")]
    cluster.ready("False")
    assert cluster.taints[2:] == [(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")]
    cluster.ready()
    cluster.patch("/api/v1/nodes/n", {"spec": {"unschedulable": None}})
    assert cluster.taints == [("own", "NoSchedule")]


def test_pods_leave_when_their_tolerance_is_over(cluster):
    stays = {"key": NOT_READY, "operator": "Exists"}
    cluster.run("default")
    cluster.run("short", tolerations=[{**stays, "effect": "NoExecute", "tolerationSeconds": 10}])
    cluster.run("ever", tolerations=[stays])
    cluster.run("done")
    cluster.patch(f"{PODS}/done/status", {"status": {"phase": "Succeeded"}})
    cluster.ready("False")
    cluster.tick(9)
    assert cluster.going() == set()
    cluster.tick(1)
    assert cluster.going() == {"short"}
    cluster.tick(290)
    assert cluster.going() == {"short", "default"}
    assert cluster.told().count("TaintManagerEviction") == 2
    condition = cluster.get(f"{PODS}/short").body["status"]["conditions"][-1]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "DeletionByTaintManager")


def test_a_taint_of_the_administrator_counts_from_when_it_is_seen(cluster):
    cluster.run(
        "a", tolerations=[{"key": "flood", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}]
    )
    cluster.run("b")
    cluster.patch("/api/v1/nodes/n", {"spec": {"taints": [{"key": "flood", "effect": "NoExecute"}]}})
    cluster.tick()
    assert cluster.going() == {"b"}
    cluster.tick(4)
    assert cluster.going() == {"b"}
    cluster.tick(1)
    assert cluster.going() == {"a", "b"}


def test_pods_of_a_node_that_is_gone_go_too(cluster):
    cluster.run("a")
    cluster.delete("/api/v1/nodes/n")
    cluster.tick(20)
    cluster.tick(ORPHANED - 20)
    assert cluster.get(f"{PODS}/a").code == 200
    cluster.tick(20)
    assert cluster.get(f"{PODS}/a").code == 404


def test_events_are_kept_for_an_hour_after_they_were_told_last(cluster):
    for name, again in (("once", {}), ("again", {"lastTimestamp": "2023-11-14T23:00:00Z"})):
        involved = {"kind": "Pod", "name": "p", "namespace": "default"}
        body = {"metadata": {"name": name}, "involvedObject": involved, "reason": name, **again}
        cluster.api_post("/api/v1/namespaces/default/events", body)
    cluster.delete(f"{LEASES}/n")
    cluster.tick(FORGOTTEN)
    assert cluster.told() == ["again", "once"]
    cluster.tick(60)
    assert cluster.told() == ["again"]


def test_changes_are_forgotten_after_five_minutes(cluster):
    def types(version):
        return [event["type"] for event in cluster.events(f"{PODS}?resourceVersion={version}")]

    cluster.delete(f"{LEASES}/n")
    first = int(cluster.get(PODS).body["metadata"]["resourceVersion"])
    cluster.run("old")
    for _ in range(5):
        cluster.tick(60)
    cluster.run("young")
    second = int(cluster.get(f"{PODS}/old").body["metadata"]["resourceVersion"])
    cluster.tick(59)
    assert types(first) == ["ADDED", "ADDED"]
    cluster.tick(1)
    assert cluster.events(f"{PODS}?resourceVersion={first}")[0]["object"]["code"] == 410
    assert types(second) == ["ADDED"]
    stored = cluster.api.store
    kept = [stored.of(name) for name in stored.names()]
    assert [one.weight for one in kept] == [sum(len(change.entry.encoded) for change in one.changes) for one in kept]
    cluster.tick(60)
    cluster.tick(300)
    assert not any(one.changes for one in kept)
    assert types(int(cluster.get(f"{PODS}/young").body["metadata"]["resourceVersion"])) == []


def test_neither_the_longest_name_nor_a_quota_keeps_pods_from_leaving(cluster):
    hard = {"metadata": {"name": "q"}, "spec": {"hard": {"count/events": "1"}}}
    cluster.api_post("/api/v1/namespaces/default/resourcequotas", hard)
    cluster.settle()
    names = {"a" * 253, "b" * 219 + ".b", "c", "d"}
    for name in sorted(names):
        cluster.run(name)
    cluster.patch("/api/v1/nodes/n", {"spec": {"taints": [{"key": "flood", "effect": "NoExecute"}]}})
    cluster.tick()
    assert cluster.going() == names
    assert cluster.told() == ["TaintManagerEviction"], "more events are not allowed"
