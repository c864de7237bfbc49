"""What a plugin weighs when it is asked to admit a job: the amounts, and the sum that must not exceed a limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from stromboli.framework.extension.figures import by_name, exceeding, shown
from stromboli.model.resources.resource import Resource

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView
    from stromboli.framework.books.jobs import QueueInfo
    from stromboli.model.job import Job
    from stromboli.narration.observe import Teller

Numbers = dict[str, dict[str, float]]
"""Amounts by what they are (request, allocated, idle ...) and resource, in the scheduler's units."""


class Term(NamedTuple):
    """One of the amounts that are added up: its name in the numbers, its words, and whether it is taken off."""

    what: str
    words: str
    sign: int = 1


MIN_RESOURCES = Term("request", "minResources")
_HELD = (
    Term("allocated", "allocated"), Term("inqueue", "admitted jobs"), Term("elastic", "beyond minimums", -1),
    MIN_RESOURCES,
)  # fmt: skip


class Weighed(NamedTuple):
    """The ``terms`` must not be more together than ``limit``; both name ``numbers``.  ``words`` say the limit."""

    numbers: Numbers
    terms: tuple[Term, ...] = ()
    limit: str = ""
    words: str = "{}"

    def arithmetic(self) -> str:
        """The sum that exceeds its limit, for every resource where it does, in brackets; empty where none does."""
        if self.limit not in self.numbers:
            return ""
        parts = [{name: sign * n for name, n in self.numbers.get(what, {}).items()} for what, _, sign in self.terms]
        names = exceeding(parts, self.numbers[self.limit], self.numbers["request"])
        sums = [f"{name}: {self._sum(name)} > {self.words.format(self._amount(self.limit, name))}" for name in names]
        return f" ({'; '.join(sums)})" if sums else ""

    def _sum(self, name: str) -> str:
        shares = [
            f"{'-' if term.sign < 0 else '+'} {term.words} {self._amount(term.what, name)}"
            for term in self.terms
            if self.numbers.get(term.what, {}).get(name)
        ]
        return " ".join(shares).removeprefix("+ ")

    def _amount(self, what: str, name: str) -> str:
        return shown(bare(name), self.numbers.get(what, {}).get(name, 0))


def request_of(job: Job) -> dict[str, float]:
    """The minResources of a job, by name."""
    return by_name(job.facts.min_resources or Resource())


def by_column(session: ClusterView, job: Job, vectors: Mapping[str, list[int] | list[float]]) -> Numbers:
    """As ``request`` the minResources, and of each vector the dimensions that it names."""
    request = {name: value for name, value in request_of(job).items() if name != "pods"}
    columns = session.axes.index
    found: Numbers = {"request": request}
    for what, vector in vectors.items():
        at = {name: columns[name] for name in request if name in columns}
        found[what] = {name: float(vector[i]) if i < len(vector) else 0.0 for name, i in at.items()}
    return found


class Books(Protocol):
    """What a queue holds, what it has admitted, and what of that goes beyond minimums, by column."""

    held: list[int]
    inqueue: list[int]
    elastic: list[int]


def in_queue(session: ClusterView, job: Job, books: Books, limits: list[int] | list[float]) -> Weighed:
    """What a queue holds and has admitted, with minResources, against its real capability ``limits``."""
    sides = {"allocated": books.held, "inqueue": books.inqueue, "elastic": books.elastic}
    numbers = by_column(session, job, {**sides, "realCapability": limits})
    return Weighed(numbers, _HELD, "realCapability", "real capability {}")


def tell_unlimited(say: Teller | None, queue: QueueInfo, job: Job) -> None:
    """Tell by ``say``, the teller of ``capability_unset``, that a queue whose spec limits nothing lets ``job`` in."""
    if say and not queue.spec.capability:
        say(queue=queue.name, job=job.uid)


def bare(name: str) -> str:
    """The resource that a quota's key speaks of."""
    return name.removeprefix("requests.").removeprefix("limits.")
