"""Two ways of one cycle by turns: what is printed of them, and when the second costs too much."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import devices, gates
from benchmarks.cases import Case
from benchmarks.paired import Comparison
from benchmarks.workloads import Workload

pytestmark = pytest.mark.usefixtures("freezing")

SMALL = Case("small", Workload("default", 10, 100, gang=20))


@pytest.mark.parametrize(("limit", "fine", "verdict"), [(0.0, False, "over"), (1000.0, True, "ok")])
def test_a_way_over_its_limit_is_told(
    capsys: pytest.CaptureFixture[str], limit: float, fine: bool, verdict: str
) -> None:
    compared = Comparison(("before", "after"), (replace, replace), limit)
    assert compared.show([SMALL], quick=False) is fine
    *_, columns, _, row = capsys.readouterr().out.splitlines()
    assert "after : before" in columns
    assert row.startswith("| small | 9 |")
    assert row.endswith(f"| {verdict} |")


@pytest.mark.parametrize("table", [devices.COMPARISON, gates.COMPARISON], ids=["devices", "gates"])
def test_a_quick_comparison_judges_nothing(capsys: pytest.CaptureFixture[str], table: Comparison) -> None:
    assert table.show([SMALL], quick=True)
    assert capsys.readouterr().out.splitlines()[-1].endswith("| - |")


def test_the_plugin_is_there_in_the_second_way_alone() -> None:
    with devices.COMPARISON.loaded(SMALL) as (without, shared):
        assert without.keywords == shared.keywords == {}
    plugins = [[option.name for option in way.args[0].plugins()] for way in (without, shared)]
    assert plugins[1] == [*plugins[0], "deviceshare"]
