"""A record with other names: nothing that users have named is in it, and it decides the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from stromboli.cli.main import main
from stromboli.journal.pseudonyms import Pseudonyms
from stromboli.journal.segments import Segment
from tests.support.filled_record import filled_record as filled_record


def test_orders_and_equalities_stay() -> None:
    names = Pseudonyms()
    told = [
        "ns/train-b-2",
        "ns/train-a-10",
        "node2",
        "node10",
        "gpu-4",
        "cpu",
        "12Gi",
        "volcano.sh/queue-name",
        "a b c",
    ]
    names.seen(told, nodes=["node10", "node2", "gpu-4"])
    names.settle()
    b, a, two, ten, four, *kept, prose = names.told(told)
    assert a < b, "by text"
    assert (a.endswith("-10"), b.endswith("-2"), four.endswith("-4")) == (True, True, True)
    assert a.partition("/")[0] == b.partition("/")[0]
    assert two < ten, "nodes by number"
    assert kept == ["cpu", "12Gi", "volcano.sh/queue-name"]
    assert prose == ""


def test_a_record_is_given_away_without_names(
    filled_record: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    into = tmp_path / "out"
    assert main(["record", "anonymise", str(filled_record), "--into", str(into)]) == 0
    said = capsys.readouterr().out.split()
    assert said[0] == said[3], "all cycles decide the same"
    content = b"".join(frame.content for file in into.glob("*.stj") for frame in Segment(file).frames())
    for name in (b"later-", b"early", b"urgent", b"high", b"more"):
        assert name not in content, name
    assert {file.stat().st_mode & 0o777 for file in into.glob("*.stj")} == {0o600}
    assert main(["replay", str(into)]) == 0
    assert main(["record", "anonymise", str(filled_record), "--into", str(into)]) == 2
