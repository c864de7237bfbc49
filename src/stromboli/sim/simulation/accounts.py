"""What queues hold, ask for and deserve over the time of a simulation, and what that means for fairness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from operator import gt
from typing import Any, Final

from stromboli.sim.simulation.fragments import Fragments
from stromboli.sim.simulation.workload import SimJob, Workload, amount_of

SAMPLES: Final = 256
"""How many samples are kept at most; then every other goes, and the next ones are taken half as often."""

Amounts = list[float]


@dataclass(slots=True)
class QueueAccount:
    """A queue: its weight, what its spec says it deserves (infinite where it does not), and its sums by resource.

    ``shortfall`` is ∫ max(0, deserved - allocated) dt, in units times seconds; ``holds`` and ``due`` are the dominant
    shares of what it holds and deserves.
    """

    weight: float
    stated: Amounts
    asked: Amounts
    held: Amounts
    deserved: Amounts
    shortfall: Amounts
    waiting: int = 0
    holds: float = 0.0
    due: float = 0.0


@dataclass(slots=True)
class Integrals:
    """∫ dt of the number of jobs that wait, of those that are there, and of Jain's index where queues deserve anything.

    ``shared`` is how long that was, in seconds.
    """

    waiting: float = 0.0
    present: float = 0.0
    jain: float = 0.0
    shared: float = 0.0


@dataclass(frozen=True, slots=True)
class Sample:
    """The cluster at a moment: jobs that wait and run, parts of its resources and of the cluster by queue."""

    time: float
    waiting: int
    running: int
    allocated: Mapping[str, float]
    queues: Mapping[str, float]
    fragmentation: float
    jain: float | None


class Accounts:
    """The sums of a run; told of each change, after :meth:`advance` to its moment."""

    def __init__(self, workload: Workload) -> None:
        self.capacity = workload.capacity()
        self.names = sorted({name for job in workload.jobs for name in job.asks()} & set(self.capacity))
        self.total = [self.capacity[name] for name in self.names]
        self.queues = {name: self._queue(spec) for name, spec in sorted(_specs(workload))}
        self.fragments = Fragments(workload, self.names)
        self.integrals, self.samples = Integrals(), list[Sample]()
        self.most_waiting = self.waiting = self.running = 0
        self.now = 0.0
        self._every = max(workload.jobs[-1].submit / (SAMPLES // 2), 1.0) if workload.jobs else 1.0
        self._due = 0.0
        self._stale = self._moved = True
        self._jain: float | None = None
        self._wanting: list[QueueAccount] = []

    # ------------------------------------------------------------------ changes

    def came(self, job: SimJob, sign: int = 1) -> None:
        """A job came, or with ``sign`` -1 has ended."""
        account = self.queues[job.queue]
        _add(account.asked, self.vector(job.asks()), sign)
        self._stale = self._moved = True

    def waits(self, job: SimJob, change: int) -> None:
        """A job waits from now on (1), or no longer (-1)."""
        self.waiting += change
        self.queues[job.queue].waiting += change
        self.most_waiting = max(self.most_waiting, self.waiting)

    def placed(self, job: SimJob, requests: Mapping[str, float], node: str, sign: int = 1) -> None:
        """A pod has got its node, or with ``sign`` -1 has left it."""
        vector, account = self.vector(requests), self.queues[job.queue]
        _add(account.held, vector, sign)
        account.holds = self.share(account.held)
        self.fragments.placed(node, vector, sign)
        self._moved = True

    def vector(self, amounts: Mapping[str, float]) -> Amounts:
        """Amounts by column of ``names``."""
        return [amounts.get(name, 0.0) for name in self.names]

    # ------------------------------------------------------------------ time

    def advance(self, now: float) -> None:
        """Add what holds since the last change, up to ``now``."""
        span = now - self.now
        if span <= 0.0:
            return
        self._settle()
        while self._due < now:
            self._sample()
        sums = self.integrals
        sums.waiting += self.waiting * span
        sums.present += (self.waiting + self.running) * span
        if self._jain is not None:
            sums.jain += self._jain * span
            sums.shared += span
        for account in self._wanting:
            for column, (due, has) in enumerate(zip(account.deserved, account.held, strict=True)):
                if due > has:
                    account.shortfall[column] += (due - has) * span
        self.now = now

    def _settle(self) -> None:
        """Bring shares and Jain's index up to date."""
        if self._stale:
            for column, total in enumerate(self.total):
                shares = deserved(
                    total, [(one.weight, min(one.asked[column], one.stated[column])) for one in self.queues.values()]
                )
                for account, share in zip(self.queues.values(), shares, strict=True):
                    account.deserved[column] = share
            for account in self.queues.values():
                account.due = self.share(account.deserved)
        if self._moved:
            accounts = self.queues.values()
            self._jain = jain([one.holds / one.due for one in accounts if one.due > 0])
            self._wanting = [one for one in accounts if any(map(gt, one.deserved, one.held))]
        self._stale = self._moved = False

    def share(self, amounts: Sequence[float]) -> float:
        """The dominant share of the cluster: the largest part of any of its resources."""
        return max([amount / total for amount, total in zip(amounts, self.total, strict=True) if total], default=0.0)

    def _sample(self) -> None:
        held = [sum(one.held[column] for one in self.queues.values()) for column in range(len(self.names))]
        parts = {
            name: amount / total for name, amount, total in zip(self.names, held, self.total, strict=True) if total
        }
        shares = {name: one.holds for name, one in self.queues.items()}
        sample = Sample(self._due, self.waiting, self.running, parts, shares, self.fragments.rate(), self._jain)
        self.samples.append(sample)
        if len(self.samples) == SAMPLES:
            del self.samples[1::2]
            self._every *= 2
        self._due = self.samples[-1].time + self._every

    def _queue(self, spec: Mapping[str, Any]) -> QueueAccount:
        zero = [0.0] * len(self.names)
        stated = {name: amount_of(str(text)) for name, text in (spec.get("deserved") or {}).items()}
        most = [stated.get(name, inf) for name in self.names]
        weight = spec.get("weight") or 1
        return QueueAccount(float(weight), most, zero[:], zero[:], zero[:], zero[:])


def _specs(workload: Workload) -> Iterable[tuple[str, Mapping[str, Any]]]:
    for body in workload.objects:
        whole: Any = body
        if whole["kind"] == "Queue":
            yield whole["metadata"]["name"], whole.get("spec") or {}


def _add(amounts: Amounts, more: Sequence[float], sign: int) -> None:
    for column, amount in enumerate(more):
        amounts[column] += sign * amount


def deserved(total: float, claims: Sequence[tuple[float, float]]) -> list[float]:
    """Weighted max-min shares of ``total`` for claims of (weight, amount): no share exceeds its claim.

    What a claim leaves goes to the others by weight (Bertsekas and Gallager, "Data Networks", section 6.5.2).
    """
    shares, left, weights = [0.0] * len(claims), total, sum(weight for weight, _ in claims)
    for number in sorted(range(len(claims)), key=lambda number: claims[number][1] / claims[number][0]):
        weight, amount = claims[number]
        shares[number] = min(amount, left * weight / weights)
        left, weights = left - shares[number], weights - weight
    return shares


def jain(values: Sequence[float]) -> float | None:
    """Jain's index of fairness, (Σx)² / (n Σx²): 1 if all are equal, 1/n if one has all; None if all are zero.

    R. Jain, D. Chiu, W. Hawe, DEC-TR-301, 1984.
    """
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares > 0 else None
