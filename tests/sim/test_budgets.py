"""Disruption budgets in files without a status are completed as their controller would do it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stromboli.cluster.state import ClusterState
from stromboli.errors import ManifestError
from stromboli.sim.loading import Loading
from stromboli.testing.builders import node, pod, pod_group


def budget(status: Any = None, **spec: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "a"}}
    found = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default"},
    }
    return {**found, "spec": {"selector": selector, **spec}, **({"status": status} if status else {})}


def loaded(tmp_path: Path, one: dict[str, Any], *, strict: bool = False) -> Loading:
    """Four running pods, one that waits and one that has ended, of one application; and another application."""
    labels = {"app": "a"}
    pods = [pod(f"r{i}", group="g", on="n1", labels=labels) for i in range(4)]
    pods += [pod("w", group="g", labels=labels), pod("e", group="g", on="n1", phase="Succeeded", labels=labels)]
    pods += [pod("o", group="g", on="n1", labels={"app": "b"}), pod("x", on="n1", labels=labels, namespace="else")]
    objects = [one, node("n1", cpu=64, memory="64Gi"), pod_group("g"), *pods]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    loading = Loading(ClusterState(), strict=strict)
    loading.take([file])
    loading.complete()
    return loading


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ({"minAvailable": 3}, 1),
        ({"minAvailable": "50%"}, 1),
        ({"maxUnavailable": 2}, 1),
        ({"maxUnavailable": "30%"}, 1),
        ({"maxUnavailable": 0}, 0),
        ({"minAvailable": 9}, 0),
        ({}, 4),
        ({"minAvailable": 0, "selector": {"matchLabels": {"app": "none"}}}, 0),
        ({"minAvailable": 2, "selector": None}, 0),
    ],
)
def test_how_many_may_go_follows_from_the_pods(tmp_path: Path, spec: dict[str, Any], allowed: int) -> None:
    loading = loaded(tmp_path, budget(**spec))
    assert loading.problems == []
    assert loading.state.budgets["default/b"].allowed == allowed
    assert f"PodDisruptionBudget default/b allows {allowed} disruptions, by its pods" in loading.added


def test_a_status_that_is_there_counts(tmp_path: Path) -> None:
    status = {"disruptionsAllowed": 3, "currentHealthy": 4, "desiredHealthy": 1, "expectedPods": 4}
    loading = loaded(tmp_path, budget(status, minAvailable=4))
    assert loading.state.budgets["default/b"].allowed == 3
    assert not [sentence for sentence in loading.added if "disruptions" in sentence]


def test_a_number_that_is_none_is_named(tmp_path: Path) -> None:
    loading = loaded(tmp_path, budget(minAvailable="half"))
    (problem,) = loading.problems
    assert (problem.object, problem.path) == ("PodDisruptionBudget default/b", "spec.minAvailable")
    assert loading.state.budgets["default/b"].allowed == 0
    with pytest.raises(ManifestError, match="neither a whole number nor a percentage"):
        loaded(tmp_path, budget(minAvailable="half"), strict=True)
