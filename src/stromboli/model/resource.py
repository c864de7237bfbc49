"""Amounts of resources, and every way to add, subtract and compare them.

Two rules run through all of it:

* amounts are compared with a tolerance of :data:`MIN`: ``le(a, b)`` is ``a < b`` or ``|a - b| < MIN``;
* a scalar that one side does not name is zero (:attr:`Default.ZERO`, for demands) or unlimited
  (:attr:`Default.INFINITY`, for limits that may be left open).  Cpu and memory are always there.

"Scalars absent" (``None``) and "no scalars" (``{}``) differ in the few places that say so.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from stromboli.errors import InsufficientResource, NotFoundError
from stromboli.model import quantity
from stromboli.model.names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from stromboli.model.scalar_names import is_scalar

MIN: Final = 0.1
"""Amounts below this count as nothing, differences below this as none."""

INFINITE: Final = sys.float_info.max
"""Amount of cpu and memory of something without limit."""

_PRINTED: Final = {INFINITE: "maxFloat", float(quantity.MAX_INT64): "maxInt"}


class Default(Enum):
    """What a scalar counts that one side of an operation does not name."""

    ZERO = "Zero"
    INFINITY = "Infinity"


UNLIMITED: Final = -1.0
"""What :meth:`Resource.diff` gives for a scalar that is unlimited on one side."""


def le(left: float, right: float) -> bool:
    """Whether ``left <= right`` within the tolerance."""
    return left < right or abs(left - right) < MIN


@dataclass(slots=True)
class Resource:
    """An amount of everything that nodes offer and tasks ask for.

    ``milli_cpu`` in thousandths of a core, ``memory`` in bytes, ``scalars`` by name in thousandths (``pods`` and volume
    counts in units), ``max_task_num`` the number of pods a node takes.  The last takes part in no arithmetic and no
    comparison but ``==``, which is exact equality of all four; :meth:`equal` is the tolerant one.
    """

    milli_cpu: float = 0.0
    memory: float = 0.0
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
            elif _is_counted(name, ignored):
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

    def get(self, name: str) -> float:
        """Amount of one dimension, 0 when it is not named."""
        if name == CPU:
            return self.milli_cpu
        if name == MEMORY:
            return self.memory
        return self.scalars.get(name, 0.0) if self.scalars else 0.0

    def names(self) -> list[str]:
        """Dimensions of which there is something: cpu, memory, then scalars by name."""
        return [name for name, amount in self._amounts() if amount >= MIN]

    def is_empty(self) -> bool:
        """Whether there is nothing of any dimension; ``pods`` is not looked at."""
        if self.milli_cpu >= MIN or self.memory >= MIN:
            return False
        return not self.scalars or all(amount < MIN for name, amount in self.scalars.items() if name != PODS)

    def is_zero(self, name: str) -> bool:
        """Whether there is nothing of one dimension.

        Without scalars every scalar is zero; a name that existing scalars lack raises
        :class:`~stromboli.errors.NotFoundError`.
        """
        if name not in (CPU, MEMORY) and self.scalars is not None and name not in self.scalars:
            raise NotFoundError("resource", name, message=f"unknown resource {name}")
        return self.get(name) < MIN

    # -- Arithmetic, in place ----------------------------------------------------------------------------------------

    def add_scalar(self, name: str, amount: float) -> None:
        """Add to one scalar."""
        if self.scalars is None:
            self.scalars = {}
        self.scalars[name] = self.scalars.get(name, 0.0) + amount

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

    def sub_without_assert(self, other: Resource) -> list[str]:
        """Subtract every dimension, below zero if need be; returns the names of those that did not suffice."""
        short = other.less_equal_names(self, Default.ZERO)[1]
        self._subtract(other)
        return short

    def _subtract(self, other: Resource) -> Resource:
        """Where self has no scalars, those of ``other`` are dropped."""
        self.milli_cpu -= other.milli_cpu
        self.memory -= other.memory
        if self.scalars is not None:
            for name, amount in (other.scalars or {}).items():
                self.scalars[name] = self.scalars.get(name, 0.0) - amount
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
                excess = left.get(name, 0.0) - right.get(name, 0.0)
                (more if excess > 0 else less).set_scalar(name, abs(excess))
        return more, less

    # -- Comparisons of all dimensions -------------------------------------------------------------------------------

    def less(self, other: Resource, default: Default) -> bool:
        """Whether every dimension is smaller, without tolerance.

        With INFINITY, a scalar that only ``other`` names makes it false, one that only self names is skipped.
        """
        if not (self.milli_cpu < other.milli_cpu and self.memory < other.memory):
            return False
        if self._lacks_scalars_of(other, default):
            return False
        return all(amount < limit for _, amount, limit in self._scalar_pairs(other, default))

    def less_equal(self, other: Resource, default: Default) -> bool:
        """Whether every dimension is at most that of ``other``, with tolerance; scalars as in :meth:`less`."""
        if not (le(self.milli_cpu, other.milli_cpu) and le(self.memory, other.memory)):
            return False
        if self._lacks_scalars_of(other, default):
            return False
        return all(le(amount, limit) for _, amount, limit in self._scalar_pairs(other, default))

    def less_equal_names(self, other: Resource, default: Default) -> tuple[bool, list[str]]:
        """Whether every dimension of self is at most that of ``other``, and the names of those that are not.

        Unlike :meth:`less_equal`, scalars that only ``other`` names are never looked at.
        """
        pairs = [(CPU, self.milli_cpu, other.milli_cpu), (MEMORY, self.memory, other.memory)]
        pairs += sorted(self._scalar_pairs(other, default))
        short = [name for name, amount, limit in pairs if not le(amount, limit)]
        return not short, short

    def less_partly(self, other: Resource, default: Default) -> bool:
        """Whether any dimension is smaller, without tolerance.

        A scalar that only ``other`` names counts as smaller with ZERO, even when it is 0 there; one that only self
        names counts as smaller with INFINITY.
        """
        if self.milli_cpu < other.milli_cpu or self.memory < other.memory:
            return True
        if self._open_scalars(other, default):
            return True
        return any(amount < limit for _, amount, limit in self._scalar_pairs(other, default))

    def less_equal_partly(self, other: Resource, default: Default) -> bool:
        """Whether any dimension is at most that of ``other``, with tolerance; scalars as in :meth:`less_partly`."""
        if le(self.milli_cpu, other.milli_cpu) or le(self.memory, other.memory):
            return True
        if self._open_scalars(other, default):
            return True
        return any(le(amount, limit) for _, amount, limit in self._scalar_pairs(other, default))

    def equal(self, other: Resource) -> bool:
        """Whether cpu, memory and self's own scalars equal those of ``other``, with tolerance (missing = 0)."""
        pairs = [(self.milli_cpu, other.milli_cpu), (self.memory, other.memory)]
        pairs += [(amount, other.get(name)) for name, amount in (self.scalars or {}).items()]
        return all(left == right or abs(left - right) < MIN for left, right in pairs)

    def greater_partly(self, other: Resource, default: Default) -> tuple[bool, list[str]]:
        """Whether any dimension exceeds that of ``other``, and which do: the negation of :meth:`less_equal_names`."""
        within, exceeding = self.less_equal_names(other, default)
        return not within, exceeding

    # -- Comparisons of the dimensions that a request asks for (request > 0, `pods` left out) ------------------------

    def less_equal_dims_names(self, other: Resource | None, request: Resource | None) -> tuple[bool, list[str]]:
        """Whether no requested dimension exceeds that of ``other``, and the names of those that do; no tolerance.

        Without ``other`` nothing fits; without ``request`` all dimensions are looked at (:meth:`less_equal_names`).
        Scalars missing in ``other`` are 0.
        """
        if other is None:
            return False, self.names()
        if request is None:
            return self.less_equal_names(other, Default.ZERO)
        exceeding = [name for name in request._asked() if self.get(name) > other.get(name)]
        if self.scalars is None:
            exceeding = [name for name in exceeding if name in (CPU, MEMORY)]
        return not exceeding, exceeding

    def less_equal_with_dimension(
        self, other: Resource | None, request: Resource | None, named: Collection[str]
    ) -> tuple[bool, list[str]]:
        """:meth:`less_equal_dims_names` of the dimensions in ``named`` only.

        For figures of a queue: ``named`` are the names that the Queue's spec writes, so what it leaves open does not
        limit, while a written or computed zero does.
        """
        exceeding = [name for name in self.less_equal_dims_names(other, request)[1] if name in named]
        return not exceeding, exceeding

    def less_equal_partly_dims(self, other: Resource | None, request: Resource | None) -> tuple[bool, list[str]]:
        """Whether any requested dimension is at most that of ``other``, with tolerance, and which are."""
        if request is None:
            return False, []
        limits = other or Resource()
        within = [name for name in request._asked() if le(self.get(name), limits.get(name))]
        return bool(within), within

    def less_equal_partly_dims_zero_filtered(
        self, other: Resource | None, request: Resource | None
    ) -> tuple[bool, list[str]]:
        """:meth:`less_equal_partly_dims` without the dimensions of which neither self nor ``other`` has anything."""
        limits = other or Resource()
        within = self.less_equal_partly_dims(other, request)[1]
        within = [name for name in within if self.get(name) >= MIN or limits.get(name) >= MIN]
        return bool(within), within

    def greater_partly_dims(self, other: Resource | None, request: Resource | None) -> tuple[bool, list[str]]:
        """Whether any requested dimension exceeds that of ``other``, without tolerance, and which do."""
        if request is None:
            return False, []
        limits = other or Resource()
        exceeding = [name for name in request._asked() if self.get(name) > limits.get(name)]
        return bool(exceeding), exceeding

    def greater_partly_relevant(self, other: Resource | None, request: Resource | None) -> tuple[bool, list[str]]:
        """:meth:`greater_partly_dims` of what ``other`` has: cpu and memory above zero, scalars that it names."""
        limits = other or Resource()
        scalars = limits.scalars or {}
        exceeding = self.greater_partly_dims(other, request)[1]
        relevant = [
            name for name in exceeding if (limits.get(name) >= MIN if name in (CPU, MEMORY) else name in scalars)
        ]
        return bool(relevant), relevant

    # -- Parts of the above ------------------------------------------------------------------------------------------

    def _amounts(self) -> Iterator[tuple[str, float]]:
        yield CPU, self.milli_cpu
        yield MEMORY, self.memory
        if self.scalars:
            yield from sorted(self.scalars.items())

    def _asked(self) -> list[str]:
        return [name for name, amount in self._amounts() if amount > 0 and name != PODS]

    def _scalar_pairs(self, other: Resource, default: Default) -> Iterator[tuple[str, float, float]]:
        """Name, own amount, amount of ``other`` for own scalars, those that ``other`` leaves unlimited left out."""
        limits = other.scalars or {}
        for name, amount in (self.scalars or {}).items():
            if name in limits:
                yield name, amount, limits[name]
            elif default is Default.ZERO:
                yield name, amount, 0.0

    def _lacks_scalars_of(self, other: Resource, default: Default) -> bool:
        """Whether self is unlimited in a scalar that ``other`` limits."""
        own = self.scalars or {}
        return default is Default.INFINITY and any(name not in own for name in other.scalars or {})

    def _open_scalars(self, other: Resource, default: Default) -> bool:
        """Whether a scalar named on one side only makes self the smaller one."""
        own, limits = self.scalars or {}, other.scalars or {}
        if default is Default.ZERO:
            return any(name not in own for name in limits)
        return any(name not in limits for name in own)


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


def intersection(left: Resource, right: Resource) -> list[str]:
    """Dimensions of which both sides have something: cpu, memory, then scalars by name."""
    names = right.names()
    return [name for name in left.names() if name in names]


def intersection_without_pods(left: Resource, right: Resource) -> list[str]:
    """:func:`intersection` without ``pods``, which every task has."""
    return [name for name in intersection(left, right) if name != PODS]


def _is_counted(name: str, ignored: Container[str]) -> bool:
    if name == EPHEMERAL_STORAGE:
        return True
    return not name.startswith("count/") and is_scalar(name) and name not in ignored


def _int64(amount: float) -> int:
    return max(-quantity.MAX_INT64, min(int(amount), quantity.MAX_INT64))


def _split(more: Resource, less: Resource, milli_cpu: float, memory: float) -> None:
    more.milli_cpu, less.milli_cpu = max(0.0, milli_cpu), max(0.0, -milli_cpu)
    more.memory, less.memory = max(0.0, memory), max(0.0, -memory)
