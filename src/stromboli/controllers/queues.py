"""The controller of queues: their states, and how these go down the hierarchy."""

from __future__ import annotations

from typing import Final

from stromboli.api.bus import CLOSE_QUEUE, OPEN_QUEUE
from stromboli.api.kinds import KINDS, QUEUES
from stromboli.api.scheduling import QUEUE_CLOSED, QUEUE_CLOSING, QUEUE_OPEN, QUEUE_UNKNOWN, Queue
from stromboli.controllers.changes import Ask, Outcome, Patch, Subject, normal, warning
from stromboli.controllers.world import World
from stromboli.model.names import CLOSED_BY_PARENT, ROOT_QUEUE

_SHUT: Final = (QUEUE_CLOSED, QUEUE_CLOSING)
_YES: Final = "true"
_NO: Final = "false"


def look(name: str, action: str, world: World) -> Outcome:
    """What ``action`` on the queue of that name leads to; see ``SyncQueue``, ``OpenQueue`` and ``CloseQueue``.

    =========  =====  ==========================  ===========================
    state      open   close                       sync
    =========  =====  ==========================  ===========================
    Open, none  Open  Closed if empty, else Closing  Open
    Closing     Open  Closed once empty           Closed once empty
    Closed      Open  Closed                      Closed
    Unknown     Open  Closed or Closing           Unknown
    =========  =====  ==========================  ===========================
    """
    queue = world.queues.named(name)
    if queue is None:
        return Outcome()
    if action == OPEN_QUEUE:
        return _open(queue, world)
    return _close(queue, world) if action == CLOSE_QUEUE else _sync(queue, world)


def about(queue: Queue) -> Subject:
    """A queue as events name it."""
    row, meta = KINDS["Queue"], queue.metadata
    return Subject(row.api_version, row.kind, "", meta.name, meta.uid)


# -- Syncing ---------------------------------------------------------------------------------------------------------


def _sync(queue: Queue, world: World) -> Outcome:
    name, outcome = queue.metadata.name, Outcome()
    if not queue.spec.parent and name != ROOT_QUEUE:
        return outcome.then(Patch(QUEUES, "", name, {"spec": {"parent": ROOT_QUEUE}}))
    state = queue.status.state
    if state == QUEUE_CLOSING and _is_empty(name, world):
        state = QUEUE_CLOSED
    elif not state:
        state = QUEUE_OPEN
    _set_state(queue, state, outcome)
    _follow_parent(queue, state, world, outcome)
    return outcome


def _follow_parent(queue: Queue, state: str, world: World, outcome: Outcome) -> None:
    """A queue below a closed one closes; one that its parent had closed opens with it."""
    parent = world.queues.named(queue.spec.parent)
    if parent is None or state == QUEUE_UNKNOWN:
        return
    name = queue.metadata.name
    if parent.status.state in _SHUT and state not in _SHUT:
        outcome.then(_mark(queue, _YES)).then(Ask(name, CLOSE_QUEUE))
    elif parent.status.state == QUEUE_OPEN and state in _SHUT and _closed_by_parent(queue):
        outcome.then(Ask(name, OPEN_QUEUE))


def _is_empty(name: str, world: World) -> bool:
    return not any(True for _ in world.pod_groups.of_queue(name))


def _closed_by_parent(queue: Queue) -> bool:
    return queue.metadata.annotations.get(CLOSED_BY_PARENT) == _YES


# -- Opening and closing ---------------------------------------------------------------------------------------------


def _open(queue: Queue, world: World) -> Outcome:
    name, outcome = queue.metadata.name, Outcome()
    if queue.status.state != QUEUE_OPEN:
        parent = world.queues.named(queue.spec.parent)
        if parent is not None and parent.metadata.name != ROOT_QUEUE and parent.status.state in _SHUT:
            shut = f"its parent queue {parent.metadata.name} is closing or closed"
            text = f"Failed to open queue {name} because {shut}. Open the parent queue first."
            return outcome.then(warning(about(queue), OPEN_QUEUE, text, happened=True))
        _set_state(queue, QUEUE_OPEN, outcome)
        if CLOSED_BY_PARENT in queue.metadata.annotations and _closed_by_parent(queue):
            outcome.then(_mark(queue, _NO))
    children = [child for child in world.queues.children(name) if _closed_by_parent(child)]
    return outcome.then(*(Ask(child.metadata.name, OPEN_QUEUE) for child in children))


def _close(queue: Queue, world: World) -> Outcome:
    name, outcome = queue.metadata.name, Outcome()
    if name == ROOT_QUEUE:
        return outcome
    open_ones = [child for child in world.queues.children(name) if child.status.state not in _SHUT]
    outcome.then(*(_mark(child, _YES) for child in open_ones))
    outcome.then(*(Ask(child.metadata.name, CLOSE_QUEUE) for child in open_ones))
    if queue.status.state != QUEUE_CLOSED:
        _set_state(queue, QUEUE_CLOSED if _is_empty(name, world) else QUEUE_CLOSING, outcome)
        outcome.then(normal(about(queue), CLOSE_QUEUE, "Close queue succeed", happened=True))
    return outcome


def _set_state(queue: Queue, state: str, outcome: Outcome) -> None:
    if queue.status.state != state:
        outcome.then(Patch(QUEUES, "", queue.metadata.name, {"status": {"state": state}}, status=True))


def _mark(queue: Queue, text: str) -> Patch:
    return Patch(QUEUES, "", queue.metadata.name, {"metadata": {"annotations": {CLOSED_BY_PARENT: text}}})
