"""Finished jobs are deleted when their time to live is over."""

from __future__ import annotations

from stromboli.api.batch import Job
from stromboli.api.kinds import JOBS
from stromboli.controllers.changes import Delete, Outcome
from stromboli.controllers.jobs.states import FINISHED
from stromboli.model.values.times import seconds


def collect(job: Job, now: float) -> Outcome:
    """Delete ``job`` if its time is over, or say when to look again; a job that is not finished is left alone.

    An aborted job can be resumed and is never collected.
    """
    life, state = job.spec.ttl_seconds_after_finished, job.status.state
    if life is None or state.phase not in FINISHED or job.metadata.deletion_timestamp is not None:
        return Outcome()
    ended = seconds(state.last_transition_time, "status.state.lastTransitionTime")
    if not ended:
        return Outcome(error="the job has finished, but its status does not say when")
    left = ended + life - now
    if left > 0:
        return Outcome(after=left)
    meta = job.metadata
    return Outcome().then(Delete(JOBS, meta.namespace, meta.name, meta.uid, foreground=True))
