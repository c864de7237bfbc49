"""Resources that are first named after the node table was made disturb no other pod."""

from __future__ import annotations

import pytest

from stromboli.builtin import builtin_registry
from stromboli.cluster.decoding.amounts import POD_LARGEST
from stromboli.cluster.resource_names import MOST_OF_QUEUES
from stromboli.cycle import run_cycle
from stromboli.errors import ManifestError
from stromboli.framework.config.config import DEFAULT_CONFIG, load_config
from stromboli.framework.session.session import Session
from stromboli.testing.builders import Manifest, cluster, events, node, pod, pod_group, queue, state

REGISTRY = builtin_registry()
CONFIG = load_config(
    DEFAULT_CONFIG, source="default", known_plugins=REGISTRY.plugin_names, known_actions=REGISTRY.action_names
)
NEW = {"example.com/new": 1}
MOST = str(POD_LARGEST // 1000)
"""The most that one pod may ask of an extended resource, in whole units."""


SPECS = {"capability": NEW}, {"guarantee": {"resource": NEW}}, {"deserved": NEW}


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: next(iter(spec)))
def test_a_queue_may_name_a_resource_that_no_node_offers(spec: Manifest) -> None:
    found = cluster(node("n1"), queue("default", **spec), pod("p-0", group="g"), pod("p-1", group="g", cpu=2))
    plan = run_cycle(found, CONFIG, REGISTRY)
    assert plan.inconsistencies == []
    assert [bind.key for bind in plan.binds] == ["default/p-0", "default/p-1"]


def test_queues_that_come_and_go_add_a_bounded_number_of_columns() -> None:
    known = state(node("n1"))
    for number in range(MOST_OF_QUEUES + 5):
        [added] = events([queue("q", deserved={"cpu": 1, f"example.com/{number}": 1})])
        known.apply(added)
        assert len(known.axes) == 3 + min(number + 1, MOST_OF_QUEUES)
    snapshot = known.snapshot()
    assert set(snapshot.queues["q"].spec.deserved or {}) == {"cpu"}
    assert ["example.com/132 does not count" in each for each in snapshot.inconsistencies] == [True]
    [offer] = events([node("n2", resources={"example.com/132": 1})])
    known.apply(offer)
    snapshot = known.snapshot()
    assert set(snapshot.queues["q"].spec.deserved or {}) == {"cpu", "example.com/132"}
    assert snapshot.inconsistencies == []


def test_events_during_a_session_may_name_new_resources() -> None:
    known = state(node("n1"), pod_group("g"), pod("p-0", group="g"))
    snapshot = known.snapshot()
    names = list(snapshot.axes.names)
    for event in events([node("n2", resources=NEW), pod("p-1", group="g", requests=NEW)]):
        known.apply(event)
    with Session.open(snapshot, CONFIG, REGISTRY) as session:
        REGISTRY.action("allocate")().execute(session)
    assert snapshot.axes.names == names
    assert [bind.key for bind in session.plan.binds] == ["default/p-0"]
    assert len(known.snapshot().table.alloc) == len(names) + 1


def asking(name: str, *amounts: str, on: str = "") -> Manifest:
    """A pod whose containers ask for so much of the new resource, one after the other."""
    made = pod(name, group="g", on=on)
    asked = [{"example.com/new": amount} for amount in amounts]
    made["spec"]["containers"] = [
        {"name": f"c-{number}", "resources": {"requests": one, "limits": one}} for number, one in enumerate(asked)
    ]
    return made


@pytest.mark.parametrize("on", ["", "n1"])
def test_a_pod_that_asks_for_too_much_is_refused_also_where_no_node_offers_it(on: str) -> None:
    known = state(node("n1"), pod_group("g"))
    [event] = events([asking("p", MOST, "1", on=on)])
    with pytest.raises(ManifestError, match="all its containers together ask for too much"):
        known.apply(event)
    assert known.tasks == {}


def test_pods_that_ask_for_the_most_of_what_comes_later_hold_up_no_others() -> None:
    """Their amounts fill 64 bits of the node: whatever was taken in stays when the resource gets its column."""
    crowd = [asking(f"p-{number}", MOST, on="n1") for number in range(150)]
    known = state(node("n1"), pod_group("g"), pod("q", group="h"), pod_group("h"))
    for event in events([asking("p", MOST), *crowd]):
        try:
            known.apply(event)
        except ManifestError as error:
            assert "exceed 64 bits" in str(error)  # noqa: PT017  # the last ones, as of any other resource
    before = list(known.tasks)
    assert 100 < len(before) < 150
    for event in events([node("n2", resources=NEW)]):
        known.apply(event)
    assert sorted(known.tasks) == sorted(before)
    plan = run_cycle(known.snapshot(), CONFIG, REGISTRY)
    assert (plan.inconsistencies, [bind.key for bind in plan.binds]) == ([], ["default/q"])
