"""Whether PodGroups and pods of ours may be created."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from stromboli.crds.admission.jobs import TOPOLOGY_CLASH, topology_problem
from stromboli.crds.admission.world import Object, Scene, queue_missing
from stromboli.crds.scheduling import PodGroup
from stromboli.model.names import JDB_MAX_UNAVAILABLE, JDB_MIN_AVAILABLE, QUEUE_OPEN

_BUDGETS: Final = (JDB_MIN_AVAILABLE, JDB_MAX_UNAVAILABLE)
_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


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


def check_new_pod(pod: Object, scene: Scene) -> list[str]:
    """What is wrong with the disruption budget that a new pod of ours carries in its annotations."""
    spec, metadata = pod.get("spec"), pod.get("metadata")
    scheduler = spec.get("schedulerName") if isinstance(spec, Mapping) else ""
    if scheduler not in scene.settings.scheduler_names:
        return []
    stated = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    annotations = stated if isinstance(stated, Mapping) else {}
    given = [key for key in _BUDGETS if key in annotations]
    problem = next(filter(None, (_budget_problem(key, str(annotations[key])) for key in given)), "")
    if not problem and len(given) > 1:
        problem = f"not allow configure multiple annotations <[{' '.join(_BUDGETS)}]> at same time"
    return [problem] if problem else []


def _budget_problem(key: str, value: str) -> str:
    if _INTEGER.fullmatch(value):
        return "" if int(value) > 0 else f'invalid value <"{value}"> for {key}, it must be a positive integer'
    number = value.replace("%", "")
    if not _INTEGER.fullmatch(number):
        return f'invalid value strconv.Atoi: parsing "{number}": invalid syntax for {key}'
    if 0 < int(number) < 100:
        return ""
    return f'invalid value <"{value}"> for {key}, it must be a valid percentage which between 1% ~ 99%'
