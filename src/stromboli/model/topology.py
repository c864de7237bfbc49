"""The tree of hypernodes: which nodes lie close together, as HyperNode objects tell it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from stromboli.api.topology import HYPER_NODE, NODE, HyperNodeSpec, MemberSelector
from stromboli.model.selectors import selects
from stromboli.model.snapshot import HyperNodeInfo
from stromboli.model.spec import LabelSelector, NodeSpec, Requirement
from stromboli.model.values import patterns

LONGEST_CHAIN = 10
"""Most ancestors that a message lists."""


class Topology:
    """All hypernodes of a cluster, placed in a tree.

    ``infos`` are by name, those that are only named as members at the end (``known`` False, tier 0, no nodes).
    ``tiers`` numbers the tiers that have names; of two numbers for one name the last counts.  ``problems`` are members
    that could not be joined: everything else stands, but jobs must not rely on the tree.
    """

    __slots__ = ("infos", "problems", "tiers")

    def __init__(self) -> None:
        self.infos: dict[str, HyperNodeInfo] = {}
        self.tiers: dict[str, int] = {}
        self.problems: list[str] = []

    @property
    def ready(self) -> bool:
        """Whether every hypernode has found its place."""
        return not self.problems

    @property
    def by_tier(self) -> dict[int, list[str]]:
        """Names of the hypernodes of each tier, closer tiers first."""
        return names_by_tier(self.infos.values())


def build(specs: Mapping[str, HyperNodeSpec], nodes: Sequence[NodeSpec]) -> Topology:
    """The topology of ``specs``, earlier ones first, over ``nodes``, whose places are the rows of the result.

    A member that already has a parent, or that is one of its holder's ancestors, is left out and is a problem.
    """
    found = Topology()
    for name, spec in specs.items():
        found.infos[name] = HyperNodeInfo(name, spec.tier)
        if spec.tier_name:
            found.tiers[spec.tier_name] = spec.tier
    for name, spec in specs.items():
        for member in hyper_members(spec):
            if problem := _join(found.infos, name, member):
                found.problems.append(problem)
    _fill(found.infos, specs, nodes)
    return found


def names_by_tier(infos: Iterable[HyperNodeInfo]) -> dict[int, list[str]]:
    """Names of the hypernodes of each tier, closer tiers first; those without an object have no tier."""
    found: dict[int, list[str]] = {}
    for info in sorted((info for info in infos if info.known), key=lambda info: (info.tier, info.name)):
        found.setdefault(info.tier, []).append(info.name)
    return found


# -- the tree --------------------------------------------------------------------------------------------------------


def hyper_members(spec: HyperNodeSpec) -> Iterator[str]:
    """Names of the hypernodes that are members; they are named exactly, other selectors do not count."""
    for member in spec.members:
        exact = member.selector.exact_match
        if member.type == HYPER_NODE and exact is not None and exact.name:
            yield exact.name


def _join(infos: dict[str, HyperNodeInfo], name: str, member: str) -> str:
    """Make ``name`` the parent of ``member``; what is wrong with that, or an empty text."""
    child = infos.setdefault(member, HyperNodeInfo(member, 0, known=False))
    if child.parent == name:
        return ""
    above = ancestors(infos, name) if child.children or member == name else [name]
    if member in above:
        return f"cyclic dependency detected: HyperNode {member} is already in the ancestor chain {_chain(above)}"
    if child.parent:
        return f"HyperNode {member} already has a parent {child.parent}, and cannot set another parent {name}"
    child.parent = name
    infos[name].children.append(member)
    return ""


def _chain(above: list[str]) -> str:
    shown = above[::-1]
    return f"[{' '.join(shown if len(shown) <= LONGEST_CHAIN else [*shown[:LONGEST_CHAIN], '...'])}]"


def ancestors(infos: Mapping[str, HyperNodeInfo], name: str) -> list[str]:
    """``name`` and the hypernodes above it, nearest first; empty where there is no such hypernode."""
    found: list[str] = []
    while name in infos:
        found.append(name)
        name = infos[name].parent
    return found


def lowest_common(infos: Mapping[str, HyperNodeInfo], first: str, second: str) -> str:
    """The closest hypernode that holds both, empty when there is none; an empty name counts as the other one."""
    if not first or not second:
        return first or second
    above = set(ancestors(infos, first))
    return next((name for name in ancestors(infos, second) if name in above), "")


# -- the nodes -------------------------------------------------------------------------------------------------------


def _fill(infos: Mapping[str, HyperNodeInfo], specs: Mapping[str, HyperNodeSpec], nodes: Sequence[NodeSpec]) -> None:
    """Give every hypernode its rows: its own nodes and those of the hypernodes below it."""
    places = {node.name: row for row, node in enumerate(nodes)}
    rows = {name: _own_rows(spec, nodes, places) for name, spec in specs.items()}
    downwards = [name for name, info in infos.items() if not info.parent]
    for name in downwards:
        downwards.extend(infos[name].children)
    for name in reversed(downwards):
        own = rows.setdefault(name, set())
        own.update(*(rows[child] for child in infos[name].children))
        infos[name].rows = sorted(own)


def _own_rows(spec: HyperNodeSpec, nodes: Sequence[NodeSpec], places: Mapping[str, int]) -> set[int]:
    found: set[int] = set()
    for member in spec.members:
        if member.type == NODE:
            found.update(_rows_of(member.selector, nodes, places))
    return found


def _rows_of(selector: MemberSelector, nodes: Sequence[NodeSpec], places: Mapping[str, int]) -> Iterator[int]:
    """Rows of the nodes that any part of ``selector`` takes; a part that is not valid takes none."""
    exact, regex, label = selector.exact_match, selector.regex_match, selector.label_match
    if exact is not None and exact.name in places:
        yield places[exact.name]
    if regex is not None and not patterns.problem(regex.pattern):
        names = patterns.pattern(regex.pattern)
        yield from (row for row, node in enumerate(nodes) if names.found_in(node.name))
    if label is not None and _usable(label):
        yield from (row for row, node in enumerate(nodes) if selects(label, node.labels))


def _usable(selector: LabelSelector) -> bool:
    """Whether a selector is valid and says anything: as members of hypernodes, empty ones stand for no node."""
    stated = bool(selector.match_labels or selector.match_expressions)
    return stated and all(_valid(requirement) for requirement in selector.match_expressions)


def _valid(requirement: Requirement) -> bool:
    listed = {"In": True, "NotIn": True, "Exists": False, "DoesNotExist": False}.get(requirement.operator)
    return listed is not None and listed == bool(requirement.values)


__all__ = [
    "Topology",
    "ancestors",
    "build",
    "hyper_members",
    "lowest_common",
    "names_by_tier",
]
