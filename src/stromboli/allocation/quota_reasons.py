"""Why jobs whose queue has no quota left wait, as their PodGroups and pods say it.

The texts name no amounts that change from cycle to cycle: each change would be written to every pod that waits.
"""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.extension.figures import amounts_text, by_name
from stromboli.framework.extension.guarded import labelled
from stromboli.framework.session.admission import closed
from stromboli.framework.session.session import Session
from stromboli.model.job import Job
from stromboli.model.task import Task


def tell_no_quota(session: Session, job: Job, queue: QueueInfo, task: Task) -> None:
    """Let ``job`` say why its ``queue`` may not have ``task``, unless it says something already."""
    if not (job.fit_error_text or session.compat.asks("quota-told")):
        job.fit_error_text = closed(session, job) or _no_quota(session, queue, task)


def _no_quota(session: Session, queue: QueueInfo, task: Task) -> str:
    """What the first plugin says that gives a reason."""
    plugins = (answer.plugin for answer in session.hooks.answers.of("allocatable"))
    reasons = (labelled(plugin, plugin.no_quota)(queue, task) for plugin in plugins)
    fallback = f"queue {queue.name} has no quota left for a pod with {amounts_text(by_name(task.request))}"
    return next(filter(None, reasons), fallback)


def tell_overused(session: Session, waiting: Iterable[Job], queue: QueueInfo) -> None:
    """Let jobs say that ``queue`` holds all that it deserves, those that found no node in their turn aside."""
    if session.compat.asks("quota-told"):
        return
    text = f"queue {queue.name} holds all that it deserves"
    for job in waiting:
        if not (job.fits or job.fit_error_text):
            job.fit_error_text = text
