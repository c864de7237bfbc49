"""Dashboards as Grafana imports them, and as ConfigMaps that its sidecar finds."""

from __future__ import annotations

import json
from typing import Final

from stromboli.metrics.boards.dashboards import DASHBOARDS, Dashboard, Panel

WIDTH: Final = {"timeseries": 12, "table": 12, "stat": 6}
HEIGHT: Final = {"timeseries": 8, "table": 8, "stat": 8}
COLUMNS: Final = 24
SCHEMA: Final = 39
"""Version of the schema: Grafana 10.4 and newer."""

SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
LABEL: Final = "grafana_dashboard"
"""The label by which Grafana's sidecar finds ConfigMaps."""

Json = dict[str, object]


def dashboard(one: Dashboard) -> Json:
    """The document of a dashboard; panels stand in rows of :data:`COLUMNS`."""
    panels: list[Json] = []
    x = y = 0
    for number, panel in enumerate(one.panels, 1):
        if x + WIDTH[panel.form] > COLUMNS:
            x, y = 0, y + HEIGHT["timeseries"]
        panels.append(_panel(number, panel, x, y))
        x += WIDTH[panel.form]
    return {
        "uid": one.uid,
        "title": one.title,
        "tags": ["stromboli"],
        "schemaVersion": SCHEMA,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [_source(), *(_choice(*choice) for choice in one.choices)]},
        "panels": panels,
    }


def _source() -> Json:
    return {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}


def _choice(name: str, metric: str, label: str) -> Json:
    query = f"label_values({metric}, {label})"
    return {
        "name": name,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "includeAll": True,
        "multi": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
        "refresh": 2,
    }


def _panel(number: int, panel: Panel, x: int, y: int) -> Json:
    targets = [
        {"refId": chr(ord("A") + index), "expr": query.expr, "legendFormat": query.legend, "datasource": SOURCE}
        for index, query in enumerate(panel.queries)
    ]
    return {
        "id": number,
        "title": panel.title,
        "description": " ".join(filter(None, (panel.text, panel.quiet and f"No data {panel.quiet}."))),
        "type": panel.form,
        "datasource": SOURCE,
        "gridPos": {"h": HEIGHT[panel.form], "w": WIDTH[panel.form], "x": x, "y": y},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
    }


def config_maps(namespace: str) -> list[Json]:
    """One ConfigMap for each dashboard."""
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{one.uid}-dashboard", "namespace": namespace, "labels": {LABEL: "1"}},
            "data": {f"{one.uid}.json": json.dumps(dashboard(one), indent=1)},
        }
        for one in DASHBOARDS
    ]
