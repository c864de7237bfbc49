"""Acceptance rows S4: what an opening session checks of which reservations, and what it reports of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stromboli.framework.books.cluster_view import ClusterView
from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.extension.handlers import TaskEvent
from stromboli.framework.session.session import Session
from stromboli.model.job import PIPELINED, Job
from stromboli.model.names import TASK_SPEC
from stromboli.model.reservation import Held
from stromboli.model.task import Task
from stromboli.plugin import Plugin, allocatable, job_valid, on_allocate, on_deallocate
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.acceptance.bench import NOW, answering, binds, conf, phases, task_of
from tests.acceptance.fights import running, waiting
from tests.acceptance.stories import ALLOCATE, MINUTE, Story, ending, held_on, holder, written

# ---------------------------------------------------------------------- the job


def surplus(*nodes: str, **fields: Any) -> list[Manifest]:
    """A job that runs with one pod on n1, and further pods that hold a node each."""
    pods = [pod(f"h-{on}", group="h", cpu=4, memory=0, annotations=held_on(on), **fields) for on in nodes]
    return [pod_group("h", phase="Running"), pod("h-n1", group="h", on="n1", cpu=4, memory=0), *pods]


def test_a_job_that_is_not_valid_holds_nothing_even_if_it_has_all_it_needs() -> None:
    fussy = answering("fussy", job_valid=lambda job: ("No", "no") if job.name == "h" else None)
    for plugins, held in (("gang", {"h-n2": "n2"}), ("gang fussy", {})):
        story = Story(ending("a", "n2"), surplus("n2"), nodes=2, text=conf(plugins, "predicates"), extra=[fussy])
        story.cycle()
        assert story.nodes_held() == held
    assert story.told("metric.pipelined_given_up") == [{"reason": "job"}]


@pytest.mark.parametrize("gone", [pod_group("h"), queue("q")], ids=["PodGroup", "queue"])
def test_a_pod_whose_job_is_gone_holds_nothing(gone: Manifest) -> None:
    story = Story([queue("q")], ending("a", "n1"), holder(group={"queue": "q"}), text=ALLOCATE)
    assert written(story.cycle()) == {}
    story.tell(gone, gone=True)
    assert written(story.cycle()) == {"h-0": None}
    assert story.told("metric.pipelined_given_up") == [{"reason": "job"}]
    assert story.state.snapshot().table.pipelined.sum() == 0


def of_roles() -> list[Manifest]:
    """A gang that needs two pods, one of them of role x."""
    group = pod_group("g", min_member=2, minTaskMember={"x": 1})
    notes = [{TASK_SPEC: role, **held_on(f"n{i + 1}")} for i, role in enumerate("xyy")]
    return [group, *(pod(f"g-{i}", group="g", cpu=4, memory=0, annotations=each) for i, each in enumerate(notes))]


def of_parts() -> list[Manifest]:
    """A gang that needs two pods, and both of its parts, with one pod each."""
    parts = [{"name": "p", "matchLabelKeys": ["part"], "subGroupSize": 1, "minSubGroups": 2}]
    group = pod_group("g", min_member=2, subGroupPolicy=parts)
    return [group, *(pod(f"g-{i}", group="g", cpu=4, memory=0, labels={"part": part}, annotations=held_on(f"n{i + 1}"))
                     for i, part in enumerate("abb"))]  # fmt: skip


@pytest.mark.parametrize("gang", [of_roles, of_parts])
def test_a_gang_without_its_minimum_of_a_role_or_of_parts_holds_nothing(gang: Callable[[], list[Manifest]]) -> None:
    """Two pods are left, which are enough in number; no action places them again."""
    text = conf("gang", "predicates", actions="backfill")
    story = Story(*(ending(f"e{i}", f"n{i}") for i in (1, 2, 3)), gang(), nodes=3, text=text)
    assert (written(story.cycle()), len(story.held())) == ({}, 3)
    story.tell(node("n1", cpu=1))
    assert written(story.cycle()) == dict.fromkeys(["g-0", "g-1", "g-2"])
    assert [told["reason"] for told in story.told("metric.pipelined_given_up")] == ["node"] * 3


def test_overcommit_takes_room_that_is_only_held_for_idle() -> None:
    """Eight cores, four in use by a terminating pod, and those four held."""
    new = [pod_group("x", phase="Pending", minResources={"cpu": 4}), pod("x-0", group="x", cpu=4, memory=0)]
    text = conf("[{name: gang}, {name: overcommit, arguments: {overcommit-factor: 1.0}}]", actions="enqueue")
    story = Story(ending("a", "n1"), holder(), new, nodes=2, text=text)
    assert phases(story.cycle())["x"] == "Inqueue"


def test_a_pod_that_only_holds_room_is_no_victim() -> None:
    story = Story(running("r", 1), holder(), cpu=8, text=ALLOCATE)
    with story.open() as session:
        assert [task.name for task in session.candidates.columns.tasks] == ["r-0"]


# ---------------------------------------------------------------------- its age

LATE = "1970-01-12T14:16:40Z"  # NOW + 30 minutes


def test_a_ready_jobs_surplus_waits_for_pods_that_end_on_its_own_node() -> None:
    """The pod on n2 may take half an hour to end; the one on n3 should be gone."""
    slow = pod("a-0", group="a", on="n2", cpu=4, memory=0, deleting=True)
    slow["metadata"]["deletionTimestamp"] = LATE
    story = Story([pod_group("a", phase="Running"), slow], ending("b", "n3"), surplus("n2", "n3"), nodes=3,
                  text=ALLOCATE)  # fmt: skip
    assert written(story.cycle()) == {}
    assert written(story.cycle(now=NOW + 10 * MINUTE)) == {"h-n3": None}
    assert written(story.cycle(now=NOW + 39 * MINUTE)) == {"h-n3": Held("n3")}  # and has cooled down since
    assert written(story.cycle(now=NOW + 40 * MINUTE)) == {"h-n2": None}


@pytest.mark.parametrize("old", ["n1", "n2"])
def test_a_gang_gives_up_all_as_one_is_too_old_even_if_the_others_are_enough(old: str) -> None:
    pods = [pod(f"g-{i}", group="g", cpu=4, memory=0, annotations=held_on(f"n{i}")) for i in (1, 2)]
    story = Story(ending("a", "n1"), ending("b", "n2"), [pod_group("g"), *pods], nodes=2, text=ALLOCATE)
    since = {f"held default/g-{i} n{i}": NOW - (10 if f"n{i}" == old else 1) * MINUTE for i in (1, 2)}
    story.state.memory["stromboli/reservations"] = since
    assert written(story.cycle()) == {"g-1": None, "g-2": None}
    assert story.told("metric.pipelined_given_up") == [{"reason": "timeout"}] * 2


# ---------------------------------------------------------------------- books that others keep


class Books(Plugin):
    """The tasks that hold a place, counted from events alone; a queue may have one."""

    name = "books"

    def on_session_open(self, session: ClusterView) -> None:
        self.told: list[str] = []
        self.held = {task.name for job in session.jobs.peek() for task in job.of(PIPELINED)}

    @allocatable
    def one(self, queue: QueueInfo, task: Task) -> bool:
        return not self.held

    @on_allocate
    def come(self, event: TaskEvent) -> None:
        self.told.append("came")
        self.held.add(event.task.name)

    @on_deallocate
    def leave(self, event: TaskEvent) -> None:
        self.told.append("left")
        self.held.remove(event.task.name)


def books(session: Session) -> Books:
    found = session.plugins["books"]
    assert isinstance(found, Books)
    return found


BOOKS = conf("gang books", "predicates")


def test_a_limit_in_books_that_others_keep_is_asked_without_the_reservation_itself() -> None:
    with Story(ending("a", "n1"), holder(), text=BOOKS, extra=[Books]).open() as session:
        assert books(session).held == {"h-0"}
        assert books(session).told == ["left", "came"]
    assert written(session.plan) == {}


@pytest.mark.parametrize("change", [{"unschedulable": True, "cpu": 4}, {"cpu": 1}], ids=["cordoned", "too small"])
def test_what_is_rejected_is_taken_back_once(change: Any) -> None:
    story = Story(ending("a", "n1"), holder(), text=BOOKS, extra=[Books])
    story.tell(node("n1", **change))
    with story.open() as session:
        assert (books(session).told, books(session).held) == (["left"], set())
        assert session.queues["default"].sums.held[:1] in ([], [0])
    assert written(session.plan) == {"h-0": None}


def test_books_hear_that_a_reservation_stands_again() -> None:
    with Story(ending("a", "n1"), holder(), text=BOOKS, extra=[Books]).open() as session:
        with session.statement() as statement:
            statement.unpipeline(task_of(session, "h-0"))
            assert books(session).held == set()
            statement.discard()
        assert books(session).held == {"h-0"}


# ---------------------------------------------------------------------- what is reported


def test_what_stands_is_counted_and_what_a_restart_finds_is_told_once() -> None:
    story = Story(ending("a", "n1"), ending("b", "n2"), waiting("h", 2, cpu=4), nodes=2, text=ALLOCATE)
    story.cycle()
    story.cycle()
    assert story.told("metric.pipelined_tasks") == [{"count": 2}] * 2
    assert story.told("metric.pipelined_restored") == []  # they are its own
    story.restart()
    for _ in range(2):
        story.cycle()
    assert story.told("metric.pipelined_restored") == [{"result": "restored"}] * 2
    story.tell(node("n2", cpu=1))
    story.cycle()
    assert story.told("metric.pipelined_restored")[2:] == [{"result": "rejected"}] * 2
    assert story.told("metric.pipelined_tasks")[-1] == {"count": 0}


def test_a_pod_that_runs_is_not_counted_among_reservations() -> None:
    story = Story(running("h", 1, annotations=held_on("n1")), text=ALLOCATE)
    story.cycle()
    assert story.told("metric.pipelined_tasks") == [{"count": 0}]


def test_a_plugin_that_raises_while_reservations_are_checked_is_put_aside_and_the_others_go_on():
    class Breaks(Plugin):
        name = "breaks"

        @job_valid
        def valid(self, job):
            raise ValueError("no idea")

    text = conf("conformance gang priority breaks", "predicates", actions="allocate")
    story = Story(ending("a", "n1"), holder(), text=text, extra=[Breaks])
    plan = story.cycle()
    assert (written(plan), story.nodes_held()) == ({}, {"h-0": "n1"})
    assert ["breaks" in each and "no idea" in each for each in plan.inconsistencies] == [True]


def test_what_makes_no_sense_is_given_up_also_where_a_plugin_raises_first() -> None:
    def no_idea(job: Job) -> None:
        raise ValueError("no idea")

    text = conf("gang breaks", "predicates", actions="allocate")
    story = Story(ending("a", "n1"), holder(), text=text, extra=[answering("breaks", job_valid=no_idea)])
    story.tell(node("n1", cpu=1))
    assert written(story.cycle()) == {"h-0": None}
    assert story.told("metric.pipelined_given_up") == [{"reason": "node"}]


def test_a_reservation_on_a_node_that_is_gone_ends_where_task_topology_counts_its_pods() -> None:
    """Plugins hear that the pod has lost its room on a node that no row stands for."""
    apart = {"volcano.sh/task-topology-affinity": "w,ps"}
    group = [
        pod_group("h", annotations=apart),
        pod("h-0", group="h", role="w", cpu=4, memory=0, annotations=held_on("n1")),
        pod("h-1", group="h", role="ps", cpu=4, memory=0),
    ]
    story = Story(ending("a", "n1"), group, nodes=2, text=conf("gang task-topology", "predicates", actions="allocate"))
    story.tell(node("n1"), gone=True)
    plan = story.cycle()
    assert story.told("metric.pipelined_given_up") == [{"reason": "node"}]
    assert set(binds(plan).values()) == {"n2"}
