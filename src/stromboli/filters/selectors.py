"""Selectors of pods by label and of nodes by label and name, as Kubernetes reads them.

A label selector is used as :data:`Clauses`, its requirements in one tuple: that form is hashable, and equal for
selectors that say the same in the same order.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Final, TypeAlias

import numpy as np

from stromboli.filters.columns import Bools
from stromboli.model.selectors import holds
from stromboli.model.spec import LabelSelector, NodeSelectorTerm, NodeSpec, PodSpec, PreferredTerm, Requirement
from stromboli.model.table import Ints, NodeRows

Clauses: TypeAlias = tuple[Requirement, ...]
"""Requirements that must all hold; none at all hold for everything."""

NODE_NAME: Final = "metadata.name"
"""The only field of a node that terms may ask for."""

_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)
_LIST, _BARE, _ORDER = ("In", "NotIn"), ("Exists", "DoesNotExist"), ("Gt", "Lt")


# -- Label selectors -------------------------------------------------------------------------------------------------


def clauses(selector: LabelSelector | None) -> Clauses | None:
    """The requirements of ``selector``; None (nothing matches) without a selector or where a requirement is invalid."""
    if selector is None or not all(_valid(want, _LIST + _BARE) for want in selector.match_expressions):
        return None
    labels = sorted(selector.match_labels.items())
    return (*(Requirement(key, "In", (value,)) for key, value in labels), *selector.match_expressions)


def with_label_keys(
    wanted: Clauses | None, labels: Mapping[str, str], match: Sequence[str], mismatch: Sequence[str] = ()
) -> Clauses | None:
    """``wanted`` and, for each key that ``labels`` has, the same value (``match``) or another one (``mismatch``)."""
    if wanted is None or not (match or mismatch):
        return wanted
    same = (Requirement(key, "In", (labels[key],)) for key in match if key in labels)
    other = (Requirement(key, "NotIn", (labels[key],)) for key in mismatch if key in labels)
    return (*wanted, *same, *other)


def takes(wanted: Clauses | None, labels: Mapping[str, str]) -> bool:
    """Whether an object with ``labels`` satisfies every requirement; False where ``wanted`` is None."""
    return wanted is not None and all(holds(want, labels) for want in wanted)


def clue(wanted: Clauses | None) -> tuple[str, str] | None:
    """A label (key, value) that whatever satisfies ``wanted`` must carry, if a requirement names one."""
    exact = (want for want in wanted or () if want.operator == "In" and len(want.values) == 1)
    first = next(exact, None)
    return (first.key, first.values[0]) if first else None


# -- Node selectors --------------------------------------------------------------------------------------------------


def meets(want: Requirement, value: str | None) -> bool:
    """Whether a label with ``value`` (None: the node lacks it) satisfies the requirement; invalid ones never hold."""
    if want.operator in _ORDER:
        number = None if value is None else _whole(value)
        bound = _whole(want.values[0]) if _valid(want, _ORDER) else None
        return number is not None and bound is not None and _beyond(want.operator, number, bound)
    return _valid(want, _LIST + _BARE) and holds(want, {} if value is None else {want.key: value})


def term_takes(term: NodeSelectorTerm, node: NodeSpec) -> bool:
    """Whether the node satisfies all of a term; an empty or invalid term takes no node."""
    return _usable(term) and all(
        (
            *(meets(want, node.labels.get(want.key)) for want in term.match_expressions),
            *(meets(want, _field(want, node.name)) for want in term.match_fields),
        )
    )


def rows_of_term(term: NodeSelectorTerm, nodes: NodeRows) -> Bools:
    """Rows that satisfy all of a term.  Shape (rows,)."""
    if not _usable(term):
        return np.zeros(len(nodes), dtype=bool)
    parts = [_rows_of(want, nodes) for want in term.match_expressions]
    for want in term.match_fields:
        parts.append(nodes.where(lambda node, want=want: meets(want, _field(want, node.name))))  # type: ignore[misc]
    return reduce(np.logical_and, parts)


def selects_nodes(spec: PodSpec) -> bool:
    """Whether the pod asks for certain nodes at all: by nodeSelector or required node affinity."""
    return bool(spec.node_selector) or _required(spec) is not None


def node_suits(spec: PodSpec, node: NodeSpec) -> bool:
    """Whether the node satisfies the pod's nodeSelector and one term of its required node affinity."""
    required = _required(spec)
    labelled = all(node.labels.get(key) == value for key, value in spec.node_selector.items())
    return labelled and (required is None or any(term_takes(term, node) for term in required))


def rows_suiting(spec: PodSpec, nodes: NodeRows) -> Bools:
    """Rows that satisfy the pod's nodeSelector and one term of its required node affinity.  Shape (rows,)."""
    fits = np.ones(len(nodes), dtype=bool)
    for key, value in spec.node_selector.items():
        fits &= nodes.label_is(key, value.__eq__)
    required = _required(spec)
    if required is not None:
        nowhere = np.zeros(len(nodes), dtype=bool)
        fits &= reduce(np.logical_or, (rows_of_term(term, nodes) for term in required), nowhere)
    return fits


def names_conflict(spec: PodSpec) -> bool:
    """Whether each term of the pod's required node affinity names nodes (In), yet none could be every named one."""
    terms = _required(spec) or ()
    return bool(terms) and all(_named_nodes(term) == set() for term in terms)


# -- Preferences -----------------------------------------------------------------------------------------------------


def preferences(spec: PodSpec) -> tuple[PreferredTerm, ...]:
    """The pod's preferred node affinity, as written."""
    affinity = spec.affinity.node_affinity if spec.affinity else None
    return affinity.preferred if affinity else ()


def preference(spec: PodSpec, node: NodeSpec) -> int:
    """Sum of the weights of the preferred terms that the node satisfies."""
    return sum(each.weight for each in preferences(spec) if term_takes(each.preference, node))


def preference_rows(spec: PodSpec, nodes: NodeRows) -> Ints:
    """Sum of the weights of the preferred terms that each row satisfies.  Shape (rows,)."""
    total = np.zeros(len(nodes), dtype=np.int64)
    for each in preferences(spec):
        total += each.weight * rows_of_term(each.preference, nodes)
    return total


# -- Parts -----------------------------------------------------------------------------------------------------------


def _valid(want: Requirement, operators: Sequence[str]) -> bool:
    """Whether the API's validation would let the requirement pass."""
    if want.operator not in operators:
        return False
    if want.operator in _ORDER:
        return len(want.values) == 1 and _whole(want.values[0]) is not None
    return bool(want.values) == (want.operator in _LIST)


def _usable(term: NodeSelectorTerm) -> bool:
    expressions = all(_valid(want, _LIST + _BARE + _ORDER) for want in term.match_expressions)
    fields = all(want.operator in _LIST and len(want.values) == 1 for want in term.match_fields)
    return bool(term.match_expressions or term.match_fields) and expressions and fields


def _field(want: Requirement, name: str) -> str:
    return name if want.key == NODE_NAME else ""


def _rows_of(want: Requirement, nodes: NodeRows) -> Bools:
    return nodes.label_is(want.key, lambda value: meets(want, value), absent=meets(want, None))


def _required(spec: PodSpec) -> tuple[NodeSelectorTerm, ...] | None:
    affinity = spec.affinity.node_affinity if spec.affinity else None
    return affinity.required.node_selector_terms if affinity and affinity.required else None


def _named_nodes(term: NodeSelectorTerm) -> set[str] | None:
    """Names that every In expression over the node's name allows; None without such an expression."""
    lists = [set(want.values) for want in term.match_fields if want.key == NODE_NAME and want.operator == "In"]
    return set.intersection(*lists) if lists else None


def _whole(text: str) -> int | None:
    """A whole number of 64 bits, read as the API does; else None."""
    number = int(text) if _WHOLE.fullmatch(text) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _beyond(operator: str, number: int, bound: int) -> bool:
    return number > bound if operator == "Gt" else number < bound
