"""Why the enqueue action left a job outside: every plugin's vote, with the amounts that it weighed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from stromboli.api.scheduling import QUEUE_OPEN
from stromboli.framework.extension import merge
from stromboli.framework.extension.figures import amounts_text
from stromboli.framework.extension.guarded import PluginFailed, labelled
from stromboli.framework.extension.weighing import Numbers, Weighed, request_of
from stromboli.model.job import Job

if TYPE_CHECKING:
    from stromboli.framework.extension.plugin import Plugin
    from stromboli.framework.statement.session_state import SessionState


class Refusal(msgspec.Struct, frozen=True, omit_defaults=True):
    """``plugin`` (of ``tier``, counted from 1; 0: not a plugin of the configuration) said no: why, and its numbers."""

    plugin: str
    message: str
    tier: int = 0
    numbers: Numbers = {}


class Vote(msgspec.Struct, frozen=True):
    """What one plugin said when it was asked to admit a job."""

    plugin: str
    tier: int
    word: str
    refusal: Refusal | None = None


def votes(session: SessionState, job: Job) -> list[Vote]:
    """Every plugin's word on admitting ``job`` now.  Events that the plugins record while asked are taken back."""
    asked = session.hooks.answers.of("job_enqueueable")
    return [_vote(session, answer.tier + 1, answer.plugin, answer.function, job) for answer in asked]


class Ballot:
    """The votes of one cycle: each plugin is asked once about each job, and why it refuses only where that is told."""

    def __init__(self, session: SessionState) -> None:
        self._session, self._asked = session, session.hooks.answers.of("job_enqueueable")
        self._verdict = merge.Vote().verdict(session.hooks.answers.chain("job_enqueueable"))

    def refused(self, job: Job) -> First | None:
        """The first refusal of ``job``; None where it may be admitted."""
        before = len(self._session.plan.events)
        place = self._verdict(job)
        if place < 0:
            return None
        said = [event.message for event in self._session.plan.events[before:]]
        message = said[-1] if said else closed(self._session, job) or NO_REASON
        return First(place, self._asked[place].plugin.name, message)

    def refusals(self, job: Job, first: First) -> tuple[Refusal, ...]:
        """The first refusal with its numbers, and those of the plugins that were not asked after it."""
        answer = self._asked[first.place]
        try:
            weighed = labelled(answer.plugin, answer.plugin.weighed)(job)
        except PluginFailed as failure:
            weighed, first = None, first._replace(message=f"{first.message} (weighing failed: {failure})")
        found = _refusal(answer.plugin.name, first.message, answer.tier + 1, job, weighed)
        later = (
            _vote(self._session, one.tier + 1, one.plugin, one.function, job) for one in self._asked[first.place + 1 :]
        )
        return (found, *(vote.refusal for vote in later if vote.refusal is not None))


class First(NamedTuple):
    """The first plugin that refuses a job: its place among all that are asked, its name, and what it says."""

    place: int
    plugin: str
    message: str

    @property
    def text(self) -> str:
        """What the text of all refusals begins with, without the numbers that the plugin weighed."""
        return refusals_text((Refusal(self.plugin, self.message),))


NO_REASON: Final = "gives no reason"


def _vote(session: SessionState, tier: int, plugin: Plugin, ask: Callable[[Job], int], job: Job) -> Vote:
    events = session.plan.events
    before = len(events)
    try:
        word = ask(job)
        weighed = labelled(plugin, plugin.weighed)(job) if word < 0 else None
    except PluginFailed as failure:
        return Vote(plugin.name, tier, f"failed: {failure}")
    said = [event.message for event in events[before:]]
    del events[before:]
    if word >= 0:
        return Vote(plugin.name, tier, "permits" if word else "abstains")
    message = said[0] if said else closed(session, job) or NO_REASON
    return Vote(plugin.name, tier, "refuses", _refusal(plugin.name, message, tier, job, weighed))


def _refusal(plugin: str, message: str, tier: int, job: Job, weighed: Weighed | None) -> Refusal:
    weighed = weighed or Weighed({"request": request_of(job)})
    return Refusal(plugin, message + weighed.arithmetic(), tier, weighed.numbers)


def closed(session: SessionState, job: Job) -> str:
    """A sentence where the job's queue cannot be used, or is not open."""
    if fault := session.queues[job.queue].fault:
        return f"queue {job.queue} cannot be used: {fault}"
    state = session.queues[job.queue].status.state
    return "" if state == QUEUE_OPEN else f"queue {job.queue} is {state or 'in no state'}, not Open"


def refusals_text(refusals: tuple[Refusal, ...]) -> str:
    """All that was said against admitting a job, as one sentence."""
    text = "; ".join(f"{one.plugin}: {one.message}".removeprefix(": ") for one in refusals)
    return f"not admitted: {text or 'no action of the configuration admits it'}"


def request_text(job: Job) -> str:
    """What the PodGroup asks for as a whole, in words."""
    request = {name: value for name, value in request_of(job).items() if name != "pods"}
    return f"minResources {amounts_text(request)}" if request else "no minResources"
