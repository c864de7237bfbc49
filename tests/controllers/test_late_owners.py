"""Pods whose owners the controllers have not heard of yet: those are read before a PodGroup is made."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.fields import Metadata
from stromboli.controllers.changes import Create, Patch, Read
from stromboli.controllers.manager import Settings
from tests.controllers.cluster import Cluster, Manifest

LEAST, MARK = "scheduling.volcano.sh/group-min-member", "volcano.sh/preemptable"
NOTES = {LEAST: "2", MARK: "true"}
GROUPED = "scheduling.volcano.sh/group-by"
STATEFUL_SET = ("apps/v1", "StatefulSet")
JOB = ("batch/v1", "Job")
CONTAINER: Manifest = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}


def on_server(cluster: Cluster, kind: tuple[str, str], uid: str = "u", **notes: str) -> None:
    """An owner ``o`` that the API server has, and of which no news has come."""
    version, name = kind
    metadata = {"name": "o", "namespace": "ns", "uid": uid, "annotations": notes}
    spec = {"parallelism": 3, "template": {"spec": {"containers": [CONTAINER]}}}
    plural = f"{name.lower()}s.{version.partition('/')[0]}"
    cluster.objects[plural] = {("ns", "o"): {"metadata": metadata, "spec": spec}}


def heard_of(cluster: Cluster, kind: tuple[str, str], uid: str = "u", **notes: str) -> None:
    """News of an owner ``o`` have come."""
    cluster.manager.seen_owner(kind[1], Metadata(name="o", namespace="ns", uid=uid, annotations=notes), 2)


def grouped(cluster: Cluster, name: str, kind: tuple[str, str], *, controller: bool = True) -> Manifest:
    """The only PodGroup, once a pod of the owner has come."""
    reference: dict[str, Any] = {"apiVersion": kind[0], "kind": kind[1], "name": "o", "uid": "u"}
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-of-{name}",
                "ownerReferences": [{**reference, "controller": controller}]}  # fmt: skip
    cluster.store("pods", {"metadata": metadata, "spec": {"schedulerName": "volcano", "containers": [CONTAINER]}})
    cluster.settle()
    assert cluster.pods()[name]["metadata"]["annotations"]["scheduling.k8s.io/group-name"]
    (group,) = cluster.groups()
    return group


def reads(cluster: Cluster) -> int:
    return sum(isinstance(write, Read) for write in cluster.writes)


@pytest.mark.parametrize("controller", [True, False])
@pytest.mark.parametrize("kind", [("apps/v1", "ReplicaSet"), STATEFUL_SET, ("apps/v1", "DaemonSet"), JOB])
def test_what_an_owner_says_counts_though_its_pod_comes_first(kind: tuple[str, str], controller: bool) -> None:
    cluster = Cluster()
    on_server(cluster, kind, **NOTES)
    group = grouped(cluster, "p", kind, controller=controller)
    assert (group["spec"]["minMember"], group["spec"]["minResources"]["cpu"]) == (2, "2")
    assert group["metadata"]["annotations"] == {MARK: "true"}
    assert reads(cluster) == 1


def test_an_owner_is_read_once_for_all_its_pods() -> None:
    cluster = Cluster()
    on_server(cluster, STATEFUL_SET, **NOTES)
    for name in ("p", "q", "r"):
        grouped(cluster, name, STATEFUL_SET)
    assert reads(cluster) == 1


def test_an_owner_that_is_known_is_not_read() -> None:
    cluster = Cluster()
    heard_of(cluster, STATEFUL_SET, **NOTES)
    assert grouped(cluster, "p", STATEFUL_SET)["spec"]["minMember"] == 2
    assert [type(write) for write in cluster.writes] == [Create, Patch]


def test_an_earlier_owner_of_the_name_says_nothing() -> None:
    cluster = Cluster()
    heard_of(cluster, STATEFUL_SET, uid="earlier", **{LEAST: "7"})
    on_server(cluster, STATEFUL_SET, **NOTES)
    assert grouped(cluster, "p", STATEFUL_SET)["spec"]["minMember"] == 2


@pytest.mark.parametrize("successor", [True, False])
def test_a_pod_whose_owner_is_gone_is_grouped_without_it(successor: bool) -> None:
    cluster = Cluster()
    if successor:
        on_server(cluster, STATEFUL_SET, uid="later", **NOTES)
    group = grouped(cluster, "p", STATEFUL_SET)
    assert (group["metadata"]["name"], group["spec"]["minMember"]) == ("podgroup-u", 1)
    assert "annotations" not in group["metadata"]
    assert (reads(cluster), list(cluster.told("OwnerNotRead"))) == (1, [])


def test_kinds_of_the_same_name_in_other_groups_are_not_read() -> None:
    cluster = Cluster()
    heard_of(cluster, JOB, **NOTES)
    assert grouped(cluster, "p", ("batch.example.com/v1", "Job"))["spec"]["minMember"] == 1
    assert reads(cluster) == 0


@pytest.mark.parametrize("known", [True, False])
def test_a_job_that_asks_for_a_gang_has_its_size_whether_it_is_known_or_not(known: bool) -> None:
    cluster = Cluster()
    on_server(cluster, JOB, **{GROUPED: "top-owner"})
    if known:
        heard_of(cluster, JOB, **{GROUPED: "top-owner"})
    assert grouped(cluster, "p", JOB)["spec"]["minMember"] == 3


def test_without_inheritance_what_a_late_owner_says_of_its_gang_does_not_count() -> None:
    cluster = Cluster(Settings(inherit_owner_annotations=False))
    on_server(cluster, STATEFUL_SET, **NOTES)
    assert grouped(cluster, "p", STATEFUL_SET)["spec"]["minMember"] == 1
