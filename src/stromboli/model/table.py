"""The nodes of a cluster as columns: a row a node, a column a resource, and a journal of the rows that changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from stromboli.model.resources.axes import CPU, MEMORY, PODS, Axes, Vector, fits
from stromboli.model.resources.resource import Resource
from stromboli.model.resources.row_states import Change, RowStates
from stromboli.model.selectors import LabelColumn
from stromboli.model.spec import Image, NodeSpec, Taint
from stromboli.model.task import Task

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]
Bools = npt.NDArray[np.bool_]

Derived = TypeVar("Derived")

EVERY = slice(None)
"""Every row."""

AMOUNTS = ("alloc", "used", "releasing", "pipelined", "requested", "nonzero")
"""The columns of amounts: see :class:`NodeTable`."""


class NodeStatics:
    """What placements never change: specs, and what is derived from them when first asked for.

    As long as no node changes, one object serves all snapshots of a state, so what is derived is kept over cycles.
    """

    __slots__ = ("_derived", "_labels", "_offered", "names", "row", "specs")

    def __init__(self, specs: Sequence[NodeSpec]) -> None:
        self.specs: list[NodeSpec] = list(specs)
        self.names: list[str] = [spec.name for spec in specs]
        self.row: dict[str, int] = {name: row for row, name in enumerate(self.names)}
        self._labels: dict[str, LabelColumn] = {}
        self._derived: dict[Callable[[Sequence[NodeSpec]], Any], Any] = {}
        self._offered: frozenset[str] | None = None

    @property
    def offered(self) -> frozenset[str]:
        """Names of the resources that nodes list as allocatable, be it 0."""
        if self._offered is None:
            self._offered = frozenset().union(*(spec.allocatable for spec in self.specs))
        return self._offered

    def label(self, key: str) -> LabelColumn:
        """The column of label ``key``."""
        column = self._labels.get(key)
        if column is None:
            column = self._labels[key] = LabelColumn([spec.labels for spec in self.specs], key)
        return column

    def derived(self, make: Callable[[Sequence[NodeSpec]], Derived]) -> Derived:
        """What ``make`` makes of the specs; it must be one function, not a new one for each call, to be kept."""
        if make not in self._derived:
            self._derived[make] = make(self.specs)
        found: Derived = self._derived[make]
        return found


class NodeTable:
    """Amounts of every node, shape (resources, nodes): whole numbers, in the units of a vector of the axes.

    alloc      what the node offers (oversubscription included)
    used       running, bound, allocated and releasing tasks
    releasing  the part of ``used`` whose tasks are ending
    pipelined  tasks that wait for room to become free
    requested  what Kubernetes' scorers count: every task on the node, pipelined ones too
    nonzero    the same for cpu and memory (shape (2, nodes)), with their stand-ins for containers that ask for nothing

    ``idle = alloc - used`` and ``future = idle + releasing - pipelined``.  ``journal`` lists the rows that changed, in
    order, undone changes included; derived data remember how far they have read it.  ``states`` numbers what rows hold.
    """

    __slots__ = (*AMOUNTS, "_changing", "axes", "journal", "states", "statics")

    def __init__(self, axes: Axes, statics: NodeStatics, amounts: Mapping[str, Ints]) -> None:
        self.axes, self.statics = axes, statics
        self.alloc, self.used, self.releasing = amounts["alloc"], amounts["used"], amounts["releasing"]
        self.pipelined, self.requested, self.nonzero = amounts["pipelined"], amounts["requested"], amounts["nonzero"]
        self.journal: list[int] = []
        self._keep([getattr(self, name) for name in AMOUNTS[1:]])

    def _keep(self, changing: list[Ints]) -> None:
        self._changing = changing
        self.states = RowStates(self.journal, (self.alloc, *changing))

    @classmethod
    def empty(cls, axes: Axes, specs: Sequence[NodeSpec]) -> Self:
        """A table of ``specs`` with nothing placed and nothing offered yet."""
        shape = (len(axes), len(specs))
        amounts = {name: np.zeros((2, shape[1]) if name == "nonzero" else shape, dtype=np.int64) for name in AMOUNTS}
        return cls(axes, NodeStatics(specs), amounts)

    def __len__(self) -> int:
        return int(self.alloc.shape[1])

    def copy(self) -> NodeTable:
        """The same amounts in arrays of their own (offers and specs are shared), with an empty journal."""
        changing = np.concatenate(own := [getattr(self, name) for name in AMOUNTS[1:]])
        ends = [*accumulate(map(len, own))]
        parts = [changing[end - len(each) : end] for each, end in zip(own, ends, strict=True)]
        twin = NodeTable(self.axes, self.statics, dict(zip(AMOUNTS, (self.alloc, *parts), strict=True)))
        twin._keep([changing])
        return twin

    def change(self, amounts: Mapping[str, Ints]) -> Change:
        """What :meth:`add` takes: ``amounts`` of one row by the names of :data:`AMOUNTS`, zeros for the others."""
        zeros = {name: np.zeros_like(getattr(self, name)[:, 0]) for name in AMOUNTS[1:]}
        return Change(np.concatenate([amounts.get(name, none) for name, none in zeros.items()]), {})

    def add(self, row: int, change: Change) -> None:
        """Add ``change`` to all amounts of one row but the offer, in one step, and note it in the journal."""
        first = 0
        for part in self._changing:
            amounts = part[:, row]
            end = first + len(amounts)
            np.add(amounts, change.amounts[first:end], amounts)
            first = end
        self.states.follow(row, change.after)
        self.journal.append(row)

    @property
    def idle(self) -> Ints:
        """The room that is free now, shape (resources, nodes); negative where a node is overfull."""
        return self.alloc - self.used

    @property
    def future(self) -> Ints:
        """The room once terminating pods have left, without what is reserved, shape (resources, nodes)."""
        return self.unreserved() - self.pipelined

    def unreserved(self, rows: Rows | slice | int = EVERY) -> Ints:
        """The room of some rows once terminating pods have left, with what is reserved, shape (resources, rows)."""
        return self.alloc[:, rows] - self.used[:, rows] + self.releasing[:, rows]

    def idle_of(self, row: int) -> list[int]:
        """:attr:`idle` of one row, by column."""
        return (self.alloc[:, row] - self.used[:, row]).tolist()  # type: ignore[no-any-return]

    def future_of(self, row: int) -> list[int]:
        """:attr:`future` of one row, by column."""
        offered, used = self.alloc[:, row].tolist(), self.used[:, row].tolist()  # so few numbers go faster as a list
        ending, coming = self.releasing[:, row].tolist(), self.pipelined[:, row].tolist()
        return [a - u + e - c for a, u, e, c in zip(offered, used, ending, coming, strict=True)]

    def future_at(self, column: int, row: int) -> int:
        """:attr:`future` of one row in one column."""
        idle = self.alloc.item(column, row) - self.used.item(column, row)  # faster than numbers of numpy
        return idle + self.releasing.item(column, row) - self.pipelined.item(column, row)

    def fits_now(self, vector: Vector, columns: Iterable[int], row: int) -> bool:
        """Whether :attr:`idle` of one row is enough for ``vector`` in each of ``columns``."""
        return fits(vector, self.idle_of(row), columns)

    def will_fit(self, vector: Vector, columns: Iterable[int], row: int) -> bool:
        """Whether :attr:`future` of one row is enough for ``vector`` in each of ``columns``; a no is mostly early."""
        for column in columns:  # noqa: SIM110 - asked once a task, and all() takes twice as long
            if vector[column] > self.future_at(column, row):
                return False
        return True

    def row(self, name: str) -> int:
        """The row of node ``name``; KeyError when there is no such node."""
        return self.statics.row[name]

    def mask(self, rows: Sequence[int]) -> Bools:
        """A mask that is True at ``rows``, shape (nodes,)."""
        within = np.zeros(len(self), dtype=bool)
        within[list(rows)] = True
        return within

    def view(self, rows: Rows | None = None) -> NodeRows:
        """Some rows, or all of them, for a hook to look at."""
        return NodeRows(self, rows)


class NodeRows:
    """The rows that a vector hook is asked about: every array that it gives has one entry a row.

    :meth:`after` makes it hypothetical: so many pods more on each row.
    """

    __slots__ = (*(f"_{name}" for name in AMOUNTS), "index", "is_hypothetical", "table")

    def __init__(self, table: NodeTable, rows: Rows | None = None) -> None:
        self.table, self.is_hypothetical = table, False
        self.index: Rows | None = rows
        amounts = (table.alloc, table.used, table.releasing, table.pipelined, table.requested, table.nonzero)
        picked = amounts if rows is None else [each.take(rows, axis=1) for each in amounts]
        self._alloc, self._used, self._releasing, self._pipelined, self._requested, self._nonzero = picked

    def after(self, counts: Ints, request: Ints, nonzero: Ints) -> NodeRows:
        """These rows as they would be with ``counts[i]`` more allocated pods of ``request`` on row i."""
        changed = NodeRows.__new__(NodeRows)
        changed.table, changed.index, changed.is_hypothetical = self.table, self.index, True
        more = request[:, None] * counts
        changed._used, changed._requested = self._used + more, self._requested + more
        changed._nonzero = self._nonzero + nonzero[:, None] * counts
        changed._alloc, changed._releasing, changed._pipelined = self._alloc, self._releasing, self._pipelined
        return changed

    def __len__(self) -> int:
        return int(self._alloc.shape[1])

    def __iter__(self) -> Iterator[Node]:
        return (Node(self.table, row) for row in self.rows.tolist())

    @property
    def is_whole(self) -> bool:
        """Whether these are all rows of the table, as they stand."""
        return self.index is None and self._used is self.table.used

    @property
    def rows(self) -> Rows:
        """Row numbers in the table, shape (rows,)."""
        return np.arange(len(self), dtype=np.intp) if self.index is None else self.index

    @property
    def alloc(self) -> Ints:
        """Offers, shape (resources, rows)."""
        return self._alloc

    @property
    def used(self) -> Ints:
        """Amounts in use, shape (resources, rows)."""
        return self._used

    @property
    def idle(self) -> Ints:
        """Offers less use, shape (resources, rows)."""
        return self._alloc - self._used

    @property
    def future(self) -> Ints:
        """Idle amounts once releasing tasks have gone and pipelined ones have come, shape (resources, rows)."""
        return self._alloc - self._used + self._releasing - self._pipelined

    def fitting(self, want: Ints, columns: Sequence[int] | Rows | slice) -> tuple[Bools, Bools]:
        """On which rows ``want``, shape (columns, 1), fits now, and where it fits once terminating pods have left."""
        idle = self._alloc[columns] - self._used[columns]
        future = idle + self._releasing[columns] - self._pipelined[columns]
        now: Bools = np.logical_and.reduce(want <= idle)
        later: Bools = np.logical_and.reduce(want <= future)
        return now, later

    @property
    def releasing(self) -> Ints:
        """Amounts in use by ending tasks, shape (resources, rows)."""
        return self._releasing

    @property
    def pipelined(self) -> Ints:
        """Amounts that tasks wait for, shape (resources, rows)."""
        return self._pipelined

    @property
    def requested(self) -> Ints:
        """What Kubernetes' scorers count as requested, shape (resources, rows)."""
        return self._requested

    @property
    def nonzero(self) -> Ints:
        """Cpu and memory requested with stand-ins for containers that ask for nothing, shape (2, rows)."""
        return self._nonzero

    def allocatable(self, name: str) -> Ints:
        """Offer of resource ``name`` a row; zeros when no node knows it."""
        return self._named(self._alloc, name)

    def idle_of(self, name: str) -> Ints:
        """Idle amount of resource ``name`` a row."""
        return self._named(self._alloc, name) - self._named(self._used, name)

    def used_of(self, name: str) -> Ints:
        """Used amount of resource ``name`` a row."""
        return self._named(self._used, name)

    def _named(self, amounts: Ints, name: str) -> Ints:
        column = self.table.axes.index.get(name, len(amounts))
        return np.zeros(len(self), dtype=np.int64) if column >= len(amounts) else amounts[column]

    def label_is(self, key: str, holds: Callable[[str], bool], absent: bool = False) -> Bools:
        """Which rows' label ``key`` satisfies ``holds``; rows without it count as ``absent``.  Shape (rows,)."""
        whole = self.table.statics.label(key).where(holds, absent)
        return whole if self.index is None else whole[self.index]

    def where(self, holds: Callable[[NodeSpec], bool]) -> Bools:
        """Which rows' spec satisfies ``holds``.  Shape (rows,)."""
        specs = self.table.statics.specs
        return np.fromiter((holds(specs[row]) for row in self.rows.tolist()), dtype=bool, count=len(self))


class Node:
    """One node, as a thin view on its row.  Amounts are read when asked for and are fresh Resources."""

    __slots__ = ("row", "table")

    def __init__(self, table: NodeTable, row: int) -> None:
        self.table, self.row = table, row

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and other.row == self.row and other.table is self.table

    def __hash__(self) -> int:
        return hash(self.row)

    def __repr__(self) -> str:
        return f"Node({self.name!r})"

    @property
    def spec(self) -> NodeSpec:
        """What the node says of itself."""
        return self.table.statics.specs[self.row]

    @property
    def name(self) -> str:
        """The node's name."""
        return self.table.statics.names[self.row]

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        return self.spec.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """The node's annotations."""
        return self.spec.annotations

    @property
    def taints(self) -> tuple[Taint, ...]:
        """The node's taints."""
        return self.spec.taints

    @property
    def unschedulable(self) -> bool:
        """Whether the node is cordoned."""
        return self.spec.unschedulable

    @property
    def images(self) -> tuple[Image, ...]:
        """Images that the node holds."""
        return self.spec.images

    @property
    def allocatable(self) -> Resource:
        """What the node offers."""
        return self._amount(self.table.alloc)

    @property
    def used(self) -> Resource:
        """What running, bound, allocated and releasing tasks take."""
        return self._amount(self.table.used)

    @property
    def idle(self) -> Resource:
        """What is not in use."""
        return self.table.axes.resource((self.table.alloc[:, self.row] - self.table.used[:, self.row]).tolist())

    @property
    def releasing(self) -> Resource:
        """The part of ``used`` whose tasks are ending."""
        return self._amount(self.table.releasing)

    @property
    def pipelined(self) -> Resource:
        """What tasks wait for here."""
        return self._amount(self.table.pipelined)

    def future_idle(self) -> Resource:
        """Idle plus releasing less pipelined; may be negative."""
        return self.table.axes.resource(self.table.future_of(self.row))

    def _amount(self, amounts: Ints) -> Resource:
        return self.table.axes.resource(amounts[:, self.row].tolist())


def place(table: NodeTable, row: int, task: Task, column: str, sign: int = 1) -> None:
    """Add (or with ``sign`` -1 take away) ``task`` to one of the columns ``used``, ``releasing`` or ``pipelined``.

    Raises OverflowError when a sum leaves 64 bits; nothing has changed then.
    """
    amounts: Ints = getattr(table, column)
    vector = task.template.vector
    new = [have + sign * more for have, more in zip(amounts[: len(vector), row].tolist(), vector, strict=True)]
    amounts[: len(vector), row] = new
    table.journal.append(row)


__all__ = ["AMOUNTS", "CPU", "MEMORY", "PODS", "Ints", "Node", "NodeRows", "NodeStatics", "NodeTable", "Rows", "place"]
