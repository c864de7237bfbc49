"""Reading and comparing amounts of resources.

Two rules run through all of it:

* amounts are compared with a tolerance of :data:`MIN`: ``le(a, b)`` is ``a < b`` or ``|a - b| < MIN``;
* a scalar that one side does not name is zero (:attr:`Default.ZERO`, for demands) or unlimited
  (:attr:`Default.INFINITY`, for limits that may be left open).  Cpu and memory are always there.

"Scalars absent" (``None``) and "no scalars" (``{}``) differ in the few places that say so.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import Enum
from typing import Final

import numpy as np
import numpy.typing as npt

from stromboli.errors import NotFoundError
from stromboli.model.names import CPU, MEMORY, PODS

MIN: Final = 0.1
"""Amounts below this count as nothing, differences below this as none."""


class Default(Enum):
    """What a scalar counts that one side of an operation does not name."""

    ZERO = "Zero"
    INFINITY = "Infinity"


def le(left: float, right: float) -> bool:
    """Whether ``left <= right`` within the tolerance."""
    return left < right or abs(left - right) < MIN


class Amounts:
    """The side of a :class:`~stromboli.model.resources.resource.Resource` that changes nothing.

    ``milli_cpu`` in thousandths of a core, ``memory`` in bytes, ``scalars`` by name in thousandths (``pods`` and volume
    counts in units).
    """

    __slots__ = ()

    milli_cpu: float
    memory: float
    scalars: dict[str, float] | None

    # -- Reading -----------------------------------------------------------------------------------------------------

    def get(self, name: str) -> float:
        """Amount of one dimension, 0 when it is not named."""
        if name == CPU:
            return self.milli_cpu
        if name == MEMORY:
            return self.memory
        return self.scalars.get(name, 0) if self.scalars else 0.0

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

    # -- Comparisons of all dimensions -------------------------------------------------------------------------------

    def less(self, other: Amounts, default: Default) -> bool:
        """Whether every dimension is smaller, without tolerance.

        With INFINITY, a scalar that only ``other`` names makes it false, one that only self names is skipped.
        """
        if not (self.milli_cpu < other.milli_cpu and self.memory < other.memory):
            return False
        if self._lacks_scalars_of(other, default):
            return False
        return all(amount < limit for _, amount, limit in self._scalar_pairs(other, default))

    def less_equal(self, other: Amounts, default: Default) -> bool:
        """Whether every dimension is at most that of ``other``, with tolerance; scalars as in :meth:`less`."""
        if not (le(self.milli_cpu, other.milli_cpu) and le(self.memory, other.memory)):
            return False
        if self._lacks_scalars_of(other, default):
            return False
        return all(le(amount, limit) for _, amount, limit in self._scalar_pairs(other, default))

    def less_equal_names(self, other: Amounts, default: Default) -> tuple[bool, list[str]]:
        """Whether every dimension of self is at most that of ``other``, and the names of those that are not.

        Unlike :meth:`less_equal`, scalars that only ``other`` names are never looked at.
        """
        pairs = [(CPU, self.milli_cpu, other.milli_cpu), (MEMORY, self.memory, other.memory)]
        pairs += sorted(self._scalar_pairs(other, default))
        short = [name for name, amount, limit in pairs if not le(amount, limit)]
        return not short, short

    def less_partly(self, other: Amounts, default: Default) -> bool:
        """Whether any dimension is smaller, without tolerance.

        A scalar that only ``other`` names counts as smaller with ZERO, even when it is 0 there; one that only self
        names counts as smaller with INFINITY.
        """
        if self.milli_cpu < other.milli_cpu or self.memory < other.memory:
            return True
        if self._open_scalars(other, default):
            return True
        return any(amount < limit for _, amount, limit in self._scalar_pairs(other, default))

    def less_equal_partly(self, other: Amounts, default: Default) -> bool:
        """Whether any dimension is at most that of ``other``, with tolerance; scalars as in :meth:`less_partly`."""
        if le(self.milli_cpu, other.milli_cpu) or le(self.memory, other.memory):
            return True
        if self._open_scalars(other, default):
            return True
        return any(le(amount, limit) for _, amount, limit in self._scalar_pairs(other, default))

    def equal(self, other: Amounts) -> bool:
        """Whether cpu, memory and self's own scalars equal those of ``other``, with tolerance (missing = 0)."""
        pairs = [(self.milli_cpu, other.milli_cpu), (self.memory, other.memory)]
        pairs += [(amount, other.get(name)) for name, amount in (self.scalars or {}).items()]
        return all(left == right or abs(left - right) < MIN for left, right in pairs)

    def greater_partly(self, other: Amounts, default: Default) -> tuple[bool, list[str]]:
        """Whether any dimension exceeds that of ``other``, and which do: the negation of :meth:`less_equal_names`."""
        within, exceeding = self.less_equal_names(other, default)
        return not within, exceeding

    # -- Comparisons of the dimensions that a request asks for (request > 0, `pods` left out) ------------------------

    def less_equal_dims_names(self, other: Amounts | None, request: Amounts | None) -> tuple[bool, list[str]]:
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
        self, other: Amounts | None, request: Amounts | None, named: Collection[str]
    ) -> tuple[bool, list[str]]:
        """:meth:`less_equal_dims_names` of the dimensions in ``named`` only.

        For figures of a queue: ``named`` are the names that the Queue's spec writes, so what it leaves open does not
        limit, while a written or computed zero does.
        """
        exceeding = [name for name in self.less_equal_dims_names(other, request)[1] if name in named]
        return not exceeding, exceeding

    def less_equal_partly_dims(self, other: Amounts | None, request: Amounts | None) -> tuple[bool, list[str]]:
        """Whether any requested dimension is at most that of ``other``, with tolerance, and which are."""
        if request is None:
            return False, []
        limits = other or NOTHING
        within = [name for name in request._asked() if le(self.get(name), limits.get(name))]
        return bool(within), within

    def less_equal_partly_dims_zero_filtered(
        self, other: Amounts | None, request: Amounts | None
    ) -> tuple[bool, list[str]]:
        """:meth:`less_equal_partly_dims` without the dimensions of which neither self nor ``other`` has anything."""
        limits = other or NOTHING
        within = self.less_equal_partly_dims(other, request)[1]
        within = [name for name in within if self.get(name) >= MIN or limits.get(name) >= MIN]
        return bool(within), within

    def greater_partly_dims(self, other: Amounts | None, request: Amounts | None) -> tuple[bool, list[str]]:
        """Whether any requested dimension exceeds that of ``other``, without tolerance, and which do."""
        if request is None:
            return False, []
        limits = other or NOTHING
        exceeding = [name for name in request._asked() if self.get(name) > limits.get(name)]
        return bool(exceeding), exceeding

    def greater_partly_relevant(self, other: Amounts | None, request: Amounts | None) -> tuple[bool, list[str]]:
        """:meth:`greater_partly_dims` of what ``other`` has: cpu and memory above zero, scalars that it names."""
        limits = other or NOTHING
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

    def _scalar_pairs(self, other: Amounts, default: Default) -> Iterator[tuple[str, float, float]]:
        """Name, own amount, amount of ``other`` for own scalars, those that ``other`` leaves unlimited left out."""
        limits = other.scalars or {}
        for name, amount in (self.scalars or {}).items():
            if name in limits:
                yield name, amount, limits[name]
            elif default is Default.ZERO:
                yield name, amount, 0.0

    def _lacks_scalars_of(self, other: Amounts, default: Default) -> bool:
        """Whether self is unlimited in a scalar that ``other`` limits."""
        own = self.scalars or {}
        return default is Default.INFINITY and any(name not in own for name in other.scalars or {})

    def _open_scalars(self, other: Amounts, default: Default) -> bool:
        """Whether a scalar named on one side only makes self the smaller one."""
        own, limits = self.scalars or {}, other.scalars or {}
        if default is Default.ZERO:
            return any(name not in own for name in limits)
        return any(name not in limits for name in own)


class _Nothing(Amounts):
    """Stands for an amount that was not given."""

    milli_cpu: float = 0
    memory: float = 0
    scalars = None


NOTHING: Final = _Nothing()


def intersection(left: Amounts, right: Amounts) -> list[str]:
    """Dimensions of which both sides have something: cpu, memory, then scalars by name."""
    names = right.names()
    return [name for name in left.names() if name in names]


def intersection_without_pods(left: Amounts, right: Amounts) -> list[str]:
    """:func:`intersection` without ``pods``, which every task has."""
    return [name for name in intersection(left, right) if name != PODS]


_HALF, _LOWER = 32, 2**32 - 1


def totals(amounts: npt.NDArray[np.int64]) -> list[int]:
    """``amounts`` of all nodes added up, by column, exactly: a cluster's sum may be beyond 64 bits."""
    upper, lower = (amounts >> _HALF).sum(axis=1), (amounts & _LOWER).sum(axis=1)
    return [(high << _HALF) + low for high, low in zip(upper.tolist(), lower.tolist(), strict=True)]
