"""JobTemplates: which jobs were made of each."""

from __future__ import annotations

from typing import Final

from stromboli.api.kinds import JOB_TEMPLATES
from stromboli.controllers.changes import Outcome, Patch
from stromboli.controllers.world import Key, World

MOST_NAMES: Final = 1000
"""Jobs that a status names; an object has to hold them."""


def look(key: Key, world: World) -> Outcome:
    """Write the names of the jobs that were made of a template and are there, the first ones by name."""
    template, (namespace, name) = world.job_templates.get(*key), key
    if template is None or template.metadata.deletion_timestamp is not None:
        return Outcome()
    jobs = world.jobs.under(f"{namespace}.{name}")
    names = sorted(job.metadata.name for job in jobs if job.metadata.namespace == namespace)[:MOST_NAMES]
    if tuple(names) == template.status.job_depends_on_list:
        return Outcome()
    return Outcome().then(Patch(JOB_TEMPLATES, *key, {"status": {"jobDependsOnList": names or None}}, status=True))
