"""Queues, PodGroups of plain pods, commands, finished jobs, hypernodes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stromboli.api.fields import Metadata
from stromboli.api.kinds import HYPER_NODES, JOBS, POD_GROUPS, QUEUES
from stromboli.controllers.changes import Create, Delete, Outcome, Patch
from stromboli.controllers.manager import Settings
from stromboli.controllers.pods import pod_view
from stromboli.controllers.work import About, Work
from tests.controllers.cluster import START, Cluster, job, queue, started, task

CLOSED_BY_PARENT = "volcano.sh/closed-by-parent"


def tree(**states: str) -> Cluster:
    """Queues root > top > low, in these states (Open where none is given), the changes done."""
    cluster = Cluster()
    for name, parent in (("root", ""), ("top", "root"), ("low", "top")):
        cluster.store(QUEUES, queue(name, states.get(name, "Open"), parent))
    cluster.settle()
    return cluster


def states(cluster: Cluster) -> dict[str, str]:
    return {name: found["status"]["state"] for (_, name), found in cluster.objects[QUEUES].items()}


def group(name: str, in_queue: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns"}, "spec": {"queue": in_queue}, "status": {"phase": "Running"}}


# ---------------------------------------------------------------------- queues


def test_a_new_queue_is_open_and_below_root() -> None:
    cluster = Cluster()
    cluster.store(QUEUES, {"metadata": {"name": "q"}, "spec": {}})
    cluster.settle()
    found = cluster.objects[QUEUES]["", "q"]
    assert (found["spec"]["parent"], found["status"]["state"]) == ("root", "Open")
    cluster.store(QUEUES, {"metadata": {"name": "root"}, "spec": {}, "status": {"state": "Open"}})
    cluster.settle()
    assert "parent" not in cluster.objects[QUEUES]["", "root"]["spec"]


@pytest.mark.parametrize(
    ("state", "action", "groups", "after"),
    [
        ("Open", "OpenQueue", 1, "Open"),
        ("Open", "CloseQueue", 0, "Closed"),
        ("Open", "CloseQueue", 1, "Closing"),
        ("Open", "SyncQueue", 1, "Open"),
        ("Closing", "OpenQueue", 1, "Open"),
        ("Closing", "CloseQueue", 0, "Closed"),
        ("Closing", "SyncQueue", 1, "Closing"),
        ("Closing", "SyncQueue", 0, "Closed"),
        ("Closed", "OpenQueue", 0, "Open"),
        ("Closed", "CloseQueue", 1, "Closed"),
        ("Closed", "SyncQueue", 1, "Closed"),
        ("Unknown", "OpenQueue", 0, "Open"),
        ("Unknown", "CloseQueue", 1, "Closing"),
        ("Unknown", "CloseQueue", 0, "Closed"),
        ("Unknown", "SyncQueue", 0, "Unknown"),
    ],
)
def test_states_of_queues(state: str, action: str, groups: int, after: str) -> None:
    cluster = Cluster()
    for number in range(groups):
        cluster.store(POD_GROUPS, group(f"g{number}", "q"))
    cluster.store(QUEUES, queue("q", state))
    cluster.manager.ready.clear()
    cluster.manager._actions.clear()
    cluster.manager.ask_queue("q", action)
    cluster.run(next(iter(cluster.manager.ready)))
    assert states(cluster)["q"] == after


def test_a_closing_queue_closes_when_its_last_group_goes() -> None:
    cluster = tree()
    cluster.store(POD_GROUPS, group("g", "low"))
    cluster.command("CloseQueue", "Queue", "low")
    cluster.settle()
    assert states(cluster)["low"] == "Closing"
    assert list(cluster.told("CloseQueue")) == ["Close queue succeed"]
    cluster.remove(POD_GROUPS, "g")
    cluster.settle()
    assert states(cluster)["low"] == "Closed"


def test_closing_and_opening_go_down_the_hierarchy() -> None:
    cluster = tree()
    cluster.command("CloseQueue", "Queue", "top")
    cluster.settle()
    assert states(cluster) == {"root": "Open", "top": "Closed", "low": "Closed"}
    assert cluster.objects[QUEUES]["", "low"]["metadata"]["annotations"] == {CLOSED_BY_PARENT: "true"}
    cluster.command("OpenQueue", "Queue", "low")
    cluster.settle()
    assert states(cluster)["low"] == "Closed"
    assert list(cluster.told("OpenQueue")) == [
        "Failed to open queue low because its parent queue top is closing or closed. Open the parent queue first."
    ]
    assert {event.reason for event in cluster.events if event.happened} == {"CloseQueue", "OpenQueue"}
    cluster.command("OpenQueue", "Queue", "top")
    cluster.settle()
    assert states(cluster) == {"root": "Open", "top": "Open", "low": "Open"}
    assert cluster.objects[QUEUES]["", "low"]["metadata"]["annotations"] == {CLOSED_BY_PARENT: "false"}


def test_what_was_closed_by_hand_stays_closed() -> None:
    cluster = tree()
    for name in ("low", "top"):
        cluster.command("CloseQueue", "Queue", name)
        cluster.settle()
    cluster.command("OpenQueue", "Queue", "top")
    cluster.settle()
    assert states(cluster) == {"root": "Open", "top": "Open", "low": "Closed"}


def test_root_is_never_closed() -> None:
    cluster = tree()
    cluster.command("CloseQueue", "Queue", "root")
    cluster.settle()
    assert set(states(cluster).values()) == {"Open"}


@pytest.mark.parametrize("failures", [1, 3])
def test_an_order_to_a_queue_is_carried_out_once_its_write_goes_through(failures: int) -> None:
    cluster = tree()
    cluster.command("CloseQueue", "Queue", "low")
    cluster.breaking[Patch] = failures
    cluster.settle()
    assert states(cluster)["low"] == "Closed"
    assert list(cluster.told("CloseQueue")) == ["Close queue succeed"]
    cluster.manager.ask_queue("low")
    cluster.settle()
    assert list(cluster.told("CloseQueue")) == ["Close queue succeed"], "it is not carried out again"


def test_an_order_to_a_queue_that_has_failed_too_often_is_given_up() -> None:
    cluster, work = tree(), Work(About.queue, ("", "low"))
    cluster.manager.ask_queue("low", "CloseQueue")
    assert list(cluster.manager.look(work, cluster.now).changes()) != [], "which the server refuses"
    assert cluster.manager.give_up(work) == Outcome()
    cluster.manager.repeat(work)
    cluster.settle()
    assert states(cluster)["low"] == "Open"


def test_a_queue_below_a_closed_one_closes() -> None:
    assert states(tree(top="Closed")) == {"root": "Open", "top": "Closed", "low": "Closed"}


# ---------------------------------------------------------------------- plain pods


def pod(name: str = "p", owner: tuple[str, str] | None = None, **annotations: Any) -> dict[str, Any]:
    meta: dict[str, Any] = {"name": name, "namespace": "ns", "uid": f"uid-of-{name}", "annotations": annotations}
    if owner:
        kind, uid = owner
        meta["ownerReferences"] = [{"apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": uid, "controller": True}]
    container = {"name": "main", "image": "i", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}}
    return {"metadata": meta, "spec": {"schedulerName": "volcano", "containers": [container]}}


MINIMUM = "scheduling.volcano.sh/group-min-member"


def followed(cluster: Cluster, kind: str, uid: str, **annotations: str) -> None:
    """The controllers hear of an owner ``o``."""
    cluster.manager.seen_owner(kind, Metadata(name="o", namespace="ns", uid=uid, annotations=annotations), 2)


def test_a_plain_pod_gets_a_group_of_its_own() -> None:
    cluster = Cluster()
    cluster.store(
        "pods", pod("p", None, **{"scheduling.volcano.sh/queue-name": "q", "volcano.sh/network-topology-mode": "Soft"})
    )
    cluster.settle()
    (found,) = cluster.groups()
    assert found["metadata"]["name"] == "podgroup-uid-of-p"
    assert found["metadata"]["ownerReferences"][0]["kind"] == "Pod"
    assert found["spec"] == {
        "minMember": 1, "queue": "q", "networkTopology": {"mode": "soft"},
        "minResources": {"cpu": "2", "requests.cpu": "2", "limits.cpu": "3", "pods": "1", "count/pods": "1"},
    }  # fmt: skip
    assert cluster.pods()["p"]["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "podgroup-uid-of-p"
    assert len(cluster.writes) == 2


def test_pods_of_one_owner_share_their_group() -> None:
    cluster = Cluster()
    followed(cluster, "ReplicaSet", "rs", **{MINIMUM: "2", "volcano.sh/preemptable": "true", "other": "x"})
    cluster.store("pods", pod("a", ("ReplicaSet", "rs")))
    cluster.store("pods", pod("b", ("ReplicaSet", "rs")))
    cluster.settle()
    (found,) = cluster.groups()
    assert found["metadata"]["name"] == "podgroup-rs"
    assert found["metadata"]["annotations"] == {"volcano.sh/preemptable": "true"}
    assert (found["spec"]["minMember"], found["spec"]["minResources"]["cpu"]) == (2, "4")
    assert len([write for write in cluster.writes if isinstance(write, Create)]) == 1


@pytest.mark.parametrize(
    ("kind", "replicas", "left"),
    [("ReplicaSet", 0, 0), ("StatefulSet", 0, 0), ("ReplicaSet", 1, 1), ("ReplicaSet", None, 1), ("Job", 0, 1)],
)
def test_an_owner_that_is_scaled_to_nothing_needs_no_group(kind: str, replicas: int | None, left: int) -> None:
    cluster = Cluster()
    cluster.store("pods", pod("a", (kind, "rs")))
    cluster.settle()
    cluster.remove("pods", "a")
    cluster.manager.seen_owner(kind, Metadata(name="o", namespace="ns", uid="rs"), replicas)
    cluster.settle()
    assert len(cluster.groups()) == left


def test_a_pod_that_came_before_stale_news_of_its_owner_keeps_its_group() -> None:
    cluster = Cluster()
    owner = Metadata(name="o", namespace="ns", uid="rs")
    cluster.store("pods", pod("a", ("ReplicaSet", "rs")))
    cluster.settle()
    cluster.manager.seen_owner("ReplicaSet", owner, 0)  # scaled down and up again; the pod is of the time after
    cluster.settle()
    assert len(cluster.groups()) == 1
    idle = Work(About.idle_group, ("ns", "podgroup-rs"))
    assert cluster.manager.look(idle, 0.0).after == 1.0
    cluster.manager.seen_owner("ReplicaSet", owner, 1)
    cluster.remove("pods", "a")
    assert cluster.manager.look(idle, 0.0) == Outcome()
    cluster.manager.seen_owner("ReplicaSet", owner, 0)
    cluster.settle()
    assert cluster.groups() == []


@pytest.mark.parametrize("pods", [[], ["a"]], ids=["none was made", "of a pod that is gone"])
def test_a_group_that_is_not_needed_is_looked_at_once(pods: list[str]) -> None:
    """What scaled its pods to nothing is not remembered beyond that."""
    cluster = Cluster()
    for name in pods:
        cluster.store("pods", pod(name, ("ReplicaSet", "rs")))
        cluster.settle()
        cluster.remove("pods", name)
    cluster.manager.seen_owner("ReplicaSet", Metadata(name="o", namespace="ns", uid="rs"), 0)
    assert cluster.manager.world.idle == {("ns", "podgroup-rs")}
    cluster.settle()
    assert (cluster.groups(), cluster.manager.world.idle) == ([], set())


@pytest.mark.parametrize(("text", "least"), [("3", 3), ("0", 0), ("-1", 1), ("many", 1)])
def test_how_many_must_run_at_once(text: str, least: int) -> None:
    cluster = Cluster()
    followed(cluster, "StatefulSet", "s", **{MINIMUM: text})
    cluster.store("pods", pod("a", ("StatefulSet", "s")))
    cluster.settle()
    assert cluster.groups()[0]["spec"].get("minMember", 0) == least


def test_owners_are_not_asked_when_nothing_is_inherited() -> None:
    cluster = Cluster(Settings(inherit_owner_annotations=False))
    followed(cluster, "ReplicaSet", "rs", **{MINIMUM: "2"})
    cluster.store("pods", pod("a", ("ReplicaSet", "rs")))
    cluster.settle()
    assert cluster.groups()[0]["spec"]["minMember"] == 1


@pytest.mark.parametrize(
    "found",
    [
        pod("p", None, **{"scheduling.k8s.io/group-name": "g"}),
        {**pod(), "spec": {"schedulerName": "default-scheduler"}},
    ],
)
def test_other_pods_are_left_alone(found: dict[str, Any]) -> None:
    cluster = Cluster()
    cluster.store("pods", found)
    cluster.settle()
    assert cluster.writes == []


def test_a_pod_whose_amounts_cannot_be_read_is_an_error_and_gets_no_group() -> None:
    cluster, found = Cluster(), pod()
    found["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "many"}
    cluster.store("pods", found)
    cluster.settle()
    assert [error for error in cluster.errors if "many" in error] == cluster.errors != []
    assert cluster.writes == []


# ---------------------------------------------------------------------- what is gone


@pytest.mark.parametrize("about", About)
def test_what_is_gone_by_the_time_it_is_looked_at_needs_nothing(about: About) -> None:
    cluster = Cluster()
    assert cluster.manager.look(Work(about, ("ns", "gone")), START) == Outcome()
    assert (cluster.manager.ready, cluster.manager.carry_out(("ns", "gone"))) == ({}, Outcome())


@pytest.mark.parametrize("about", About)
def test_what_is_gone_when_it_has_failed_too_often_is_forgotten(about: About) -> None:
    cluster, work = Cluster(), Work(about, ("ns", "gone"))
    cluster.manager.look(work, START)
    assert (cluster.manager.give_up(work), cluster.manager.ready) == (Outcome(), {})


def test_a_hypernode_that_is_gone_is_not_counted_again() -> None:
    cluster = Cluster()
    cluster.store(HYPER_NODES, {"metadata": {"name": "h"}, "spec": {"tier": 1, "members": []}})
    cluster.settle()
    cluster.manager.topology.hyper_nodes.drop(("", "h"))
    cluster.manager.topology.seen_node(Metadata(name="n1"))
    assert cluster.manager.ready == {}


# ---------------------------------------------------------------------- finished jobs


@pytest.mark.parametrize(("after", "gone"), [(59, False), (60, True)])
def test_a_finished_job_goes_when_its_time_is_over(after: float, gone: bool) -> None:
    cluster = started(task("a", 1), ttlSecondsAfterFinished=60)
    cluster.pod_phase("j-a-0", "Succeeded")
    cluster.settle()
    assert cluster.phase() == "Completed"
    cluster.now = START + after
    outcome = cluster.run(Work(About.garbage, ("ns", "j")))
    assert (not cluster.objects[JOBS]) == gone
    if gone:
        (change,) = outcome.changes()
        assert isinstance(change, Delete)
        assert change.foreground
    else:
        assert outcome.after == 1


@pytest.mark.parametrize(
    ("phase", "ttl", "looked"),
    [("Completed", 0, True), ("Failed", 0, True), ("Terminated", 0, True), ("Aborted", 0, False),
     ("Running", 0, False), ("Completed", None, False)],
)  # fmt: skip
def test_which_jobs_are_collected(phase: str, ttl: int | None, looked: bool) -> None:
    cluster = Cluster()
    value = job(ttlSecondsAfterFinished=ttl)
    state = {"phase": phase, "lastTransitionTime": "2020-01-01T00:00:00Z"}
    cluster.store(JOBS, {**value, "status": {"state": state}})
    cluster.settle()
    assert (not cluster.objects[JOBS]) == looked


@pytest.mark.parametrize(("phase", "ttl", "asked"), [("Completed", 60, 1), ("Completed", None, 0), ("Running", 60, 0)])
def test_only_finished_jobs_with_a_time_are_looked_at_for_it(phase: str, ttl: int | None, asked: int) -> None:
    cluster = Cluster()
    cluster.store(JOBS, {**job(ttlSecondsAfterFinished=ttl), "status": {"state": {"phase": phase}}})
    assert [work.about for work in cluster.manager.ready].count(About.garbage) == asked


@pytest.mark.parametrize("resource", [JOBS, POD_GROUPS])
def test_what_the_controllers_delete_is_gone_before_the_server_tells(resource: str) -> None:
    cluster = started(task("a", 1))
    meta = next(iter(cluster.objects[resource].values()))["metadata"]
    jobs, groups = cluster.manager.world.jobs, cluster.manager.world.pod_groups
    cluster.manager.deleted(resource, ("ns", meta["name"]), meta["uid"])
    assert (len(list(jobs.values())), len(list(groups.values()))) == ((0, 1) if resource == JOBS else (1, 0))


def test_a_finished_job_without_a_time_is_an_error() -> None:
    cluster = Cluster()
    cluster.store(
        JOBS, {**job(ttlSecondsAfterFinished=0), "status": {"state": {"phase": "Completed"}, "minAvailable": 2}}
    )
    cluster.settle()
    assert cluster.errors == ["the job has finished, but its status does not say when"]


# ---------------------------------------------------------------------- hypernodes


def test_members_of_hypernodes_are_counted() -> None:
    cluster = Cluster()
    for name, rack in (("n1", "a"), ("n2", "a"), ("n3", "b")):
        cluster.manager.topology.seen_node(Metadata(name=name, labels={"rack": rack}))
    members = [
        {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": "a"}}}},
        {"type": "Node", "selector": {"exactMatch": {"name": "n1"}}},
        {"type": "HyperNode", "selector": {"exactMatch": {"name": "h0"}}},
    ]
    cluster.store(HYPER_NODES, {"metadata": {"name": "h1"}, "spec": {"tier": 1, "members": members}})
    cluster.settle()
    assert cluster.objects[HYPER_NODES]["", "h1"]["status"] == {"nodeCount": 3}
    cluster.manager.topology.gone_node("n2")
    cluster.settle()
    assert cluster.objects[HYPER_NODES]["", "h1"]["status"] == {"nodeCount": 2}


PARTS = ("ready", "restarts", "exit_code", "phase", "version", "address")


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({}, (False, 0, 0, "Pending", 0, "")),
        ({"phase": "Running", "containerStatuses": [{}]}, (False, 0, 0, "Running", 0, "")),
        ({"containerStatuses": [{"ready": True}]}, (True, 0, 0, "Pending", 0, "")),
        ({"containerStatuses": [{"ready": True}, {}]}, (False, 0, 0, "Pending", 0, "")),
        ({"containerStatuses": [{"state": {"terminated": {}}}]}, (False, 0, 0, "Pending", 0, "")),
        ({"containerStatuses": [{"restartCount": 2}], "initContainerStatuses": [{"restartCount": 1}, {}]},
         (False, 3, 0, "Pending", 0, "")),
    ],
)  # fmt: skip
def test_what_a_status_leaves_out_is_not_so(status: Any, shown: tuple[object, ...]) -> None:
    view = pod_view(msgspec.json.encode({"metadata": {"name": "p", "namespace": "ns"}, "status": status}))
    assert tuple(getattr(view, name) for name in PARTS) == shown


def test_what_was_asked_of_a_job_that_is_gone_is_forgotten() -> None:
    """Users may make and delete jobs without end, be it faster than any is looked at."""
    cluster = Cluster()
    for number in range(3):
        cluster.store(JOBS, job(name=f"j{number}"))
        cluster.remove(JOBS, f"j{number}")
    assert (cluster.manager._requests, cluster.manager._in_hand) == ({}, {})
