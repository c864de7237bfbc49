"""Every panel of every dashboard has data: Prometheus asks what our programs serve, while a cluster is busy."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from e2e.clusters import Embedded
from e2e.conftest import missing
from e2e.objects import job, namespace, priority_class
from e2e.real import ended, free_port
from e2e.stage import Stage, Waited, begun, until
from stromboli.metrics.boards.dashboards import DASHBOARDS, Panel
from stromboli.metrics.descriptions import CONTROLLERS, DESCRIPTIONS
from stromboli.metrics.families import PREFIX

VALUES: Final = {"$queue": ".*", "$__rate_interval": "20s"}
NAME: Final = re.compile(r"\b(?:volcano|stromboli|process)_[a-z0-9_]+")
EMPTY: Final = {
    "Reservations given up": "none is held for longer than its time",
    "Reservations not proven": "no client forges one",
}
"""Panels that have no data here, and why."""
CONF: Final = """actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}, {name: network-topology-aware}]
"""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A small cluster of ours."""
    if reason := missing("embedded"):
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("boards")
    with begun(Embedded(folder / "server"), folder) as found:
        found.install()
        found.add_nodes("4x8cpu,32Gi,nvidia.com/gpu=2")
        yield found


@contextmanager
def observed(stage: Stage, binary: str) -> Iterator[str]:
    """Scheduler and controllers whose metrics Prometheus reads each second; its address."""
    ports = {"scheduler": free_port(), "controllers": free_port()}
    shown = {name: ("--enable-metrics", f"--listen-address=127.0.0.1:{port}") for name, port in ports.items()}
    controllers = stage.start(
        "controllers", "controllers", f"--kubeconfig={stage.server.kubeconfig}", "--leader-elect=false",
        *shown["controllers"],
    )  # fmt: skip
    try:
        with stage.scheduler(*shown["scheduler"], conf=CONF), prometheus(stage.folder, binary, ports) as address:
            yield address
    finally:
        ended(controllers)


@contextmanager
def prometheus(folder: Path, binary: str, ports: Mapping[str, int]) -> Iterator[str]:
    """Prometheus while the block lasts."""
    jobs = [
        {"job_name": name, "scrape_interval": "1s", "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}
        for name, port in ports.items()
    ]
    (folder / "prometheus.yml").write_text(json.dumps({"scrape_configs": jobs}))
    port = free_port()
    words = (
        f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn",
    )  # fmt: skip
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen([binary, *words], stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        ended(process)


def answered(address: str, path: str, **query: str) -> Any:
    """What Prometheus answers; URLError while it starts."""
    with urllib.request.urlopen(f"{address}/api/v1/{path}?{urllib.parse.urlencode(query)}", timeout=10) as answer:
        return json.loads(answer.read())["data"]


def asked(address: str, expression: str) -> list[Any]:
    """The series of an expression as they are now."""
    found: list[Any] = answered(address, "query", query=expression)["result"]
    return found


def served(address: str) -> set[str]:
    """The names of all metrics that our programs know, with or without series."""
    rows = (*DESCRIPTIONS.values(), *CONTROLLERS)  # Prometheus hears of those alone that have series
    names = {*answered(address, "metadata"), *(PREFIX + row.name for row in rows)}
    return names | {name + part for name in names for part in ("_bucket", "_sum", "_count")}


def expressions() -> Iterator[tuple[Panel, str]]:
    """Every query as Grafana asks it."""
    for board in DASHBOARDS:
        for panel in board.panels:
            for query in panel.queries:
                expression = query.expr
                for name, value in VALUES.items():
                    expression = expression.replace(name, value)
                yield panel, expression


def keep_busy(stage: Stage) -> None:
    """A gang runs, one is done, one is too large, and a higher one takes the room of a lower one."""
    stage.create(namespace("busy"), priority_class("high", 1000), priority_class("low", 1))
    stage.until_open("default")
    stage.create(job("busy", "done", 2, command="sleep 1; exit 0"), job("busy", "fails", 1, command="exit 1"))
    stage.until_phase("busy", "done", "Completed")
    stage.create(job("busy", "low", 4, cpu="7", least=1, priorityClassName="low"))
    stage.until_bound("busy", "low", 4)
    stage.create(job("busy", "huge", 2, cpu="99"))
    stage.create(job("busy", "high", 1, cpu="7", priorityClassName="high"))
    stage.until_bound("busy", "high", 1)


def test_every_panel_has_data_or_says_when_it_has_none(stage: Stage, prometheus_server: str) -> None:
    with observed(stage, prometheus_server) as address:
        keep_busy(stage)
        until(lambda: asked(address, "sum(rate(volcano_e2e_scheduling_latency_milliseconds_count[20s]))"), "rates")
        known = served(address)
        unknown = {name for _, expression in expressions() for name in NAME.findall(expression)} - known
        assert not unknown
        lacking = [query for query in expressions() if query[0].title not in EMPTY]
        assert all(panel.quiet for panel, _ in expressions() if panel.title in EMPTY)

        def have_all_had_data() -> bool:
            lacking[:] = [(panel, expression) for panel, expression in lacking if not asked(address, expression)]
            return not lacking

        try:
            until(have_all_had_data, "data in every panel")
        except Waited as error:
            error.add_note("\n".join(f"{panel.title}: {expression}" for panel, expression in lacking))
            raise
