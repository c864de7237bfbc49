"""A record as a trace: its jobs simulated with their own configuration and with another one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stromboli.builtin import full_registry
from stromboli.cli.main import main
from stromboli.framework.config.registry import Registry
from stromboli.plugin import Plugin
from stromboli.study.closed_loop import ClosedLoop
from stromboli.study.recorded.history import History
from stromboli.study.recorded.past_jobs import stem
from stromboli.study.recorded.trace import recorded_trace
from stromboli.study.replay import Reading
from tests.support.filled_record import PERIOD
from tests.support.filled_record import filled_record as filled_record
from tests.support.live_world import PREEMPTING

REGISTRY = full_registry("")


def test_a_record_tells_when_jobs_came_started_and_ended(filled_record: Path) -> None:
    history = History(filled_record, REGISTRY).read()
    assert history.period == PERIOD
    assert {"early", "later-0", "urgent"} <= {uid.partition("/")[2] for uid in history.jobs}
    early, last = history.jobs["ns/early"], history.jobs["ns/later-3"]
    assert early.started is not None
    assert early.ended is not None
    assert early.ended - early.started > 100
    assert last.ended is None
    assert [change.object["metadata"]["name"] for change in history.changes if change.object["kind"] == "Node"] == [
        "more"
    ]


def test_a_history_is_the_same_with_the_snapshots_of_its_cycles(
    filled_record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skimmed = History(filled_record, REGISTRY).read()
    monkeypatch.setattr(Reading, "skim", Reading.read)
    seen = History(filled_record, REGISTRY).read()
    assert seen.jobs == skimmed.jobs != {}
    assert seen.cuts == skimmed.cuts != []
    assert (seen.objects, seen.changes, seen.config) == (skimmed.objects, skimmed.changes, skimmed.config)


def test_the_own_configuration_gives_the_recorded_starts(filled_record: Path) -> None:
    history = History(filled_record, REGISTRY).read()
    found = ClosedLoop(history, history.config, REGISTRY)
    assert found.model_error.jobs >= 5
    assert found.model_error.within >= 0.95
    assert found.losers(10) == found.winners(10) == []


def test_another_policy_makes_others_wait(
    filled_record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "less.yaml").write_text(
        "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: default}\n"
        "spec: {weight: 1, capability: {cpu: 4}}\n"
    )
    conf = tmp_path / "capacity.conf"
    conf.write_text(PREEMPTING.replace("{name: predicates}", "{name: predicates}, {name: capacity}"))
    asked = ["diff", str(filled_record), "--closed-loop", "--conf", str(conf), "--queues", str(tmp_path / "less.yaml")]
    assert main([*asked, "--into", str(tmp_path / "out")]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("model error: of")
    assert "jobs that wait longer with the other configuration" in out
    assert "ns/later-" in out
    assert (tmp_path / "out" / "jobs.csv").read_text().startswith("job,queue,submit")


LATER = """
from stromboli.plugin import Plugin, job_order

class Later(Plugin):
    name = "later"

    @job_order
    def last_first(self, left, right):
        return right.created - left.created
"""
BOTH, AGAIN = "simulating both configurations", "simulating the other configuration"


def compared(record: Path, registry: Registry, workers: int) -> tuple[list[str], object]:
    """The log and the findings, with a plugin named ``later`` that no table knows."""
    config = registry.configured_by(PREEMPTING.replace("{name: priority}", "{name: later}"), "other.conf")
    history, told = History(record, registry).read(), list[str]()
    found = ClosedLoop(history, config, registry, tell=told.append, workers=workers)
    said = [found.other.why(key, 1e9) for key in found.other.runs]
    return told, (found.jobs, list(found.queues()), found.model_error, said, found.other.cycles)


def test_another_process_imports_plugin_files_and_finds_the_same(filled_record: Path, tmp_path: Path) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "later.py").write_text(LATER)
    registry = full_registry(str(tmp_path / "plugins"))
    _, alone = compared(filled_record, registry, 1)
    told, found = compared(filled_record, registry, 2)
    assert told == [BOTH]
    assert found == alone


def test_what_another_process_cannot_run_follows_here(filled_record: Path) -> None:
    class Later(Plugin):
        """Known to this process alone."""

        name = "later"

    registry = full_registry("")
    registry.add(Later)
    told, found = compared(filled_record, registry, 2)
    assert told == [BOTH, AGAIN]
    assert found == compared(filled_record, registry, 1)[1]


def test_a_node_that_comes_later_comes_later_in_the_trace(filled_record: Path) -> None:
    history = History(filled_record, REGISTRY).read()
    trace = recorded_trace(history, "record")
    nodes = [change for change in trace.workload.changes if change.object["kind"] == "Node"]
    found: list[Any] = [change.object for change in nodes]
    assert [one["metadata"]["name"] for one in found] == ["more"]
    assert nodes[0].at > 60
    assert {"ns/later-3"} <= trace.guessed


@pytest.mark.parametrize(
    ("name", "expected"),
    [("train-7", "train"), ("nightly-eval-20261120", "nightly-eval"), ("web-6d4cf56db-x2x9z", "web"), ("lone", "lone")],
)
def test_jobs_that_come_again_have_one_stem(name: str, expected: str) -> None:
    assert stem(name) == expected
