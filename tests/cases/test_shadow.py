"""The recorded cases as what a shadow sees: it tells the differences that are known, with the rows that make them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

import pytest

from stromboli.errors import StromboliError
from stromboli.live.shadow.causes import RESTORABLE, Moment, rows_of
from stromboli.live.shadow.differences import Comparison, Decided, Difference, Pod, What
from stromboli.model.status import TaskStatus
from stromboli.sim.outcome import outcome
from stromboli.sim.runner import NOW, Run, loaded
from tests.cases.judge import CASES, JUDGE, cases, judge_module

PATIENCE = 30.0
ONE_IN = 40
"""Of so many cases one is looked at, as each is planned for several times."""
SEEN_LATER = {What.bound_here, What.evicted_here}


def differences(run: Run, recorded: Mapping[str, Any]) -> tuple[Moment, list[Difference]]:
    """What a shadow tells where the other scheduler has decided as was recorded."""
    moment = Moment(run.state.snapshot(), run.config, run.registry, run.now, 0)
    tasks = run.state.tasks
    waiting = [Pod(one.uid, one.key, one.job) for one in tasks.values() if one.status is TaskStatus.Pending]
    comparison = Comparison(PATIENCE)
    plan = Decided.of(moment.plan(), 1, NOW, waiting)
    comparison.decided(plan)
    bound, evicted = dict(recorded.get("binds") or {}), set(recorded.get("evictions") or ())
    for key, node in bound.items():
        comparison.bound(Pod(tasks[key].uid, key, tasks[key].job), node, NOW + 1)
    for key in sorted(evicted):
        comparison.evicted(Pod(tasks[key].uid, key, tasks[key].job), "", NOW + 1)
    at_once = list(comparison.found)
    later = comparison.overdue(NOW + PATIENCE, {})
    return moment, [*at_once, *(one for one in later if one.pod not in bound and one.pod not in evicted)]


def recorded(judge: Any, case: Mapping[str, Any], scenario: Mapping[str, Any], ours: Mapping[str, Any]) -> bool:
    """Whether our binds and evictions are one of the recorded outcomes."""
    mine = judge.facets(ours, scenario)["decisions"]
    kept = [judge.facets(entry["outcome"], scenario)["decisions"] for entry in case["oracle"]["outcomes"]]
    return any(all(judge.same(one[name], mine[name]) for name in ("binds", "evictions")) for one in kept)


def is_one_of_few(name: str) -> bool:
    """Whether the case of this name is looked at."""
    return crc32(name.encode()) % ONE_IN == 0


def single(judge: Any) -> Iterator[tuple[str, Mapping[str, Any], Mapping[str, Any], Run]]:
    """Some of the cases of one cycle."""
    for _, name, case, scenario in cases(judge, "topology", devices=True, wanted=is_one_of_few):
        if int(scenario.get("cycles") or 1) == 1:
            try:
                yield name, case, scenario, loaded(json.dumps(scenario))
            except StromboliError:
                continue


if CASES.is_dir() and JUDGE.is_file():

    @pytest.mark.slow
    def test_the_differences_that_are_told_are_the_known_ones() -> None:
        judge = judge_module()
        wrong: list[str] = []
        for name, case, scenario, run in single(judge):
            entries = [entry["outcome"] for entry in case["oracle"]["outcomes"]]
            told = [differences(run, one) for one in entries]
            differs = all(found for _, found in told)
            ours = outcome([told[0][0].plan()], run.state, {}, {})
            if differs is recorded(judge, case, scenario, ours):
                wrong.append(name)
        assert wrong == []


class Planned:
    """A moment whose plans are the rows that they were made with."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []

    def plan(self, rows: Sequence[str] = ()) -> Any:
        self.asked.append(tuple(rows))
        return frozenset(rows)


FIRST, SECOND, THIRD = sorted(RESTORABLE)[:3]


@pytest.mark.parametrize(
    ("needed", "first", "rows", "plans"),
    [
        ([{FIRST}], (), {FIRST}, 2 + list(RESTORABLE).index(FIRST)),  # all rows together, then one after the other
        ([{SECOND}, {FIRST}], (SECOND,), {SECOND}, 2),
        ([{FIRST, THIRD}], (), {FIRST, THIRD}, 1 + 2 * len(RESTORABLE)),  # then each is left out
        ([], (), set(), 1),
    ],
)
def test_the_fewest_rows_are_found_that_make_a_difference(
    needed: list[set[str]], first: tuple[str, ...], rows: set[str], plans: int
) -> None:
    moment: Any = Planned()

    def decides(plan: Any) -> bool:
        return any(some <= plan for some in needed)

    assert set(rows_of(moment, decides, first)) == rows
    assert len(moment.asked) == plans
