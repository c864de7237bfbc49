"""Properties of nodes over all rows at once: distinct values are looked at once, then spread over the rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from stromboli.model.spec import NodeSpec
from stromboli.model.table import Ints, NodeRows

Bools: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float64]
Masks: TypeAlias = npt.NDArray[np.uint64]

Value = TypeVar("Value", bound=Hashable)
Entry = TypeVar("Entry", bound=np.generic)


class SpecColumn(Generic[Value]):
    """What ``read`` says of every node: ``codes[row]`` numbers the row's value in ``values``."""

    __slots__ = ("codes", "values")

    def __init__(self, specs: Sequence[NodeSpec], read: Callable[[NodeSpec], Value]) -> None:
        numbers: dict[Value, int] = {}
        codes = [numbers.setdefault(read(spec), len(numbers)) for spec in specs]
        self.codes = np.array(codes, dtype=np.intp)
        self.values: list[Value] = list(numbers)

    def where(self, nodes: NodeRows, holds: Callable[[Value], bool]) -> Bools:
        """Which rows' value satisfies ``holds``.  Shape (rows,)."""
        return picked(np.array([holds(value) for value in self.values], dtype=bool)[self.codes], nodes)

    def count(self, nodes: NodeRows, number: Callable[[Value], int]) -> Ints:
        """A number for each row's value.  Shape (rows,)."""
        return picked(np.array([number(value) for value in self.values], dtype=np.int64)[self.codes], nodes)


def picked(whole: npt.NDArray[Entry], nodes: NodeRows) -> npt.NDArray[Entry]:
    """The entries of an array over all nodes that belong to ``nodes``."""
    return whole if nodes.index is None else whole[nodes.index]
