"""Job prefilters: whether evicting any task of a job could be allowed, asked once before its tasks are looked at.

A plugin at a point of victims may answer for a whole job (the form ``job``): False promises that it names none of its
tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from stromboli.framework.extension.answers import Answers
from stromboli.model.job import Job
from stromboli.model.task import Task

JobPrefilter = Callable[[Task, Job], bool]
"""Whether a point of victims could name any task of a job for the task that needs room."""


@dataclass(frozen=True, slots=True)
class AllAgree:
    """A tier names what all its plugins name; a guard's refusal is absolute.  No ``tiers``: the guards alone decide."""

    tiers: Sequence[Sequence[JobPrefilter]]
    guards: Sequence[JobPrefilter]

    def __call__(self, actor: Task, job: Job) -> bool:
        """Whether the guards allow it and some tier could."""
        for guard in self.guards:
            if not guard(actor, job):
                return False
        for tier in self.tiers:  # asked of every job for each that starves, and all() takes twice as long
            for form in tier:
                if not form(actor, job):
                    break
            else:
                return True
        return not self.tiers


@dataclass(frozen=True, slots=True)
class AnyNames:
    """The reference's rule: after an empty intersection the next plugin of the tier starts afresh.

    So any plugin of a tier may end up naming the tier's victims.
    """

    forms: Sequence[JobPrefilter]

    def __call__(self, actor: Task, job: Job) -> bool:
        """Whether some plugin could name a task of the job."""
        return any(form(actor, job) for form in self.forms)


def job_prefilter(answers: Answers, point: str, restart: bool) -> JobPrefilter | None:
    """The prefilter of one point, by the reference's rule with ``restart``; None where no job can be ruled out."""
    return _any_names(answers, point) if restart else _all_agree(answers, point)


def _any_names(answers: Answers, point: str) -> JobPrefilter | None:
    forms = answers.batch_forms(point, "job")
    return AnyNames(forms) if forms else None


def _all_agree(answers: Answers, point: str) -> JobPrefilter | None:
    forms = answers.forms(point, "job")
    guards = [forms[id(a.plugin)] for a in answers.of(point) if a.hook.protects and id(a.plugin) in forms]
    tiers = [[forms[id(a.plugin)] for a in tier if id(a.plugin) in forms] for tier in answers.tiered(point)]
    if not all(tiers):
        tiers = []  # a tier without any form may name tasks of every job
    return AllAgree(tiers, guards) if tiers or guards else None


__all__ = ["AllAgree", "AnyNames", "JobPrefilter", "job_prefilter"]
