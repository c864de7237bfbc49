"""Jobs that are about to be submitted, on the cluster of a recorded moment."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from msgspec.structs import replace

from stromboli.cluster.complete import Grouping, ungrouped
from stromboli.cluster.decoding.decode import job_facts
from stromboli.cluster.state import ClusterState
from stromboli.framework.config.registry import Registry
from stromboli.journal.checkpoint import Checkpoint, restored
from stromboli.sim.explanation.for_good import refused_for_good
from stromboli.sim.loading import Loading
from stromboli.sim.planning import Planning
from stromboli.study.calibration import LEVELS
from stromboli.study.eta import Eta
from stromboli.study.replay import Moment

REFUSED: Final = "the scheduler refuses it, whatever ends: {why}"
"""What is said of a job that can never start, in place of a number."""


def submitted(
    moment: Moment, registry: Registry, file: Path | None, grouping: Grouping = ungrouped
) -> tuple[Planning, list[str]]:
    """The cluster of ``moment`` with the jobs of ``file``, and their uids; its cycle has not run.

    ``grouping`` puts pods of the file into the gangs of their owners.
    Raises ManifestError, and OSError.
    """
    planning = Planning(moment.config, registry, now=moment.cut.now, seed=moment.cut.seed, strict=True)
    planning.state = restored(Checkpoint(moment.rim.state).encode(), again=True)
    planning.loading = Loading(planning.state, strict=False, grouping=grouping)
    before = set(planning.state.jobs)
    if file is not None:
        queues = dict(planning.state.queues)
        planning.load([file])
        planning.state.queues.update(queues)  # what stands of them, instead of what a file without them would need
    jobs = [uid for uid in planning.state.jobs if uid not in before]
    for uid in jobs:
        _come(planning.state, uid, int(moment.cut.now))
    return planning, jobs


def _come(state: ClusterState, uid: str, now: int) -> None:
    """Let a job of a file stand behind those that wait already, unless the file says when it came.

    One whose PodGroup is missing stays without it.
    """
    job = state.jobs[uid]
    group = job.group
    if job.facts.queue and not group.created:
        state.set_group(job_facts(replace(group, created=now), state.default_queue, state.axes))


def withheld(planning: Planning, found: Eta) -> Eta:
    """The answer without a number, with the cause, where the cycle that has run refuses the job for good."""
    cycle = planning.last
    job = cycle.session.jobs.peek_at(found.job) or planning.state.jobs[found.job]
    why = refused_for_good(cycle, job)
    return found._replace(quantiles=(None,) * len(LEVELS), basis="", why=REFUSED.format(why=why)) if why else found


def fitting(planning: Planning, uid: str) -> Eta | None:
    """The answer for a job to which the cycle gave nodes, at once or after its victims have gone; None for others."""
    job, plan = planning.state.jobs.get(uid), planning.plans[-1]
    if job is None:
        return None
    bound = sum(one.job == uid for one in plan.binds)
    if bound and bound >= job.facts.min_available:
        return Eta(uid, job.facts.queue, 0, (0.0,) * len(LEVELS), "it fits now")
    victims = [planning.state.tasks[one.key] for one in plan.evictions if one.key in planning.state.tasks]
    if victims and any(one.job == uid for one in plan.reservations):
        wait = float(max(one.grace for one in victims))
        return Eta(uid, job.facts.queue, 0, (wait,) * len(LEVELS), f"by evicting {len(victims)} pods")
    return None
