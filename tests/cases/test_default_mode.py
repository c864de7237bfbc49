"""The recorded cases in default mode, as users run it: what differs is listed, and each difference has its reason."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from types import ModuleType
from typing import Any
from unittest.mock import patch
from zlib import crc32

import pytest

from stromboli.errors import StromboliError
from stromboli.framework.config.compat import DIFFERENCES, Compat
from stromboli.sim.runner import run_scenario
from tests.cases.judge import CASES, JUDGE, VARYING, cases, judge_module
from tools.fidelity import generated, listed

PARTS, EVERY = 16, 4
"""The cases are run in so many parts, of which everyday runs take every fourth: each takes a second or two."""


def outcome(text: str, rows: Collection[str] = ()) -> Any:
    """What we decide in default mode, but for ``rows`` of the compatibility table, in which we do as the reference."""
    with patch.object(Compat, "asks", lambda _ways, row: row in rows):
        try:
            return run_scenario(text)["outcome"]
        except StromboliError as error:
            return {"errors": [str(error)]}


def wrong(judge: ModuleType, case: Mapping[str, Any], scenario: Mapping[str, Any], ours: Any) -> list[str]:
    """The levels on which an outcome is none of the recorded ones."""
    found = judge.verdicts(case, scenario, ours)
    return [level for level in judge.LEVELS if found[level]]


def of_part(name: str) -> int:
    """The part in which a case is run."""
    return crc32(name.encode()) % PARTS


def compared(part: int) -> tuple[dict[str, list[str]], list[str]]:
    """The levels on which cases of a part differ, by name, and the cases whose named rows do not explain it."""
    judge, known = judge_module(), listed()
    found: dict[str, list[str]] = {}
    unexplained: list[str] = []
    for _, name, case, scenario in cases(judge, "topology", devices=True, wanted=lambda name: of_part(name) == part):
        text = json.dumps(scenario)
        levels = wrong(judge, case, scenario, outcome(text))
        if levels or name in known:
            found[name] = levels
        if levels:
            rows = known[name]["rows"] if name in known else []
            if rows and wrong(judge, case, scenario, outcome(text, rows)):
                unexplained.append(name)
    return found, unexplained


if CASES.is_dir() and JUDGE.is_file():

    @pytest.mark.spread(EVERY)
    @pytest.mark.parametrize("part", range(PARTS))
    def test_what_differs_without_compat_mode_is_listed_with_its_reason(part: int) -> None:
        found, unexplained = compared(part)
        assert found == {name: case["levels"] for name, case in listed().items() if name in found}
        assert unexplained == []

    def test_every_listed_case_is_a_recorded_one() -> None:
        known = listed()
        assert known.keys() == {
            case.name for case in cases(judge_module(), "topology", devices=True, wanted=known.__contains__)
        }


IN_COMPAT_MODE_TOO = {
    *("capacity/088", "gang/022", "hdrf/078", "vgpu/023", "devices_cycles/013", "devices_cycles/021"),
    *("topology_evict/032", "topology_evict/066"),
    *(name for name in VARYING if name.startswith("unit:")),
}
"""Cases that no row restores, as the page's first half says."""


def test_every_listed_case_names_rows_that_can_be_restored() -> None:
    assert {name for name, case in listed().items() if not case["rows"]} == IN_COMPAT_MODE_TOO
    for name, case in listed().items():
        assert case["levels"], name
        assert [row for row in case["rows"] if not DIFFERENCES[row].restored] == [], name


def test_the_page_names_every_case_and_how_often_each_row_counts() -> None:
    text = generated({
        "a/1": {"levels": ["decisions"], "rows": ["tie-break"]},
        "a/2": {"levels": ["decisions"], "rows": ["tie-break"]},
        "b/1": {"levels": ["arithmetic"], "rows": []},
    })  # fmt: skip
    assert "| `tie-break` | 2 |" in text
    assert "| a/1, a/2 | decisions | `tie-break` |" in text
    assert "| b/1 | arithmetic | in compat mode, too: see above |" in text
