"""What objects that cannot be used are called, and what is refused of those that could be."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.cluster.events import Added
from stromboli.cluster.files.scenario import ScenarioOptions
from stromboli.cluster.mirror import Mirror
from stromboli.cluster.objects import from_value
from stromboli.cluster.owners import gangs
from stromboli.cluster.owners.kinds import OWNER_KINDS
from stromboli.cluster.state import ClusterState
from stromboli.errors import ManifestError
from tests.support.live_world import pod


def with_uid(name: str, uid: str) -> dict[str, Any]:
    body = pod(name)
    body["metadata"]["uid"] = uid
    return body


def test_two_pods_of_one_uid_are_refused_and_the_first_stays() -> None:
    state = ClusterState()
    state.apply(Added("Pod", from_value("Pod", with_uid("a", "u"))))
    with pytest.raises(ManifestError) as caught:
        state.apply(Added("Pod", from_value("Pod", with_uid("b", "u"))))
    assert str(caught.value) == "Pod ns/b, metadata.uid: is the uid of Pod ns/a"
    assert list(state.tasks) == ["ns/a"]
    state.apply(Added("Pod", from_value("Pod", with_uid("a", "u"))))


@pytest.mark.parametrize(("key", "uid", "known"), [("ns/a", "u", True), ("ns/a", "x", False), ("ns/b", "u", False)])
def test_a_reservation_is_assumed_of_a_pod_that_is_there_alone(key: str, uid: str, known: bool) -> None:
    mirror = Mirror(ClusterState())
    mirror.take(Added("Pod", from_value("Pod", with_uid("a", "u"))))
    assert mirror.assume_reserved(key, uid, None) is known
    assert list(mirror.unwritten) == ([key] if known else [])


@pytest.mark.parametrize(
    ("kind", "namespace", "found"),
    [("Pod", "", "default"), ("Pod", "ns", "ns"), ("PodGroup", "", "default"), ("Node", "", ""), ("Queue", "", "")],
)
def test_only_kinds_that_have_namespaces_get_the_usual_one(kind: str, namespace: str, found: str) -> None:
    metadata = {"name": "x", **({"namespace": namespace} if namespace else {})}
    assert from_value(kind, {"metadata": metadata}).metadata.namespace == found


def test_what_lies_too_deep_is_refused_by_name() -> None:
    inner: dict[str, Any] = {}
    for _ in range(5_000):
        inner = {"a": inner}
    with pytest.raises(ManifestError, match="Pod ns/a") as caught:
        from_value("Pod", {"metadata": {"name": "a", "namespace": "ns"}, "spec": inner, "status": None})
    while inner:  # else it is freed by recursion
        inner = inner.pop("a")
    assert "spec" not in (caught.value.path or "")


def test_the_shard_of_a_scenario_has_the_nodes_that_it_says() -> None:
    shard = ScenarioOptions(shard_name="s", nodes_in_shard=("n1", "n2")).shard
    assert (shard.metadata.name, shard.spec.nodes_desired) == ("s", ("n1", "n2"))
    assert shard.status.nodes_in_use == ("n1", "n2")


JOB_SET = OWNER_KINDS["jobset.x-k8s.io", "JobSet"]


def job_set(roles: int) -> dict[str, Any]:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    inner = {"spec": {"parallelism": 1, "template": {"spec": spec}}}
    jobs = [{"name": f"r{number}", "replicas": 1, "template": inner} for number in range(roles)]
    return {"metadata": {"name": "js", "uid": "u"}, "spec": {"replicatedJobs": jobs}}


def test_an_owner_has_so_many_roles_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gangs, "MOST_ROLES", 2)
    assert [part.name for part in gangs.owner_of(JOB_SET, job_set(2)).parts] == ["r0", "r1"]
    with pytest.raises(ManifestError, match="has more than 2 roles"):
        gangs.owner_of(JOB_SET, job_set(3))


def test_gangs_within_a_gang_are_those_of_kinds_that_have_such() -> None:
    found = gangs.owner_of(JOB_SET, job_set(2))
    assert [one.name for one in found.sub_gangs(JOB_SET)] == ["r0", "r1"]
    assert found.sub_gangs(OWNER_KINDS["batch", "Job"]) == ()
    assert gangs.owner_of(JOB_SET, job_set(0)).sub_gangs(JOB_SET) == ()
