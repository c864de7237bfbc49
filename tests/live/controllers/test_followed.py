"""What the controllers follow: which kinds may be missing, and what one that is seen or gone leads to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from stromboli.api.fields import Metadata
from stromboli.api.scheduling import Queue
from stromboli.controllers.sharding.configuration import KEY as SHARDING
from stromboli.controllers.work import About
from stromboli.errors import ApiError, Unreachable
from stromboli.kube.client import Client
from stromboli.kube.informer import Change, What
from stromboli.live.controllers import controlled
from stromboli.live.controllers.controlled import (
    ConfigMap,
    Followed,
    Owner,
    PriorityClass,
    Scale,
    division_sources,
    followed,
    topology_sources,
)
from stromboli.live.controllers.controller_runner import Controllers
from stromboli.live.controllers.options import Options
from stromboli.narration.observe import Counting
from tests.controllers.cluster import Cluster
from tests.support.memory_server import MemoryServer

ALL = frozenset(About)


def change(what: What, key: tuple[str, str], found: Any) -> Change[Any]:
    """News of an object."""
    return Change(what, key, "u", "1", found)


def rows(cluster: Cluster) -> dict[str, Followed]:
    """What is followed, by kind; of kinds that are followed twice the first."""
    found: dict[str, Followed] = {}
    for row in followed(cluster.manager, ("volcano",), ALL):
        found.setdefault(row.resource.kind, row)
    return found


def test_kinds_without_which_nothing_works_are_needed_and_others_may_be_missing() -> None:
    found = rows(Cluster())
    needed = {kind for kind, row in found.items() if row.needed}
    assert needed == {"Job", "Queue", "PodGroup", "Pod", "Command", "Node"}
    optional = {kind for kind, row in found.items() if row.optional}
    assert optional == {"CronJob", "JobFlow", "JobTemplate"}


def test_kinds_are_reached_and_read_as_they_are_declared() -> None:
    queue = controlled._ours(Queue)
    assert (queue.path(), queue.kind) == ("/apis/scheduling.volcano.sh/v1beta1/queues", "Queue")
    assert queue.decode(b'{"metadata": {"name": "q"}, "spec": {"weight": null}}').metadata.name == "q"
    nodes = controlled._core("nodes", "Node", namespaced=False)
    assert (nodes.path(), nodes.kind) == ("/api/v1/nodes", "Node")
    claims = controlled._core("persistentvolumeclaims", "PersistentVolumeClaim")
    assert claims.path("ns") == "/api/v1/namespaces/ns/persistentvolumeclaims"
    assert nodes.decode(b'{"metadata": {"name": "n"}}').metadata.name == "n"


def named(name: str) -> Metadata:
    return Metadata(name=name, uid="u", labels={"rack": "r"})


def test_a_node_and_a_priority_class_are_known_until_they_are_gone() -> None:
    cluster = Cluster()
    found, world = rows(cluster), cluster.manager.world
    gone: list[str] = []
    topology = cast(Any, cluster.manager.topology)
    topology.gone_node = gone.append
    found["Node"].gone(("", "n1"))
    assert gone == ["n1"]
    priority = found["PriorityClass"]
    priority.hear(change(What.added, ("", "high"), PriorityClass(metadata=named("high"), value=7)))
    assert world.priorities["high"] == 7
    priority.hear(change(What.deleted, ("", "high"), None))
    assert "high" not in world.priorities


def test_owners_of_plain_pods_are_known_until_they_are_gone() -> None:
    cluster = Cluster()
    row, world = rows(cluster)["ReplicaSet"], cluster.manager.world
    metadata = Metadata(name="o", namespace="ns", uid="u")
    row.hear(change(What.added, ("ns", "o"), Owner(metadata=metadata, spec=Scale(3))))
    assert [key for key in world.owners if key[0] == "ReplicaSet"] == [("ReplicaSet", "ns", "o")]
    row.hear(change(What.deleted, ("ns", "o"), None))
    assert world.owners == {}


def test_the_config_map_of_topologies_is_followed_until_it_is_gone() -> None:
    cluster, renewed = Cluster(), list[str]()
    poller: Any = SimpleNamespace(renew=lambda: renewed.append("renewed"))
    row = topology_sources(cluster.manager.topology, poller, "ns", "c")
    assert (row.needed, row.optional, row.namespace, row.select.fields) == (False, True, "ns", "metadata.name=c")
    text = "networkTopologyDiscovery: [{source: label, enabled: true}]"
    body = ConfigMap(metadata=Metadata(name="c", namespace="ns", uid="u"), data={"volcano-controller.conf": text})
    row.hear(change(What.added, ("ns", "c"), body))
    assert (list(cluster.manager.topology.discovery.sources), renewed) == (["label"], ["renewed"])
    row.hear(change(What.deleted, ("ns", "c"), None))
    assert (list(cluster.manager.topology.discovery.sources), len(renewed)) == ([], 2)


def test_the_config_map_of_shards_is_followed() -> None:
    sharding = Cluster().manager.sharding
    row = division_sources(sharding, "ns", "c")
    assert (row.needed, row.optional, row.namespace, row.select.fields) == (False, True, "ns", "metadata.name=c")
    data = {SHARDING: "schedulerConfigs: [{name: only}]"}
    row.hear(
        change(What.added, ("ns", "c"), ConfigMap(metadata=Metadata(name="c", namespace="ns", uid="u"), data=data))
    )
    assert [one.name for one in sharding.config.schedulers] == ["only"]


def test_what_is_followed_is_kept_once() -> None:
    """The controllers have their own views of objects; those that list and watch keep versions only."""
    controllers = Controllers(Client(MemoryServer()), Options())
    informers = controllers._informers().by_kind.values()
    assert len(informers) > 10
    assert not [informer for informer in informers if informer.keep]


@pytest.mark.parametrize(
    ("kind", "error", "told"),
    [
        ("JobFlow", ApiError(404, "NotFound", "no"), "not_served"),
        ("JobFlow", ApiError(500, "InternalError", "no"), "following_trouble"),
        ("JobFlow", Unreachable("away"), "following_trouble"),
        ("Queue", ApiError(404, "NotFound", "no"), "following_trouble"),
    ],
)
def test_only_a_kind_that_may_be_missing_is_told_as_not_served(kind: str, error: Any, told: str) -> None:
    counts = Counting()
    controllers = Controllers(Client(MemoryServer()), Options(), observer=counts)
    controllers._trouble(rows(Cluster())[kind])(error)
    assert {key: number for key, number in counts.counts.items() if number} == {told: 1}
