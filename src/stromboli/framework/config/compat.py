"""Where Stromboli departs from the reference, in one table, and the switch that brings the reference's way back.

``compat: volcano`` in the configuration restores every row marked ``restored``.  Code that differs asks
``Compat.asks(row)`` with the row's name; nothing else may look at the switch, so the table is complete by construction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from stromboli.framework.config.compat_claims import CLAIMS
from stromboli.framework.config.compat_controllers import CONTROLLERS
from stromboli.framework.config.compat_eviction import EVICTION
from stromboli.framework.config.compat_told import TOLD
from stromboli.framework.config.difference import Difference

_ROWS = (
    Difference(
        "budget-news",
        "A live eviction counts against its disruption budgets until their status tells of it.",
        "The status is believed as it is, also when its controller has not heard of the last evictions.",
        "serve and up, pdb",
        "Cycles follow one another faster than the disruption controller counts. In compat mode, too: a decision of "
        "one cycle is not touched, and the status catches up within moments.",
        restored=False,
    ),
    Difference(
        "bad-queue",
        "A queue in a cycle, with an unknown parent, with children beyond its own values or with a guarantee beyond "
        "what the whole cluster ever had quarantines its own subtree; `status.fault` and an event of the Queue and "
        "`explain` say why. A job in a queue with others below it waits alone.",
        "One bad queue, or a job in a queue with others below it, ends the check of all queues, and nothing is "
        "scheduled; sums beyond the parent's are only logged; a guarantee beyond the cluster leaves nothing to others.",
        "capacity with hierarchy; guarantees: capacity, proportion",
        "One team's mistake should not stop the others.",
    ),
    Difference(
        "dequeue-strategy",
        "In a queue of `dequeueStrategy: fifo` a job that waits keeps those behind it waiting, at enqueue and at "
        "allocate; each says so. A job whose minimum runs holds up no other.",
        "The field is read nowhere: all jobs of all queues are tried.",
        "enqueue, allocate",
        "The field says what it does.",
    ),
    Difference(
        "backfill-objections",
        "backfill leaves a pod waiting to whose placement a plugin objects, as every other action does.",
        "The objection is logged, and the pod is bound all the same.",
        "backfill",
        "A plugin objects where it could not reserve what the pod needs, such as a device of a claim.",
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
        "domain-need",
        "A part of a job is tried in HyperNodes that have room for the pods it still needs to start; if there are "
        "none, the job says what the nearest lacks.",
        "It is tried only where there is room for all its pending pods; a job that no HyperNode takes says nothing.",
        "network-topology-aware, allocate",
        "A gang that may grow need not wait for room for all of it.",
    ),
    Difference(
        "task-topology-undo",
        "A placement that is taken back no longer counts for where other tasks of the job go.",
        "It counts until the end of the session.",
        "task-topology",
        "Tasks should follow those that are there.",
    ),
    Difference(
        "vgpu-spread",
        "Spread scores cards that no pod shares yet by 100.",
        "The pod itself is counted before, so that every card scores 0.",
        "deviceshare",
        "The policy would do nothing.",
    ),
    Difference(
        "vgpu-mig-sizes",
        "A MIG card in use gives any free instance of its geometry.",
        "It gives only sizes of which one is taken already.",
        "deviceshare",
        "The other instances of the geometry would never be used.",
    ),
    Difference(
        "vgpu-mig-slots",
        "Each container gets a MIG instance of its own.",
        "Containers of one pod may get the same instance of a card.",
        "deviceshare",
        "An instance belongs to one container.",
    ),
    Difference(
        "vgpu-health",
        "A card whose device plugin says that it is unhealthy gets no further pods.",
        "Its health is read and not heeded.",
        "deviceshare",
        "A container would fail to start there.",
    ),
    Difference(
        "npu-memory",
        "A pod that asks for more memory than an NPU has is refused.",
        "It counts as one that asks for no memory.",
        "deviceshare",
        "It would share a full device.",
    ),
    Difference(
        "vgpu-terminating",
        "A pod that is bound gets no card that terminating pods still fill.",
        "Cards of terminating pods are free at once; only the node's amounts hold a pod back.",
        "deviceshare",
        "Two pods would share the memory of one.",
    ),
    Difference(
        "vgpu-lock",
        "A node's lock that a placement took is free again when the placement is taken back.",
        "It stays for five minutes.",
        "deviceshare",
        "Nothing waits for a pod that was not bound.",
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
        "Reservations are kept in annotations from cycle to cycle (gate PipelinedStatePersistence).",
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
        "over equal nodes as they do with the reference, and plugins see a node's pods in the order in which they "
        "came, its hash map's likeliest; the plan is still the same each time.",
    ),
    Difference(
        "fit-error-count",
        "N in `0/N nodes are unavailable` counts the nodes with a refusal when the text is read.",
        "N stays what it was when the text was first made, while the counts behind it grow.",
        "messages of unschedulable tasks",
        "A count that no longer agrees with its own list misleads. In compat mode, too: texts decide nothing.",
        restored=False,
    ),
    Difference(
        "log-levels",
        "`No preemptors in Queue` is logged at level 3.",
        "It is logged at level 4.",
        "log",
        "The description of preemption tells users to look for it at level 3. In compat mode, too: a log decides "
        "nothing.",
        restored=False,
    ),
    Difference(
        "root-status-twice",
        "A job in the queue `root` itself counts once in root's status.",
        "It counts twice.",
        "queue status",
        "A sum should be the sum.",
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
        "zone-budgets",
        "What a job can do without (`volcano.sh/jdb-…`) counts once for all revocable zones that are closed.",
        "It counts in each zone separately.",
        "tdm, shuffle",
        "A job with pods in two zones that close together would lose twice what its budget allows.",
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
        "rescheduling-unknown",
        "A node without a fresh sample is neither low nor high.",
        "It counts as idle, or with its last sample, however old.",
        "rescheduling",
        "Pods should not be moved because of unknown loads.",
    ),
    Difference(
        "usage-undone",
        "A pod whose eviction is taken back is expected to use what it was expected to use before.",
        "It is counted like a pod that has just come, on top of its measured load.",
        "usage, after a preemption that was tried and given up",
        "What is undone must leave no trace. In compat mode, too: the reference's scores depend on what was tried.",
        restored=False,
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
        "spared-pods",
        "A pod whose eviction is taken back counts again for filters and scores.",
        "For the rest of the cycle they see its node without it.",
        "predicates, nodeorder, after a discarded eviction",
        "Otherwise the nodes that an attempt failed on look emptier than they are.",
    ),
    Difference(
        "tentative-names",
        "What a cycle tries leaves no trace on the pods.",
        "A pod that was placed, but not bound, keeps the node's name: it counts as bound from the next cycle on, once "
        "a condition has been written on it.",
        "simulated runs of several cycles",
        "A pod that is not bound runs nowhere.",
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
        "node-selector-drop",
        "A node that no longer matches the scheduler's node selector leaves the cluster state.",
        "It stays with its last data until it is deleted.",
        "cluster state",
        "Stale data place pods on a node that belongs to another scheduler. In compat mode, too: a node is relabelled "
        "to take it away.",
        restored=False,
    ),
    Difference(
        "oversubscription-reset",
        "An oversubscription annotation that is removed counts as 0.",
        "The old amount stays in the cached node, not in its snapshots.",
        "cluster state",
        "One node should have one size. In compat mode, too: the reference's own snapshots say the same.",
        restored=False,
    ),
)

_ALL = (*_ROWS, *TOLD, *CLAIMS, *EVICTION, *CONTROLLERS)

DIFFERENCES: Mapping[str, Difference] = MappingProxyType({row.name: row for row in _ALL})
"""Every known difference by name."""


@dataclass(frozen=True, slots=True)
class Compat:
    """Whether the reference's way is asked for; ``on`` is the configuration's ``compat: volcano``.

    ``rows`` are restored without it, to find out whether they make a difference.
    """

    on: bool = False
    rows: frozenset[str] = frozenset()

    def asks(self, row: str) -> bool:
        """Whether to do as the reference does in this row; KeyError for a row that is not in the table."""
        return (self.on or row in self.rows) and DIFFERENCES[row].restored if row in DIFFERENCES else _unknown(row)


def _unknown(row: str) -> bool:
    raise KeyError(f"{row} is no row of the compatibility table; add it to stromboli.framework.config.compat")


def generate_page() -> str:
    """The documentation page of all differences, in Markdown."""
    head = ("Name", "Stromboli", "Reference", "Where", "Why", "With `compat: volcano`")
    rows = [(f"`{r.name}`", r.ours, r.reference, r.where, r.why, _restored(r)) for r in _ALL]
    lines = [" | ".join(("", *cells, "")).strip() for cells in (head, ("---",) * len(head), *rows)]
    return "\n".join([*_INTRODUCTION, "", *lines]) + "\n"


def _restored(row: Difference) -> str:
    return "as the reference" if row.restored else "as Stromboli"


_INTRODUCTION = """\
# Compatibility

Generated from the table in `stromboli.framework.config.compat`. Stromboli reads the same objects and configuration as
Volcano and decides as it does, except for the rows below. `compat: volcano` in the configuration (or
`--compat volcano`) brings the reference's way back wherever the last column says so.

Fields of Volcano's kinds, one by one, and what acts on each: [fields.md](fields.md).
""".splitlines()
