"""What is computed by arrays is what the plain definition gives, one thing after the other."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.framework.books.domains import NOWHERE, Domains
from stromboli.framework.books.hyper_nodes import HyperNodes
from stromboli.framework.engine import placement
from stromboli.framework.engine.classes import NEVER
from stromboli.model.topology import ancestors, lowest_common
from stromboli.plugins.network_topology_aware.gradients import Reach, below
from stromboli.plugins.network_topology_aware.scores import by_distance
from stromboli.plugins.task_topology.buckets import _until_saved
from stromboli.testing.builders import Manifest, hyper_node, member, node, state

COUNT = 8
"""Most pods of a run."""
LADDERS = st.lists(
    st.lists(st.integers(0, 4), min_size=1, max_size=COUNT + 1), min_size=1, max_size=6
)  # fmt: skip
"""By node the scores of its pods, of as many as it has room for."""


def greedy(ladders: Sequence[Sequence[int]], count: int) -> list[int]:
    """Each pod on the node that scores best with those placed so far, the first of equal ones."""
    chosen: list[int] = []
    for _ in range(count):
        places = [chosen.count(row) for row in range(len(ladders))]
        open_rows = [row for row, place in enumerate(places) if place < len(ladders[row])]
        if not open_rows:
            break
        chosen.append(max(open_rows, key=lambda row: (ladders[row][places[row]], -row)))
    return chosen


@given(LADDERS, st.integers(1, COUNT), st.integers(1, 4))
def test_a_run_goes_where_its_pods_would_go_one_by_one(ladders: list[list[int]], count: int, levels: int) -> None:
    """However many levels were looked at for the last run of the class."""
    table = np.full((COUNT + 1, len(ladders)), NEVER)
    for row, scores in enumerate(ladders):
        table[: len(scores), row] = scores
    cls: Any = SimpleNamespace(levels=levels)
    with patch.object(placement, "ladder", lambda cls, rows, totals, normal, levels: table[:levels, rows]):
        chosen, left = placement._sequence(cls, np.arange(len(ladders)), table[0], None, count)
    assert chosen == greedy(ladders, count)
    for row, scores in enumerate(ladders):
        if (placed := chosen.count(row)) < count:  # one that takes all of them is not asked about one more
            assert left[row] == (placed < len(scores))


def test_for_a_run_at_most_so_many_scores_are_asked_for_at_once() -> None:
    """Eight equal nodes with room for eight pods each: their second pods are worth as much as the first ones."""
    asked = list[int]()

    def ladder(cls: Any, rows: Any, totals: Any, normal: Any, levels: int) -> Any:
        asked.append(len(rows))
        return np.ones((levels, len(rows)))

    cls: Any = SimpleNamespace(levels=COUNT)
    with patch.object(placement, "ladder", ladder), patch.object(placement, "CELLS", 2):
        placement._sequence(cls, np.arange(COUNT), np.ones(COUNT), None, COUNT)
    assert asked == [2]


def forest(racks: Sequence[int], blocks: Sequence[int]) -> tuple[HyperNodes, Domains]:
    """Nodes in racks (tier 1), racks in blocks (tier 2); 0 means in none.  A block names a rack that is not there."""
    objects: list[Manifest] = [node(f"n{number}", cpu=4) for number in range(len(racks))]
    for rack in range(1, len(blocks) + 1):
        objects.append(hyper_node(f"r{rack}", 1, *(f"n{number}" for number, own in enumerate(racks) if own == rack)))
    for block in (1, 2):
        names = [f"r{rack}" for rack, own in enumerate(blocks, 1) if own == block] + ["missing"] * (block == 1)
        objects.append(hyper_node(f"b{block}", 2, *(member("HyperNode", exactMatch={"name": name}) for name in names)))
    snapshot = state(*objects).snapshot()
    infos = HyperNodes(snapshot)
    return infos, Domains(infos, snapshot.table)


FORESTS = st.builds(
    forest,
    st.lists(st.integers(0, 3), min_size=1, max_size=6),
    st.lists(st.integers(0, 2), min_size=3, max_size=3),
)  # fmt: skip


@given(FORESTS)
def test_domains_know_what_they_lie_in(found: tuple[HyperNodes, Domains]) -> None:
    infos, domains = found
    for number, info in enumerate(domains.infos):
        up = [domains.infos[one].name for one in domains.up[:, number].tolist() if one != NOWHERE]
        assert up == [name for name in ancestors(infos, info.name) if name in domains.index]


@given(FORESTS, st.integers(0, 5))
def test_distances_go_by_the_closest_domain_that_both_lie_in(found: tuple[HyperNodes, Domains], at: int) -> None:
    infos, domains = found
    lies_in, tiers = domains.infos[at].name, list(domains.at_tier)
    distances = by_distance(domains, lies_in)
    for number, info in enumerate(domains.infos):
        both = infos[lowest_common(infos, info.name, lies_in)]
        expected = 1.0 if info.name == lies_in else (tiers[-1] - both.tier) / (tiers[-1] - tiers[0])
        assert distances[number] == pytest.approx(expected)
    assert not by_distance(domains, "nowhere").any()
    assert distances[NOWHERE] == 0


@given(FORESTS, st.sets(st.integers(0, 5)), st.integers(0, 4), st.integers(0, 5))
def test_domains_to_try_are_those_below_with_room(
    found: tuple[HyperNodes, Domains], rooms: set[int], highest: int, at: int
) -> None:
    infos, domains = found
    room, reach = np.isin(np.arange(len(domains)), list(rooms)), Reach(infos, domains)
    for _ in range(2):  # the second answer is remembered
        for given_room in (None, room):
            tried = reach.gradients(domains.infos[at], highest, given_room)
            assert all(len({info.tier for info in gradient}) == 1 for gradient in tried)
            names = [(info.tier, info.name) for gradient in tried for info in gradient]
            assert names == sorted(
                (info.tier, info.name) for info in below(infos, domains.infos[at], highest)
                if given_room is None or info.name not in domains.index or room[domains.index[info.name]]
            )  # fmt: skip


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=5), st.integers(1, 40))
def test_tasks_are_left_out_until_enough_is_saved(groups: list[tuple[int, int]], excess: int) -> None:
    each, numbers = np.array(groups, dtype=np.int64).T
    requests = [request for request, number in groups for _ in range(number)]
    saved = [sum(requests[:count]) for count in range(len(requests) + 1)]
    expected = next((count for count, one in enumerate(saved) if one >= excess), len(requests) + 1)
    assert _until_saved(each, numbers, np.array([excess])).tolist() == [expected]
