"""The part of the table of differences that is about victims, their preemptors, and reservations."""

from __future__ import annotations

from typing import Final

from stromboli.framework.config.difference import Difference

EVICTION: Final = (
    Difference(
        "agree-restart",
        "An empty intersection of victims ends its tier without victims; the next tier is asked.",
        "The next plugin of the same tier starts afresh with its own list.",
        "preempt, reclaim, gangpreempt, gangreclaim",
        "Only tasks that every voting plugin accepts should be evicted.",
    ),
    Difference(
        "protections-absolute",
        "What conformance or pdb refuses is taken from the candidates before the tiers vote; disruption budgets count "
        "the evictions already decided in the cycle, and of the candidates only those that the vote names.",
        "An empty answer only ends its own tier; budgets are fresh at each call, and candidates that other plugins "
        "spare use them up.",
        "preempt, reclaim, gangpreempt, gangreclaim, shuffle",
        "A protection that another tier can overrule protects nothing.",
    ),
    Difference(
        "minimal-victims",
        "Victims that turn out not to be needed for the job are reprieved (option `minimal-victims`, on by default).",
        "All victims selected before the decisive one stay evicted.",
        "preempt, reclaim, gangpreempt, gangreclaim",
        "An unnecessary eviction only costs work.",
    ),
    Difference(
        "idle-room",
        "Idle room is left to allocate and backfill: a starving job that fits into it evicts no pod and reserves "
        "nothing. Only a gang that cannot run without an eviction holds idle room in addition to the room made for it.",
        "preempt and the gang actions reserve idle room, which is bound in a later cycle; reclaim evicts wherever "
        "there are victims.",
        "preempt, reclaim, gangpreempt, gangreclaim",
        "Room that is there needs no victims, and a pod should not wait a cycle for it.",
    ),
    Difference(
        "fewest-victims",
        "Of the first eight nodes the one with the fewest and least important victims is taken, and of its victims "
        "those that free most of what is missing (with reservations that outlive a session, and `minimal-victims`).",
        "The first node in order on which all victims together would be enough, and its victims in order.",
        "preempt, reclaim",
        "What is freed for a pod stays its own, so it pays to look where that costs least.",
    ),
    Difference(
        "patience",
        "Victims that take longer than usual to end are told to go only after the job has looked for other room for a "
        "part of that time (argument `patience`; with reservations that outlive a session).",
        "They are evicted at once.",
        "preempt, reclaim",
        "Other room often becomes free meanwhile, and then no pod has to be evicted.",
    ),
    Difference(
        "nominated-hypernode",
        "A sub-job's nominated hypernode lasts until its victims are gone.",
        "It is forgotten at the end of its session.",
        "gangpreempt, gangreclaim, allocate",
        "The room that was freed should be taken by the job it was freed for.",
    ),
    Difference(
        "placed-once",
        "A pod has the one place that a gang action has reserved for it.",
        "allocate places it a second time in the same cycle, and the first place stays taken until that is over.",
        "gangpreempt, gangreclaim, allocate",
        "A place that is held twice is room lost.",
    ),
    Difference(
        "gang-predicates",
        "A gang that evicts is placed by every predicate, its victims being gone.",
        "A refusal that some eviction might cure does not count, whether or not this one cures it.",
        "gangpreempt, gangreclaim",
        "No pod should be evicted for one that will not fit afterwards.",
    ),
    Difference(
        "reclaim-shares",
        "Reclaiming takes from a queue only what it holds beyond its deserved share.",
        "The queue plugin is asked only where its tier is reached: not where gang stands in an earlier one.",
        "reclaim, gangreclaim",
        "What a queue deserves it should keep, in whatever tier its plugin stands.",
    ),
    Difference(
        "gate-victims",
        "A pod that its queue's gate had let in gives its part of the queue back when it is evicted.",
        "Its part stays reserved for it, so that evicting it makes no room in the queue.",
        "capacity with SchedulingGatesQueueAdmission, preempt",
        "The pod is deleted, and its successor is admitted again.",
    ),
    Difference(
        "nominated-for-pods",
        "A node where pods are evicted for a pod is nominated for it.",
        "Only if those evicted asked for an amount of something.",
        "preempt, reclaim",
        "A place among the pods of a node is room, too.",
    ),
    Difference(
        "nominated-node-gone",
        "A pod whose nominated node is not there any more may preempt elsewhere.",
        "It may not before the node is back: a nomination ends only by another one.",
        "preempt",
        "A node that was taken away for good would keep the pod from preempting for ever.",
    ),
    Difference(
        "nominated-without-room",
        "A pod whose nominated node has lost its room, or has none for the rest of its gang, may preempt again.",
        "It may not once the cycle has looked at the pod before, as long as predicates let it on that node.",
        "preempt",
        "Another pod may have taken the room that was made, or some victims were never evicted; waiting for it "
        "would never end.",
    ),
)
