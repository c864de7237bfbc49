"""The node of the pod before, for the next one: where it fails there, the other nodes are tried, and none twice."""

from __future__ import annotations

from collections import deque

import pytest

from stromboli.framework.extension.handlers import TaskEvent
from stromboli.plugin import Plugin, on_allocate
from stromboli.preemption.eviction_policy import RECLAIM
from stromboli.preemption.victim_search import Search
from stromboli.testing.builders import node
from tests.acceptance.bench import Bench, conf, task_of
from tests.acceptance.fights import CLASSES, reserved, running, waiting

JOBS = [running(f"{letter}{i}", 1, on=f"n{i}") for i in (1, 2, 3) for letter in "abcd"]
SCENE = [*(node(f"n{i}", cpu=4) for i in (1, 2, 3)), *CLASSES, *(each for job in JOBS for each in job)]
"""Three nodes, each of which four jobs of one pod fill."""


class Picky(Plugin):
    """Objects to x-1 on the first node."""

    name = "picky"
    refused: tuple[str, ...] = ("n1",)

    def on_session_open(self, _session: object) -> None:
        type(self).asked = []

    asked: list[str]

    @on_allocate
    def come(self, event: TaskEvent) -> None:
        if event.task.name == "x-1":
            self.asked.append(event.task.node_name)
            if event.task.node_name in self.refused:
                event.err = "not here"


class Pickier(Picky):
    """Objects to it on the first two nodes."""

    refused = ("n1", "n2")


@pytest.mark.parametrize(
    ("plugin", "places"),
    [
        pytest.param(Picky, {"x-0": "n1", "x-1": "n2", "x-2": "n1"}, id="the second node takes it"),
        pytest.param(Pickier, {"x-0": "n1", "x-1": "n3", "x-2": "n1"}, id="the third one does"),
    ],
)
def test_a_pod_to_which_a_plugin_objects_on_the_node_of_the_pod_before_goes_elsewhere(
    plugin: type[Picky], places: dict[str, str]
) -> None:
    text = conf("conformance gang priority picky", actions="preempt")
    plan = Bench([*SCENE, *waiting("x", 3)], text, plugin).cycle()
    assert reserved(plan) == places
    assert plugin.asked == ["n1", "n2", "n3"][: 1 + len(plugin.refused)]


def test_after_a_run_no_pod_counts_as_failed() -> None:
    """x-1 and x-2 take the room of two more pods on the node of x-0 in one step, as does x-3, looked at by itself."""
    with Bench([*SCENE, *waiting("x", 4)], conf("conformance gang priority")).open() as session:
        job = session.jobs["default/x"]
        tasks = [task_of(session, f"x-{i}") for i in range(4)]
        search = Search(session, job, RECLAIM, lambda other: other.uid != job.uid, minimal=True)
        with session.statement() as statement:
            assert search.place(statement, tasks[0])
            vars(search)["failed"] = 0, tasks[3]
            others = deque(tasks[2:3])
            assert search.place(statement, tasks[1], others)
            assert search.failed is None
            assert (len(others), len(statement.evicted)) == (0, 3)
            assert search.place(statement, tasks[3])
            assert {task.node_name for task in tasks} == {"n1"}
