"""Dashboards name metrics that are shown; e2e/monitoring tests what their queries answer."""

from __future__ import annotations

import json
import re

import pytest

from stromboli.metrics.boards.dashboards import DASHBOARDS, Dashboard
from stromboli.metrics.boards.grafana import COLUMNS, LABEL, config_maps, dashboard
from tests.metrics.shown import shown

NAMES = re.compile(r"\b(?:volcano|stromboli)_[a-z0-9_]+")


@pytest.mark.parametrize("one", DASHBOARDS, ids=lambda one: one.uid)
def test_its_metrics_are_shown(one: Dashboard) -> None:
    asked = {name for panel in one.panels for query in panel.queries for name in NAMES.findall(query.expr)}
    assert asked <= shown()


@pytest.mark.parametrize("one", DASHBOARDS, ids=lambda one: one.uid)
def test_panels_lie_side_by_side(one: Dashboard) -> None:
    places = [panel["gridPos"] for panel in dashboard(one)["panels"]]  # type: ignore[attr-defined]
    taken = {
        (x, y) for at in places for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])
    }
    assert len(taken) == sum(at["w"] * at["h"] for at in places)
    assert max(x for x, _ in taken) < COLUMNS


def test_the_sidecar_finds_them_all() -> None:
    found = config_maps("ns")
    assert {json.loads(next(iter(one["data"].values())))["uid"] for one in found} == {one.uid for one in DASHBOARDS}  # type: ignore[attr-defined]
    assert {one["metadata"]["labels"][LABEL] for one in found} == {"1"}  # type: ignore[index]
