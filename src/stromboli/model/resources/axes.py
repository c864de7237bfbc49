"""Resource names as columns: one numbering shared by every amount of a cluster."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import zip_longest

from stromboli.model.resources.resource import Resource

CPU, MEMORY, PODS = 0, 1, 2
"""Columns that every cluster has."""

UNOFFERED = "unoffered"
"""The name of the column that stands for all resources that no node offers and no queue names, added up."""

MOST_UNOFFERED = 1 << 56
"""Most that is noted of what one pod or job asks for of all unoffered resources.

As much as a pod may ask of one resource: sums that hold with all names in one column hold with a column for each.
"""

Vector = Sequence[int]
"""Amounts by column: cpu in thousandths of a core, memory in bytes, pods in units, every other in thousandths.

Whole numbers of any size.  A vector may be shorter than the numbering; what it lacks is zero.
"""


class Axes:
    """The numbering.  Names are only ever added, so an older vector stays valid.

    Only names that nodes offer or queues name have a column of their own.  Pods may ask for anything, and a column
    costs an amount a node, a job and a queue: other names share the column :data:`UNOFFERED`.  Every limit of these
    names is alike, zero or none, so what exceeds it does not depend on how much was added up.
    ``ignored`` are names that a plugin counts in place of nodes, such as memory of shared devices.
    """

    __slots__ = ("_order", "ignored", "index", "names")

    def __init__(self, names: Iterable[str] = (), ignored: frozenset[str] = frozenset()) -> None:
        self.names: list[str] = ["cpu", "memory", "pods"]
        self.index: dict[str, int] = {name: i for i, name in enumerate(self.names)}
        self._order: list[int] = [0, 1, 2]
        self.ignored = ignored
        for name in names:
            self.column(name)

    def __len__(self) -> int:
        return len(self.names)

    def column(self, name: str) -> int:
        """The column of ``name``, added at the end when it is new."""
        found = self.index.get(name)
        if found is None:
            found = self.index[name] = len(self.names)
            self.names.append(name)
        return found

    @property
    def order(self) -> list[int]:
        """Columns in the order in which shortages are reported: cpu, memory, then the others by name."""
        if len(self._order) != len(self.names):
            self._order = [CPU, MEMORY, *sorted(range(2, len(self.names)), key=self.names.__getitem__)]
        return self._order

    def vector(self, resource: Resource) -> tuple[int, ...]:
        """``resource`` by column; names not seen before get one."""
        values = [0] * len(self.names)
        values[CPU], values[MEMORY] = int(resource.milli_cpu), int(resource.memory)
        for name, amount in (resource.scalars or {}).items():
            column = self.column(name)
            if column >= len(values):
                values.extend([0] * (column + 1 - len(values)))
            values[column] = int(amount)
        return tuple(values)

    def requested(self, resource: Resource) -> tuple[int, ...]:
        """``resource`` by column as pods ask for it: names without a column are added up in that of the unoffered."""
        if resource.scalars and not self.ignored.isdisjoint(resource.scalars):
            counted = {name: amount for name, amount in resource.scalars.items() if name not in self.ignored}
            resource = Resource(resource.milli_cpu, resource.memory, counted)
        others = self.unoffered(resource)
        if not others:
            return self.vector(resource)
        named = {name: amount for name, amount in (resource.scalars or {}).items() if name not in others}
        together = min(sum(map(int, others.values())), MOST_UNOFFERED)
        return self.vector(Resource(resource.milli_cpu, resource.memory, {**named, UNOFFERED: together}))

    def known(self, name: str) -> int:
        """The column of ``name``, or the one that it shares with all others that have none."""
        return self.index.get(name, self.index.get(UNOFFERED, -1))

    def unoffered(self, resource: Resource) -> dict[str, float]:
        """What ``resource`` asks for by names that have no column, in thousandths."""
        known = self.index.keys() | self.ignored if self.ignored else self.index
        return {name: amount for name, amount in (resource.scalars or {}).items() if name not in known}

    def names_of(self, columns: Container[int], request: Resource | None) -> list[str]:
        """Names of ``columns`` in the order of shortages; the unoffered ones are those that ``request`` asks for."""
        found = [self.names[column] for column in self.order if column in columns]
        if UNOFFERED not in found or request is None:
            return found
        found.remove(UNOFFERED)
        asked = [name for name, amount in self.unoffered(request).items() if amount]
        first = [name for name in found if self.index[name] <= MEMORY]
        return [*first, *sorted([*found[len(first) :], *asked])]

    def resource(self, vector: Iterable[float]) -> Resource:
        """``vector`` as a Resource; scalars that are zero are left out."""
        values = list(vector)
        scalars = {self.names[i]: float(v) for i, v in enumerate(values) if i > MEMORY and v}
        return Resource(float(values[CPU]), float(values[MEMORY]), scalars)

    def deciding(self, request: Resource) -> list[int]:
        """The columns that decide whether ``request`` fits: cpu, memory, and whatever else it asks for."""
        columns = [CPU, MEMORY]
        for name, amount in (request.scalars or {}).items():
            column = self.known(name)
            if name not in self.ignored and column not in columns and (amount or name in self.index):
                columns.append(column)
        return columns

    def full(self, vector: Vector) -> list[int]:
        """A copy of ``vector`` as long as the numbering."""
        short = len(self.names) - len(vector)
        return [*vector, *([0] * short)] if short else [*vector]


def amount_at(vector: Vector, column: int) -> int:
    """The amount in ``column``; 0 beyond the end of ``vector``."""
    return vector[column] if column < len(vector) else 0


def fits(vector: Vector, room: Sequence[int] | Mapping[int, int], columns: Iterable[int]) -> bool:
    """Whether ``room`` is enough for ``vector`` in each of ``columns``."""
    for column in columns:  # noqa: SIM110 - asked several times a task, and all() takes twice as long
        if vector[column] > room[column]:
            return False
    return True


def minus(vector: Vector, other: Vector) -> list[int]:
    """What ``vector`` is more than ``other``, by column; the shorter one lacks what it does not say."""
    return [amount - less for amount, less in zip_longest(vector, other, fillvalue=0)]


def add_to(total: list[int], vector: Vector, times: int = 1) -> None:
    """``total += times * vector``, in place; ``total`` grows when it is shorter."""
    if len(total) < len(vector):
        if not total and times == 1:  # as for every new job
            total.extend(vector)
            return
        total.extend([0] * (len(vector) - len(total)))
    for i, amount in enumerate(vector):
        if amount:
            total[i] += amount * times
