"""A record from Python: the same answers as from the command line, as tables and pictures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import stromboli.study as st
from stromboli.builtin import builtin_registry
from stromboli.errors import RecordError, StudyError
from stromboli.journal.segments import STAMP, Segment
from stromboli.model.values.times import stamp
from stromboli.study import past
from stromboli.study.opened import Replayed
from stromboli.study.replay import Difference
from tests.support.filled_record import filled_record as filled_record
from tests.support.live_world import PREEMPTING

SMALL = st.Conf("small", PREEMPTING.replace("{name: predicates}", "{name: predicates}, {name: capacity}"))
QUEUES = (
    "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: default}\n"
    "spec: {weight: 1, capability: {cpu: 4}}\n"
)


def test_cycles_are_replayed_and_explained(filled_record: Path) -> None:
    day = st.open_record(filled_record)
    found = day.replay()
    found.assert_equal()
    assert found.equal == sum(day.segments.to_pandas()["cycles"]) > 100
    clock = stamp(day.since + 60)[11:16]
    assert 0 < day.replay(until=clock).equal < found.equal
    assert day.replay(day.since + 60).equal + day.replay(0, day.since + 59).equal == found.equal
    why = day.explain("ns/urgent")
    assert [span.phase for span in why.spans][:3] == ["not there", "Inqueue", "Running"]
    assert str(why).count("\n") == len(why.spans) - 1
    assert {span.since for span, _ in why.explained} <= {span.since for span in why.spans}
    assert why.explained


def test_what_would_have_followed_is_tables_and_a_picture(filled_record: Path, tmp_path: Path) -> None:
    (file := tmp_path / "queues.yaml").write_text(QUEUES)
    day = st.open_record(filled_record)
    assert len(day.each_cycle(st.Conf("same", PREEMPTING))) == 0
    found = day.diff(SMALL, queues=file)
    assert found.model_error.start_seconds.p95 == found.model_error.p95
    by_queue = found.by_queue.to_pandas()
    assert (by_queue["started recorded"] > by_queue["started other"]).all()
    losers = found.losers(2).to_pandas()
    assert list(losers["change"]) == sorted(losers["change"], reverse=True)
    assert len(found.winners(10)) == 0
    assert len(found.jobs) >= 5
    axes = found.plot.waits().axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["recorded", "other"]
    workload = day.workload()
    assert {job.key for job in workload.jobs} >= {"ns/early", "ns/urgent"}
    assert st.simulate(workload, SMALL, period=5).metrics["jobs"] == len(workload.jobs)


def test_the_python_of_the_page_runs(filled_record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs" / "insight.md").read_text(encoding="utf-8")
    (tmp_path / "rec").symlink_to(filled_record)
    (tmp_path / "new.conf").write_text(SMALL.text)
    monkeypatch.chdir(tmp_path)
    exec(compile(page.split("```python\n")[1].split("```")[0], "page", "exec"), {"__name__": "page"})
    assert (tmp_path / "waits.svg").stat().st_size > 1000


def test_mistakes_are_told(filled_record: Path, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(RecordError):
            st.open_record(folder)
    with pytest.raises(StudyError, match="'ten' is no time"):
        st.open_record(filled_record).replay("ten")
    difference = Difference(Path("f"), 7, 0.0, ["binds a: recorded on n1, now on n2"])
    with pytest.raises(StudyError, match=r"f, entry 7: .* another one now; binds a: recorded on n1, now on n2"):
        Replayed(3, 0, difference).assert_equal()


def test_segments_that_begin_later_are_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [Segment(Path(f"rec-{1000 * second:0{STAMP}}-0.stj")) for second in (10, 20, 30)]
    opened: list[Path] = []
    monkeypatch.setattr(past, "segments", lambda record, since: found)

    def standings(segment: Segment, until: float) -> Iterator[tuple[object, int, float]]:
        opened.append(segment.path)
        return iter(())

    monkeypatch.setattr(past, "standings", standings)
    assert past.Past(Path(), "ns/j", builtin_registry(), 0, 25).spans() == []
    assert opened == [segment.path for segment in found[:2]]
