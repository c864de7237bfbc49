"""Amounts of resources: making, adding, subtracting them; reading and comparing them: :mod:`.amounts`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Final

from stromboli.errors import InsufficientResource
from stromboli.model.names import CPU, MEMORY, PODS
from stromboli.model.resources import quantity
from stromboli.model.resources.amounts import MIN as MIN
from stromboli.model.resources.amounts import Amounts
from stromboli.model.resources.amounts import Default as Default
from stromboli.model.resources.amounts import intersection as intersection
from stromboli.model.resources.amounts import intersection_without_pods as intersection_without_pods
from stromboli.model.resources.amounts import le as le
from stromboli.model.resources.scalar_names import is_counted

INFINITE: Final = sys.float_info.max
"""Amount of cpu and memory of something without limit."""

_PRINTED: Final = {INFINITE: "maxFloat", float(quantity.MAX_INT64): "maxInt"}


UNLIMITED: Final = -1.0
"""What :meth:`Resource.diff` gives for a scalar that is unlimited on one side."""


@dataclass(slots=True)
class Resource(Amounts):
    """An amount of everything that nodes offer and tasks ask for.

    ``milli_cpu`` in thousandths of a core, ``memory`` in bytes, ``scalars`` by name in thousandths (``pods`` and volume
    counts in units), ``max_task_num`` the number of pods a node takes.  The last takes part in no arithmetic and no
    comparison but ``==``, which is exact equality of all four; :meth:`equal` is the tolerant one.
    """

    milli_cpu: float = 0
    memory: float = 0
    scalars: dict[str, float] | None = None
    max_task_num: int = 0

    # -- Making and reading ------------------------------------------------------------------------------------------

    @classmethod
    def from_list(cls, amounts: Mapping[str, quantity.Quantity], ignored: Container[str] = ()) -> Resource:
        """Read a Kubernetes resource list; names that scheduling does not know are left out.

        ``ignored`` are scalar names accounted elsewhere (shared devices).  Amounts are rounded up.  Raises
        :class:`~stromboli.errors.QuantityError`.
        """
        resource = cls()
        for name, amount in amounts.items():
            if name == CPU:
                resource.milli_cpu += quantity.milli(amount)
            elif name == MEMORY:
                resource.memory += quantity.whole(amount)
            elif name == PODS:
                resource.max_task_num += quantity.whole(amount)
                resource.add_scalar(PODS, quantity.whole(amount))
            elif is_counted(name) and name not in ignored:
                resource.add_scalar(name, quantity.milli(amount))
        return resource

    @classmethod
    def infinite(cls) -> Resource:
        """An amount without limit in cpu, memory and number of pods; it names no scalars."""
        return cls(INFINITE, INFINITE, None, quantity.MAX_INT64)

    def to_list(self) -> dict[str, str]:
        """The amount as a Kubernetes resource list, fractions cut off; cpu and memory are always written."""
        amounts = {
            CPU: quantity.format_milli(_int64(self.milli_cpu)),
            MEMORY: quantity.format_bytes(_int64(self.memory)),
        }
        for name, amount in sorted((self.scalars or {}).items()):
            write = quantity.format_whole if name == PODS else quantity.format_milli
            amounts[name] = write(_int64(amount))
        return amounts

    def __str__(self) -> str:
        amounts = [(CPU, self.milli_cpu), (MEMORY, self.memory), *sorted((self.scalars or {}).items())]
        return ", ".join(f"{name} {_PRINTED.get(amount) or format(amount, '.2f')}" for name, amount in amounts)

    def clone(self) -> Resource:
        """An independent copy."""
        return Resource(
            self.milli_cpu, self.memory, None if self.scalars is None else dict(self.scalars), self.max_task_num
        )

    # -- Arithmetic, in place ----------------------------------------------------------------------------------------

    def add_scalar(self, name: str, amount: float) -> None:
        """Add to one scalar."""
        if self.scalars is None:
            self.scalars = {}
        self.scalars[name] = self.scalars.get(name, 0) + amount

    def set_scalar(self, name: str, amount: float) -> None:
        """Set one scalar."""
        if self.scalars is None:
            self.scalars = {}
        self.scalars[name] = amount

    def add(self, other: Resource) -> Resource:
        """Add every dimension; returns self."""
        self.milli_cpu += other.milli_cpu
        self.memory += other.memory
        for name, amount in (other.scalars or {}).items():
            self.add_scalar(name, amount)
        return self

    def sub(self, other: Resource) -> Resource:
        """Subtract every dimension; returns self.

        Raises :class:`~stromboli.errors.InsufficientResource`, with self unchanged, unless ``other <= self``.
        """
        enough, short = other.less_equal_names(self, Default.ZERO)
        if not enough:
            raise InsufficientResource(str(self), str(other), short)
        return self._subtract(other)

    def sub_without_assert(self, other: Resource, say: Callable[..., None] | None = None) -> list[str]:
        """Subtract every dimension, below zero if need be; returns the names of those that did not suffice.

        ``say`` is told of them, with fields ``names``, ``available`` and ``request`` as they were before.
        """
        short = other.less_equal_names(self, Default.ZERO)[1]
        if short and say is not None:
            say(names=short, available=self.clone(), request=other.clone())
        self._subtract(other)
        return short

    def _subtract(self, other: Resource) -> Resource:
        """Where self has no scalars, those of ``other`` are dropped."""
        self.milli_cpu -= other.milli_cpu
        self.memory -= other.memory
        if self.scalars is not None:
            for name, amount in (other.scalars or {}).items():
                self.scalars[name] = self.scalars.get(name, 0) - amount
        return self

    def multi(self, factor: float) -> Resource:
        """Multiply every dimension; returns self."""
        self.milli_cpu *= factor
        self.memory *= factor
        if self.scalars:
            self.scalars = {name: amount * factor for name, amount in self.scalars.items()}
        return self

    def set_max(self, other: Resource) -> Resource:
        """Raise every dimension to that of ``other``; returns self."""
        self.milli_cpu = max(self.milli_cpu, other.milli_cpu)
        self.memory = max(self.memory, other.memory)
        for name, amount in (other.scalars or {}).items():
            self.set_scalar(name, max(amount, (self.scalars or {}).get(name, amount)))
        return self

    def min_dimension(self, other: Resource, default: Default) -> Resource:
        """Lower every dimension to that of ``other``; returns self.

        A scalar that ``other`` does not name becomes 0 or stays, as ``default`` says; none is added.
        """
        self.milli_cpu = min(self.milli_cpu, other.milli_cpu)
        self.memory = min(self.memory, other.memory)
        limits = other.scalars or {}
        for name, amount in (self.scalars or {}).items():
            self.set_scalar(name, min(amount, limits.get(name, 0.0 if default is Default.ZERO else amount)))
        return self

    def fit_delta(self, request: Resource) -> Resource:
        """Take ``request`` plus the tolerance off each requested dimension; negative ones do not fit; returns self."""
        if request.milli_cpu > 0:
            self.milli_cpu -= request.milli_cpu + MIN
        if request.memory > 0:
            self.memory -= request.memory + MIN
        for name, amount in (request.scalars or {}).items():
            if amount > 0:
                self.add_scalar(name, -(amount + MIN))
        return self

    def diff(self, other: Resource, default: Default = Default.ZERO) -> tuple[Resource, Resource]:
        """What self has more than ``other``, and what it has less, as two new amounts.

        A scalar that one side does not name counts as ``default`` says; unlimited on the left gives
        :data:`UNLIMITED` in the first result, else unlimited on the right gives it in the second.
        """
        more, less = Resource(scalars={}), Resource(scalars={})
        _split(more, less, self.milli_cpu - other.milli_cpu, self.memory - other.memory)
        left, right = self.scalars or {}, other.scalars or {}
        for name in left | right:
            if default is Default.INFINITY and name not in left:
                more.set_scalar(name, UNLIMITED)
            elif default is Default.INFINITY and name not in right:
                less.set_scalar(name, UNLIMITED)
            else:
                excess = left.get(name, 0) - right.get(name, 0)
                (more if excess > 0 else less).set_scalar(name, abs(excess))
        return more, less


def exceeded_part(amount: Resource | None, limit: Resource | None) -> Resource:
    """What ``amount`` has more than ``limit`` in each dimension; without a limit all of it (a copy)."""
    if amount is None:
        return Resource()
    return amount.clone() if limit is None else amount.diff(limit, Default.ZERO)[0]


def minimum(left: Resource, right: Resource) -> Resource:
    """The smaller amount in each dimension; scalars only if both sides have them, those of ``left``, missing = 0."""
    scalars = None
    if left.scalars is not None and right.scalars is not None:
        scalars = {name: min(amount, right.get(name)) for name, amount in left.scalars.items()}
    return Resource(min(left.milli_cpu, right.milli_cpu), min(left.memory, right.memory), scalars)


def maximum(left: Resource, right: Resource) -> Resource:
    """The larger amount in each dimension that either side names; negative scalars are left out."""
    result = Resource(max(left.milli_cpu, right.milli_cpu), max(left.memory, right.memory))
    for side in (left.scalars, right.scalars):
        for name, amount in (side or {}).items():
            if amount >= 0:
                result.set_scalar(name, max(amount, result.get(name)))
    return result


def share(amount: float, total: float) -> float:
    """``amount / total``; of nothing, everything (1) is used as soon as there is an amount."""
    if total == 0:
        return 0.0 if amount == 0 else 1.0
    return amount / total


def _int64(amount: float) -> int:
    return max(-quantity.MAX_INT64, min(int(amount), quantity.MAX_INT64))


def _split(more: Resource, less: Resource, milli_cpu: float, memory: float) -> None:
    more.milli_cpu, less.milli_cpu = max(0.0, milli_cpu), max(0.0, -milli_cpu)
    more.memory, less.memory = max(0.0, memory), max(0.0, -memory)
