"""Recorded decisions of the reference: how many of them are met, as a whole and family by family.

The cases and their judge lie beside the project; without them there is nothing to collect here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import pytest

from stromboli.errors import StromboliError
from stromboli.sim.runner import run_scenario
from tests.cases.judge import CASES, JUDGE, VARYING, cases, judge_module

FLOORS: Mapping[str, tuple[float, float]] = {
    "decisions": (0.99, 0.95), "arithmetic": (0.98, 0.92), "words": (0.95, 0.88),
}  # fmt: skip
"""By level, the share of cases that must pass it: of all cases, and of each family of ten or more."""
LARGE = 10


Tally = dict[str, Counter[str]]


def outcome_of(scenario: Mapping[str, Any]) -> Any:
    """What we decide, in compat mode; an error where the scenario is refused."""
    try:
        return run_scenario(json.dumps(scenario), compat=True)["outcome"]
    except StromboliError as error:
        return {"errors": [str(error)]}


def tallied(judge: ModuleType) -> Tally:
    """By family: the number of its cases, and how many pass each level."""
    found: Tally = {}
    for family, name, case, scenario in cases(judge, devices=True):
        wrong = judge.verdicts(case, scenario, outcome_of(scenario))
        if name in VARYING:
            wrong["arithmetic"] = []
        passed = Counter({level: not wrong[level] for level in judge.LEVELS})
        found.setdefault(family, Counter()).update({"cases": 1, **passed})
    return found


def below(tally: Tally) -> Iterator[str]:
    """The floors that are not held."""
    whole = sum(tally.values(), Counter())
    for level, (of_all, of_family) in FLOORS.items():
        large = {family: counts for family, counts in tally.items() if counts["cases"] >= LARGE}
        for name, counts, floor in (("all", whole, of_all), *((f, c, of_family) for f, c in large.items())):
            if counts[level] < floor * counts["cases"]:
                yield f"{name}: {counts[level]} of {counts['cases']} pass {level}, at least {floor:.0%} must"


if CASES.is_dir() and JUDGE.is_file():

    @pytest.mark.slow
    def test_recorded_decisions_are_met() -> None:
        tally = tallied(judge_module())
        assert sum(counts["cases"] for counts in tally.values()) > 1500
        assert list(below(tally)) == []


def test_floors_are_held_apart_for_the_whole_and_for_large_families() -> None:
    def counts(cases: int, decisions: int, arithmetic: int, words: int) -> Counter[str]:
        return Counter(cases=cases, decisions=decisions, arithmetic=arithmetic, words=words)

    assert list(below({"a": counts(100, 99, 98, 95), "small": counts(1, 1, 1, 0)})) == [
        "all: 95 of 101 pass words, at least 95% must"
    ]
    assert list(below({"a": counts(900, 900, 900, 900), "b": counts(10, 9, 9, 8)})) == [
        "b: 9 of 10 pass decisions, at least 95% must",
        "b: 9 of 10 pass arithmetic, at least 92% must",
        "b: 8 of 10 pass words, at least 88% must",
    ]
