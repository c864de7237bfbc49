"""Resources that are first named after the node table was made disturb nobody."""

from __future__ import annotations

import pytest

from stromboli.builtin import builtin_registry
from stromboli.cycle import run_cycle
from stromboli.framework.config import DEFAULT_CONFIG, load_config
from stromboli.framework.session import Session
from stromboli.testing.builders import Manifest, cluster, events, node, pod, pod_group, queue, state

REGISTRY = builtin_registry()
CONFIG = load_config(
    DEFAULT_CONFIG, source="default", known_plugins=REGISTRY.plugin_names, known_actions=REGISTRY.action_names
)
NEW = {"example.com/new": 1}


SPECS = {"capability": NEW}, {"guarantee": {"resource": NEW}}, {"deserved": NEW}


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: next(iter(spec)))
def test_a_queue_may_name_a_resource_that_no_node_offers(spec: Manifest) -> None:
    found = cluster(node("n1"), queue("default", **spec), pod("p-0", group="g"), pod("p-1", group="g", cpu=2))
    plan = run_cycle(found, CONFIG, REGISTRY)
    assert plan.inconsistencies == []
    assert [bind.key for bind in plan.binds] == ["default/p-0", "default/p-1"]


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
