"""resourcequota: a PodGroup enters only if the ResourceQuotas of its namespace leave room for its minResources."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from stromboli.framework.extension.figures import by_name
from stromboli.framework.extension.weighing import MIN_RESOURCES, Term, Weighed, bare, request_of
from stromboli.model import names
from stromboli.model.job import Job
from stromboli.model.queue import ResourceQuota
from stromboli.model.resources import quantity
from stromboli.model.resources.resource import Resource
from stromboli.model.spec import Amount
from stromboli.plugin import Plugin, job_enqueueable, job_enqueued

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

PERMIT, REJECT = 1, -1

_TERMS = (Term("used", "used"), Term("admitted", "admitted jobs"), MIN_RESOURCES)

_DECIMAL = re.compile(r"([+-]?\d*)(?:\.(\d*))?([numkMGTPE]?)", re.ASCII)
_POWERS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


class ResourceQuotas(Plugin, trusted=True):
    """Compares a PodGroup's minResources with every ResourceQuota of its namespace.

    A quota limits what it names under ``status.hard``: what is used, what this session has already let in and what is
    asked for must not exceed it.  Amounts are exact.  Scopes of quotas are not looked at.
    """

    name = "resourcequota"

    def on_session_open(self, session: ClusterView) -> None:
        """Nothing is let in yet."""
        self.session = session
        self.say_refused = session.tells("quota_refused")
        self.write = inside if session.compat.asks("quota-text") else str
        self.pending: dict[str, dict[str, Fraction]] = {}

    @job_enqueueable
    def has_room(self, job: Job) -> int:
        """Permit if all quotas of the namespace leave room; a job without minResources is always let in."""
        asked = job.group.spec.min_resources
        if asked is None:
            return PERMIT
        pending = self.pending.get(job.namespace, {})
        for quota in self.session.snapshot.quotas.get(job.namespace, {}).values():
            if short := exceeded(quota, asked, pending):
                self._refuse(job, quota, asked, short)
                return REJECT
        return PERMIT

    def weighed(self, job: Job) -> Weighed:
        """Request, use (with what this session has let in) and limit of the first quota that is exceeded."""
        asked = job.group.spec.min_resources or {}
        pending = self.pending.get(job.namespace, {})
        for quota in self.session.snapshot.quotas.get(job.namespace, {}).values():
            if short := exceeded(quota, asked, pending):
                lists = {"request": asked, "used": quota.used, "hard": quota.hard}
                found = {
                    what: _plain({name: one[name] for name in short if name in one}) for what, one in lists.items()
                }
                found["admitted"] = {name: float(pending[name] * _unit(name)) for name in short if name in pending}
                return Weighed(found, _TERMS, "hard", "limit {}")
        return Weighed({"request": request_of(job)})

    @job_enqueued
    def admit(self, job: Job) -> None:
        """Count the job's minResources against later ones."""
        asked = job.group.spec.min_resources
        if asked is None or job.namespace not in self.session.snapshot.quotas:
            return
        pending = self.pending.setdefault(job.namespace, {})
        for name, amount in asked.items():
            pending[name] = pending.get(name, Fraction(0)) + quantity.parse(amount)

    def _refuse(self, job: Job, quota: ResourceQuota, asked: Mapping[str, Amount], short: list[str]) -> None:
        shown = [masked(amounts, short, self.write) for amounts in (asked, quota.used, quota.hard)]
        message = "resource quota insufficient, requested: {}, used: {}, limited: {}".format(*shown)
        if self.say_refused:
            self.say_refused(job=job.uid, message=message)
        self.session.pod_groups.record_event(job, names.EVENT_NORMAL, names.EVENT_UNSCHEDULABLE, message)


def _plain(amounts: Mapping[str, Amount]) -> dict[str, float]:
    """A resource list with prefixes such as ``requests.`` in the scheduler's units of what stands behind them."""
    return {
        name: by_name(Resource.from_list({bare(name): amount})).get(bare(name), 0.0) for name, amount in amounts.items()
    }


def _unit(name: str) -> int:
    return 1 if bare(name) in (names.MEMORY, names.PODS) else 1000


def exceeded(quota: ResourceQuota, asked: Mapping[str, Amount], pending: Mapping[str, Fraction]) -> list[str]:
    """Names in ``asked`` of which the quota has too little left, sorted."""

    def total(name: str) -> Fraction:
        used = quantity.parse(quota.used.get(name, 0))
        return used + pending.get(name, Fraction(0)) + quantity.parse(asked[name])

    return [name for name in sorted(asked) if name in quota.hard and total(name) > quantity.parse(quota.hard[name])]


def masked(amounts: Mapping[str, Amount], keys: list[str], write: Callable[[Amount], str]) -> str:
    """The entries of a resource list under ``keys``, as Go prints a map."""
    return f"map[{' '.join(f'{key}:{write(amounts[key])}' for key in keys if key in amounts)}]"


def inside(amount: Amount) -> str:
    """A quantity as Go prints its inside: number and power of ten, text, format."""
    text = str(amount)
    if match := _DECIMAL.fullmatch(text):
        digits, decimals = match[1], match[2] or ""
        power = _POWERS[match[3]] - len(decimals)
        return f"{{{{{int(digits + decimals or '0')} {power}}} {{<nil>}} {text} DecimalSI}}"
    form = "BinarySI" if text.endswith("i") else "DecimalExponent"
    return f"{{{{{quantity.whole(amount)} 0}} {{<nil>}} {text} {form}}}"
