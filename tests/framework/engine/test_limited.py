"""Runs of tasks that limit each other: which rows they take, by the scores of each step."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from stromboli.framework.engine.limited import MOST_DOMAINS, _by_turns, _hopeful
from stromboli.testing.builders import Manifest, node, pod, pod_group
from tests.acceptance.bench import Bench, binds, conf


class AtMost:
    """Each domain takes so many tasks."""

    def __init__(self, most: int) -> None:
        self.most, self.placed = most, dict[int, int]()
        self.rows, self.domains = np.ones(3, dtype=bool), np.array([0, 1, 2], dtype=np.intp)

    def admits(self, domain: int) -> bool:
        return self.placed.get(domain, 0) < self.most

    def place(self, domain: int) -> bool:
        self.placed[domain] = self.placed.get(domain, 0) + 1
        return False


LEVELS = [[10.0, 8.0, 1.0], [9.0, 7.0, 1.0], [2.0, 6.0, 1.0], [0.0, 5.0, 1.0]]
"""The scores of three rows once 0, 1, … tasks went there."""


@pytest.mark.parametrize(
    ("most", "count", "places"),
    [
        (9, 4, [0, 0, 1, 1]), (9, 6, [0, 0, 1, 1, 1, 1]), (1, 5, [0, 1, 2]), (2, 5, [0, 0, 1, 1, 2]),
        (9, 7, None),
    ],
)  # fmt: skip
def test_each_task_takes_the_best_row_as_the_ones_before_have_left_it(
    most: int, count: int, places: list[int] | None
) -> None:
    """A row that has taken as many as there are levels ends the run where tasks are left: what follows is not known."""
    limit = AtMost(most)
    assert _by_turns(LEVELS, limit.domains, limit, count) == places


FULL = -np.inf


@pytest.mark.parametrize(
    ("domains", "most", "count", "places"),
    [
        pytest.param([0, 0, 0], 9, 6, [0, 1, 1, 0, 2], id="rows that are full are left"),
        pytest.param([0, 0, 1], 2, 5, [0, 1, 2], id="a domain of two rows is barred after two tasks"),
        pytest.param([0, 1, 1], 1, 5, [0, 1], id="and each other one after one"),
    ],
)
def test_the_best_row_of_a_domain_is_the_next_one_once_the_first_is_full(
    domains: list[int], most: int, count: int, places: list[int]
) -> None:
    levels = [[10.0, 8.0, 1.0], [7.0, 7.5, FULL], [FULL, FULL, FULL], [FULL, FULL, FULL]]
    limit: Any = AtMost(most)
    assert _by_turns(levels, np.array(domains, dtype=np.intp), limit, count) == places


@pytest.mark.parametrize(
    ("domains", "barred", "count", "rows"),
    [
        pytest.param([0, 1, 2, 3, 4], [], 2, [1, 3], id="the best of domains of one row each"),
        pytest.param([0, 1, 2, 3, 4], [3], 1, [1, 3], id="and those that are barred at first"),
        pytest.param([0, 1, 2, 3, 4], [0, 1, 2, 3, 4], 1, [0, 1, 2, 3], id="all are barred, and one is no member"),
        pytest.param([0, 0, 1, 1, 1], [], 1, [1, 3], id="the best row of each domain"),
        pytest.param([0, 0, 1, 1, 1], [0], 1, [1, 3], id="of a barred one as well"),
        pytest.param([0, 0, 1, 1, 1], [], 2, [0, 1, 2, 3], id="the best two rows of each domain"),
        pytest.param([0, 0, 0, 0, 0], [], 3, [1, 2, 3], id="of a single domain as many as tasks"),
    ],
)
def test_which_rows_tasks_that_limit_each_other_can_reach(
    domains: list[int], barred: list[int], count: int, rows: list[int]
) -> None:
    """Row 4, of the highest score, is no member."""
    members, scores = np.array([True] * 4 + [False]), np.array([1.0, 5.0, 2.0, 4.0, FULL])
    limit: Any = AtMost(1)
    limit.domains, limit.placed = np.array(domains, dtype=np.intp), dict.fromkeys(barred, 1)
    found = _hopeful(scores, members, limit, count)
    assert found is not None
    assert found.tolist() == rows


@pytest.mark.parametrize(("domains", "rows"), [(MOST_DOMAINS, MOST_DOMAINS), (MOST_DOMAINS + 1, None)])
def test_in_too_many_domains_of_several_nodes_tasks_are_placed_one_by_one(domains: int, rows: int | None) -> None:
    limit: Any = AtMost(1)
    limit.domains = np.repeat(np.arange(domains), 2)
    found = _hopeful(np.arange(2.0 * domains), np.ones(2 * domains, dtype=bool), limit, 1)
    assert (None if found is None else len(found)) == rows


def apart_and_preferring() -> Manifest:
    """Apart from each other; n3 is preferred to n1, and n1 to n2."""
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
    preferred = [
        {
            "weight": weight,
            "preference": {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [name]}]},
        }
        for name, weight in (("n3", 10), ("n1", 5))
    ]
    return {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred},
    }


def test_scores_that_compare_the_nodes_left_are_asked_for_at_each_step() -> None:
    """Once n3 is taken, n1 is the most preferred of what is left, and that counts more than that n2 is empty."""
    weights = {
        f"{name}.weight": 0
        for name in ("mostrequested", "balancedresource", "podaffinity", "tainttoleration", "imagelocality")
    }
    arguments = weights | {"leastrequested.weight": 1, "nodeaffinity.weight": 1}
    text = conf(
        "priority gang",
        f"[{{name: predicates}}, {{name: nodeorder, arguments: {json.dumps(arguments)}}}]",
        actions="allocate",
    )
    nodes = [node(name, cpu=8, memory="8Gi", labels={"kubernetes.io/hostname": name}) for name in ("n1", "n2", "n3")]
    filler = [pod_group("f", phase="Running"), pod("f-0", group="f", on="n1", cpu=6, memory="6Gi")]
    pods = [
        pod(f"p-{number}", group="p", cpu="100m", memory="100Mi", labels={"app": "a"}, affinity=apart_and_preferring())
        for number in range(2)
    ]
    plan = Bench([*nodes, *filler, pod_group("p", min_member=2, phase="Inqueue"), *pods], text).cycle()
    assert binds(plan) == {"p-0": "n3", "p-1": "n1"}


@pytest.mark.parametrize("count", [2, 12])
def test_a_run_is_placed_at_once_however_many_of_it_come_to_lie_on_one_node(count: int) -> None:
    even = {"topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule", "maxSkew": 1,
            "labelSelector": {"matchLabels": {"app": "a"}}}  # fmt: skip
    pods = [
        pod(f"p-{number}", group="p", cpu="100m", memory=0, labels={"app": "a"}, topologySpreadConstraints=[even])
        for number in range(count)
    ]
    nodes = [node(name, cpu=8, labels={"kubernetes.io/hostname": name}) for name in ("n1", "n2")]
    with Bench([*nodes, pod_group("p", min_member=count), *pods], conf("gang", "predicates")).open() as session:
        choice = session.placer.place_run(list(session.jobs["default/p"].tasks.values()))
        assert choice is not None
        assert choice.rows == [0, 1] * (count // 2)
