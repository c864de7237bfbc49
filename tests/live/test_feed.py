"""What comes from watches and from answers to writes: what is old or cannot be used changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest

from stromboli.builtin import full_registry
from stromboli.cluster.events import Event, Modified
from stromboli.cluster.mirror import Mirror
from stromboli.cluster.objects import from_value
from stromboli.cluster.state import ClusterState
from stromboli.errors import ManifestError, PluginError
from stromboli.kube.informer import Change, What
from stromboli.live.process.events import Telling
from stromboli.live.scheduler.feed import Feed, asked_for
from stromboli.narration.observe import Counting
from stromboli.plugin import Plugin
from tests.support.live_world import group, pod, queue


class World:
    """A feed, what it tells, and what it says cannot be used."""

    def __init__(self) -> None:
        self.told, self.refused = Counting(), list[tuple[str, str]]()
        self.mirror = Mirror(ClusterState())
        self.feed = Feed(self.mirror, Telling(self.told), lambda: 1_000.0, self._refuse)

    def _refuse(self, found: Any, error: ManifestError) -> None:
        self.refused.append((found.metadata.name, error.path))

    @property
    def node(self) -> str | None:
        """Where the pod is; None where there is none."""
        task = self.mirror.state.tasks.get("ns/a")
        return None if task is None else task.node_name


def version(number: int, **spec: Any) -> Event:
    body = pod("a", "job", **spec)
    body["metadata"] |= {"uid": "u", "resourceVersion": str(number)}
    return Modified("Pod", from_value("Pod", body))


@pytest.mark.parametrize(
    ("later", "how", "took", "node"),
    [
        (version(12), {}, True, ""),
        (version(11), {}, False, "n1"),
        (version(10), {}, False, "n1"),
        (version(11), {"force": True}, True, ""),
    ],
    ids=["newer", "the-same", "older", "the-same-by-force"],
)
def test_old_news_is_taken_by_force_only(later: Event, how: dict[str, bool], took: bool, node: str) -> None:
    world = World()
    assert world.feed.take(version(11, nodeName="n1"))
    assert world.feed.take(later, **how) is took
    assert world.node == node


def test_an_answer_to_a_write_is_news_as_any_other() -> None:
    world = World()
    world.feed.answer(version(11, nodeName="n1").object)
    world.feed.answer(version(10).object)
    assert world.node == "n1"
    world.feed.answer(version(11).object, force=True)
    assert world.node == ""


def test_what_cannot_be_used_is_told_and_changes_nothing() -> None:
    world = World()
    assert world.feed.take(version(11, nodeName="n1"))
    assert not world.feed.take(version(12, overhead={"cpu": "-1"}))
    assert (world.node, world.refused) == ("n1", [("a", "spec.overhead.cpu")])
    assert world.told.counts["object_refused"] == 1


def test_trouble_of_our_own_with_one_object_is_told_and_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    monkeypatch.setattr(world.mirror, "_apply", lambda event: 1 / 0)
    assert not world.feed.take(version(11))
    monkeypatch.undo()
    assert world.feed.take(Modified("PodGroup", from_value("PodGroup", group("job", 1))))
    ((_, fields),) = [told for told in world.told.told if told[0] == "object_refused"]
    assert "ZeroDivisionError" in str(fields["error"])
    assert world.refused == []


CONF = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: NAME}]\n'


class Reader(Plugin):
    """Reads ConfigMaps."""

    name = "reader"

    def kinds_read(self) -> tuple[str, ...]:
        return ("ConfigMap",)


@pytest.mark.parametrize(("compat", "name"), [(True, "nosuch"), (False, "broken")])
def test_a_plugin_that_cannot_be_made_reads_nothing(compat: bool, name: str) -> None:
    """A session tells of it; here it must not keep the scheduler from its start."""

    def broken(arguments: object) -> Plugin:
        raise ValueError("no licence")

    (registry := full_registry("")).add(type("Broken", (Plugin,), {"name": "broken", "__init__": broken}))
    config = registry.configured_by(CONF.replace("NAME", name), "conf", compat=compat)
    assert asked_for(config, registry) == ()


@pytest.mark.parametrize(
    ("kinds", "told"),
    [
        (lambda self: ("ConfigMap", "ConfigMap"), ""),
        (lambda self: ("Nonsense",), "plugin reader: kinds_read names Nonsense, which cannot be followed"),
        (lambda self: 1 // 0, "plugin reader: kinds_read fails"),
    ],
)
def test_kinds_that_a_plugin_reads(kinds: Callable[[Plugin], tuple[str, ...]], told: str) -> None:
    (registry := full_registry("")).add(type("Reader", (Reader,), {"name": "reader", "kinds_read": kinds}))
    config = registry.configured_by(CONF.replace("NAME", "reader"), "conf")
    if told:
        with pytest.raises(PluginError, match=told):
            asked_for(config, registry)
    else:
        assert asked_for(config, registry) == ("ConfigMap",)


def test_a_kind_is_followed_once_however_often_it_is_asked_for() -> None:
    world, client = World(), Mock()
    followed = world.feed.informers(client, ("Pod",))
    pods = followed.by_kind["Pod"]
    world.feed.follow(client, ("Pod", "Node"))
    assert set(followed.by_kind) == {"Pod", "Node"}
    assert followed.by_kind["Pod"] is pods


def test_how_old_a_pod_is_that_waits_is_told_once_it_is_heard_of() -> None:
    """Of pods that have a node when they are first heard of, and of later news, nothing is."""
    world = World()
    tell = world.feed._subscriber("Pod")
    for what, found in (
        (What.added, version(10)), (What.modified, version(11)), (What.added, version(12, nodeName="n1")),
    ):  # fmt: skip
        tell(Change(what, ("ns", "a"), "u", found.object.metadata.resource_version, found.object))
    told = [fields for key, fields in world.told.told if key == "metric.task_latency"]
    created = float(world.mirror.state.tasks["ns/a"].created)
    assert told == [{"stage": "Watched", "created": [created]}]


def test_jobs_that_come_and_go_are_told_for_the_metrics_that_name_them() -> None:
    world = World()
    tell = world.feed._subscriber("PodGroup")
    made = group("job", 1, queue="q")
    made["metadata"] |= {"uid": "u", "resourceVersion": "10"}
    found = from_value("PodGroup", made)
    for what in (What.added, What.deleted):
        tell(Change(what, ("ns", "job"), "u", "10", found))
    told = [(key, fields["job"]) for key, fields in world.told.told if key.startswith("metric.")]
    assert told == [("metric.job_started", "ns/job"), ("metric.job_deleted", "ns/job")]


def test_a_queue_is_told_for_the_metrics_that_name_it_when_it_is_gone() -> None:
    world = World()
    tell = world.feed._subscriber("Queue")
    made = queue("q")
    made["metadata"] |= {"uid": "u", "resourceVersion": "10"}
    for what in (What.added, What.modified, What.deleted):
        tell(Change(what, ("", "q"), "u", "10", from_value("Queue", made)))
    told = [(key, fields) for key, fields in world.told.told if key.startswith("metric.")]
    assert told == [("metric.queue_deleted", {"queue": "q"})]
