"""Every query of every dashboard is one that Prometheus reads; promtool says so."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Final

import pytest

from stromboli.metrics.boards.dashboards import DASHBOARDS, Dashboard

VALUES: Final = {"$queue": ".*", "$__rate_interval": "2m"}
"""What Grafana puts in the place of variables."""


@pytest.mark.parametrize("one", DASHBOARDS, ids=lambda one: one.uid)
def test_queries_are_well_formed(one: Dashboard, promtool: str, tmp_path: Path) -> None:
    expressions = [query.expr for panel in one.panels for query in panel.queries]
    for name, value in VALUES.items():
        expressions = [expr.replace(name, value) for expr in expressions]
    rules = [{"record": f"query_{number}", "expr": expr} for number, expr in enumerate(expressions)]
    (tmp_path / "rules.json").write_text(json.dumps({"groups": [{"name": one.uid, "rules": rules}]}))
    command = [promtool, "check", "rules", "rules.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(rules)} rules found" in done.stdout
