"""Damaged records: every command answers or says what is wrong, and the survey notices one that does neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.records import damage
from stromboli.cli.main import main
from stromboli.cluster.rim import Cut
from stromboli.journal.entries import MOST, Batch
from stromboli.journal.segments import ENTRIES, RATIO, SMALL, Segment
from tests.support.filled_record import filled_record as filled_record


def test_damaged_records_are_read_without_a_traceback(
    filled_record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    segment = min(filled_record.glob("*.stj"))
    assert damage.main([str(segment), "--files", "6", "--frames", "6", "--seed", "3"]) == 0
    assert "6 damaged files, seed 3: 0 of 24 commands broke" in capsys.readouterr().out

    def broken(arguments: list[str]) -> int:
        if arguments[0] == "replay":
            raise KeyError("no")
        return 0

    monkeypatch.setattr(damage, "stromboli", broken)
    assert damage.main([str(segment), "--files", "2", "--frames", "3"]) == 1
    assert "2 of 8 commands broke" in capsys.readouterr().out


@pytest.mark.parametrize("about", [b"\x81\xa9strom\xa5oli\xa1a", b"\xc1", b""])
def test_what_wrote_a_segment_may_be_no_text(
    filled_record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], about: bytes
) -> None:
    first, *others = Segment(min(filled_record.glob("*.stj"))).frames()
    file = tmp_path / "rec-01700000000000-000.stj"
    file.write_bytes(damage.framed([first._replace(content=about), *others[:2]]))
    assert main(["record", "verify", str(file)]) == 2
    assert "it does not say what wrote it" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (bytes(SMALL + 1), f"the frame states {SMALL + 1} bytes"),
        (b"\xdd" + (MOST + 1).to_bytes(4, "big") + b"\x92\xa4Gone\xa1a" * (MOST + 1), f"it states {MOST + 1} entries"),
    ],
)
def test_a_frame_that_is_huge_once_unpacked_is_refused_before(
    filled_record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, said: str
) -> None:
    about, checkpoint, *_ = Segment(min(filled_record.glob("*.stj"))).frames()
    file = tmp_path / "rec-01700000000000-000.stj"
    file.write_bytes(damage.framed([about, checkpoint, checkpoint._replace(kind=ENTRIES, first=0, content=content)]))
    assert file.stat().st_size < SMALL // RATIO + 50_000
    for command in (["record", "verify"], ["replay"]):
        assert main([*command, str(file)]) == 2
        assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("cut", [Cut(1e18, 0, 0), Cut(-1e18, 0, 0), Cut(float("nan"), 0, 0), Cut(0.0, 1 << 40, 0)])
def test_a_cycle_at_a_time_that_no_calendar_has_is_damage(
    filled_record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], cut: Cut
) -> None:
    about, checkpoint, *_ = Segment(min(filled_record.glob("*.stj"))).frames()
    file = tmp_path / "rec-01700000000000-000.stj"
    file.write_bytes(
        damage.framed([about, checkpoint, checkpoint._replace(kind=ENTRIES, content=bytes(Batch([cut]).content()))])
    )
    for command in (["record", "info"], ["replay"]):
        assert main([*command, str(file)]) == 2
        assert "which is no time" in " ".join(capsys.readouterr().err.split())
