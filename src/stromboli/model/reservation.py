"""Reservations that outlive a session: a waiting pod's claim on the room of one node, written in its annotations.

This is the one place that reads and writes the three annotations.  A fourth one proves that they are the scheduler's
(:mod:`stromboli.model.proof`); it is written together with them, and goes with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from stromboli.model.names import EVICTION_OCCURRED, PIPELINED_NODE, PIPELINED_PROOF, PIPELINED_STATUS
from stromboli.model.status import TaskStatus
from stromboli.model.task import Task, twin

KEYS: Final = (PIPELINED_STATUS, PIPELINED_NODE, EVICTION_OCCURRED)
"""The annotations that a reservation is written in."""

_KEYS: Final = frozenset(KEYS)
_ALL: Final = (*KEYS, PIPELINED_PROOF)
_YES: Final = "true"


class Held(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Room on ``node`` is held; ``evicted`` says that tasks were evicted for it."""

    node: str
    evicted: bool = False


def mentioned(annotations: Mapping[str, str]) -> bool:
    """Whether ``annotations`` say anything of a reservation, be it usable or not."""
    return not _KEYS.isdisjoint(annotations)


def written(annotations: Mapping[str, str]) -> dict[str, str]:
    """What ``annotations`` say of a reservation, be it usable or not; empty where they say nothing."""
    return {key: annotations[key] for key in KEYS if key in annotations}


def read(annotations: Mapping[str, str]) -> Held | None:
    """The reservation that ``annotations`` state; None where there is none, or not a whole one."""
    node = annotations.get(PIPELINED_NODE, "")
    if not node or annotations.get(PIPELINED_STATUS) != _YES:
        return None
    return Held(node, annotations.get(EVICTION_OCCURRED) == _YES)


def stated(held: Held | None) -> dict[str, str]:
    """The annotations that state ``held``; none for no reservation."""
    if held is None:
        return {}
    return {PIPELINED_STATUS: _YES, PIPELINED_NODE: held.node, **({EVICTION_OCCURRED: _YES} if held.evicted else {})}


def patch(held: Held | None, proof: str = "") -> dict[str, str | None]:
    """A merge patch of the annotations that makes them state ``held``, whatever they stated: None deletes a key."""
    return {**dict.fromkeys(_ALL), **stated(held), **({PIPELINED_PROOF: proof} if proof else {})}


def without(annotations: Mapping[str, str]) -> dict[str, str]:
    """``annotations`` less what they say of a reservation, its proof included."""
    return {key: value for key, value in annotations.items() if key not in _ALL}


def restated(annotations: Mapping[str, str], held: Held | None, proof: str = "") -> dict[str, str]:
    """``annotations`` with ``held`` (None: no reservation) and its proof in the place of what they stated."""
    return {**without(annotations), **stated(held), **({PIPELINED_PROOF: proof} if proof else {})}


def take_up(task: Task) -> None:
    """Let ``task`` hold what its annotations state, if it waits: pods that are gated, placed or ending hold nothing."""
    if task.status is TaskStatus.Pending and not task.gates and (held := read(task.annotations)) is not None:
        task.status, task.node_name, task.eviction_occurred = TaskStatus.Pipelined, held.node, held.evicted


def with_reservation(task: Task, held: Held | None, proof: str = "") -> Task:
    """``task`` as it is once ``held`` (None: no reservation) is written on its pod, with that ``proof``."""
    changed = twin(task)
    changed.annotations = restated(task.annotations, held, proof)
    if changed.status is TaskStatus.Pipelined:
        changed.status, changed.node_name, changed.eviction_occurred = TaskStatus.Pending, "", False
    take_up(changed)
    return changed
