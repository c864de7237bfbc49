"""Shortcuts of votes on victims: job prefilters, and votes that may be kept.

A job prefilter says whether evicting any task of a job could be allowed; it is asked once before its tasks are looked
at.  A plugin at a point of victims may answer for a whole job (the form ``job``): False promises that it names none of
its tasks.  A vote may be kept where only a move of the victims' own jobs changes it (``own=True``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from stromboli.framework.extension.answers import Answer, Answers, Function
from stromboli.framework.extension.guards import common
from stromboli.model.job import Job
from stromboli.model.task import Task

JobPrefilter = Callable[[Task, Job], bool]
"""Whether a point of victims could name any task of a job for the task that needs room."""


@dataclass(frozen=True, slots=True)
class AllAgree:
    """A tier names what all its plugins name; a guard's refusal is absolute.  No ``tiers``: the guards alone decide.

    ``own``: the guards and the first tier promise ``own=``, so that what they allow stands until the job moves.
    ``coarse`` asks the forms alone that promise ``by_priority=``; None: there are none.
    """

    tiers: Sequence[Sequence[JobPrefilter]]
    guards: Sequence[JobPrefilter]
    own: bool = False
    coarse: JobPrefilter | None = None

    def __call__(self, actor: Task, job: Job) -> bool:
        """Whether the guards allow it and some tier could."""
        return self.tier(actor, job) >= 0

    def allows_priority(self, actor: Task, job: Job) -> bool:
        """Whether jobs of the queue and the priority of ``job``, which is not the actor's own, could be allowed."""
        return self.coarse is None or self.coarse(actor, job)

    def tier(self, actor: Task, job: Job) -> int:
        """The number of the first tier that could, 0 where the guards alone decide; -1 if they do not allow it."""
        for guard in self.guards:
            if not guard(actor, job):
                return -1
        for number, tier in enumerate(self.tiers):  # asked of every job for each that starves, and all() is slow
            for form in tier:
                if not form(actor, job):
                    break
            else:
                return number
        return -1 if self.tiers else 0


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
    found = _agreeing(answers, point, answers.forms(point, "job"))
    if not all(found.tiers):
        found = replace(found, tiers=[])  # a tier without any form may name tasks of every job
    if not (found.tiers or found.guards):
        return None
    own = _are_own(answers, point, answers.tiered(point)[0] if found.tiers else [])
    coarse = {id(answer.plugin): answer.function for answer in answers.of(point, "job") if answer.hook.by_priority}
    return replace(found, own=own, coarse=_agreeing(answers, point, coarse) if coarse else None)


def _agreeing(answers: Answers, point: str, forms: Mapping[int, Function]) -> AllAgree:
    """The tiers and guards of those ``forms``, which are by the identity of their plugin."""
    tiers = [[forms[id(a.plugin)] for a in tier if id(a.plugin) in forms] for tier in answers.tiered(point)]
    return AllAgree(tiers, [forms[id(a.plugin)] for a in answers.protecting(point) if id(a.plugin) in forms])


def _are_own(answers: Answers, point: str, first: Sequence[Answer]) -> bool:
    """Whether the forms for jobs of the ``first`` tier and of all guards promise ``own=``."""
    deciding = {id(answer.plugin) for answer in (*first, *answers.protecting(point))}
    return all(answer.hook.own for answer in answers.of(point, "job") if id(answer.plugin) in deciding)


OwnVote = Callable[[Task, Sequence[Task]], list[Task]]
"""``(actor, candidates)`` -> the victims that the first tier names, if every guard permits all candidates; otherwise
none, and the point itself must be asked."""


def own_vote(answers: Answers, point: str) -> OwnVote | None:
    """The vote of the first tier at ``point``; None unless it and every guard promise ``own=``."""
    guards = answers.protecting(point)
    first = next(iter(answers.tiered(point)), [])
    if not first or not all(answer.hook.own for answer in (*guards, *first)):
        return None
    voters = [answer.function for answer in first if not answer.hook.protects]
    return _vote([answer.function for answer in guards], voters)


def _vote(guards: Sequence[Function], voters: Sequence[Function]) -> OwnVote:
    def vote(actor: Task, candidates: Sequence[Task]) -> list[Task]:
        for guard in guards:
            if guard(actor, candidates) != candidates:
                return []
        named = candidates
        for voter in voters:
            said = voter(actor, candidates)
            if not said:
                return []
            named = said if named is candidates else common(named, said)
        return list(named)

    return vote


__all__ = ["AllAgree", "AnyNames", "JobPrefilter", "OwnVote", "job_prefilter", "own_vote"]
