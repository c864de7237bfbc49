"""A replay or a comparison that has compared nothing is bad input, with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

import stromboli.study as st
from stromboli.builtin import full_registry
from stromboli.cli.main import main
from stromboli.errors import NotFoundError, StudyError
from stromboli.journal.entries import Planned
from stromboli.study.closed_loop import ClosedLoop
from stromboli.study.recorded.history import History
from stromboli.study.replay import Replay
from tests.support.filled_record import filled_record as filled_record
from tests.support.live_world import PREEMPTING

REGISTRY = full_registry("")
LATE = "2100-01-01T00:00:00Z"


@pytest.fixture
def conf(tmp_path: Path) -> str:
    (tmp_path / "same.conf").write_text(PREEMPTING, encoding="utf-8")
    return str(tmp_path / "same.conf")


@pytest.fixture
def empty(tmp_path: Path) -> str:
    """A record whose scheduler was killed before it had written anything."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "rec-01700000000000-000.stj").touch()
    return str(tmp_path / "empty")


def told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What a command that ends with 2 says of the reason."""
    assert main(arguments) == 2
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("span", [["--from", LATE], ["--from", "2", "--until", "1"]])
@pytest.mark.parametrize("more", [[], ["--closed-loop"]])
def test_a_part_without_cycles_is_bad_input(
    filled_record: Path, conf: str, capsys: pytest.CaptureFixture[str], span: list[str], more: list[str]
) -> None:
    assert "that part of the record" in told(["replay", str(filled_record), *span], capsys)
    assert "that part of the record" in told(["diff", str(filled_record), "--conf", conf, *span, *more], capsys)


def test_an_empty_record_is_bad_input(empty: str, conf: str, capsys: pytest.CaptureFixture[str]) -> None:
    for asked in (["replay", empty], ["diff", empty, "--conf", conf], ["diff", empty, "--conf", conf, "--closed-loop"]):
        assert "no cycle" in told(asked, capsys)
    for ask in (st.open_record(empty).replay, lambda: st.open_record(empty).each_cycle(conf)):
        with pytest.raises(StudyError, match="nothing was compared; stromboli record info says"):
            ask()


def test_a_job_that_is_not_there_is_bad_input(
    filled_record: Path, conf: str, capsys: pytest.CaptureFixture[str]
) -> None:
    record, job = str(filled_record), ["--job", "nosuch"]
    for asked in (
        ["replay", record],
        ["diff", record, "--conf", conf],
        ["diff", record, "--conf", conf, "--closed-loop"],
    ):
        assert "there is no job nosuch in that part of the record" in told([*asked, *job], capsys)
    assert main(["replay", record, "--job", "ns/early"]) == 0
    assert main(["diff", record, "--conf", conf, "--job", "ns/later-0"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].startswith("0 differences in ")


def test_cycles_that_cannot_be_replayed_are_not_equal(
    filled_record: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Planned, "replayable", property(lambda _: False))
    assert "none of the cycles there can be replayed" in told(["replay", str(filled_record)], capsys)
    found = Replay(REGISTRY)
    found.equal, found.outside = 1, 5
    found.check(filled_record)


def test_jobs_of_which_a_part_was_not_recorded_are_not_compared(filled_record: Path) -> None:
    history = History(filled_record, REGISTRY).read()
    history.jobs["ns/early"].unseen = True
    found = ClosedLoop(history, history.config, REGISTRY)
    found.need_job("ns/later-0")
    with pytest.raises(
        StudyError, match="job ns/early is not compared: a part of it happened while nothing was recorded"
    ):
        found.need_job("ns/early")
    with pytest.raises(NotFoundError, match="there is no job ns/none"):
        found.need_job("ns/none")
    found.need_job(None)
    found.jobs.clear()
    with pytest.raises(StudyError, match="nothing is compared"):
        found.need_job(None)
