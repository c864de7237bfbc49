"""Disruption budgets: how many pods of an application may be taken away at a time."""

from __future__ import annotations

import msgspec

from stromboli.model.spec import LabelSelector


class DisruptionBudget(msgspec.Struct, frozen=True):
    """A PodDisruptionBudget: which pods of ``namespace`` it is about, and how many of them may still be disrupted.

    ``disrupted`` names pods whose eviction has been let through already and is counted in ``allowed``.
    """

    namespace: str
    name: str
    selector: LabelSelector | None = None
    allowed: int = 0
    disrupted: tuple[str, ...] = ()
