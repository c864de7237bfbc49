"""Runs of tasks that limit each other: which rows they take, by the scores of each step."""

from __future__ import annotations

import json

import numpy as np
import pytest

from stromboli.framework.engine.limited import _by_turns
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
