"""Why jobs whose queue has no quota left wait, as their PodGroups and pods say it.

The texts name no amounts that change from cycle to cycle: each change would be written to every pod that waits.
"""

from __future__ import annotations

from collections.abc import Iterable

from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.extension.guarded import PluginFailed, labelled
from stromboli.framework.extension.plugin import Plugin
from stromboli.framework.session.admission import closed
from stromboli.framework.session.session import Session
from stromboli.model.job import Job
from stromboli.model.task import Task


def tell_no_quota(session: Session, job: Job, queue: QueueInfo, task: Task) -> None:
    """Let ``job`` say why its ``queue`` may not have ``task``, unless it says something already or nobody knows."""
    if job.fit_error_text or session.compat.asks("quota-told"):
        return
    plugins = (answer.plugin for answer in session.hooks.answers.of("allocatable"))
    reasons = (_reason(plugin, queue, task) for plugin in plugins)
    job.fit_error_text = closed(session, job) or next(filter(None, reasons), "")


def _reason(plugin: Plugin, queue: QueueInfo, task: Task) -> str:
    """What ``plugin`` says; a text that cannot be had changes no decision."""
    try:
        said: object = labelled(plugin, plugin.no_quota)(queue, task)
    except PluginFailed as failure:
        return f"plugin {failure}"
    return said if isinstance(said, str) else ""


def tell_overused(session: Session, waiting: Iterable[Job], queue: QueueInfo) -> None:
    """Let jobs say that ``queue`` holds all that it deserves, except those that found no node in their turn."""
    if session.compat.asks("quota-told"):
        return
    text = f"queue {queue.name} holds all that it deserves"
    for job in waiting:
        if not (job.fits or job.fit_error_text):
            job.fit_error_text = text
