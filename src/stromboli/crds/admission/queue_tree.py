"""Whether the amounts of a queue agree with those of its parent, siblings and children."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stromboli.api.scheduling import Queue
from stromboli.crds.admission.world import Scene, queue_missing
from stromboli.errors import QuantityError
from stromboli.model.names import CPU, MEMORY, ROOT_QUEUE
from stromboli.model.resources.quantity import format_bytes, format_milli
from stromboli.model.resources.resource import Resource
from stromboli.model.spec import Amount

MOST_LEVELS = 64
"""A walk through queues that were stored before their depth was checked ends here."""


def tree_problem(queue: Queue, scene: Scene) -> str:
    """The first amount of ``queue`` that does not go with its ancestors, siblings or children; empty when all do."""
    return next(filter(None, _problems(queue, scene)), "")


def _problems(queue: Queue, scene: Scene) -> Iterator[str]:
    name, parent = queue.metadata.name, queue.spec.parent
    if parent not in ("", ROOT_QUEUE):
        above = scene.queue(parent)
        if above is None:
            yield f"parent queue {parent} not found: {queue_missing(parent)}"
            return
        yield from _above_ancestors(queue, scene)
        siblings = [child for child in scene.children(parent) if child.metadata.name != name]
        yield _sums_problem(above, [*siblings, queue], f"parent queue {parent}")
    children = [child for child in scene.children(name) if child.metadata.name != name]
    if children:
        yield from _below_children(queue, children, scene)
        yield _sums_problem(queue, children, f"queue {name}")


def _above_ancestors(queue: Queue, scene: Scene) -> Iterator[str]:
    own = amounts(queue.spec.capability)
    for name in _names(own):
        amount, most = own.get(name), _nearest(queue, name, scene)
        if most and amount > most:
            shown = f"{_shown(name, amount)} exceeds its ancestor's capability={_shown(name, most)}"
            yield f"queue {queue.metadata.name} capability[{name}]={shown}"


def _nearest(queue: Queue, name: str, scene: Scene) -> float:
    """Capability of the closest ancestor, root aside, that states one; 0 when none does."""
    parent = queue.spec.parent
    for _ in range(MOST_LEVELS):
        above = None if parent in ("", ROOT_QUEUE) else scene.queue(parent)
        if above is None:
            return 0
        amount = amounts(above.spec.capability).get(name)
        if amount > 0:
            return amount
        parent = above.spec.parent
    return 0


def _below_children(queue: Queue, children: Iterable[Queue], scene: Scene) -> Iterator[str]:
    own = amounts(queue.spec.capability)
    for name in _names(own):
        amount = own.get(name)
        most = max(_highest(child, name, scene, MOST_LEVELS) for child in children)
        if amount < most:
            shown = f"{_shown(name, amount)} is smaller than its descendants' max capability={_shown(name, most)}"
            yield f"queue {queue.metadata.name} capability[{name}]={shown}"


def _highest(queue: Queue, name: str, scene: Scene, levels: int) -> float:
    """The highest of the first capabilities that are found going down from ``queue``."""
    amount = amounts(queue.spec.capability).get(name)
    if amount > 0 or not levels:
        return amount
    below = scene.children(queue.metadata.name)
    return max((_highest(child, name, scene, levels - 1) for child in below), default=0)


def _sums_problem(queue: Queue, children: Iterable[Queue], subject: str) -> str:
    """Where the children together have more than ``queue``, whose absent amounts count as zero."""
    kept, due = Resource(), Resource()
    own_kept, own_due = amounts(_kept(queue)), amounts(queue.spec.deserved)
    for child in children:
        for word, total, most, part in (
            ("guarantee", kept, own_kept, _kept(child)),
            ("deserved", due, own_due, child.spec.deserved),
        ):
            total.add(amounts(part))
            if any(most.get(name) < total.get(name) for name in _names(total)):
                found = f"sum of children's {word} ({total}) exceeds parent's {word} limit ({most})"
                return f"{subject} validation failed: {found}"
    return ""


def _kept(queue: Queue) -> dict[str, Amount] | None:
    return queue.spec.guarantee.resource if queue.spec.guarantee else None


def amounts(stated: dict[str, Amount] | None) -> Resource:
    """A resource list as amounts; what cannot be read counts as nothing, it was stored before it was checked."""
    try:
        return Resource.from_list(stated or {})
    except QuantityError:
        return Resource()


def _names(resource: Resource) -> list[str]:
    return [name for name in (CPU, MEMORY) if resource.get(name)] + list(resource.scalars or ())


def _shown(name: str, amount: float) -> str:
    if name == CPU:
        return format_milli(int(amount))
    return format_bytes(int(amount)) if name == MEMORY else f"{amount:.2f}"
