"""What jobs ask about closeness, in the terms of a session, and where their placed tasks already are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from stromboli.api.fields import HARD, SOFT, NetworkTopology
from stromboli.framework.books.plan import HyperNodeUpdate, Nomination
from stromboli.model.job import HELD_STATUS, PENDING, Job
from stromboli.model.status import ALLOCATED_STATUS, TaskStatus
from stromboli.model.subjobs import SubJob, assign
from stromboli.model.task import Task
from stromboli.model.topology import lowest_common

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView
    from stromboli.framework.statement.session_state import SessionState


UNKNOWN_TIER: Final = "UnknownTier"
"""The reason of events on PodGroups that ask for a tier which does not exist."""


def has_topology(job: Job) -> bool:
    """Whether the job or a part of it asks to stay close together."""
    return job.facts.is_close


def is_hard(topology: NetworkTopology | None) -> bool:
    """Whether ``topology``, of a session's terms, sets a bound; a hard one without a tier does not."""
    return topology is not None and topology.mode == HARD and topology.highest_tier_allowed is not None


def hardened(topology: NetworkTopology, tiers: Mapping[str, int], widest: int) -> NetworkTopology:
    """``topology`` with its tier as a number, where ``tiers`` knows the name; a soft one is hard up to ``widest``."""
    tier = tiers.get(topology.highest_tier_name, topology.highest_tier_allowed)
    return NetworkTopology(HARD, widest if topology.mode == SOFT else tier, topology.highest_tier_name)


def job_topology(session: ClusterView, job: Job) -> NetworkTopology | None:
    """What ``job`` asks in the session's terms: never soft, tiers by number; None when it asks nothing."""
    stated = job.facts.network_topology
    return None if stated is None else hardened(stated, session.hyper_nodes.tiers, session.hyper_nodes.top.tier)


def parts(session: SessionState, job: Job, before: Mapping[str, SubJob]) -> dict[str, SubJob]:
    """The sub-jobs of ``job`` by id, with topologies in the session's terms; places are kept from ``before``."""
    found = assign(job)
    whole = job_topology(session, job)
    widest = session.hyper_nodes.top.tier
    if whole is not None and whole.highest_tier_allowed is not None:
        widest = whole.highest_tier_allowed
    for uid, part in found.items():
        if part.network_topology is not None:
            part.network_topology = hardened(part.network_topology, session.hyper_nodes.tiers, widest)
        known = before[uid].allocated_hyper_node if uid in before else job.hyper_nodes.of_parts.get(uid, "")
        part.allocated_hyper_node = known
    return found


def nominate(session: SessionState, job: Job, places: Mapping[str, str]) -> None:
    """Keep for later cycles that sub-jobs of ``job`` wait for room in hypernodes; an empty name: no more.

    In the reference's way that lasts as long as the session.
    """
    lasts = not session.compat.asks("nominated-hypernode")
    known = job.hyper_nodes.nominated
    moved = [(sub_job, hyper_node) for sub_job, hyper_node in places.items() if known.get(sub_job, "") != hyper_node]
    if moved:
        job.hyper_nodes = job.hyper_nodes.with_nominated(moved)
    if lasts:
        session.plan.nominations += [Nomination(job.uid, sub_job, hyper_node) for sub_job, hyper_node in moved]


# ---------------------------------------------------------------------- as a session opens


def settle(session: SessionState) -> None:
    """Report tier names that no HyperNode has, and bring the hypernodes that jobs are said to occupy up to date.

    The session's copy of a job whose hypernode changes gets the new one, and the job counts as dirty.
    """
    ready = session.snapshot.hyper_nodes_ready
    jobs, close_jobs = session.snapshot.jobs, session.snapshot.close_jobs
    for uid in jobs if close_jobs is None else close_jobs:
        job = jobs[uid]
        close = has_topology(job)
        if close:
            _warn(session, job)
        if ready and (job.hyper_nodes.allocated or job.hyper_nodes.of_parts):
            _remove_invalid(session, job)
        if ready and close and any(True for _ in job.of(*ALLOCATED_STATUS)):
            _recover(session, session.jobs.peek_at(job.uid) or job)


def _warn(session: SessionState, job: Job) -> None:
    policies = job.group.spec.sub_group_policy
    asked = (job.facts.network_topology, *(policy.network_topology for policy in policies))
    names = dict.fromkeys(topology.highest_tier_name for topology in asked if topology is not None)
    for name in names:
        if name and name not in session.hyper_nodes.tiers:
            if say := session.tells("complaint"):
                say(text=f"job {job.uid} asks for hypernode tier {name:.63}, which no HyperNode bears")
            if PENDING in job.index and not session.compat.asks("hyper-nodes-told"):
                text = f"highestTierName is {name:.63}, which no HyperNode bears, so that it bounds nothing"
                session.pod_groups.record_event(job, "Warning", UNKNOWN_TIER, text)


def _remove_invalid(session: SessionState, job: Job) -> None:
    """Forget the hypernodes of a job and of its parts that are gone, or where nothing is placed any more."""
    name = job.hyper_nodes.allocated
    if name and not _stands(session, name, job.of(*ALLOCATED_STATUS)):
        own = session.jobs[job.uid]
        own.hyper_nodes = own.hyper_nodes.with_allocated("")
        session.pod_groups.moved.add(job.uid)
        if say := session.tells("hyper_node_removed_job"):
            say(job=job.uid, hyper_node=name)
    if job.hyper_nodes.of_parts:
        _remove_invalid_parts(session, session.jobs[job.uid])


def _remove_invalid_parts(session: SessionState, job: Job) -> None:
    for part in session.sub_jobs(job).values():
        name = part.allocated_hyper_node
        if name and not _stands(session, name, (task for task in part.tasks if task.status in ALLOCATED_STATUS)):
            part.allocated_hyper_node = ""
            session.pod_groups.moved.add(job.uid)
            if say := session.tells("hyper_node_removed_sub_job"):
                say(job=job.uid, sub_job=part.uid, hyper_node=name)


def _stands(session: SessionState, name: str, placed: Iterable[Task]) -> bool:
    """Whether there is such a hypernode, and anything placed."""
    info = session.hyper_nodes.get(name)
    return info is not None and info.known and any(True for _ in placed)


def _recover(session: SessionState, job: Job) -> None:
    """Find the hypernodes of a job's parts from the nodes of their tasks, and the job's from those."""
    subs, moved = session.sub_jobs(job), False
    for sub in subs.values():
        if sub.network_topology is None or sub.allocated_hyper_node:
            continue
        sub.allocated_hyper_node = _closest(session, sub.tasks)
        if sub.allocated_hyper_node:
            moved = True
            if say := session.tells("hyper_node_updated_sub_job"):
                say(job=job.uid, sub_job=sub.uid, old_hyper_node="", hyper_node=sub.allocated_hyper_node)
    if moved or not job.hyper_nodes.allocated:
        _set_place(session, job, subs)
    if moved:
        session.pod_groups.moved.add(job.uid)


def _set_place(session: SessionState, job: Job, subs: Mapping[str, SubJob]) -> None:
    place, old = "", job.hyper_nodes.allocated
    for sub in subs.values():
        place = lowest_common(session.hyper_nodes, place, sub.allocated_hyper_node)
    if place == old:
        return
    own = session.jobs[job.uid]
    own.hyper_nodes = own.hyper_nodes.with_allocated(place)
    session.pod_groups.moved.add(job.uid)
    if say := session.tells("hyper_node_updated_job"):
        say(job=job.uid, old_hyper_node=old, hyper_node=place)


def violates_topology(session: SessionState, job: Job) -> set[str]:
    """The uids of the tasks of ``job`` that hold reservations farther from its others, or its part's, than they may.

    Where they do not, what they hold is where the session takes the job and its parts to be.
    """
    found: set[str] = set()
    for part in session.sub_jobs(job).values():
        place = _allowed_place(session, part.network_topology, part.tasks)
        if place is None:
            found.update(part.task_uids)
        elif not part.allocated_hyper_node:
            part.allocated_hyper_node = place
    place = _allowed_place(session, job_topology(session, job), [t for t in job.tasks.values() if t.uid not in found])
    if place is None:
        return set(job.tasks)
    job.hyper_nodes = job.hyper_nodes.with_allocated(job.hyper_nodes.allocated or place)
    return found


def _allowed_place(session: SessionState, topology: NetworkTopology | None, tasks: Iterable[Task]) -> str | None:
    """The hypernode that holds what ``tasks`` hold, empty where nothing is asked; None where it is too wide."""
    place = _closest(session, tasks, HELD_STATUS) if topology is not None else ""
    if not place or topology is None or topology.highest_tier_allowed is None:
        return place
    return place if session.hyper_nodes[place].tier <= topology.highest_tier_allowed else None


def _closest(session: SessionState, tasks: Iterable[Task], statuses: Collection[TaskStatus] = ALLOCATED_STATUS) -> str:
    """The hypernode of the lowest tier that holds the nodes of ``tasks`` in ``statuses``; empty when none does."""
    nodes = {task.node_name for task in tasks if task.status in statuses}
    if not nodes:
        return ""
    tiers, below = session.hyper_nodes.by_tier, session.hyper_nodes.node_names
    return next((name for names in tiers.values() for name in names if nodes <= below[name]), "")


def grown(session: ClusterView, lies_in: str, row: int) -> str:
    """The hypernode of what lies in ``lies_in`` and on node ``row`` together; nodes count by their closest tier."""
    node, below = session.table.statics.names[row], session.hyper_nodes.node_names
    if lies_in and node in below[lies_in]:
        return lies_in
    closest = next(iter(session.hyper_nodes.by_tier.values()))
    return lowest_common(session.hyper_nodes, next((name for name in closest if node in below[name]), ""), lies_in)


# ---------------------------------------------------------------------- as it closes


def carry_over(session: SessionState) -> None:
    """Put the hypernodes of jobs whose placement has changed into the plan."""
    for uid in sorted(session.pod_groups.moved & session.jobs.keys()):
        job = session.jobs[uid]
        found = session.sub_jobs(job).values()
        places = {part.uid: part.allocated_hyper_node for part in found if part.allocated_hyper_node}
        session.plan.hyper_nodes.append(HyperNodeUpdate(uid, job.hyper_nodes.allocated, places))


__all__ = ["carry_over", "grown", "hardened", "has_topology", "is_hard", "job_topology", "nominate", "parts", "settle"]
