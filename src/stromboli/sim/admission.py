"""Why the enqueue action left a job outside: every plugin's vote, with the amounts that it weighed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import msgspec

from stromboli.framework.opening import PluginFailed
from stromboli.model.job import Job
from stromboli.model.resource import Resource
from stromboli.model.spec import Amount
from stromboli.plugins.capacity import Capacity
from stromboli.plugins.overcommit import Overcommit
from stromboli.plugins.proportion import Proportion
from stromboli.plugins.resourcequota import ResourceQuotas, exceeded
from stromboli.sim.figures import amounts_text, by_name, exceeding, shown

if TYPE_CHECKING:
    from stromboli.framework.opening import Answer
    from stromboli.framework.plugin import Plugin
    from stromboli.framework.session import Session

Numbers = dict[str, dict[str, float]]
"""Amounts by what they are (request, allocated, idle ...) and resource, in the scheduler's units."""


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


def votes(session: Session, job: Job) -> list[Vote]:
    """Every plugin's word on admitting ``job`` now.  Events that the plugins record while asked are taken back."""
    return [_vote(session, answer.tier + 1, answer.plugin, answer.function, job) for answer in _asked(session)]


def _asked(session: Session) -> list[Answer]:
    return session.answers.of("job_enqueueable")


def _vote(session: Session, tier: int, plugin: Plugin, ask: Callable[[Job], int], job: Job) -> Vote:
    events = session.plan.events
    before = len(events)
    try:
        word = ask(job)
    except PluginFailed as failure:
        return Vote(plugin.name, tier, f"failed: {failure}")
    said = [event.message for event in events[before:]]
    del events[before:]
    if word >= 0:
        return Vote(plugin.name, tier, "permits" if word else "abstains")
    numbers = numbers_of(session, plugin, job)
    message = said[0] if said else closed(session, job) or "gives no reason"
    return Vote(
        plugin.name, tier, "refuses", Refusal(plugin.name, message + _arithmetic(plugin, numbers), tier, numbers)
    )


def closed(session: Session, job: Job) -> str:
    """A sentence where the job's queue cannot be used, or is not open."""
    if fault := session.queues[job.queue].fault:
        return f"queue {job.queue} cannot be used: {fault}"
    state = session.queues[job.queue].status.state
    return "" if state == "Open" else f"queue {job.queue} is {state or 'in no state'}, not Open"


# ---------------------------------------------------------------------- numbers


def numbers_of(session: Session, plugin: Plugin, job: Job) -> Numbers:
    """The amounts that ``plugin`` weighs when it is asked to admit ``job``."""
    if isinstance(plugin, Overcommit):
        return _by_column(session, job, {"admitted": plugin.admitted, "idle": plugin.idle})
    if isinstance(plugin, ResourceQuotas):
        return _of_quotas(session, plugin, job)
    if isinstance(plugin, Proportion):
        account = plugin.accounts[job.queue]
        sides = {"allocated": account.held, "inqueue": account.inqueue, "elastic": account.elastic}
        return _by_column(session, job, {**sides, "realCapability": account.limits})
    if isinstance(plugin, Capacity):
        refusing = plugin.refusing(job)
        sides = {"allocated": refusing.held, "inqueue": refusing.inqueue, "elastic": refusing.elastic}
        return _by_column(session, job, {**sides, "realCapability": refusing.limits(session.axes)})
    return {"request": _request(job)}


def _request(job: Job) -> dict[str, float]:
    return by_name(job.facts.min_resources or Resource())


def _by_column(session: Session, job: Job, vectors: Mapping[str, list[int] | list[float]]) -> Numbers:
    """As ``request`` the minResources, and of each vector the dimensions that it names."""
    request = {name: value for name, value in _request(job).items() if name != "pods"}
    columns = session.axes.index
    found: Numbers = {"request": request}
    for what, vector in vectors.items():
        at = {name: columns[name] for name in request if name in columns}
        found[what] = {name: float(vector[i]) if i < len(vector) else 0.0 for name, i in at.items()}
    return found


def _of_quotas(session: Session, plugin: ResourceQuotas, job: Job) -> Numbers:
    """Request, use (with what this session has let in) and limit of the first quota that is exceeded."""
    asked = job.group.spec.min_resources or {}
    pending = plugin.pending.get(job.namespace, {})
    for quota in session.quotas.get(job.namespace, {}).values():
        if short := exceeded(quota, asked, pending):
            lists = {"request": asked, "used": quota.used, "hard": quota.hard}
            found = {what: _plain({name: one[name] for name in short if name in one}) for what, one in lists.items()}
            found["admitted"] = {name: float(pending[name] * _unit(name)) for name in short if name in pending}
            return found
    return {"request": _request(job)}


def _plain(amounts: Mapping[str, Amount]) -> dict[str, float]:
    """A resource list with prefixes such as ``requests.`` in the scheduler's units of what stands behind them."""
    return {
        name: by_name(Resource.from_list({bare(name): amount})).get(bare(name), 0.0) for name, amount in amounts.items()
    }


def bare(name: str) -> str:
    """The resource that a quota's key speaks of."""
    return name.removeprefix("requests.").removeprefix("limits.")


def _unit(name: str) -> int:
    return 1 if bare(name) in ("memory", "pods") else 1000


# ---------------------------------------------------------------------- sentences

_TERMS: Mapping[str, tuple[tuple[str, int, str], ...]] = {
    "overcommit": (("admitted", 1, "admitted jobs"), ("request", 1, "minResources")),
    "proportion": (
        ("allocated", 1, "allocated"), ("inqueue", 1, "admitted jobs"), ("elastic", -1, "beyond minimums"),
        ("request", 1, "minResources"),
    ),
    "capacity": (
        ("allocated", 1, "allocated"), ("inqueue", 1, "admitted jobs"), ("elastic", -1, "beyond minimums"),
        ("request", 1, "minResources"),
    ),
    "resourcequota": (("used", 1, "used"), ("admitted", 1, "admitted jobs"), ("request", 1, "minResources")),
}  # fmt: skip
"""By plugin: the amounts that it adds up, each with its sign and its words."""
_LIMITS: Mapping[str, tuple[str, str]] = {
    "overcommit": ("idle", "idle {} (overcommit-factor included)"),
    "proportion": ("realCapability", "real capability {}"),
    "capacity": ("realCapability", "real capability {}"),
    "resourcequota": ("hard", "limit {}"),
}
"""By plugin: what the sum must not exceed."""


def _arithmetic(plugin: Plugin, numbers: Numbers) -> str:
    """The sum that exceeds its limit, for every resource where it does."""
    limit, limit_text = _LIMITS.get(plugin.name, ("", ""))
    if limit not in numbers:
        return ""
    terms = _TERMS[plugin.name]
    parts = [{name: sign * value for name, value in numbers.get(what, {}).items()} for what, sign, _ in terms]
    names = exceeding(parts, numbers[limit], numbers["request"])
    sums = [
        f"{name}: {_sum(terms, numbers, name)} > {limit_text.format(_amount(numbers, limit, name))}" for name in names
    ]
    return f" ({'; '.join(sums)})" if sums else ""


def _sum(terms: tuple[tuple[str, int, str], ...], numbers: Numbers, name: str) -> str:
    shares = [
        f"{'-' if sign < 0 else '+'} {words} {_amount(numbers, what, name)}"
        for what, sign, words in terms
        if numbers.get(what, {}).get(name)
    ]
    return " ".join(shares).removeprefix("+ ")


def _amount(numbers: Numbers, what: str, name: str) -> str:
    return shown(bare(name), numbers.get(what, {}).get(name, 0))


def request_text(job: Job) -> str:
    """What the PodGroup asks for as a whole, in words."""
    request = {name: value for name, value in _request(job).items() if name != "pods"}
    return f"minResources {amounts_text(request)}" if request else "no minResources"
