"""Acceptance rows S4: what pods that hold room get when their job has its turn, and how it is reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from stromboli.framework.extension.handlers import TaskEvent
from stromboli.framework.extension.reason import Reason
from stromboli.model.reservation import Held
from stromboli.model.status import TaskStatus
from stromboli.model.table import Node
from stromboli.model.task import Task
from stromboli.narration.observe import Placed
from stromboli.plugin import Plugin, on_allocate
from stromboli.reservations.bind_reserved import bind_reserved
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.acceptance.bench import answering, binds, conf, task_of
from tests.acceptance.stories import ALLOCATE, NO_VICTIMS, Story, ending, held_on, reserved_pod, written


def holders(*nodes: str, least: int | None = None, cpus: Sequence[int] = ()) -> list[Manifest]:
    """A gang whose pods hold room on a node each."""
    sizes = cpus or [4] * len(nodes)
    pods = [pod(f"g-{i}", group="g", cpu=sizes[i], memory=0, annotations=held_on(on)) for i, on in enumerate(nodes)]
    return [pod_group("g", min_member=least or len(nodes)), *pods]


def leaves(task: Task, node: Node) -> Reason | None:
    """What a plugin says that lets a reservation stand, and refuses for good when it is to be redeemed."""
    return Reason("no", resolvable=False) if task.status is TaskStatus.Pending else None


@pytest.mark.parametrize(
    ("busy", "plugins", "lost", "status"),
    [
        pytest.param([], "predicates", False, TaskStatus.Allocated, id="the room is free"),
        pytest.param(ending("a", "n2"), "predicates", False, TaskStatus.Pipelined, id="it is not free yet"),
        pytest.param([], "predicates late", True, TaskStatus.Pending, id="it is refused for good"),
    ],
)
def test_whether_a_pod_has_lost_its_room_is_said(
    busy: list[Manifest], plugins: str, lost: bool, status: TaskStatus
) -> None:
    text = conf("gang", plugins, actions="allocate")
    story = Story(busy, reserved_pod(), nodes=2, text=text, extra=[answering("late", predicate=leaves)])
    with story.open() as session, session.statement() as statement:
        book = session.reservations
        assert book is not None
        assert bind_reserved(session, book, statement, session.jobs["default/h"]) is lost
        assert task_of(session, "h-0").status is status


def test_pods_that_are_tried_in_vain_keep_their_places_among_those_that_wait() -> None:
    """Only the first has its room free, and is refused there for now."""

    def not_now(task: Task, node: Node) -> Reason | None:
        return Reason("later") if node.name == "n1" and task.status is TaskStatus.Pending else None

    text = conf("gang", "predicates late", actions="allocate")
    story = Story(
        ending("a", "n2"), holders("n1", "n2"), nodes=2, text=text, extra=[answering("late", predicate=not_now)]
    )
    plan = story.cycle()
    assert [(held.key, held.node) for held in plan.reservations] == [("default/g-0", "n1"), ("default/g-1", "n2")]


def test_all_pods_of_a_gang_move_at_once_where_there_is_idle_room_for_all() -> None:
    story = Story(ending("a", "n1"), ending("b", "n2"), holders("n1", "n2"), nodes=4, text=ALLOCATE)
    assert binds(story.cycle()) == {"g-0": "n3", "g-1": "n4"}


def test_a_pod_moves_where_others_of_its_gang_find_no_idle_room() -> None:
    """Of the four, only the small one fits on n4."""
    busy = [each for i in range(1, 4) for each in ending(f"e{i}", f"n{i}")]
    story = Story(busy, holders("n1", "n2", "n3", cpus=(4, 4, 1)), nodes=3, text=ALLOCATE)
    story.tell(node("n4", cpu=1))
    assert written(story.cycle()) == {"g-2": Held("n4")}


class Objects(Plugin):
    """Objects to each placement of the first pod."""

    name = "objects"

    @on_allocate
    def came(self, event: TaskEvent) -> None:
        event.err = "not this one" if event.task.name == "g-0" else None


def test_where_a_plugin_objects_to_the_move_of_a_pod_it_waits_on_and_one_like_it_elsewhere_moves() -> None:
    text = conf("gang", "predicates objects", actions="allocate")
    story = Story(ending("a", "n1"), ending("b", "n2"), holders("n1", "n2"), nodes=3, text=text, extra=[Objects])
    plan = story.cycle()
    assert [(held.key, held.node) for held in plan.reservations] == [("default/g-0", "n1")]
    assert written(plan) == {"g-1": Held("n3")}


@pytest.mark.parametrize(
    ("busy", "told"),
    [
        pytest.param([], {"reservation_redeemed": ["n2"]}, id="redeemed"),
        pytest.param(ending("a", "n2"), {"reservation_kept": ["n2"], "binding": ["n1"]}, id="moved"),
        pytest.param([*ending("a", "n2"), *ending("b", "n1")], {"reservation_kept": ["n2"]}, id="kept"),
    ],
)
def test_what_becomes_of_a_reservation_is_told_with_the_node(busy: list[Manifest], told: dict[str, list[str]]) -> None:
    story = Story(busy, reserved_pod(), nodes=2, text=ALLOCATE)
    bound = len(story.cycle().binds)
    keys = ("reservation_redeemed", "reservation_kept", "binding")
    assert {key: [each["node"] for each in found] for key in keys if (found := story.told(key))} == told
    placed = [each["placed"] for each in story.told("metric.e2e_job")]
    assert placed == [[Placed("default/h", "default", 0.0, 1)]] * bound


def job_that_runs(name: str, cls: str, on: str, *holds: str, queue: str = "default") -> list[Manifest]:
    """A job of which one pod runs, and others hold room in addition."""
    pods = [
        pod(f"{name}-{i}", group=name, cpu=4, memory=0, annotations=held_on(each)) for i, each in enumerate(holds, 1)
    ]
    runs = pod(f"{name}-0", group=name, on=on, cpu=4, memory=0)
    return [pod_group(name, queue=queue, priorityClassName=cls, phase="Running"), runs, *pods]


def single(name: str, cls: str, *holds: str, queue: str = "default") -> list[Manifest]:
    """A job of one pod, which may hold room."""
    notes: dict[str, Any] = {"annotations": held_on(holds[0])} if holds else {}
    return [
        pod_group(name, queue=queue, priorityClassName=cls), pod(f"{name}-0", group=name, cpu=4, memory=0, **notes)
    ]  # fmt: skip


def test_what_a_higher_job_can_do_without_stands_and_a_lower_one_loses_all() -> None:
    higher = job_that_runs("m", "high", "n3", "n1")
    story = Story(ending("a", "n1"), ending("b", "n2"), higher, single("l", "low", "n2"), single("x", "mid"),
                  nodes=3, text=conf("priority gang", "predicates", actions="allocate"))  # fmt: skip
    assert written(story.cycle()) == {"l-0": None, "x-0": Held("n2")}


def test_higher_jobs_of_its_own_queue_keep_no_job_from_what_a_later_queue_holds() -> None:
    """Both of what m can do without stand, and what the queue after theirs holds is taken."""
    queues = [queue("q1", priority=2), queue("q2", priority=1)]
    higher = job_that_runs("m", "high", "n3", "n1", "n2", queue="q1")
    text = conf("priority gang", "predicates capacity", actions="allocate")
    story = Story(queues, *(ending(f"e{i}", f"n{i}") for i in (1, 2, 4)), higher, single("l", "high", "n4", queue="q2"),
                  single("x", "mid", queue="q1"), nodes=4, text=text)  # fmt: skip
    assert written(story.cycle()) == {"l-0": None, "x-0": Held("n4")}


def test_what_is_left_to_claim_is_found_anew_once_something_has_been_taken() -> None:
    """n1 is free, so that x is bound there at once; y takes what is ending."""
    lower = job_that_runs("m", "low", "n3", "n1")
    story = Story(ending("b", "n2"), lower, single("l", "low", "n2"), single("x", "high"), single("y", "high"),
                  nodes=3, text=NO_VICTIMS)  # fmt: skip
    plan = story.cycle()
    assert binds(plan) == {"x-0": "n1"}
    assert written(plan) == {"m-1": None, "l-0": None, "y-0": Held("n2")}


def test_why_a_job_waits_is_told_as_things_stand_and_not_as_it_was_tried() -> None:
    """Without the reservation its first pod would have had room."""
    newcomer = [pod_group("x", min_member=2, priorityClassName="high")]
    newcomer += [pod(f"x-{i}", group="x", cpu=4, memory=0) for i in range(2)]
    story = Story(ending("a", "n1"), single("l", "low", "n1"), newcomer, text=NO_VICTIMS)
    with story.open() as session:
        story.act(session, "allocate")
        assert list(session.jobs["default/x"].fits) == ["default/x-0"]


def test_a_queue_that_has_its_share_has_no_turns_though_another_holds_room() -> None:
    full = answering("full", overused=lambda queue: queue.name == "q1")
    story = Story([queue("q1"), queue("q2")], ending("a", "n1"), single("h", "low", "n1", queue="q2"),
                  single("x", "low", queue="q1"), nodes=2,
                  text=conf("gang full", "predicates", actions="allocate"), extra=[full])  # fmt: skip
    assert binds(story.cycle()) == {"h-0": "n2"}
    assert story.told("queue_overused") == [{"queue": "q1"}]
