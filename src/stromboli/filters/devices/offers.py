"""Which devices each node reaches: the newest generation of every pool, once all of its slices are there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

import numpy as np

from stromboli.errors import QuantityError
from stromboli.filters.columns import Bools
from stromboli.filters.selectors import rows_of_term
from stromboli.filters.taints import admits
from stromboli.model.claims import Capacity, Device, ResourceSlice
from stromboli.model.resources import quantity
from stromboli.model.spec import NodeSelector, NodeSelectorTerm, Requirement, Taint, Toleration
from stromboli.model.table import NodeTable

Key = tuple[str, str, str]
"""A device: its driver, pool and name."""
CounterKey = tuple[str, str, str, str]
"""A counter that devices share: driver, pool, set and name."""
Draws = tuple[tuple[CounterKey, int], ...]
"""What a device takes of counters while it is allocated, in thousandths."""
MORE_THAN_ANY: Final = 1 << 64


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A device as nodes reach it; ``row`` is that of its only node, -1 where it has several."""

    number: int
    key: Key
    device: Device
    row: int
    node_selector: NodeSelector | None
    draws: Draws = ()

    def admits(self, tolerations: Sequence[Toleration]) -> bool:
        """Whether the device's taints are tolerated."""
        taints = self.device.taints
        return admits(tolerations, (Taint(each.key, each.value, each.effect) for each in taints))

    @property
    def is_shared(self) -> bool:
        """Whether several requests may have the device, each a share of its capacities."""
        return self.device.allow_multiple_allocations

    def capacity(self, name: str) -> int:
        """How much the device has of a capacity, in thousandths."""
        found = self.device.capacity.get(name)
        return 0 if found is None else milli(found, 0)

    def attribute(self, name: str) -> object:
        """An attribute by its full name, with its type; None where the device lacks it."""
        domain, _, own = name.partition("/")
        found = self.device.attributes.get(name)
        if found is None and domain == self.key[0]:
            found = self.device.attributes.get(own)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Reached:
    """What a node reaches: candidates in the order of trying them; ``trouble`` names a pool that is not whole."""

    candidates: tuple[Candidate, ...] = ()
    trouble: str = ""


class Offers:
    """The devices of all slices over the rows of a node table."""

    def __init__(self, slices: Mapping[str, ResourceSlice], table: NodeTable) -> None:
        self._table, self._nodes = table, table.view()
        self._parts: list[Reached] = []
        self._of_row: dict[int, list[int]] = {}
        self._wide: list[tuple[int, Bools | None]] = []
        self._known: dict[tuple[int, ...], Reached] = {}
        self._selected: dict[NodeSelector, Bools] = {}
        self.candidates: list[Candidate] = []
        self.counters: dict[CounterKey, int] = {}
        """How much there is of each counter that devices share, in thousandths."""
        for members in sorted(newest_pools(slices.values()), key=_is_slow):
            self._add_pool(members)

    def of(self, row: int) -> Reached:
        """What the node of a row reaches; rows that reach the same share one answer."""
        wide = (place for place, rows in self._wide if rows is None or rows[row])
        places = tuple(sorted((*self._of_row.get(row, ()), *wide)))
        found = self._known.get(places)
        if found is None:
            parts = [self._parts[place] for place in places]
            trouble = next((part.trouble for part in parts if part.trouble), "")
            found = Reached(tuple(one for part in parts for one in part.candidates), trouble)
            self._known[places] = found
        return found

    def _add_pool(self, members: Sequence[ResourceSlice]) -> None:
        spec = members[0].spec
        names = [device.name for each in members for device in each.spec.devices]
        name = f"{spec.driver}/{spec.pool.name}"
        trouble = ""
        if len(members) != spec.pool.resource_slice_count:
            trouble = f"resource pool {name} is currently being updated"
        elif len(set(names)) < len(names):
            trouble = f"resource pool {name} is currently invalid"
        for each in members:
            self._count(each)
        for each in members:
            spec = each.spec
            if not spec.per_device_node_selection:
                self._add(each, spec.devices, (spec.node_name, spec.all_nodes, spec.node_selector), trouble)
                continue
            for device in spec.devices:
                self._add(each, (device,), (device.node_name, device.all_nodes, device.node_selector), trouble)

    def _count(self, member: ResourceSlice) -> None:
        """Take in the counters of a slice; those of a pool are for all of its slices."""
        pool = member.spec.driver, member.spec.pool.name
        for shared in member.spec.shared_counters:
            for name, capacity in shared.counters.items():
                self.counters[*pool, shared.name, name] = milli(capacity, 0)

    def _add(
        self,
        member: ResourceSlice,
        devices: Iterable[Device],
        where: tuple[str, bool, NodeSelector | None],
        trouble: str,
    ) -> None:
        node, everywhere, selector = where
        row = self._table.statics.row.get(node) if node else None
        if node and row is None:
            return
        place = len(self._parts)
        if row is not None:
            self._of_row.setdefault(row, []).append(place)
            selector = only_on(node)
        elif everywhere or selector is not None:
            selector = None if everywhere else selector
            self._wide.append((place, None if selector is None else self.rows(selector)))
        else:
            return
        pool = member.spec.driver, member.spec.pool.name
        found: list[Candidate] = []
        for device in devices if not trouble else ():
            key, own = (*pool, device.name), -1 if row is None else row
            one = Candidate(len(self.candidates), key, device, own, selector, draws_of(pool, device))
            self.candidates.append(one)
            found.append(one)
        self._parts.append(Reached(tuple(found), trouble))

    def rows(self, selector: NodeSelector) -> Bools:
        """Rows that a node selector takes.  Shape (rows,)."""
        found = self._selected.get(selector)
        if found is None:
            nowhere = np.zeros(len(self._table), dtype=bool)
            parts = (rows_of_term(term, self._nodes) for term in selector.node_selector_terms)
            found = self._selected[selector] = reduce(np.logical_or, parts, nowhere)
        return found


def milli(capacity: Capacity, otherwise: int) -> int:
    """An amount in thousandths; ``otherwise`` for one that cannot be read."""
    try:
        return quantity.milli(capacity.value)
    except QuantityError:
        return otherwise


def draws_of(pool: tuple[str, str], device: Device) -> Draws:
    """What a device of a pool takes of shared counters."""
    return tuple(
        ((*pool, use.counter_set, name), milli(capacity, MORE_THAN_ANY))
        for use in device.consumes_counters for name, capacity in use.counters.items()
    )  # fmt: skip


def newest_pools(slices: Iterable[ResourceSlice]) -> Iterator[list[ResourceSlice]]:
    """The slices of each pool that are of its newest generation, pools and slices by name."""
    pools: dict[tuple[str, str], list[ResourceSlice]] = {}
    for each in sorted(slices, key=lambda one: one.metadata.name):
        pools.setdefault((each.spec.driver, each.spec.pool.name), []).append(each)
    for _, members in sorted(pools.items()):
        newest = max(each.spec.pool.generation for each in members)
        yield [each for each in members if each.spec.pool.generation == newest]


def _is_slow(members: Sequence[ResourceSlice]) -> bool:
    """Whether drivers have to make devices of a pool ready before they are used: other pools are tried first."""
    return any(device.binding_conditions for each in members for device in each.spec.devices)


def only_on(node: str) -> NodeSelector:
    """The selector of one node."""
    return NodeSelector((NodeSelectorTerm(match_fields=(Requirement("metadata.name", "In", (node,)),)),))


def common(selectors: Iterable[NodeSelector | None]) -> NodeSelector | None:
    """Where all devices of an allocation can be used: a node if one is of one node, else what all selectors ask."""
    terms = [term for each in selectors if each is not None for term in each.node_selector_terms[:1]]
    fixed = next((term for term in terms if term.match_fields), None)
    if fixed is not None or not terms:
        return None if fixed is None else NodeSelector((fixed,))
    wanted = dict.fromkeys(want for term in terms for want in term.match_expressions)
    return NodeSelector((NodeSelectorTerm(tuple(wanted)),))
