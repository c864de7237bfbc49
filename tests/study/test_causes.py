"""Which spans of a job have one cause."""

from __future__ import annotations

from stromboli.study.past import cause_of
from stromboli.study.story import Span

WHY = "NotEnoughResources: 16/16 tasks in gang unschedulable; 0/200 nodes are unavailable: 187 Insufficient cpu."


def test_spans_that_tell_the_same_but_for_numbers_have_one_cause() -> None:
    first = Span(0.0, "Inqueue", 0, 16, WHY)
    assert cause_of(first) == cause_of(first._replace(since=9.0, why=WHY.replace("187", "12").replace("16", "9")))
    others = (
        first._replace(why=WHY.replace("cpu", "memory")), first._replace(phase="Pending"), first._replace(placed=3),
        first._replace(placed=16), first._replace(why=""),
    )  # fmt: skip
    assert len({cause_of(one) for one in (first, *others)}) == 6
