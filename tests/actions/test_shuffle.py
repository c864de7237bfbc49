"""shuffle: asks the plugins once and evicts the pods that they name, one by one."""

from __future__ import annotations

import pytest

from stromboli.errors import PlacementError
from stromboli.framework.statement.statement import Statement
from stromboli.model.job import RELEASING
from stromboli.model.task import Task
from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import Bench, answering, conf, task_of

OBJECTS = [
    node("n1", cpu=9, memory="64Gi"),
    pod_group("g"),
    *(pod(name, group="g", on="n1") for name in "abc"),
    pod("waiting", group="g"),
    pod("ending", group="g", on="n1", deleting=True),
    pod("bound", group="g", on="n1", phase="Pending"),
]


def test_it_asks_about_running_tasks_alone() -> None:
    asked: list[list[str]] = []

    def none(tasks: list[Task]) -> list[Task]:
        asked.append([task.name for task in tasks])
        return []

    stub = answering("stub", victim_tasks=none)
    assert Bench(OBJECTS, conf("stub", actions="shuffle"), stub).cycle().evictions == []
    assert asked == [["a", "b", "c"]]


def test_victims_end_and_their_room_is_released() -> None:
    bench = Bench(OBJECTS, conf("stub"), answering("stub", victim_tasks=lambda tasks: tasks[1:]))
    with bench.open() as session:
        before = session.nodes["n1"].releasing.milli_cpu
        bench.act(session, "shuffle")
        assert [task_of(session, name).status is RELEASING for name in "abc"] == [False, True, True]
        assert session.nodes["n1"].releasing.milli_cpu == before + 2000
    assert [(eviction.key, eviction.reason) for eviction in session.plan.evictions] == [
        ("default/b", "shuffle"),
        ("default/c", "shuffle"),
    ]


def test_one_that_cannot_be_evicted_does_not_keep_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    evict = Statement.evict

    def failing(self: Statement, task: Task, reason: str) -> None:
        if task.name == "a":
            raise PlacementError("node has gone")
        evict(self, task, reason)

    monkeypatch.setattr(Statement, "evict", failing)
    bench = Bench(OBJECTS, conf("stub", actions="shuffle"), answering("stub", victim_tasks=lambda tasks: tasks[:2]))
    lines = bench.logged(3)
    assert "pod a from namespace default and job default/g will be evicted." in lines
    assert "Failed to evict Task <default/a>: node has gone" in lines
    assert [eviction.key for eviction in bench.plan.evictions] == ["default/b"]
