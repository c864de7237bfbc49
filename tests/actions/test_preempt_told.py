"""What preempt tells of its turns, and that jobs after one that is passed over have theirs."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.narration.observe import Counting
from tests.acceptance.bench import conf
from tests.acceptance.fights import evicted, fight, running, waiting


@pytest.mark.parametrize(
    ("key", "cores", "found"),
    [
        ("metric.eviction_transaction", 4, [{"action": "preempt"}]),
        ("metric.preemption_victims", 4, [{"count": 4}]),
        ("metric.preemption_attempt", 4, [{}]),
        ("metric.eviction_transaction", 9, []),
        ("no_preemptors", 4, [{"queue": "default"}]),
    ],
)
def test_what_is_told_of_a_job_that_needs_one_eviction_or_none(key: str, cores: int, found: list[Any]) -> None:
    observer = Counting((key,))
    plan = fight(running("l", 4), waiting("h", 1), cpu=cores).cycle(observer)
    assert [fields for _, fields in observer.told] == found
    assert len(evicted(plan)) == (cores == 4)


def test_a_job_that_idle_room_serves_keeps_no_other_from_its_victim() -> None:
    """The first fits on what is idle of n2; the second needs a whole node."""
    text = conf("conformance gang priority", "predicates", actions="preempt, allocate")
    jobs = waiting("h", 1), waiting("i", 1, cpu=4)
    plan = fight(running("l", 4), running("m", 3, "n2"), *jobs, text=text, nodes=2).cycle()
    assert sorted(evicted(plan)) == [f"l-{number}" for number in range(4)]
