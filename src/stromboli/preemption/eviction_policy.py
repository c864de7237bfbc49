"""How preempt and reclaim differ in their searches for victims."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EvictionPolicy:
    """How an action evicts pods.

    ``point`` is the extension point that names victims, ``reason`` the reason of evictions.  ``bound`` allows victims
    that do not run yet, ``without_victims`` allows nodes with room, but without victims.  ``checked``: quota and
    predicates are evaluated after each eviction, and nodes are tried by score; otherwise room decides, and nodes are
    tried in node order.  ``quota`` is the point that says what the queue may have.  ``trying`` and ``done`` are keys of
    the catalogue.
    """

    point: str
    reason: str
    bound: bool
    without_victims: bool
    checked: bool
    quota: str
    trying: str
    done: str


PREEMPT = EvictionPolicy(
    "preemptable",
    "preempt",
    bound=True,
    without_victims=True,
    checked=True,
    quota="allocatable",
    trying="preempt_victim",
    done="preempted",
)
RECLAIM = EvictionPolicy(
    "reclaimable",
    "reclaim",
    bound=False,
    without_victims=False,
    checked=False,
    quota="preemptive",
    trying="reclaim_victim",
    done="reclaimed",
)
