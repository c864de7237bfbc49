"""Acceptance rows S4: the order of jobs that hold reservations, and when a reservation is given up."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from stromboli.framework.books.cluster_view import ClusterView
from stromboli.framework.engine.rows import Bools
from stromboli.framework.extension.handlers import TaskEvent
from stromboli.framework.extension.reason import Reason
from stromboli.framework.session.reference import ReferenceView
from stromboli.model.job import PIPELINED
from stromboli.model.names import HOSTNAME, NODE_GROUP_NAME, NODE_GROUP_RESOURCE_LIMITS
from stromboli.model.reservation import Held
from stromboli.model.status import TaskStatus
from stromboli.model.table import NodeRows
from stromboli.model.task import Task
from stromboli.plugin import Plugin, on_allocate, on_deallocate, predicate
from stromboli.reservations.order import Precedence
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.acceptance.bench import NOW, answering, binds, conf, task_of
from tests.acceptance.fights import running, waiting
from tests.acceptance.stories import (
    ALLOCATE,
    MINUTE,
    NO_QUEUES,
    NO_VICTIMS,
    TIERS,
    TWO_QUEUES,
    Story,
    ending,
    held_on,
    holder,
    reserved_pod,
    written,
)


def test_a_queue_that_is_full_by_its_own_reservation_redeems_it() -> None:
    """Overused is asked without them; Allocatable is not asked again."""
    others = running("o", 2, queue="q2", cpu=2, on="n2")
    story = Story(
        TWO_QUEUES, others, holder(group={"queue": "q1"}), nodes=2, text=conf("gang", "predicates proportion")
    )
    with story.open() as session:
        assert session.ask.overused(session.queues["q1"])
    assert binds(story.cycle()) == {"h-0": "n1"}


def rivals(first: str, second: str, *, text: str = NO_VICTIMS) -> Story:
    """One node whose pod is ending; h holds it, and a job comes that wants it, too."""
    held = holder(group={"priorityClassName": first, "created": 9})
    return Story(ending("a", "n1"), held, waiting("x", 1, cls=second, cpu=4, group={"created": 1}), text=text)


def test_an_equal_older_job_never_takes_the_room_and_a_more_important_one_does() -> None:
    story = rivals("mid", "mid")
    for _ in range(3):
        assert written(story.cycle()) == {}
    story.gone("a-0")
    assert binds(story.cycle()) == {"h-0": "n1"}

    story = rivals("mid", "high")
    assert written(story.cycle()) == {"h-0": None, "x-0": Held("n1")}
    assert story.told("metric.pipelined_given_up") == [{"reason": "higher_job"}]
    for _ in range(3):
        assert written(story.cycle()) == {}
    story.gone("a-0")
    assert binds(story.cycle()) == {"x-0": "n1"}


def test_a_holder_is_compared_without_what_it_holds() -> None:
    """With its share in the comparison drf would put every equal job before it, and the two would swap for ever."""
    story = rivals("mid", "mid", text=conf("gang drf", "predicates", actions="allocate"))
    for _ in range(3):
        assert written(story.cycle()) == {}


def turns(story: Story, owners: str, which: str) -> tuple[list[str], list[str]]:
    """The order in which jobs ``owners``, and queues ``which``, have their turns."""
    with story.open() as session:
        book = session.reservations
        assert book is not None
        order = Precedence(session, book.holders)
        jobs, queues = order.jobs(), order.queues()
        for job in session.jobs.peek():
            if job.name in owners:
                jobs.push(job)
        for name in which:
            queues.push(session.queues[name])
        return [jobs.pop().name for _ in range(len(jobs))], [queues.pop().name for _ in range(len(queues))]


def poorer_first(left: Any, right: Any) -> int:
    """An order of one's own, which has no key."""
    return int(sum(left.sums.held[:1]) - sum(right.sums.held[:1]))


@pytest.mark.parametrize("fairness", ["", "drf proportion", "[{name: drf, enableHierarchy: true}]", "own"])
def test_among_equals_the_holder_has_its_turn_first_whatever_it_has_reserved(fairness: str) -> None:
    """Older jobs and queues come after it; without the reservation, or with it in the shares, they would be first."""
    paths = {name: {"volcano.sh/hierarchy": f"root/{name}", "volcano.sh/hierarchy-weights": "1/1"} for name in "ab"}
    queues = [queue(name, created=at, annotations=paths[name]) for name, at in (("a", 1), ("b", 2))]
    held, newcomers = holder(group={"queue": "b", "created": 9}), waiting("y", 1, queue="b", group={"created": 2})
    others = waiting("x", 1, cpu=4, queue="a", group={"created": 1})
    text = conf("gang", *(f"{fairness}",) if fairness else (), actions="allocate")
    own = answering("own", job_order=poorer_first, queue_order=poorer_first)
    story = Story(ending("z", "n1"), queues, held, newcomers, others, text=text, nodes=3, extra=[own])
    assert turns(story, "hxy", "ab") == (["h", "x", "y"], ["b", "a"])


def test_the_lowest_holder_gives_up_first() -> None:
    def one(name: str, cls: str, on: str) -> list[Manifest]:
        group = pod_group(name, queue="q", priorityClassName=cls)
        return [group, pod(f"{name}-0", group=name, cpu=4, memory=0, annotations=held_on(on))]

    for low, high in (("h", "k"), ("k", "h")):
        holders = [*one(low, "low", "n1"), *one(high, "high", "n2")]
        text = conf("gang priority", "predicates capacity")
        story = Story(
            ending("a", "n1"), ending("b", "n2"), [queue("q", capability={"cpu": 4})], holders, nodes=2, text=text
        )
        story.cycle()
        assert list(story.held()) == [f"{high}-0"]
        assert story.told("metric.pipelined_given_up") == [{"reason": "queue"}]


def test_a_gang_that_redeems_a_part_is_compared_without_it_and_loses_nothing_to_an_equal() -> None:
    """With the part in its sums drf would put an equal job before it, which would take the rest."""
    held = [
        pod_group("h", min_member=2, created=1),
        *(pod(f"h-{i}", group="h", cpu=4, memory=0, annotations=held_on(f"n{i + 1}")) for i in range(2)),
    ]
    text = conf("gang drf", "predicates", actions="allocate")
    story = Story(ending("a", "n2"), held, waiting("x", 1, cpu=4, group={"created": 2}), text=text, nodes=2)
    for _ in range(3):
        assert written(story.cycle()) == {}
    story.gone("a-0")
    assert binds(story.cycle()) == {"h-0": "n1", "h-1": "n2"}


def test_a_higher_job_that_cannot_be_placed_even_so_takes_nothing() -> None:
    held = holder(group={"priorityClassName": "low"})
    story = Story(ending("a", "n1"), held, waiting("x", 2, cpu=4), text=NO_VICTIMS)
    assert written(story.cycle()) == {}
    assert story.told("metric.pipelined_given_up") == []


def one_pod(name: str, cls: str, on: str, *more: Manifest) -> list[Manifest]:
    """A job of one pod, and perhaps more, that holds a whole node."""
    group = pod_group(name, priorityClassName=cls)
    return [group, *more, pod(f"{name}-0", group=name, cpu=4, memory=0, annotations=held_on(on))]


def test_a_higher_job_takes_no_more_than_it_needs_and_the_lowest_first() -> None:
    held = [*one_pod("m", "mid", "n1"), *one_pod("h", "low", "n2"), *one_pod("k", "high", "n3")]
    victims = [each for on in (1, 2, 3) for each in ending(f"a{on}", f"n{on}")]
    story = Story(victims, held, waiting("x", 1, cpu=4), waiting("y", 1, cpu=4), text=NO_VICTIMS, nodes=3)
    assert written(story.cycle()) == {"h-0": None, "x-0": Held("n2"), "m-0": None, "y-0": Held("n1")}
    assert written(story.cycle()) == {}
    story = Story(victims, held, waiting("x", 1, cpu=4), text=NO_VICTIMS, nodes=3)
    assert written(story.cycle()) == {"h-0": None, "x-0": Held("n2")}


@pytest.mark.parametrize(("zone", "asked"), [("a", True), ("b", False)])
def test_of_a_job_that_no_reservation_keeps_from_its_nodes_no_holder_is_asked(zone: str, asked: bool) -> None:
    story = Story(ending("a", "n1"), holder(), waiting("x", 1, cpu=4, nodeSelector={"zone": zone}), text=NO_VICTIMS)
    story.tell(node("n1", cpu=4, labels={"zone": "a"}))
    with patch.object(Precedence, "is_above", autospec=True, side_effect=Precedence.is_above) as is_above:
        story.cycle()
    assert (is_above.called, list(story.held())) == (asked, ["x-0"] if asked else ["h-0"])


def test_a_limit_that_reservations_fill_keeps_no_higher_job_from_asking_for_them() -> None:
    """The queue may have four cores of the group, and a lower job of it holds them: predicates let x nowhere."""
    only = {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["g"]}}
    limited = queue("q1", annotations={NODE_GROUP_RESOURCE_LIMITS: '{"g": {"cpu": "4"}}'}, affinity=only)
    held = holder(group={"queue": "q1", "priorityClassName": "low"})
    text = conf("gang priority", "predicates nodegroup", actions="allocate")
    story = Story([limited], ending("a", "n1"), held, waiting("x", 1, queue="q1", cpu=4), text=text)
    story.tell(node("n1", cpu=4, labels={NODE_GROUP_NAME: "g"}))
    assert written(story.cycle()) == {"h-0": None, "x-0": Held("n1")}


class Picky(Plugin):
    """Refuses every node to pods with a label, whatever other pods are like them."""

    name = "picky"

    @predicate.vector(key=lambda task: bool(task.labels), static=True, reasons=(Reason("no", resolvable=False),))
    def plain(self, task: Task, nodes: NodeRows) -> Bools:
        return np.full(len(nodes), not task.labels)


@pytest.mark.parametrize("plain", [0, 1])
def test_a_higher_job_asks_for_room_if_any_of_its_pods_may_have_it(plain: int) -> None:
    text = conf("gang priority picky", "predicates", actions="allocate")
    pods = [pod(f"x-{i}", group="x", cpu=4, memory=0, labels={} if i == plain else {"a": "b"}) for i in (0, 1)]
    newcomer = [pod_group("x", priorityClassName="high"), *pods]
    story = Story(ending("a", "n1"), one_pod("h", "low", "n1"), newcomer, text=text, extra=[Picky])
    assert written(story.cycle()) == {"h-0": None, f"x-{plain}": Held("n1")}


LAX = "[{name: gang, enableJobPipelined: false}, {name: priority}, {name: lax}]"
"""A job counts as pipelined with a part of what it needs."""


@pytest.mark.parametrize(
    ("plugins", "least", "more", "memory"),
    [
        ("gang priority", 1, {"schedulingGates": [{"name": "wait"}]}, {}),
        ("gang priority", 1, {}, {"cooling default/x": NOW + MINUTE}),
        (LAX, 2, {}, {}),
    ],
    ids=["gated", "cooling down", "not whole"],
)
def test_a_higher_job_that_may_hold_nothing_takes_nothing(plugins: str, least: int, more: Any, memory: Any) -> None:
    newcomer = [*waiting("x", 1, least=least, cpu=4), pod("x-9", group="x", cpu=9, memory=0, **more)]
    lax = answering("lax", job_pipelined=lambda job: 1 if job.number(PIPELINED) else -1)
    text = conf(plugins, "predicates", actions="allocate")
    story = Story(ending("a", "n1"), one_pod("h", "low", "n1"), newcomer, text=text, extra=[lax])
    story.state.memory["stromboli/reservations"] = memory
    plan = story.cycle()
    assert written(plan) == {}
    assert [held.key for held in plan.reservations] == ["default/h-0"]


@pytest.mark.parametrize("may_hold", [True, False], ids=["may hold", "gated"])
@pytest.mark.parametrize("cooling", [False, True], ids=["", "cooling down"])
def test_a_pod_that_loses_its_room_holds_other_room_only_if_its_gang_may_hold_any(
    may_hold: bool, cooling: bool
) -> None:
    """In its own turn, after that of x, the room that will be free on n2 is all that is left for it."""
    gated = [] if may_hold else [pod("h-9", group="h", cpu=9, memory=0, schedulingGates=[{"name": "wait"}])]
    newcomer = waiting("x", 1, cpu=4, nodeSelector={HOSTNAME: "n1"})
    held = one_pod("h", "low", "n1", *gated)
    story = Story(ending("a", "n1"), ending("b", "n2"), held, newcomer, nodes=2, text=NO_VICTIMS)
    story.tell(node("n1", cpu=4, labels={HOSTNAME: "n1"}))
    story.state.memory["stromboli/reservations"] = (
        {"cooling default/h": NOW + MINUTE, "held default/h-0 n1": NOW} if cooling else {}
    )
    left = Held("n2") if may_hold and not cooling else None
    assert written(story.cycle()) == {"h-0": left, "x-0": Held("n1")}


@pytest.mark.parametrize("parts", [{}, {"subGroupPolicy": [{"name": "p", "matchLabelKeys": ["app"]}]}])
@pytest.mark.parametrize("runs", [True, False])
def test_a_higher_job_that_runs_or_holds_its_minimum_takes_nothing_for_more(runs: bool, parts: Any) -> None:
    on: dict[str, Any] = {"on": "n1"} if runs else {"annotations": held_on("n1")}
    more = pod("x-1", group="x", cpu=4, memory=0)
    job = [pod_group("x", priorityClassName="high", **parts), pod("x-0", group="x", cpu=4, memory=0, **on), more]
    victims = [*ending("b", "n2"), *([] if runs else ending("a", "n1"))]
    story = Story(victims, job, one_pod("h", "low", "n2"), nodes=2, text=NO_VICTIMS)
    for _ in range(2):
        assert written(story.cycle()) == {}


def test_what_a_running_gang_can_do_without_goes_before_whole_gangs() -> None:
    running_one = pod("m-1", group="m", on="n3", cpu=4, memory=0)
    held = [*one_pod("m", "mid", "n1", running_one), *one_pod("h", "low", "n2")]
    story = Story(ending("a", "n1"), ending("b", "n2"), held, waiting("x", 1, cpu=4), text=NO_VICTIMS, nodes=3)
    assert written(story.cycle()) == {"m-0": None, "x-0": Held("n1")}


def test_of_what_a_running_gang_can_do_without_the_last_goes_first() -> None:
    pods = [pod(f"m-{i}", group="m", cpu=4, memory=0, annotations=held_on(f"n{i}")) for i in (1, 2)]
    job = [pod_group("m", priorityClassName="mid"), pod("m-0", group="m", on="n3", cpu=4, memory=0), *pods]
    story = Story(ending("a", "n1"), ending("b", "n2"), job, waiting("x", 1, cpu=4), text=NO_VICTIMS, nodes=3)
    assert written(story.cycle()) == {"m-2": None, "x-0": Held("n2")}


def in_two_queues(first: int, second: int) -> list[Manifest]:
    """Queues of these priorities, older ones first."""
    return [queue("q1", priority=first, created=1), queue("q2", priority=second, created=2)]


@pytest.mark.parametrize(("priorities", "taken"), [((1, 1), False), ((1, 2), True), ((2, 1), False)])
def test_a_job_of_a_queue_that_comes_strictly_first_takes_the_room(priorities: tuple[int, int], taken: bool) -> None:
    """What h has reserved does not put q2 before q1."""
    held, newcomer = holder(group={"queue": "q1"}), waiting("x", 1, queue="q2", cpu=4)
    text = conf("gang", "predicates capacity", actions="allocate")
    story = Story(ending("a", "n1"), in_two_queues(*priorities), held, newcomer, text=text)
    assert written(story.cycle()) == ({"h-0": None, "x-0": Held("n1")} if taken else {})


@pytest.mark.parametrize(("priorities", "stays"), [((1, 2), "k-0"), ((2, 1), "h-0")])
def test_the_holder_of_the_queue_that_comes_last_gives_up_first(priorities: tuple[int, int], stays: str) -> None:
    """Both hold four cores of n1, which has lost half of its eight."""
    other = [pod_group("k", queue="q2"), pod("k-0", group="k", cpu=4, memory=0, annotations=held_on("n1"))]
    text = conf("gang", "predicates capacity", actions="backfill")
    story = Story(ending("a", "n1"), in_two_queues(*priorities), holder(group={"queue": "q1"}), other, text=text)
    story.cycle()
    assert list(story.held()) == [stays]


def test_two_gangs_and_one_node_make_one_whole_gang_that_holds() -> None:
    story = Story(ending("a", "n1"), waiting("g", 2, cpu=2), waiting("k", 2, cpu=2), text=ALLOCATE)
    for _ in range(3):
        story.cycle()
        assert story.nodes_held() == {"g-0": "n1", "g-1": "n1"}


def test_a_job_that_gave_up_cools_down_and_may_hold_again_afterwards() -> None:
    text = ALLOCATE + "\nconfigurations: [{name: allocate, arguments: {reservation-timeout: 2m}}]"
    story = Story(ending("a", "n1"), waiting("h", 1, cpu=4), text=text)
    assert written(story.cycle()) == {"h-0": Held("n1")}
    assert written(story.cycle(now=NOW + 2 * MINUTE)) == {"h-0": None}
    for minutes in (2.5, 3.9):
        plan = story.cycle(now=NOW + minutes * MINUTE)
        assert written(plan) == {}
        assert [held.key for held in plan.reservations] == ["default/h-0"]  # within the session it waits there
    assert written(story.cycle(now=NOW + 4 * MINUTE)) == {"h-0": Held("n1")}


def test_a_clock_that_goes_back_resets_age_and_cool_down() -> None:
    text = ALLOCATE + "\nconfigurations: [{name: allocate, arguments: {reservation-timeout: 2m}}]"
    story = Story(ending("a", "n1"), waiting("h", 1, cpu=4), text=text)
    held, given_up = {"h-0": Held("n1")}, {"h-0": None}
    told = {0: held, -1000: {}, -998.1: {}, -998: given_up, -2000: {}, -1998.1: {}, -1998: held}
    for minutes, change in told.items():
        assert written(story.cycle(now=NOW + minutes * MINUTE)) == change


def test_a_reservation_that_was_given_up_does_not_begin_again_where_the_clear_was_refused() -> None:
    text = ALLOCATE + "\nconfigurations: [{name: allocate, arguments: {reservation-timeout: 2m}}]"
    story = Story(ending("a", "n1"), waiting("h", 1, cpu=4), text=text)
    story.cycle()
    assert written(story.cycle(now=NOW + 2 * MINUTE)) == {"h-0": None}
    assert story.state.set_reservation("default/h-0", story.state.tasks["default/h-0"].uid, Held("n1"))
    assert written(story.cycle(now=NOW + 3 * MINUTE)) == {"h-0": None}


def test_a_gang_that_cools_down_holds_all_it_has_once_pods_were_evicted_for_a_part() -> None:
    """n1 is about to be free anyway; l has to go from n2.  Held alone, h-1 would be half a gang."""
    gang = waiting("h", 2, cpu=4)
    story = Story(ending("a", "n1"), running("l", 1, on="n2", cpu=4), gang, nodes=2, text=NO_QUEUES)
    story.state.memory["stromboli/reservations"] = {"cooling default/h": NOW + MINUTE}
    assert written(story.cycle()) == {"h-0": Held("n1"), "h-1": Held("n2", evicted=True)}
    assert written(story.cycle()) == {}


def test_a_gang_that_cools_down_goes_on_holding_all_it_has_when_a_pod_of_it_moves() -> None:
    """h-1, the only one that needs an eviction, moves to n3; left behind, h-0 would be half a gang."""
    gang = [pod_group("h", min_member=2, priorityClassName="high")]
    gang += [pod(f"h-{i}", group="h", cpu=4, memory=0, priority=10, nodeSelector={"z": str(i)}) for i in (0, 1)]
    story = Story(ending("a", "n1"), running("l", 1, on="n2", cpu=4), gang, nodes=2, text=NO_QUEUES)
    story.tell(node("n1", cpu=4, labels={"z": "0"}), node("n2", cpu=4, labels={"z": "1"}))
    story.state.memory["stromboli/reservations"] = {"cooling default/h": NOW + MINUTE}
    assert written(story.cycle()) == {"h-0": Held("n1"), "h-1": Held("n2", evicted=True)}
    story.tell(node("n3", cpu=4, labels={"z": "1"}))
    assert written(story.cycle()) == {"h-1": Held("n3", evicted=True)}
    assert written(story.cycle()) == {}


def test_a_pod_that_finds_other_room_that_becomes_free_anyway_states_no_eviction() -> None:
    held = [
        pod_group("h", priorityClassName="low"),
        pod("h-0", group="h", cpu=4, memory=0, annotations=held_on("n1", evicted=True)),
    ]
    newcomer = waiting("x", 1, cpu=4, nodeSelector={"zone": "a"})
    story = Story(ending("a", "n1"), ending("b", "n2"), held, newcomer, nodes=2, text=NO_VICTIMS)
    story.tell(node("n1", labels={"zone": "a"}))
    assert written(story.cycle()) == {"h-0": Held("n2", evicted=False), "x-0": Held("n1")}


def test_a_restart_resets_the_age() -> None:
    story = Story(ending("a", "n1"), waiting("h", 1, cpu=4), text=ALLOCATE)
    story.cycle()
    story.restart()
    assert written(story.cycle(now=NOW + 15 * MINUTE)) == {}
    assert story.told("metric.pipelined_restored")[-1] == {"result": "restored"}
    assert written(story.cycle(now=NOW + 25 * MINUTE)) == {"h-0": None}


class Books(Plugin):
    """The tasks that hold a place in the books of another plugin, kept from events alone."""

    name = "books"

    def on_session_open(self, session: ClusterView) -> None:
        self.held = {task.name for job in session.jobs.peek() for task in job.of(PIPELINED)}

    @on_allocate
    def come(self, event: TaskEvent) -> None:
        self.held.add(event.task.name)

    @on_deallocate
    def leave(self, event: TaskEvent) -> None:
        self.held.remove(event.task.name)


def test_books_kept_by_events_hear_of_a_reservation_whose_node_is_gone() -> None:
    story = Story(ending("a", "n1"), holder(), text=conf("gang books", "predicates"), extra=[Books])
    story.tell(node("n1"), gone=True)
    with story.open() as session:
        books = session.plugins["books"]
        assert isinstance(books, Books)
        assert books.held == set()
    assert written(session.plan) == {"h-0": None}


LABELLED: dict[str, Any] = {"nodeSelector": {"zone": "a"}}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda s: s.tell(node("n1", labels={"zone": "b"})), "predicate"),
        (lambda s: s.tell(node("n1", labels={"zone": "a"}, unschedulable=True)), "predicate"),
        (
            lambda s: s.tell(node("n1", labels={"zone": "a"}, taints=[{"key": "k", "effect": "NoSchedule"}])),
            "predicate",
        ),
        (lambda s: s.tell(queue("default", state="Closed")), "queue"),
        (lambda s: s.tell(queue("default", capability={"cpu": 2})), "queue"),
        (lambda s: s.tell(queue("other", weight=9), *waiting("o", 9, queue="other")), "queue"),
        (lambda s: s.tell(pod_group("h", phase="Pending", minResources={"cpu": 99})), "job"),
        (lambda s: s.tell(pod_group("h", queue="nowhere")), "job"),
        (lambda s: s.tell(pod_group("h", min_member=2)), "job"),
        (lambda s: s.tell(pod("b", on="n1", cpu=1)), "node"),
    ],
    ids=[
        "label gone",
        "cordoned",
        "tainted",
        "queue closed",
        "less capability",
        "less deserved",
        "not admitted",
        "queue unknown",
        "too few pods",
        "foreign pod",
    ],
)
def test_what_no_longer_makes_sense_is_given_up(change: Any, reason: str) -> None:
    text = conf("gang", "predicates proportion overcommit", actions="enqueue, allocate")
    story = Story(ending("a", "n1"), holder(**LABELLED), text=text)
    story.tell(node("n1", labels={"zone": "a"}))
    assert written(story.cycle()) == {}
    change(story)
    assert written(story.cycle()) == {"h-0": None}
    assert story.told("metric.pipelined_given_up") == [{"reason": reason}]
    assert story.state.snapshot().table.pipelined.sum() == 0


def test_what_a_terminating_victim_causes_does_not_end_a_reservation() -> None:
    port: dict[str, Any] = {"container": {"ports": [{"containerPort": 80, "hostPort": 80}]}}
    victim = pod("a-0", group="a", on="n1", cpu=1, memory=0, deleting=True, **port)
    held = [pod_group("h"), pod("h-0", group="h", cpu=1, memory=0, annotations=held_on("n1"), **port)]
    story = Story([pod_group("a", phase="Running"), victim], held)
    assert written(story.cycle()) == {}
    assert story.plan.binds == []
    story.gone("a-0")
    assert binds(story.cycle()) == {"h-0": "n1"}


def test_a_ready_jobs_surplus_goes_singly() -> None:
    pods = [pod(f"h-{i}", group="h", cpu=4, memory=0, annotations=held_on(f"n{i}")) for i in (2, 3)]
    job = [pod_group("h", phase="Running"), pod("h-1", group="h", on="n1", cpu=4, memory=0), *pods]
    story = Story(ending("a", "n2"), ending("b", "n3"), job, nodes=3)
    story.tell(node("n3", cpu=1))
    assert written(story.cycle()) == {"h-3": None}
    assert story.nodes_held() == {"h-2": "n2"}


def switch(name: str, *members: str) -> Manifest:
    named = [{"type": "Node", "selector": {"exactMatch": {"name": member}}} for member in members]
    spec = {"tier": 1, "members": named}
    return {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": name}, "spec": spec}


def test_a_ready_jobs_surplus_ages_singly() -> None:
    pods = [pod(f"h-{i}", group="h", cpu=4, memory=0, annotations=held_on(f"n{i}")) for i in (2, 3)]
    job = [pod_group("h", phase="Running"), pod("h-1", group="h", on="n1", cpu=4, memory=0), *pods]
    story = Story(ending("a", "n2"), ending("b", "n3"), job, nodes=3)
    story.state.memory["stromboli/reservations"] = {
        "held default/h-2 n2": NOW - 10 * MINUTE,
        "held default/h-3 n3": NOW - MINUTE,
    }
    story.cycle()
    assert story.nodes_held() == {"h-3": "n3"}


@pytest.mark.parametrize("call", ["allocate", "pipeline"])
def test_a_pod_placed_without_a_statement_lets_go_of_its_reservation_first(call: str) -> None:
    story = Story(ending("a", "n2"), reserved_pod(), nodes=3)
    with story.open() as session:
        task = task_of(session, "h-0")
        if call == "allocate":
            ReferenceView(session).allocate(task, session.nodes["n3"])
        else:
            ReferenceView(session).pipeline(task, "n3")
        assert session.nodes["n2"].pipelined.is_empty()
        assert session.queues["default"].sums.held[0] == 2000
    assert written(session.plan) == {"h-0": None if call == "allocate" else Held("n3")}


@pytest.mark.parametrize("asked", [True, False], ids=["asked-for", "not-asked-for"])
def test_hypernodes_that_drift_apart_end_a_reservation_where_a_plugin_looks_at_them(asked: bool) -> None:
    topology: dict[str, Any] = {"networkTopology": {"mode": "hard", "highestTierAllowed": 1}}
    pods = [pod(f"h-{i}", group="h", cpu=4, memory=0, annotations=held_on(f"n{i + 1}")) for i in range(2)]
    job = [pod_group("h", min_member=2, **topology), *pods]
    close = answering("close", hyper_node_gradient_for_job=lambda job, hyper_node, purpose: [[hyper_node]])
    text = conf(*TIERS, *["close"] * asked, actions="allocate")

    story = Story(
        ending("a", "n1"), ending("b", "n2"), job, [switch("s1", "n1", "n2")], nodes=2, text=text, extra=[close]
    )
    assert written(story.cycle()) == {}
    story.tell(switch("s1", "n1"))
    story.tell(switch("s2", "n2"))
    with story.open(story.counts) as session:
        assert session.jobs["default/h"].number(TaskStatus.Pipelined) == (0 if asked else 2)
    assert {told["reason"] for told in story.told("metric.pipelined_given_up")} == ({"topology"} if asked else set())


@pytest.mark.parametrize(("racks", "left"), [(1, 2), (2, 0)])
def test_parts_that_lie_in_a_hypernode_each_hold_nothing_where_the_job_is_to_lie_in_one(racks: int, left: int) -> None:
    parts = {"name": "p", "subGroupSize": 1, "matchLabelKeys": ["part"]}
    close = answering("close", hyper_node_gradient_for_job=lambda job, hyper_node, purpose: [[hyper_node]])
    group = pod_group(
        "h", min_member=2, subGroupPolicy=[parts], networkTopology={"mode": "hard", "highestTierAllowed": 1}
    )
    pods = [
        pod(f"h-{i}", group="h", cpu=4, memory=0, annotations=held_on(f"n{i}"), labels={"part": f"{i}"}) for i in (1, 2)
    ]
    switches = [switch("s1", "n1", "n2")] if racks == 1 else [switch("s1", "n1"), switch("s2", "n2")]
    text = conf(*TIERS, "close", actions="allocate")
    story = Story(ending("a", "n1"), ending("b", "n2"), [group, *pods], switches, nodes=2, text=text, extra=[close])
    with story.open(story.counts) as session:
        assert session.jobs["default/h"].number(TaskStatus.Pipelined) == left
    assert [told["reason"] for told in story.told("metric.pipelined_given_up")] == ["topology"] * (2 - left)


@pytest.mark.parametrize("deep", [True, False])
def test_capacity_compares_branches_of_a_tree_without_what_is_reserved_in_them(deep: bool) -> None:
    """a's leaf holds all of n1; b, equal otherwise and older, does not come before it because of that."""
    text = conf("gang", "[{name: predicates}, {name: capacity, enableHierarchy: true}]", actions="allocate")
    tree = [queue("root", parent=""), *(queue(up, parent="root", deserved={"cpu": 4}) for up in ("a", "b"))]
    tree += [queue(f"{up}1", parent=up, deserved={"cpu": 4}) for up in ("a", "b")] if deep else []
    leaves = ("a1", "b1") if deep else ("a", "b")
    held, newcomer = holder(group={"queue": leaves[0]}), waiting("x", 1, queue=leaves[1], cpu=4)
    story = Story(ending("z", "n1"), tree, held, newcomer, text=text)
    for _ in range(3):
        assert written(story.cycle()) == {}
