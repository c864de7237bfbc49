"""What the controllers have seen: the newest of each object, found by what it names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stromboli.api.batch import Job
from stromboli.api.flow import JobFlow
from stromboli.api.read import read
from stromboli.api.scheduling import PodGroup, Queue
from stromboli.controllers import world as seen
from stromboli.controllers.pods import PodView, pod_view
from stromboli.controllers.world import World, template_of

MADE_OF = "volcano.sh/createdByJobTemplate"


def metadata(name: str, version: int = 1, uid: str = "u", **more: Any) -> dict[str, Any]:
    return {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": str(version), **more}


def group(name: str, version: int = 1, uid: str = "u", queue: str = "q") -> PodGroup:
    return read(PodGroup, {"metadata": metadata(name, version, uid), "spec": {"queue": queue}})


def names(found: Any) -> list[str]:
    return sorted(each.metadata.name for each in found)


@pytest.mark.parametrize(
    ("version", "uid", "is_taken"),
    [(2, "u", True), (1, "u", False), (0, "u", False), (1, "other", True), (0, "other", True), (9, "gone", False)],
)
def test_what_is_newer_is_taken(version: int, uid: str, is_taken: bool) -> None:
    groups = World().pod_groups
    first, later = group("g"), group("g", version, uid, "r")
    assert groups.put(first) is None
    groups.bury("gone")
    assert groups.put(later) is (first if is_taken else later)
    assert groups.get("ns", "g") is (later if is_taken else first)
    assert (names(groups.of_queue("q")), names(groups.of_queue("r"))) == (([], ["g"]) if is_taken else (["g"], []))


def test_so_many_that_are_gone_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seen, "REMEMBERED", 2)
    groups = World().pod_groups
    for uid in ("a", "b", "c"):
        groups.bury(uid)
    found = {uid: group(uid, 1, uid) for uid in ("a", "b", "c")}
    assert {uid: groups.put(one) is one for uid, one in found.items()} == {"a": False, "b": True, "c": True}


def test_groups_are_found_by_their_queue_until_they_are_gone() -> None:
    groups = World().pod_groups
    for name, queue in (("a", "q"), ("b", "q"), ("c", "r")):
        groups.put(group(name, queue=queue))
    assert (names(groups.of_queue("q")), names(groups.values())) == (["a", "b"], ["a", "b", "c"])
    dropped = groups.drop(("ns", "a"))
    assert (dropped and dropped.metadata.name, groups.drop(("ns", "a"))) == ("a", None)
    assert (names(groups.of_queue("q")), names(groups.of_queue("none"))) == (["b"], [])
    groups.drop(("ns", "b"))
    groups.drop(("ns", "c"))
    assert groups._lists == {}, "nothing is kept of queues without groups"


def test_queues_below_another() -> None:
    queues = World().queues
    for name, parent in (("a", "root"), ("b", "a"), ("c", "a")):
        queues.put(read(Queue, {"metadata": {"name": name, "uid": name}, "spec": {"parent": parent}}))
    found = queues.named("b")
    assert (names(queues.children("a")), names(queues.children("b")), queues.named("x")) == (["b", "c"], [], None)
    assert found is not None
    assert found.metadata.name == "b"


def job(name: str, namespace: str = "ns", owners: list[tuple[str, bool]] | None = None, **metadata_: Any) -> Job:
    rows = [{"kind": "CronJob", "name": "o", "uid": uid, "controller": controls} for uid, controls in owners or ()]
    return read(
        Job, {"metadata": {"name": name, "namespace": namespace, "uid": name, "ownerReferences": rows, **metadata_}}
    )


def test_jobs_are_found_by_the_owner_that_controls_them_and_by_their_template() -> None:
    jobs, owner = World().jobs, job("owner")
    jobs.put(job("b", owners=[("owner", True)]))
    jobs.put(job("a", owners=[("other", False), ("owner", True)]))
    jobs.put(job("c", owners=[("owner", False)]))
    jobs.put(job("d", "elsewhere", owners=[("owner", True)]))
    jobs.put(job("e", labels={MADE_OF: "ns.t"}))
    jobs.put(job("f", annotations={MADE_OF: "ns.t"}))
    assert [each.metadata.name for each in jobs.of_owner(owner)] == ["a", "b"]
    assert (names(jobs.under("ns.t")), names(jobs.under(""))) == (["e", "f"], [])
    both = job("g", labels={MADE_OF: "ns.label"}, annotations={MADE_OF: "ns.note"})
    assert (template_of(both), template_of(job("h"))) == ("ns.label", "")


def test_flows_are_found_by_the_templates_that_they_name() -> None:
    flows = World().job_flows
    steps = [{"name": "a"}, {"name": "b"}, {"name": "a"}]
    flows.put(read(JobFlow, {"metadata": metadata("f"), "spec": {"flows": steps}}))
    assert (names(flows.under("ns.a")), names(flows.under("a"))) == (["f"], [])


def pod(name: str, version: int = 1, uid: str = "u", job: str = "j", group: str = "", **meta: Any) -> PodView:
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": job, "uid": "o", "controller": True}
    notes = {"scheduling.k8s.io/group-name": group} if group else {}
    notes |= {f"volcano.sh/{key}": "x" for key in ("task-spec", "job-name", "job-version")} if job else {}
    found = metadata(name, version, uid, ownerReferences=[owner] if job else [], annotations=notes, **meta)
    return pod_view(json.dumps({"metadata": found, "spec": {}, "status": {"phase": "Running"}}).encode())


@pytest.mark.parametrize(
    ("version", "uid", "is_taken"), [(2, "u", True), (1, "u", False), (0, "u", False), (0, "other", True)]
)
def test_the_newest_of_a_pod_is_taken(version: int, uid: str, is_taken: bool) -> None:
    pods, first, later = World().pods, pod("p"), pod("p", version, uid, job="k")
    assert pods.put(first) is None
    assert pods.put(later) is (first if is_taken else later)
    kept = later if is_taken else first
    assert pods.objects == {("ns", "p"): kept}
    assert pods.of_job(("ns", "j")) == ({} if is_taken else {"p": first})
    assert pods.of_job(("ns", "k")) == ({"p": later} if is_taken else {})


def test_pods_are_found_by_their_job_until_they_are_gone() -> None:
    pods = World().pods
    for name, of in (("a", "j"), ("b", "j"), ("c", "")):
        pods.put(pod(name, job=of))
    assert sorted(pods.of_job(("ns", "j"))) == ["a", "b"]
    dropped = pods.drop(("ns", "a"))
    assert (dropped and dropped.name, pods.drop(("ns", "a"))) == ("a", None)
    assert (sorted(pods.of_job(("ns", "j"))), pods.of_job(("ns", ""))) == (["b"], {})
    pods.drop(("ns", "b"))
    assert (pods._by_job, list(pods.objects)) == ({}, [("ns", "c")])


def test_a_pod_that_was_asked_to_end_is_ending_before_the_watch_says_so() -> None:
    pods = World().pods
    for name, of in (("a", "j"), ("c", "")):
        pods.put(pod(name, job=of))
        pods.ending(("ns", name))
        found = pods.objects["ns", name]
        assert (found.terminating, found.out_of_sync) == (True, True)
        pods.ending(("ns", name))
        assert pods.objects["ns", name] is found
    pods.ending(("ns", "gone"))
    assert pods.of_job(("ns", "j")) == {"a": pods.objects["ns", "a"]}
    assert sorted(pods.objects) == [("ns", "a"), ("ns", "c")]


@pytest.mark.parametrize(
    ("asked", "stands"), [(("ns", "g"), True), (("ns", "h"), False), (("other", "g"), False), (("ns", "ending"), False)]
)
def test_a_group_is_stood_in_for_by_a_pod_that_names_it_and_does_not_end(asked: tuple[str, str], stands: bool) -> None:
    pods = World().pods
    pods.put(pod("a", group="g"))
    pods.put(pod("b", group="ending", deletionTimestamp="2024-05-01T12:00:00Z"))
    assert pods.stand_in(asked) is stands


def test_values_of_priority_classes_are_known_until_they_are_gone() -> None:
    found = World()
    found.set_priority("high", 7)
    found.set_priority("zero", 0)
    found.set_priority("high", 8)
    assert found.priorities == {"high": 8, "zero": 0}
    found.set_priority("high", None)
    found.set_priority("never", None)
    assert found.priorities == {"zero": 0}
