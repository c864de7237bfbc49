"""What jobs ask about closeness, in the terms of a session, and where their placed tasks already are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from stromboli.model.job import Job
from stromboli.model.podgroup import NetworkTopology
from stromboli.model.status import ALLOCATED_STATUS
from stromboli.model.subjobs import SubJob, assign
from stromboli.model.task import Task
from stromboli.model.topology import lowest_common

if TYPE_CHECKING:
    from stromboli.framework.session import Session


def has_topology(job: Job) -> bool:
    """Whether the job or a part of it asks to stay close together."""
    if job.facts.network_topology is not None:
        return True
    policies = job.facts.group.spec.sub_group_policy
    return bool(policies) and any(policy.network_topology is not None for policy in policies)


def is_hard(topology: NetworkTopology | None) -> bool:
    """Whether ``topology``, of a session's terms, sets a bound; a hard one without a tier does not."""
    return topology is not None and topology.mode == "hard" and topology.highest_tier_allowed is not None


def hardened(topology: NetworkTopology, tiers: Mapping[str, int], widest: int) -> NetworkTopology:
    """``topology`` with its tier as a number, where ``tiers`` knows the name; a soft one is hard up to ``widest``."""
    tier = tiers.get(topology.highest_tier_name, topology.highest_tier_allowed)
    return NetworkTopology("hard", widest if topology.mode == "soft" else tier, topology.highest_tier_name)


def job_topology(session: Session, job: Job) -> NetworkTopology | None:
    """What ``job`` asks in the session's terms: never soft, tiers by number; None when it asks nothing."""
    stated = job.facts.network_topology
    return None if stated is None else hardened(stated, session.hyper_node_tier_name_map, session.top.tier)


def parts(session: Session, job: Job, before: Mapping[str, SubJob]) -> dict[str, SubJob]:
    """The sub-jobs of ``job`` by id, with topologies in the session's terms; places are kept from ``before``."""
    found = assign(job)
    whole = job_topology(session, job)
    widest = session.top.tier
    if whole is not None and whole.highest_tier_allowed is not None:
        widest = whole.highest_tier_allowed
    for uid, part in found.items():
        if part.network_topology is not None:
            part.network_topology = hardened(part.network_topology, session.hyper_node_tier_name_map, widest)
        if uid in before:
            part.allocated_hyper_node = before[uid].allocated_hyper_node
    return found


# ---------------------------------------------------------------------- as a session opens


def settle(session: Session) -> None:
    """Say which tier names nobody bears, and bring the hypernodes that jobs are said to occupy up to date.

    The session's copy of a job whose hypernode changes gets the new one, and the job counts as dirty.
    """
    ready = session.hyper_nodes_ready_to_schedule
    for job in session.peek_jobs():
        close = has_topology(job)
        if close:
            _warn(session, job)
        if ready and job.allocated_hyper_node:
            _remove_invalid(session, job)
        if ready and close and any(True for _ in job.of(*ALLOCATED_STATUS)):
            _recover(session, session.jobs.peek_at(job.uid) or job)


def _warn(session: Session, job: Job) -> None:
    policies = job.group.spec.sub_group_policy
    for topology in (job.facts.network_topology, *(policy.network_topology for policy in policies)):
        name = topology.highest_tier_name if topology is not None else ""
        if name and name not in session.hyper_node_tier_name_map and (say := session.tells("complaint")):
            say(text=f"job {job.uid} asks for hypernode tier {name:.63}, which no HyperNode bears")


def _remove_invalid(session: Session, job: Job) -> None:
    """Forget the hypernode of a job when it is gone, or when nothing of the job is placed any more."""
    name = job.allocated_hyper_node
    info = session.hyper_nodes.get(name)
    if info is not None and info.known and any(True for _ in job.of(*ALLOCATED_STATUS)):
        return
    session.jobs[job.uid].allocated_hyper_node = ""
    session.mark_job_dirty(job.uid)
    if say := session.tells("hyper_node_removed_job"):
        say(job=job.uid, hyper_node=name)


def _recover(session: Session, job: Job) -> None:
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
    if moved or not job.allocated_hyper_node:
        _set_place(session, job, subs)
    if moved:
        session.mark_job_dirty(job.uid)


def _set_place(session: Session, job: Job, subs: Mapping[str, SubJob]) -> None:
    place, old = "", job.allocated_hyper_node
    for sub in subs.values():
        place = lowest_common(session.hyper_nodes, place, sub.allocated_hyper_node)
    if place == old:
        return
    session.jobs[job.uid].allocated_hyper_node = place
    session.mark_job_dirty(job.uid)
    if say := session.tells("hyper_node_updated_job"):
        say(job=job.uid, old_hyper_node=old, hyper_node=place)


def _closest(session: Session, tasks: Iterable[Task]) -> str:
    """The hypernode of the lowest tier that holds the nodes of all placed ``tasks``; empty when none does."""
    nodes = {task.node_name for task in tasks if task.status in ALLOCATED_STATUS}
    if not nodes:
        return ""
    tiers, below = session.hyper_nodes_set_by_tier, session.real_nodes_set
    return next((name for names in tiers.values() for name in names if nodes <= below[name]), "")


__all__ = ["hardened", "has_topology", "is_hard", "job_topology", "parts", "settle"]
