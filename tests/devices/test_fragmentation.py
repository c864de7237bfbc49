"""fragmentation: what is free on cards and useless to pods, and the scores that come of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.plugins.deviceshare.fragmentation import columns, fragments
from stromboli.plugins.deviceshare.kind import MOST_CARDS, Need
from stromboli.testing.builders import Manifest, node, pod
from tests.acceptance.bench import Bench, binds

V = "volcano.sh/vgpu-"
CONF = """
actions: "allocate"
tiers:
- plugins:
  - name: gang
  - name: predicates
  - name: deviceshare
    arguments: {deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: binpack}
"""
GRADIENT = CONF + "  - name: fragmentation\n"
BEST_FIT = GRADIENT + "    arguments: {fragmentation.policy: best-fit}\n"


def gpus(name: str, count: int, size: int = 1000, cpu: int = 16) -> Manifest:
    offer = {f"{V}number": 10 * count, f"{V}memory": size * count, f"{V}cores": 100 * count}
    register = "".join(f"{name}-{i},10,{size},T4,true,hami-core:" for i in range(count))
    return node(name, cpu=cpu, memory="64Gi", resources=offer, annotations={"volcano.sh/node-vgpu-register": register})


def asking(name: str, memory: int, number: int = 1, *, cpu: int = 1, held: str = "") -> Manifest:
    """A pod of some memory of each GPU; ``held`` is the card that it has, ``node-number``."""
    asked = {f"{V}number": str(number), f"{V}memory": str(memory)} if number else {}
    notes = {"volcano.sh/vgpu-ids-new": f"{held},NVIDIA,{memory},0:"} if held else {}
    return pod(name, group=name, cpu=cpu, on=held.partition("-")[0], requests=asked, annotations=notes)


def plainly(idle: int, free: list[int], pods: list[tuple[tuple[int, Need], int]]) -> int:
    """The definition, pod by pod and card by card."""
    lost = 0
    for (cpu, need), count in pods:
        share = need.share(1000)
        suits = [room for room in free if room >= share]
        useful = need.cards > 0 and idle >= cpu and len(suits) >= need.cards
        lost += count * (sum(free) - sum(suits) if useful else sum(free))
    return lost


needs = st.builds(Need, st.integers(0, 3), st.none() | st.integers(1, 1000), st.integers(0, 100), st.integers(1, 100))
sorts = st.lists(st.tuples(st.tuples(st.integers(0, 9), needs), st.integers(1, 5)), min_size=1, max_size=5)
rows = st.lists(st.tuples(st.integers(0, 9), st.lists(st.integers(0, 1000), min_size=3, max_size=3)), max_size=4)


@given(sorts, rows)
def test_fragments_are_those_of_the_definition(pods: Any, nodes: Any) -> None:
    idle = np.array([cpu for cpu, _ in nodes], dtype=np.int64)
    free = np.array([cards for _, cards in nodes], dtype=np.int64).reshape(-1, 3)
    assert fragments(idle, free, columns(pods, 1000)).tolist() == [plainly(cpu, cards, pods) for cpu, cards in nodes]


USED = asking("used", 600, held="b-0")
"""Leaves 400 of the only card of node b."""


@pytest.mark.parametrize(
    ("nodes", "pods", "conf", "expected"),
    [
        # without scores the first node takes the pod; with them it fills what others left
        ([gpus("a", 1), gpus("b", 1)], [USED, asking("p", 400)], CONF, {"p": "a"}),
        ([gpus("a", 1), gpus("b", 1)], [USED, asking("p", 400)], GRADIENT, {"p": "b"}),
        ([gpus("a", 1), gpus("b", 1)], [USED, asking("p", 400)], BEST_FIT, {"p": "b"}),
        # so many that no node can count them
        ([gpus("a", 1)], [asking("p", 10**13, 10**12), asking("q", 10**9)], GRADIENT, {}),
        # pods without GPUs keep away from cores that cards need
        ([gpus("a", 2), node("z", cpu=16, memory="64Gi")], [asking("p", 0, 0, cpu=9), asking("x", 1000, cpu=9)],
         GRADIENT, {"p": "z", "x": "a"}),
        # two cards of different size: 400 MB are all of the small one that is left
        ([gpus("a", 1, 2000), gpus("b", 1)], [USED, asking("p", 400)], GRADIENT, {"p": "b"}),
    ],
)  # fmt: skip
def test_nodes_are_chosen_by_what_is_left(nodes: Any, pods: Any, conf: str, expected: dict[str, str]) -> None:
    assert binds(Bench([*nodes, *pods], conf).cycle()) == expected


def test_the_largest_card_of_a_node_says_what_a_part_of_its_cards_is() -> None:
    """With p on it b would have 1500 thousandths left, were its first card the measure 1000, and a has 1333."""
    b = gpus("b", 2, 2000)
    b["metadata"]["annotations"]["volcano.sh/node-vgpu-register"] = (
        "b-0,10,1000,T4,true,hami-core:b-1,10,2000,T4,true,hami-core:"
    )
    assert binds(Bench([gpus("a", 2, 1500), b, asking("p", 1000)], BEST_FIT).cycle()) == {"p": "a"}


def test_scores_follow_what_is_placed_within_a_cycle() -> None:
    """Each pod sees the cards as the pods before it leave them."""
    objects = [gpus("a", 1), gpus("b", 1), *(asking(f"p{i}", 500) for i in range(4))]
    assert sorted(binds(Bench(objects, GRADIENT).cycle()).values()) == ["a", "a", "b", "b"]
    assert binds(Bench(objects[:4], GRADIENT).cycle()) == {"p0": "a", "p1": "a"}


def test_without_shared_cards_nothing_is_scored() -> None:
    alone = CONF.partition("  - name: deviceshare")[0] + "  - name: fragmentation\n"
    assert binds(Bench([node("n", cpu=4), pod("p", group="p", cpu=1)], alone).cycle()) == {"p": "n"}


def test_a_pod_that_wants_more_cards_than_any_node_may_have_finds_none_useful() -> None:
    """However many it asks for: what is counted of the cards is bounded."""
    free = np.full((1, MOST_CARDS), 1000, dtype=np.int64)
    idle = np.array([64], dtype=np.int64)
    for cards, lost in ((MOST_CARDS, 0), (MOST_CARDS + 1, 1000 * MOST_CARDS), (10**12, 1000 * MOST_CARDS)):
        pods = columns([((1, Need(cards, 1000)), 1)], 1000)
        assert fragments(idle, free, pods).tolist() == [lost], cards
