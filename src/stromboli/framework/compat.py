"""Where Stromboli departs from the reference, in one table, and the switch that brings the reference's way back.

``compat: volcano`` in the configuration restores every row marked ``restored``.  Code that differs asks
``Compat.asks(row)`` with the row's name; nothing else may look at the switch, so the table is complete by construction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Difference:
    """One row: its name, what each side does, where it shows, and why ours differs.

    ``restored`` is False where compat mode keeps our way; ``why`` then says why that is safe.
    """

    name: str
    ours: str
    reference: str
    where: str
    why: str
    restored: bool = True


_ROWS = (
    Difference(
        "agree-restart",
        "An intersection of victims that comes out empty ends its tier with nobody; the next tier is asked.",
        "The next plugin of the same tier starts afresh with its own list.",
        "preempt, reclaim, gangpreempt, gangreclaim",
        "Only tasks that every voting plugin accepts should be evicted.",
    ),
    Difference(
        "protections-absolute",
        "What conformance or pdb refuses is taken from the candidates before the tiers vote, and disruption budgets "
        "count the evictions already decided in the cycle.",
        "An empty answer only ends its own tier, and budgets are fresh at each call.",
        "preempt, reclaim, gangpreempt, gangreclaim, shuffle",
        "A protection that another tier can overrule protects nothing.",
    ),
    Difference(
        "bad-queue",
        "A queue in a cycle, with an unknown parent or with children beyond its own values quarantines its own "
        "subtree; its status and `explain` say why.",
        "One bad queue ends the check of all queues, and nothing is scheduled.",
        "capacity with hierarchy",
        "One team's mistake should not stop the others.",
    ),
    Difference(
        "root-queue",
        "Capability, deserved and guarantee of the queue `root` are not enforced; its values are still inherited.",
        "They are checked and enforced like any queue's.",
        "capacity with hierarchy",
        "Root stands for the cluster; its written values go stale as nodes come and go.",
    ),
    Difference(
        "unset-dimensions",
        "A dimension is unset when the Queue's spec leaves it out; a computed zero limits.",
        "A value of zero counts as unset.",
        "proportion, capacity",
        "A share that was computed as zero is a limit, not the lack of one.",
    ),
    Difference(
        "usage-missing",
        "A node without usage data scores 0.",
        "Where the period asked for is missing and the time stamp is fresh, it is scored as idle, in full.",
        "usage",
        "Unknown is not the same as idle.",
    ),
    Difference(
        "node-sampling",
        "All nodes are looked at unless a sampling flag is set explicitly.",
        "From 100 nodes on, a part of them is looked at, from a moving start.",
        "allocate, backfill, preempt, reclaim",
        "Whole vectors are cheap, and the best node should not depend on where the last scan ended.",
    ),
    Difference(
        "persisted-reservations",
        "Reservations may be kept in annotations from cycle to cycle (gate PipelinedStatePersistence).",
        "A reservation ends with its session.",
        "allocate, preempt, snapshot",
        "A reserved node should not be lost to another job in the next cycle.",
    ),
    Difference(
        "config-strictness",
        "An unknown plugin, action, switch or key is refused with file, line and the nearest known name.",
        "Unknown keys are ignored, unknown plugins are skipped with one log line a session; an unknown action rejects "
        "the file and the previous configuration stays.",
        "configuration",
        "A misspelt name silently turns a policy off.",
    ),
    Difference(
        "switch-spelling",
        "Both `enableX` and `enabledX` are known for every switch; where both stand, the reference's own wins.",
        "Only one spelling of each switch is known; the other is ignored.",
        "configuration",
        "The two spellings are easily mixed up, and the first description of the session uses the other one.",
    ),
    Difference(
        "close-order",
        "Plugins close in the reverse of their opening order.",
        "Plugins close in the order of a hash map.",
        "end of a session",
        "What was built last may rest on what was built first. Ours is one of the reference's possible orders.",
        restored=False,
    ),
    Difference(
        "tie-break",
        "Among equals the first in a total order wins: nodes by name, jobs and tasks by creation time, then uid; "
        "`tie-break: seeded` draws with a recorded seed.",
        "Draws at random, or takes the order of a hash map.",
        "all actions",
        "The same input must give the same plan. In compat mode nodes are drawn with the seed, so that loads spread "
        "over equal nodes as they do with the reference, and the plan is still the same each time.",
    ),
    Difference(
        "fit-error-count",
        "N in `0/N nodes are unavailable` counts the nodes with a refusal when the text is read.",
        "N stays what it was when the text was first made, while the counts behind it grow.",
        "messages of unschedulable tasks",
        "A count that no longer agrees with its own list misleads.",
    ),
    Difference(
        "log-levels",
        "`No preemptors in Queue` is logged at level 3.",
        "It is logged at level 4.",
        "log",
        "The description of preemption tells users to look for it at level 3.",
    ),
    Difference(
        "root-status-twice",
        "A job in the queue `root` itself counts once in root's status.",
        "It counts twice.",
        "queue status",
        "A sum should be the sum.",
    ),
    Difference(
        "nominated-hypernode",
        "A sub-job's nominated hypernode lasts until its victims are gone.",
        "It is forgotten at the end of its session.",
        "gangpreempt, gangreclaim, allocate",
        "The room that was freed should be taken by the job it was freed for.",
    ),
    Difference(
        "device-class-scalars",
        "`deviceclass/` keys of a Queue count for devices only.",
        "They also count as ordinary scalar resources, so that such a guarantee is never reclaimed and such a deserved "
        "makes every task a victim.",
        "capacity",
        "A limit on devices says nothing about reclaiming cpu.",
    ),
    Difference(
        "pdb-shuffle",
        "pdb filters the victims that other plugins name for shuffle.",
        "pdb itself names every labelled running pod within its budget.",
        "pdb, shuffle",
        "A disruption budget is a limit, not a wish.",
    ),
    Difference(
        "zone-over-midnight",
        "A revocable zone from 22:00 to 06:00 is active after midnight, too.",
        "It is inactive from midnight to its end.",
        "tdm",
        "That is what the two times say.",
    ),
    Difference(
        "quota-text",
        "An exceeded quota is printed as `map[cpu:2]`.",
        "It is printed with the inside of the quantity.",
        "resourcequota, event of the PodGroup",
        "The text is for people.",
    ),
    Difference(
        "rescheduling-period",
        "`metricsPeriod` is 10m unless written.",
        "It is 5m, a period for which no data are collected, so that nothing is ever evicted.",
        "rescheduling",
        "The default should work.",
    ),
    Difference(
        "rescheduling-budget",
        "A node's evictions end when a budget is used up, and the task is found by namespace and name.",
        "They end when a budget is exactly zero, and the task is found by its name alone.",
        "rescheduling",
        "An overdrawn budget is used up, and names repeat across namespaces.",
    ),
    Difference(
        "gpu-spread",
        "A card without sharers scores 100 for spread, looked at before the pod is added.",
        "The pod itself is counted as a sharer, so that the score is always 0.",
        "deviceshare",
        "A policy that scores every card alike spreads nothing.",
    ),
    Difference(
        "usage-stamp",
        "A failed or empty usage query leaves the old sample and its time.",
        "It leaves 0 with a fresh time, so that an unmonitored node looks idle.",
        "usage, rescheduling",
        "Unknown is not the same as idle.",
    ),
    Difference(
        "node-map",
        "Scores see the pods that the session has placed, whatever plugins are configured.",
        "Only predicates tells the scorers of placements; without it they see the nodes as they were at open.",
        "nodeorder without predicates",
        "Otherwise every pod of a cycle goes to the node that was best before the first.",
    ),
    Difference(
        "placed-terms",
        "A pod placed in this session has its anti-affinity and preferences respected by those placed after it.",
        "Only if its node held such a pod when the session opened.",
        "predicates, nodeorder",
        "Anti-affinity that a busy cycle forgets puts pods together that asked to be apart.",
    ),
    Difference(
        "image-counts",
        "An image counts for every node by the number of nodes that hold it.",
        "For each node by the number of nodes known to hold it when that node was last heard of.",
        "nodeorder",
        "The order in which nodes report says nothing about their images.",
    ),
    Difference(
        "dra-switch",
        "`predicate.DynamicResourceAllocationEnable` is read.",
        "Only the feature gate counts.",
        "predicates",
        "A documented switch should switch.",
    ),
    Difference(
        "node-selector-drop",
        "A node that no longer matches the scheduler's node selector leaves the cluster state.",
        "It stays with its last data until it is deleted.",
        "cluster state",
        "Stale data place pods on a node that is somebody else's.",
    ),
    Difference(
        "oversubscription-reset",
        "An oversubscription annotation that is removed counts as 0.",
        "The old amount stays in the cached node, not in its snapshots.",
        "cluster state",
        "One node should have one size.",
    ),
    Difference(
        "retained-pods",
        "Pods that a finished job retains count in its status by their phase.",
        "They don't count.",
        "job controller",
        "A job that completed with one succeeded pod has succeeded 1.",
    ),
)

DIFFERENCES: Mapping[str, Difference] = MappingProxyType({row.name: row for row in _ROWS})
"""Every known difference by name."""


@dataclass(frozen=True, slots=True)
class Compat:
    """Whether the reference's way is asked for; ``on`` is the configuration's ``compat: volcano``."""

    on: bool = False

    def asks(self, row: str) -> bool:
        """Whether to do as the reference does in this row; KeyError for a row that is not in the table."""
        return self.on and DIFFERENCES[row].restored if row in DIFFERENCES else _unknown(row)


def _unknown(row: str) -> bool:
    raise KeyError(f"{row} is no row of the compatibility table; add it to stromboli.framework.compat")


def generate_page() -> str:
    """The documentation page of all differences, in Markdown."""
    head = ("Name", "Stromboli", "Reference", "Where", "Why", "With `compat: volcano`")
    rows = [(f"`{r.name}`", r.ours, r.reference, r.where, r.why, _restored(r)) for r in _ROWS]
    lines = [" | ".join(("", *cells, "")).strip() for cells in (head, ("---",) * len(head), *rows)]
    return "\n".join([*_INTRODUCTION, "", *lines]) + "\n"


def _restored(row: Difference) -> str:
    return "as the reference" if row.restored else "as Stromboli"


_INTRODUCTION = """\
# Compatibility

Generated from the table in `stromboli.framework.compat`. Stromboli reads the same objects and configuration as Volcano
and decides as it does, except for the rows below. `compat: volcano` in the configuration (or `--compat volcano`) brings
the reference's way back wherever the last column says so.
""".splitlines()
