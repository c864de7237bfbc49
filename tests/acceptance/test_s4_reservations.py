"""Acceptance rows S4: reservations that outlive their session are kept, restored and redeemed."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from stromboli.builtin import builtin_registry
from stromboli.framework.books.cluster_view import ClusterView
from stromboli.framework.config.gates import PIPELINED_STATE
from stromboli.framework.extension.handlers import TaskEvent
from stromboli.framework.extension.reason import Reason
from stromboli.framework.session.reference import ReferenceView
from stromboli.framework.session.session import Session
from stromboli.framework.statement.operation_kind import OperationKind, operation_name
from stromboli.metrics.logs import LogObserver
from stromboli.model.jobs.min_resources import elastic, remaining
from stromboli.model.names import EVICTION_OCCURRED, PIPELINED_NODE, PIPELINED_STATUS
from stromboli.model.reservation import Held
from stromboli.model.status import TaskStatus
from stromboli.model.table import Node
from stromboli.model.task import Task
from stromboli.narration.observe import Several
from stromboli.plugin import Plugin, on_allocate, on_deallocate, pre_predicate, predicate
from stromboli.sim.between import apply_plan
from stromboli.sim.explanation.explain import explain
from stromboli.sim.planning import Planning
from stromboli.testing.builders import Manifest, events, node, pod, pod_group, queue
from tests.acceptance.bench import GPU, NOW, answering, binds, conf, loaded, task_of
from tests.acceptance.fights import CLASSES, evicted, running, waiting
from tests.acceptance.stories import (
    ALL,
    ALLOCATE,
    NO_QUEUES,
    TWO_QUEUES,
    Story,
    ending,
    half_free,
    held_on,
    holder,
    reserved_pod,
    written,
)


def totals(session: Session) -> Any:
    """Every sum of the session."""
    table = session.table
    queues = {name: (each.sums.held, each.sums.allocated, each.branch) for name, each in session.queues.items()}
    sums = [(job.sums.held, job.sums.allocated, job.sums.request) for job in session.jobs.peek()]
    jobs = [session.axes.full(amounts) for each in sums for amounts in each]
    return repr((table.used.tolist(), table.pipelined.tolist(), table.requested.tolist(), queues, jobs))


# ---------------------------------------------------------------------- kept


def test_S4_01_a_reservation_stands_in_the_pods_annotations() -> None:
    story = Story(running("l", 4), waiting("h", 1), text=NO_QUEUES)
    story.cycle()
    notes = story.state.tasks["default/h-0"].annotations
    assert (notes[PIPELINED_STATUS], notes[PIPELINED_NODE]) == ("true", "n1")


def test_S4_02_a_gang_is_held_whole_and_bound_whole() -> None:
    story = half_free()
    plan = story.cycle()
    assert story.nodes_held() == {"g-0": "n1", "g-1": "n2", "g-2": "n3", "g-3": "n4"}
    assert plan.binds == []
    story.gone("a-0")
    assert (story.cycle().binds, story.plan.annotations) == ([], [])
    story.gone("b-0")
    assert binds(story.cycle()) == {"g-0": "n1", "g-1": "n2", "g-2": "n3", "g-3": "n4"}
    assert story.held() == {}


def test_surplus_of_a_job_that_runs_is_held_even_while_a_pod_is_gated() -> None:
    job = [pod_group("h", phase="Running"), pod("h-0", group="h", on="n1", cpu=4, memory=0)]
    job += [pod("h-1", group="h", cpu=4, memory=0), pod("h-2", group="h", schedulingGates=[{"name": "wait"}])]
    story = Story(ending("a", "n2"), job, nodes=2, text=ALLOCATE)
    story.cycle()
    assert story.nodes_held() == {"h-1": "n2"}


@pytest.mark.parametrize("gated", [True, False])
def test_S4_02_nothing_is_held_while_a_pod_of_the_job_is_gated(gated: bool) -> None:
    gates: dict[str, Any] = {"schedulingGates": [{"name": "wait"}]} if gated else {}
    story = Story(ending("a", "n1"), [*waiting("g", 1, cpu=4), pod("g-9", group="g", cpu=9, **gates)], text=ALLOCATE)
    story.cycle()
    assert story.nodes_held() == ({} if gated else {"g-0": "n1"})


def test_S4_02_a_plugins_permit_alone_holds_nothing() -> None:
    """sla lets a job that is overdue count as pipelined; a part of a gang is not held."""
    tiers = "[{name: sla, arguments: {sla-waiting-time: 1s}}, {name: gang, enableJobPipelined: false}]"
    text = conf(tiers, "predicates", actions="allocate")
    story = Story(ending("a", "n1"), waiting("g", 2, cpu=4), text=text)
    with story.open() as session:
        story.act(session, "allocate")
        assert session.jobs["default/g"].number(TaskStatus.Pipelined) == 1
    assert session.plan.annotations == []


def test_S4_04_S4_19_discarded_the_reservation_stands_again_and_every_sum_is_as_before() -> None:
    story = half_free()
    story.cycle()
    story.gone("a-0")
    with story.open() as session:
        before = totals(session)
        task = task_of(session, "g-2")
        with session.statement() as statement:
            statement.unpipeline(task)
            statement.allocate(task, session.nodes["n3"])
            statement.discard()
        assert (task.status, task.node_name, task.last) == (TaskStatus.Pipelined, "n3", None)
        assert totals(session) == before
    assert session.plan.annotations == []
    assert story.nodes_held()["g-2"] == "n3"


def test_S4_04_an_allocation_elsewhere_that_is_undone_restores_it_too() -> None:  # S4-37: discarded
    story = half_free()
    story.cycle()
    with story.open() as session, session.statement() as statement:
        task = task_of(session, "g-2")
        statement.allocate(task, session.nodes["n1"])
        assert session.nodes["n3"].pipelined.is_empty()
        statement.discard()
        assert (task.status, task.node_name) == (TaskStatus.Pipelined, "n3")


def test_S4_29_a_pod_that_is_placed_taken_back_and_placed_again_is_written_once() -> None:
    story = Story(ending("a", "n1"), ending("b", "n2"), waiting("h", 1), nodes=2, text=ALLOCATE)
    with story.open() as session:
        task = task_of(session, "h-0")
        for node_name in ("n1", "n2"):
            with session.statement() as statement:
                statement.pipeline(task, node_name)
                statement.commit()
            if node_name == "n1":
                with session.statement() as statement:
                    statement.unpipeline(task)
                    statement.commit()
    assert [wish.held for wish in session.plan.annotations] == [Held("n2")]


def test_what_is_let_go_and_held_again_is_not_written_again() -> None:
    story = half_free()
    story.cycle()
    with story.open() as session:
        task = task_of(session, "g-2")
        with session.statement() as statement:
            statement.unpipeline(task)
            statement.pipeline(task, "n3")
            statement.commit()
        assert session.reservations is not None
        assert session.reservations.wishes[task.uid][1] == Held("n3")
    assert session.plan.annotations == []


def test_S4_05_S4_06_only_a_pod_that_room_was_made_for_says_so() -> None:
    story = Story(TWO_QUEUES, running("a", 4, queue="q1"), waiting("b", 2, queue="q2"))
    story.cycle()
    assert story.held() == {"b-0": Held("n1", evicted=True), "b-1": Held("n1", evicted=True)}
    assert story.state.tasks["default/b-0"].annotations[EVICTION_OCCURRED] == "true"
    reused = Story(ending("a", "n1"), waiting("g", 1, cpu=4))
    reused.cycle()
    assert reused.held() == {"g-0": Held("n1", evicted=False)}
    assert EVICTION_OCCURRED not in reused.state.tasks["default/g-0"].annotations


def test_S4_05_preempt_says_so_too() -> None:
    story = Story(running("l", 4), waiting("h", 1), text=NO_QUEUES)
    story.cycle()
    assert story.held() == {"h-0": Held("n1", evicted=True)}


def test_what_is_kept_first_and_bound_later_in_the_session_is_not_held() -> None:
    story = Story(waiting("g", 2, cpu=4), nodes=2, text=ALLOCATE)
    with story.open() as session:
        with session.statement() as statement:
            statement.allocate(task_of(session, "g-0"), session.nodes["n1"])
            statement.keep()
        ReferenceView(session).allocate(task_of(session, "g-1"), session.nodes["n2"])
    assert (len(session.plan.binds), written(session.plan)) == (2, {})


# ---------------------------------------------------------------------- restored


def test_S4_07_after_a_restart_the_room_is_held_still() -> None:
    story = Story(
        ending("a", "n1"), [pod_group("h"), pod("h-0", group="h", cpu=4, memory=0, annotations=held_on("n1"))]
    )
    with story.open() as session:
        task = task_of(session, "h-0")
        assert (task.status, task.node_name) == (TaskStatus.Pipelined, "n1")
        assert session.nodes["n1"].pipelined.milli_cpu == 4000
    assert written(story.cycle()) == {}


def test_after_a_restart_the_node_is_kept_without_further_evictions() -> None:  # S4-37: restarted
    story = Story(running("l1", 4), running("l2", 4, "n2"), waiting("h", 1, cpu=4), nodes=2, text=NO_QUEUES)
    victims = evicted(story.cycle())
    held = story.nodes_held()
    story.restart()
    assert (story.cycle().evictions, story.nodes_held()) == ([], held)
    story.gone(*victims)
    assert binds(story.cycle()) == held


def test_S4_08_stale_keys_on_a_pod_that_runs_are_ignored_and_taken_off() -> None:
    story = Story([pod_group("h", phase="Running"), pod("h-0", group="h", on="n1", annotations=held_on("n9"))])
    with story.open() as session:
        assert task_of(session, "h-0").status is TaskStatus.Running
    assert written(story.cycle()) == {"h-0": None}
    assert written(story.cycle()) == {}


def test_S4_09_S4_13_no_pod_is_evicted_again_while_victims_linger() -> None:  # S4-37: victims end slowly
    story = Story(TWO_QUEUES, running("a", 4, least=1, queue="q1"), waiting("b", 2, queue="q2"))
    victims = evicted(story.cycle())
    assert len(victims) == 2
    for first in (True, *[False] * 4):
        plan = story.cycle()
        assert (plan.evictions, plan.binds, plan.annotations) == ([], [], [])
        assert bool(plan.memory) == first  # until when the victims have time is noted as they are first seen to end
    story.gone(*victims)
    assert binds(story.cycle()) == {"b-0": "n1", "b-1": "n1"}


def test_S4_10_reservations_count_as_pipelined_and_in_sums_and_never_as_ready() -> None:
    pods = [pod(f"h-{i}", group="h", cpu=2, memory=0, annotations=held_on("n1")) for i in range(2)]
    story = Story(ending("a", "n1"), [pod_group("h", min_member=2, minResources={"cpu": 3}), *pods])
    with story.open() as session:
        job, default = session.jobs["default/h"], session.queues["default"]
        assert (job.is_ready(), job.is_pipelined(), job.is_starving()) == (False, True, False)
        assert (remaining(job)[0], elastic(job)[0]) == (0, 1000)
        assert (default.sums.held[0], default.sums.request[0], default.sums.allocated[0]) == (4000, 4000, 0)
        assert session.plugins["drf"].share(job) == 1.0  # type: ignore[attr-defined]
    plan = story.cycle()
    assert plan.binds == []
    assert [update for update in plan.queues if update.allocated.get("cpu", "0") != "0"] == []


# ---------------------------------------------------------------------- redeemed


class Spy(Plugin):
    """Notes which nodes it is asked about, and counts what comes and goes."""

    name = "spy"

    def on_session_open(self, session: ClusterView) -> None:
        self.asked: set[str] = set()
        self.events: list[tuple[str, str, str]] = []

    @predicate
    def note(self, task: Task, node: Node) -> Reason | None:
        self.asked.add(node.name)
        return None

    @on_allocate
    def came(self, event: TaskEvent) -> None:
        self.events.append(("came", event.task.name, event.task.node_name))

    @on_deallocate
    def left(self, event: TaskEvent) -> None:
        self.events.append(("left", event.task.name, event.task.node_name))


def of_plugins(session: Session) -> Any:
    """What drf and proportion count."""
    drf, proportion = session.plugins["drf"], session.plugins["proportion"]
    held = {name: account.held for name, account in proportion.accounts.items()}  # type: ignore[attr-defined]
    share = drf.share(session.jobs["default/h"])  # type: ignore[attr-defined]
    return share, held, session.queues["default"].sums.allocated


def spied(*objects: Sequence[Manifest], nodes: int = 4) -> Story:
    return Story(*objects, nodes=nodes, text=conf("gang priority", "predicates proportion drf spy"), extra=(Spy,))


def test_S4_11_S4_12_S4_18_S4_37_room_that_is_free_is_taken_without_looking_elsewhere() -> None:
    story = spied(reserved_pod())
    with story.open(story.counts) as session:
        story.act(session, "allocate")
        spy = session.plugins["spy"]
        assert isinstance(spy, Spy)
        assert spy.asked == {"n2"}
        assert spy.events == [("left", "h-0", "n2"), ("came", "h-0", "n2")]
        n2 = session.nodes["n2"]
        assert (n2.used.milli_cpu, n2.pipelined.milli_cpu) == (2000, 0)
        default = session.queues["default"]
        assert (default.sums.held[0], default.sums.allocated[0]) == (2000, 2000)
    direct = spied([pod_group("h"), pod("h-0", group="h", cpu=2, memory=0)])
    with direct.open() as other:
        direct.act(other, "allocate")
        assert of_plugins(other) == of_plugins(session) == (0.125, {"default": [2000, 0, 1]}, [2000, 0, 1])
    assert written(session.plan) == {"h-0": None}
    assert story.told("metric.pipelined_fast_path") == [{"result": "allocated"}]


class Fickle(Plugin):
    """Lets a reservation stand, and objects when it is to be redeemed."""

    name = "fickle"
    refuses = "handler"
    why = Reason("no", resolvable=False)

    @pre_predicate
    def beforehand(self, task: Task) -> Reason | None:
        return self.why if self.refuses == "beforehand" else None

    @predicate
    def of_node(self, task: Task, node: Node) -> Reason | None:
        return self.why if self.refuses == "of_node" and task.status is TaskStatus.Pending else None

    @on_allocate
    def came(self, event: TaskEvent) -> None:
        event.err = "not now" if self.refuses == "handler" else None


@pytest.mark.parametrize("lasts", [True, False])
@pytest.mark.parametrize("refuses", ["beforehand", "of_node", "handler"])
def test_what_is_refused_for_good_at_the_last_moment_is_given_up_and_what_else_is_objected_to_waits(
    refuses: str, lasts: bool
) -> None:
    text = conf("gang", "predicates fickle", actions="allocate")
    fickle = type("Fickle", (Fickle,), {"refuses": refuses, "why": Reason("no", resolvable=not lasts)})
    story = Story(running("r", 1, cpu=4), reserved_pod(), nodes=2, text=text, extra=(fickle,))
    released = lasts and refuses != "handler"
    assert written(story.cycle()) == ({"h-0": None} if released else {})
    assert story.plan.binds == []
    assert story.told("metric.pipelined_fast_path") == [{"result": "released" if released else "waiting"}]


def test_a_pod_that_loses_its_room_at_the_last_moment_is_placed_like_any_other() -> None:
    def not_there(task: Task, node: Node) -> Reason | None:
        leaves = node.name == "n2" and task.status is TaskStatus.Pending
        return Reason("no", resolvable=False) if leaves else None

    text = conf("gang", "predicates late", actions="allocate")
    story = Story(reserved_pod(), nodes=2, text=text, extra=[answering("late", predicate=not_there)])
    assert binds(story.cycle()) == {"h-0": "n1"}
    assert story.told("metric.pipelined_given_up") == [{"reason": "predicate"}]


def test_of_several_tasks_the_first_in_order_redeems() -> None:
    """One of two cores is free."""
    pods = [pod(f"h-{i}", group="h", cpu=2, memory=0, annotations=held_on("n1")) for i in (2, 1)]
    job = [pod_group("h", phase="Running"), pod("h-0", group="h", on="n2", cpu=4, memory=0), *pods]
    story = Story(ending("a", "n1", cpu=2), job, nodes=2, text=ALLOCATE)
    assert binds(story.cycle()) == {"h-1": "n1"}
    assert story.nodes_held() == {"h-2": "n1"}


def test_S4_13_without_room_nothing_happens_at_all() -> None:
    story = spied(*(ending(f"v{number}", f"n{number}") for number in (1, 2, 3, 4)), reserved_pod())
    with story.open(story.counts) as session:
        story.act(session, "allocate")
        spy = session.plugins["spy"]
        assert isinstance(spy, Spy)
        assert spy.events == []
        assert session.ledger.log == []
    assert (session.plan.binds, session.plan.evictions, session.plan.annotations) == ([], [], [])
    assert story.told("metric.pipelined_fast_path") == [{"result": "waiting"}]


def test_S4_14_S4_16_S4_17_the_nodes_for_a_task_that_holds_one() -> None:
    going = pod("going", group="h", on="n3", cpu=1, memory=0, deleting=True)
    story = Story(ending("a", "n2"), [*reserved_pod(), going, pod("large", group="h", cpu=99)], nodes=3)
    with story.open() as session:
        nodes = [session.nodes["n1"], None, session.nodes["n2"], session.nodes["n3"]]
        names = [each.name for each in ReferenceView(session).predicate_nodes(task_of(session, "h-0"), nodes)]
        assert names == ["n2"]
        assert [each.name for each in ReferenceView(session).predicate_nodes(task_of(session, "going"), nodes)] == [
            "n1",
            "n2",
        ]
        assert ReferenceView(session).predicate_nodes(task_of(session, "h-0"), [None]) == []
        assert ReferenceView(session).predicate_nodes(task_of(session, "large"), nodes) == []


def test_S4_15_S4_38_a_node_that_is_gone_loses_the_reservation_and_another_is_found() -> None:
    story = Story(ending("a", "n2"), reserved_pod(), nodes=2)
    story.tell(node("n2"), gone=True)
    plan = story.cycle()
    assert binds(plan) == {"h-0": "n1"}
    assert written(plan) == {"h-0": None}
    assert story.state.nodes.entries()["n2"].pipelined[:1] in ([], [0])
    assert story.told("metric.pipelined_given_up") == [{"reason": "node"}]


def test_S4_15_placed_elsewhere_the_old_reservation_is_released() -> None:
    story = Story(ending("a", "n2"), reserved_pod(), nodes=2)
    with story.open() as session, session.statement() as statement:
        task = task_of(session, "h-0")
        statement.pipeline(task, "n1")
        assert session.nodes["n2"].pipelined.is_empty()
        assert session.nodes["n1"].pipelined.milli_cpu == 2000
        statement.commit()
    assert written(session.plan) == {"h-0": Held("n1")}


def test_S4_38_a_node_that_became_too_small_loses_it_too() -> None:
    story = Story(ending("a", "n2"), reserved_pod(), nodes=2)
    story.tell(node("n2", cpu=1))
    assert binds(story.cycle()) == {"h-0": "n1"}
    assert story.held() == {}


def test_S4_38_one_of_two_nodes_gone_and_the_gang_holds_nothing() -> None:  # S4-37: node deleted
    story = half_free()
    story.cycle()
    story.tell(node("n4"), gone=True)
    with story.open() as session:
        assert session.jobs["default/g"].number(TaskStatus.Pending) == 4
        assert session.table.pipelined.sum() == 0
    plan = story.cycle()
    assert written(plan) == dict.fromkeys(["g-0", "g-1", "g-2", "g-3"])
    assert story.held() == {}
    assert all(amounts.tolist() == [0, 0, 0, 0][: len(amounts)] for amounts in [story.snapshot().table.pipelined[0]])


def test_S4_24_the_guide_tells_operators_of_the_relaxed_root() -> None:
    text = (Path(__file__).parents[2] / "docs" / "pipelined.md").read_text(encoding="utf-8")
    section = text.partition("## The root queue of capacity")[2].partition("## ")[0]
    assert "each may hold 4, together 8" in section  # test_S4_23 sees it happen
    assert "set the limits on its children" in section


def test_S4_32_operations_print_as_names() -> None:
    assert [str(kind) for kind in OperationKind][:3] == ["Evict", "Pipeline", "Allocate"]
    assert f"{OperationKind.UNPIPELINE}" == "Unpipeline"
    assert [operation_name(number) for number in range(5)] == [*map(str, OperationKind), "Unknown(4)"]


@pytest.mark.parametrize("known", [False, True])
def test_S4_35_a_scheduler_without_reservations_does_with_annotated_pods_as_with_others(known: bool) -> None:
    """Also where the snapshot comes from one that has them."""
    plans = []
    for notes in ({}, held_on("n1")):
        pods = [pod(f"h-{i}", group="h", cpu=2, memory=0, annotations=notes) for i in range(2)]
        story = Story(ending("a", "n1"), [pod_group("h", min_member=2), *pods], nodes=2, compat=True)
        story.state.set_gates(frozenset({PIPELINED_STATE} if known else ()))
        for each in pods:
            story.tell(each)
        plan = story.cycle()
        plans.append((binds(plan), plan.reservations, plan.annotations, plan.memory, plan.inconsistencies))
    assert plans[0] == plans[1]
    assert plans[0][0] == {"h-0": "n2", "h-1": "n2"}


# ---------------------------------------------------------------------- explained


def test_explain_tells_what_is_held_since_when_and_which_pods_have_to_end() -> None:
    registry = builtin_registry()
    planning = Planning(loaded(ALLOCATE, registry), registry, now=NOW)
    for event in events([node("n1"), queue("default"), *ending("a", "n1"), *waiting("h", 1, cpu=4)]):
        planning.state.apply(event)
    planning.run(2)
    told = "h-0 holds a reservation on node n1 since 1970-01-12T13:46:40Z, waits for victim a-0 to end"
    found = explain(planning, "default/h")
    assert [line for step in found.steps for line in step.lines if "holds" in line] == [told]
    assert planning.reasons()["default/h"].message == told
    assert planning.reasons()["default/h"].cause == "reserved"


def test_explain_tells_it_of_a_pod_that_has_taken_room_from_others_too() -> None:
    """The explanation of the cycle that evicts for the job says so, also where a later action finds the job content."""
    registry = builtin_registry()
    planning = Planning(loaded(ALL, registry), registry, now=NOW)
    for event in events(
        [node("n1", cpu=4), queue("default"), *CLASSES, *running("a", 1, cpu=4), *waiting("h", 1, cpu=4)]
    ):
        planning.state.apply(event)
    planning.run()
    assert explain(planning, "default/h").steps[-1].text == "1 evicted; waits for room on n1"
    apply_plan(planning.state, planning.plans[-1], evicted_become="terminating")
    planning.run()
    found = explain(planning, "default/h")
    told = "h-0 holds a reservation on node n1 since 1970-01-12T13:46:40Z, waits for victim a-0 to end"
    assert [(step.name, step.lines) for step in found.steps if step.ok is False][:1] == [("gang", (told,))]


def test_explain_does_not_say_since_when_where_it_does_not_know() -> None:
    registry = builtin_registry()
    planning = Planning(loaded(ALLOCATE, registry), registry, now=NOW)
    for event in events([node("n1"), queue("default"), *ending("a", "n1"), *holder()]):
        planning.state.apply(event)
    planning.run(1)
    assert planning.reasons()["default/h"].message == "h-0 holds a reservation on node n1, waits for victim a-0 to end"


# ---------------------------------------------------------------------- guards


def test_S4_20_S4_34_more_given_back_than_held_stops_at_zero_and_is_told() -> None:
    story, stream = Story(running("a", 1), text=conf("gang", "predicates proportion drf")), StringIO()
    with story.open(Several([story.counts, LogObserver(stream)])) as session:
        task, default = task_of(session, "a-0"), session.queues["default"]
        for _ in range(2):
            ReferenceView(session).evict(task, "test")
        assert default.sums.held[0] == default.sums.allocated[0] == 0
        assert session.plugins["drf"].share(session.jobs["default/a"]) == 0  # type: ignore[attr-defined]
    lines = [line.partition("] ")[2] for line in stream.getvalue().splitlines() if line.startswith("W")]
    assert lines == [
        f"[proportion] dealloc underflow: queue <default>, task <default/a-0>, {what}: wanted {wanted}, allocated 0"
        for what, wanted in (("cpu", 1000), ("pods", 1))
    ]
    assert story.told("metric.dealloc_underflow") == [{"plugin": "proportion"}]
    assert any("gave back more than was held: cpu" in text for text in session.plan.inconsistencies)


def test_S4_20_queues_above_stop_at_zero_too() -> None:  # S4-37: deallocated twice
    text = conf("gang", "[{name: predicates}, {name: capacity, enableHierarchy: true}]")
    queues = [queue("root", parent=""), queue("up", parent="root"), queue("low", parent="up")]
    story = Story(queues, running("a", 1, queue="low"), text=text)
    with story.open(story.counts) as session:
        for _ in range(2):
            ReferenceView(session).evict(task_of(session, "a-0"), "test")
        assert [session.queues[name].branch[0] for name in ("low", "up", "root")] == [0, 0, 0]
    assert {line["plugin"] for line in story.told("dealloc_underflow")} == {"capacity"}


def test_S4_21_a_queue_without_gpu_figures_runs_cpu_pods_next_to_gpus() -> None:  # S4-37: no GPU dimension
    gpus = [node("g1", resources={GPU: 8})]
    stated_cpu: dict[str, Any] = {"capability": {"cpu": 4}, "deserved": {"cpu": 4}}
    for plugin, spec in (("capacity", stated_cpu), ("proportion", {})):
        story = Story(gpus, [queue("q", **spec)], waiting("h", 1, queue="q"), text=conf("gang", f"predicates {plugin}"))
        assert list(binds(story.cycle())) == ["h-0"]


def test_S4_22_a_share_computed_as_zero_limits() -> None:
    """q1 weighs a million times as much and asks for both GPUs: next to nothing is left for q2, which counts as 0."""
    queues = [queue("q1", weight=10**6), queue("q2")]
    queues += [pod_group("o", queue="q1", min_member=9), pod("o-0", group="o", cpu=0, memory=0, requests={GPU: 2})]
    want = [pod_group("h", queue="q2"), pod("h-0", group="h", cpu=1, memory=0, requests={GPU: 1})]
    story = Story([node("g1", resources={GPU: 2})], queues, want, text=conf("gang", "predicates proportion"))
    assert binds(story.cycle()) == {}


def test_S4_23_root_limits_nothing_and_other_queues_do() -> None:
    text = conf("gang", "[{name: predicates}, {name: capacity, enableHierarchy: true}]")
    two: dict[str, Any] = {"capability": {"cpu": 2}}
    for limit, expected in (({}, 8), (two, 4)):
        root = queue("root", parent="", capability={"cpu": 4})
        queues = [root, *(queue(name, parent="root", **limit) for name in ("a", "b"))]
        jobs = [each for name in ("a", "b") for each in waiting(name, 4, least=1, queue=name)]
        assert len(binds(Story(queues, jobs, text=text, cpu=16).cycle())) == expected
