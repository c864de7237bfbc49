"""Which news make the controllers look at what."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.batch import Job
from stromboli.api.bus import Command
from stromboli.api.fields import Metadata
from stromboli.api.fields import OwnerReference as Reference
from stromboli.api.kinds import COMMANDS, JOBS, POD_GROUPS, QUEUES
from stromboli.api.read import read
from stromboli.controllers.commands import Commands
from stromboli.controllers.manager import Settings
from stromboli.controllers.work import About, Work
from tests.controllers.cluster import Cluster, job, queue, started, task

MADE_OF = "volcano.sh/createdByJobTemplate"


def asked(cluster: Cluster) -> set[tuple[str, str]]:
    """What is to be looked at: kinds and names; it is looked at no more."""
    found = {(work.about.name, work.key[1]) for work in cluster.manager.ready}
    cluster.manager.ready.clear()
    return found


def owner(kind: str, controller: bool) -> list[dict[str, Any]]:
    return [{"apiVersion": "v1", "kind": kind, "name": "o", "uid": "u", "controller": controller}]


@pytest.mark.parametrize(
    ("kind", "controller", "is_asked"),
    [("Job", True, True), ("Job", False, False), ("ReplicaSet", True, False), ("ReplicaSet", False, False)],
)
def test_news_of_a_group_are_news_of_its_queue_and_of_the_job_that_controls_it(
    kind: str, controller: bool, is_asked: bool
) -> None:
    cluster = Cluster()
    wanted = {("queue", "q"), *([("job", "o")] if is_asked else [])}
    meta = {"name": "g", "namespace": "ns", "ownerReferences": owner(kind, controller)}
    cluster.store(POD_GROUPS, {"metadata": meta, "spec": {"queue": "q"}, "status": {"phase": "Pending"}})
    assert asked(cluster) == wanted
    cluster.change(POD_GROUPS, "g", {"status": {"running": 1}})
    assert asked(cluster) == set(), "only the phase counts"
    cluster.change(POD_GROUPS, "g", {"status": {"phase": "Running"}})
    assert asked(cluster) == wanted
    cluster.remove(POD_GROUPS, "g")
    assert asked(cluster) == wanted
    cluster.manager.gone_pod_group(("ns", "never"))
    assert asked(cluster) == set()


def test_news_of_a_queue_are_news_of_those_below_it() -> None:
    cluster = Cluster()
    for name, above in (("top", "root"), ("low", "top"), ("other", "root")):
        cluster.store(QUEUES, queue(name, "Open", above))
    asked(cluster)
    cluster.change(QUEUES, "top", {"spec": {"weight": 2}}, "")
    assert asked(cluster) == set(), "weights are the scheduler's"
    cluster.change(QUEUES, "top", {"status": {"state": "Closed"}}, "")
    assert asked(cluster) == {("queue", "top"), ("queue", "low")}
    cluster.change(QUEUES, "low", {"spec": {"parent": "other"}}, "")
    assert asked(cluster) == {("queue", "low")}
    cluster.manager.ask_queue("low", "CloseQueue")
    cluster.remove(QUEUES, "low", "")
    assert "low" not in cluster.manager._actions, "what was asked of a queue that is gone is forgotten"


def test_pods_that_end_or_are_gone_make_no_groups() -> None:
    cluster = Cluster()
    spec = {"schedulerName": "volcano", "containers": [{"name": "c"}]}
    plain: dict[str, Any] = {"metadata": {"name": "p", "namespace": "ns"}, "spec": spec}
    cluster.store("pods", {**plain, "metadata": {**plain["metadata"], "deletionTimestamp": "2023-11-14T22:13:21Z"}})
    assert asked(cluster) == set()
    cluster.remove("pods", "p")
    cluster.manager.gone_pod(("ns", "never"))
    assert asked(cluster) == set()
    cluster.store("pods", plain)
    assert asked(cluster) == {("pod", "p")}


def test_a_template_of_another_namespace_is_not_the_jobs() -> None:
    for namespace, wanted in (("ns", {("job", "j"), ("job_template", "t")}), ("other", {("job", "j")})):
        cluster = Cluster()
        cluster.store(JOBS, job(metadata={"annotations": {MADE_OF: f"{namespace}.t"}}))
        assert asked(cluster) == wanted


def test_late_news_of_what_the_controllers_have_deleted_do_not_count() -> None:
    cluster = Cluster()
    value = cluster.store(JOBS, job())
    cluster.manager.look(Work(About.job, ("ns", "j")), 0.0)
    cluster.manager.deleted(JOBS, ("ns", "j"), value["metadata"]["uid"])
    assert (cluster.manager._requests, cluster.manager._in_hand) == ({}, {})
    value["metadata"]["resourceVersion"] = "99"
    cluster.manager.seen_job(read(Job, value))
    assert list(cluster.manager.world.jobs.values()) == []
    cluster.manager.deleted(QUEUES, ("", "q"), "u")  # nothing is made of those again


@pytest.mark.parametrize(
    ("kind", "looks", "is_asked"),
    [("Job", About.job, True), ("Job", About.queue, False), ("Queue", About.queue, True), ("Queue", About.job, False),
     ("Pod", About.job, True)],
)  # fmt: skip
def test_commands_are_taken_for_what_is_looked_at(kind: str, looks: About, is_asked: bool) -> None:
    """One about anything else is taken, too: it would stay for ever."""
    cluster = Cluster(Settings(looks=frozenset({looks})))
    cluster.command("AbortJob", kind, "x")
    assert bool(asked(cluster)) is is_asked
    [value] = cluster.objects[COMMANDS].values()
    cluster.manager.seen_command(read(Command, value))
    assert asked(cluster) == set(), "no news"


def with_command() -> tuple[Commands, tuple[str, str]]:
    """Commands, of which there is one to abort a job, and its key."""
    command = read(Command, {
        "metadata": {"name": "c", "namespace": "ns", "uid": "u", "resourceVersion": "1"},
        "target": {"kind": "Job", "name": "j", "uid": "ju"}, "action": "AbortJob",
    })  # fmt: skip
    commands = Commands()
    commands.put(command)
    return commands, ("ns", "c")


def test_a_command_that_is_being_carried_out_is_not_taken_again() -> None:
    """Its deletion has succeeded, and news of that has not come yet."""
    commands, key = with_command()
    assert len(commands.take(key, 0.0).batches) == 1
    order = commands.taken(key)
    assert (order and order.action, commands.get("ns", "c")) == ("AbortJob", None)
    assert commands.take(key, 0.0).batches == []
    assert commands.taken(key) is None


def test_a_command_that_another_controller_has_taken_is_carried_out_by_that_one_alone() -> None:
    commands, key = with_command()
    commands.take(key, 0.0)
    commands.lost(key)
    assert (commands.taken(key), commands.taking) == (None, {})


def test_the_annotations_of_a_pods_owner_count() -> None:
    cluster = Cluster()
    notes = {"scheduling.volcano.sh/group-min-member": "3"}
    cluster.manager.seen_owner("ReplicaSet", Metadata(name="o", namespace="ns", uid="u", annotations=notes), 1)
    above = [{**owner("ReplicaSet", True)[0], "apiVersion": "apps/v1", "uid": "u"}]
    meta = {"name": "p", "namespace": "ns", "ownerReferences": above}
    cluster.store("pods", {"metadata": meta, "spec": {"schedulerName": "volcano", "containers": [{"name": "c"}]}})
    cluster.settle()
    assert cluster.groups()[0]["spec"]["minMember"] == 3


@pytest.mark.parametrize(("uid", "phase"), [("", "Aborted"), ("own", "Aborted"), ("another", "Running")])
def test_a_command_for_another_job_of_the_name_is_carried_out_on_none(uid: str, phase: str) -> None:
    cluster = started(task("t", 1))
    own = cluster.job()["metadata"]["uid"]
    target = {"name": "j", "kind": "Job", "apiVersion": "", "uid": own if uid == "own" else uid}
    meta = {"name": "c", "namespace": "ns"}
    cluster.store(COMMANDS, {"metadata": meta, "action": "AbortJob", "target": target})
    cluster.settle()
    cluster.reap()
    cluster.settle()
    assert cluster.phase() == phase


def test_the_controller_of_an_owner_is_known_until_that_changes() -> None:
    cluster, key = Cluster(), ("ReplicaSet", "ns", "o")
    above = Reference("apps/v1", "Deployment", "d", "ud", controller=True)
    other = Reference("v1", "ConfigMap", "c", "uc")
    cluster.manager.seen_owner("ReplicaSet", Metadata(name="o", namespace="ns", owner_references=(other, above)), 1)
    found = cluster.manager.world.owners[key].controller
    assert found is not None
    assert (found.kind, found.name, found.uid, found.controller) == ("Deployment", "d", "ud", True)
    cluster.manager.seen_owner("ReplicaSet", Metadata(name="o", namespace="ns", owner_references=(other,)), 1)
    assert cluster.manager.world.owners[key].controller is None
