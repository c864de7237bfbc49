"""Whether a queue may be created, changed or deleted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from stromboli.api.scheduling import QUEUE_CLOSED, QUEUE_OPEN, Queue, QueueSpec
from stromboli.crds.admission.pod_templates import amount_problem
from stromboli.crds.admission.queue_tree import tree_problem
from stromboli.crds.admission.texts import invalid, together
from stromboli.crds.admission.world import Scene, queue_missing
from stromboli.framework.config.gates import QUEUE_OVERCOMMIT
from stromboli.model.names import DEFAULT_QUEUE, HIERARCHY, HIERARCHY_WEIGHTS, OVERCOMMIT_FACTOR, PODS, ROOT_QUEUE
from stromboli.model.resources import quantity
from stromboli.model.spec import Amount
from stromboli.plugins.overcommit import read_factor

ROOT_FIXED: Final = "root queue's resource attributes (capability, deserved, guarantee) cannot be modified"
_SPEC: Final = "requestBody.spec"
Amounts = Mapping[str, Amount]


def check_queue(queue: Queue, old: Queue | None, scene: Scene) -> list[str]:
    """What is wrong with a queue as it is to be stored; ``old`` is the present one, None for a new one."""
    problem = (
        together(list(_own_problems(queue, scene)))
        or _factor_problem(queue, old, scene)
        or _parent_problem(queue, old, scene)
        or _root_problem(queue, old, scene)
        or _resource_problem(queue, old, scene)
    )
    return [problem] if problem else []


def check_deleted_queue(queue: Queue, scene: Scene) -> list[str]:
    """Why a queue may not be deleted."""
    name = queue.metadata.name
    if name in (DEFAULT_QUEUE, ROOT_QUEUE):
        return [f"`{name}` queue can not be deleted"]
    pods = _pods(queue)
    if scene.settings.check_allocated_pods and pods:
        return [f"queue {name} cannot be deleted because it has allocated Pods: {pods}"]
    children = [child.metadata.name for child in scene.children(name)]
    if children:
        return [f"queue {name} can not be deleted because it has {len(children)} child queues: {', '.join(children)}"]
    return []


def guarantee_of(spec: QueueSpec) -> Amounts:
    """What is kept for a queue, empty when nothing is."""
    return (spec.guarantee and spec.guarantee.resource) or {}


def _pods(queue: Queue) -> int:
    return quantity.whole((queue.status.allocated or {}).get(PODS, 0))


# -- The queue by itself ---------------------------------------------------------------------------------------------


def _own_problems(queue: Queue, scene: Scene) -> Iterator[str]:
    broken = list(_amount_problems(queue.spec))
    yield from broken or _order_problems(queue.spec)
    state = queue.status.state
    if state not in ("", QUEUE_OPEN, QUEUE_CLOSED):
        yield invalid(f"{_SPEC}.state", state, f"queue state must be in [{QUEUE_OPEN} {QUEUE_CLOSED}]")
    yield from _path_problems(queue, scene)


def _amount_problems(spec: QueueSpec) -> Iterator[str]:
    for part, amounts in (
        ("capability", spec.capability or {}),
        ("deserved", spec.deserved or {}),
        ("guarantee.resource", guarantee_of(spec)),
    ):
        for name, amount in amounts.items():
            if problem := amount_problem(amount):
                yield invalid(f"{_SPEC}.{part}.{name}", str(amount), problem)


def _order_problems(spec: QueueSpec) -> Iterator[str]:
    """Where guarantee <= deserved <= capability does not hold."""
    deserved, capability = spec.deserved or {}, spec.capability or {}
    for name, amount in guarantee_of(spec).items():
        path, least = f"{_SPEC}.deserved.{name}", f"guarantee[{name}]={amount}"
        found = deserved.get(name)
        if found is None:
            yield invalid(path, "<nil>", f"deserved[{name}] must be >= {least}")
        elif quantity.parse(found) < quantity.parse(amount):
            yield invalid(path, str(found), f"deserved[{name}]={found} must be >= {least}")
    for name, amount in deserved.items():
        most = capability.get(name)
        if most is not None and quantity.parse(amount) > quantity.parse(most):
            why = f"deserved[{name}]={amount} must be <= capability[{name}]={most}"
            yield invalid(f"{_SPEC}.deserved.{name}", str(amount), why)


def _path_problems(queue: Queue, scene: Scene) -> Iterator[str]:
    """What is wrong with the path that annotations give the queue."""
    path, weights = (queue.metadata.annotations.get(key, "") for key in (HIERARCHY, HIERARCHY_WEIGHTS))
    if not path and not weights:
        return
    where = "requestBody.metadata.annotations"
    if len(path.split("/")) != len(weights.split("/")):
        yield invalid(where, path, f"{HIERARCHY} must have the same length with {HIERARCHY_WEIGHTS}")
        return
    if problem := next(filter(None, (_weight_problem(weight, weights) for weight in weights.split("/"))), ""):
        yield invalid(where, weights, problem)
        return
    for other in scene.queues:
        below = other.metadata.annotations.get(HIERARCHY, "")
        if other.metadata.name != queue.metadata.name and below.startswith(f"{path}/"):
            why = f"{path} is not allowed to be in the sub path of {below} of queue {other.metadata.name}"
            yield invalid(where, path, why)
            return


def _weight_problem(weight: str, weights: str) -> str:
    try:
        value = float(weight)
    except ValueError:
        why = f'strconv.ParseFloat: parsing "{weight}": invalid syntax'
        return f"{weight} in the {weights} is invalid number: {why}"
    return "" if value > 0 else f"{weight} in the {weights} must be larger than 0"


def _factor_problem(queue: Queue, old: Queue | None, scene: Scene) -> str:
    """What is wrong with a factor of the queue's own; one that has been there may stay."""
    factor = queue.metadata.annotations.get(OVERCOMMIT_FACTOR)
    if factor is None or (old is not None and old.metadata.annotations.get(OVERCOMMIT_FACTOR) == factor):
        return ""
    where = f"requestBody.metadata.annotations[{OVERCOMMIT_FACTOR}]"
    if not scene.settings.scales_queues:
        return invalid(where, factor[:63], f"it needs the feature gate {QUEUE_OVERCOMMIT}, which is off")
    if not read_factor(factor):
        return invalid(where, factor[:63], "it must be a finite decimal of at least 1")
    if not any(quantity.parse(amount) for amount in (queue.spec.deserved or {}).values()):
        return invalid(where, factor, "it needs an amount in spec.deserved")
    return ""


# -- The queue among others ------------------------------------------------------------------------------------------


def _parent_problem(queue: Queue, old: Queue | None, scene: Scene) -> str:
    name, parent = queue.metadata.name, queue.spec.parent
    if parent in ("", ROOT_QUEUE) or (old is not None and old.spec.parent == parent):
        return ""
    if parent == name:
        return f"queue {name} cannot use itself as parent"
    if problem := _depth_problem(queue, scene):
        return problem
    above = scene.queue(parent)
    pods = 0 if above is None or scene.children(parent) else _pods(above)
    if pods:
        return f"queue {parent} cannot be the parent queue of queue {name} because it has allocated Pods: {pods}"
    return ""


def _depth_problem(queue: Queue, scene: Scene) -> str:
    depth, parent, most = 1, queue.spec.parent, scene.settings.max_queue_depth
    while parent not in ("", ROOT_QUEUE):
        depth += 1
        if depth > most:
            return f"queue {queue.metadata.name} exceeds the maximum allowed depth of {most}"
        above = scene.queue(parent)
        if above is None:
            return f"failed to get parent queue {parent} of queue {queue.metadata.name}: {queue_missing(parent)}"
        parent = above.spec.parent
    return ""


def _root_problem(queue: Queue, old: Queue | None, scene: Scene) -> str:
    if old is None or queue.metadata.name != ROOT_QUEUE or not scene.settings.protect_root:
        return ""
    return "" if _amounts_of(queue.spec) == _amounts_of(old.spec) else ROOT_FIXED


def _amounts_of(spec: QueueSpec) -> list[dict[str, object]]:
    lists = (spec.capability or {}, spec.deserved or {}, guarantee_of(spec))
    return [{name: quantity.parse(amount) for name, amount in amounts.items()} for amounts in lists]


def _resource_problem(queue: Queue, old: Queue | None, scene: Scene) -> str:
    if queue.metadata.name == ROOT_QUEUE:
        return ""
    if old is not None and old.spec.parent == queue.spec.parent and _amounts_of(old.spec) == _amounts_of(queue.spec):
        return ""
    return tree_problem(queue, scene)
