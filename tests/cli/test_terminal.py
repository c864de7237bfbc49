"""Tables on terminals and in pipes."""

from __future__ import annotations

import pytest

from stromboli.cli.terminal import PIPE_WIDTH, console, print_table, table

LONG = " ".join(["gpu-topology"] * 20)


def shown(capsys: pytest.CaptureFixture[str]) -> list[str]:
    view = table("NODE", "WHY")
    view.add_row("node-1", LONG)
    where = console()
    print_table(where, view)
    where.print(LONG)
    return capsys.readouterr().out.splitlines()


def test_a_table_in_a_pipe_is_not_folded(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    _, row, *text = shown(capsys)
    assert row.split(maxsplit=1) == ["node-1", LONG]
    assert len(text) > 1, "running text is still wrapped"
    assert max(map(len, text)) <= PIPE_WIDTH


def test_a_width_that_is_asked_for_holds(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, shown(capsys))) <= 60
