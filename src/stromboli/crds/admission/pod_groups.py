"""Whether PodGroups may be created."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.api.scheduling import QUEUE_OPEN, PodGroup
from stromboli.crds.admission.jobs import TOPOLOGY_CLASH, topology_problem
from stromboli.crds.admission.world import Scene, queue_missing


def check_new_pod_group(group: PodGroup, scene: Scene) -> list[str]:
    """What is wrong with a PodGroup that is to be created, as one text."""
    topology = " ".join(_topology_problems(group))
    text = "; ".join(filter(None, (_queue_problem(group.spec.queue, scene), topology)))
    return [text] if text else []


def _queue_problem(name: str, scene: Scene) -> str:
    if not name:
        return ""
    queue = scene.queue(name)
    if queue is None:
        return f"unable to find queue: {queue_missing(name)}"
    state = queue.status.state
    if state == QUEUE_OPEN:
        return ""
    return f"can only submit PodGroup to queue with state `Open`, queue `{name}` status is `{state}`."


def _topology_problems(group: PodGroup) -> Iterator[str]:
    if topology_problem(group.spec.network_topology):
        yield f"{TOPOLOGY_CLASH}."
    for policy in group.spec.sub_group_policy:
        if topology_problem(policy.network_topology):
            yield f"in subGroupPolicy '{policy.name}': {TOPOLOGY_CLASH}."
            return
