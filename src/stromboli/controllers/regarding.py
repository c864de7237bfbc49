"""Which object the events about a look are for."""

from __future__ import annotations

from typing import Any

from stromboli.controllers.changes import Subject, subject
from stromboli.controllers.pods import JOB_KIND
from stromboli.controllers.work import About, Work
from stromboli.controllers.world import Shelf, World


def regarding(work: Work, world: World) -> Subject | None:
    """The job, plain pod or maker of jobs that is looked at; None where it is none of these, or gone."""
    if work.about is About.pod:
        pod = world.pods.objects.get(work.key)
        return None if pod is None else Subject("v1", "Pod", *work.key, pod.uid)
    shelves: dict[About, Shelf[Any]] = {
        About.job: world.jobs,
        About.cron_job: world.cron_jobs,
        About.job_flow: world.job_flows,
    }
    found = shelves[work.about].get(*work.key) if work.about in shelves else None
    kind = JOB_KIND if work.about is About.job else work.about
    return None if found is None else subject(kind, found.metadata)
