"""Tasks with reserved room that are placed a second time, as in compat mode: how each is taken up."""

from __future__ import annotations

import pytest

from stromboli.model.job import PENDING
from stromboli.model.status import TaskStatus
from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import Bench, conf, task_of


@pytest.mark.parametrize(
    ("status", "counts"), [(TaskStatus.Allocated, True), (TaskStatus.Pipelined, False)], ids=["bound", "reserved"]
)
@pytest.mark.parametrize(("row", "goes_on"), [(1, True), (0, False)], ids=["elsewhere", "there"])
def test_a_task_leaves_its_reservation_and_counts_until_room_is_reserved_again(
    status: TaskStatus, counts: bool, row: int, goes_on: bool
) -> None:
    bench = Bench([node("n0"), node("n1"), pod_group("g"), pod("p", group="g")], conf("gang"))
    with bench.open() as session:
        task = task_of(session, "p")
        job, places = session.jobs["default/g"], session.ledger.second_places
        session.statement().pipeline(task, "n0")
        places.rows[task.uid] = 0
        assert places.waits(task)
        assert places.take_up(job, task, row, status) == goes_on
        assert (task.status, task.node_name) == (PENDING, "")
        assert (task.uid in places.counted) == counts
        assert (task.uid in places.rows) == goes_on
        assert task.last is not None
        assert task.last.node_name == "n0"
