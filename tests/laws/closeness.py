"""What laws about closeness share: a session in which all is decided, and whether its gangs lie close enough."""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.api.fields import NetworkTopology
from stromboli.cycle import run_actions
from stromboli.framework.session.session import Session
from stromboli.model.status import ALLOCATED_STATUS
from stromboli.narration.observe import SILENT, Observer
from stromboli.plugins.network_topology_aware import NetworkTopologyAware
from stromboli.testing.plain.cycle import PlainSession
from stromboli.testing.plain.placer import PlainPlacer
from tests.laws.scenes import NOW, Scene, with_plugins


def planned(scene: Scene, kind: type[Session] = Session, observer: Observer = SILENT) -> Session:
    """A session in which everything has been decided."""
    config, registry = with_plugins(scene.config, NetworkTopologyAware)
    with kind.open(scene.snapshot(), config, registry, NOW, 0, observer) as session:
        if kind is PlainSession:
            session.placer = PlainPlacer(session)
        run_actions(session)
    return session


def lies_close(session: Session, nodes: Iterable[str], topology: NetworkTopology | None) -> bool:
    """Whether some hypernode that is narrow enough has all the nodes; the one above all nodes counts by its tier."""
    if topology is None or topology.mode != "hard" or topology.highest_tier_allowed is None:
        return True
    rows = {session.table.statics.row[name] for name in nodes}
    infos = session.hyper_nodes.values()
    return not rows or any(rows.issubset(each.rows) and each.tier <= topology.highest_tier_allowed for each in infos)


def assert_close(session: Session) -> dict[str, str]:
    """What is placed of each gang, and of each part, lies close enough; the node of each placed pod by its key."""
    assert session.plan.inconsistencies == []
    tasks = [task for job in session.jobs.peek() for task in job.tasks.values() if task.status in ALLOCATED_STATUS]
    places = {task.uid: task.node_name for task in tasks}
    for job in session.jobs.peek():
        spec = job.group.spec
        assert lies_close(session, (places[uid] for uid in job.tasks if uid in places), spec.network_topology)
        for policy in spec.sub_group_policy:
            for app in "ab":
                mine = [uid for uid, task in job.tasks.items() if task.labels.get("app") == app and uid in places]
                assert lies_close(session, (places[uid] for uid in mine), policy.network_topology)
    return {task.key: task.node_name for task in tasks}
