"""Log lines for rare failures: each is written where its rule acts, with its subject."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from stromboli.cycle import run_cycle
from stromboli.errors import PlacementError
from stromboli.framework.books.ledger import Ledger, _stop_at_zero
from stromboli.framework.extension.guarded import PluginFailed
from stromboli.framework.extension.handlers import TaskEvent
from stromboli.framework.session.reference import ReferenceView
from stromboli.framework.session.session import Session
from stromboli.framework.statement.statement import Statement
from stromboli.model.names import TEMPLATE_UID
from stromboli.model.status import TaskStatus
from stromboli.model.task import Task
from stromboli.narration.observe import Counting
from stromboli.plugin import Reason
from stromboli.testing.builders import Manifest, hyper_node, node, pod, pod_group, queue
from tests.acceptance.bench import Bench, answering, conf, task_of

LOW_AND_HIGH: list[Manifest] = [
    node("n1", cpu=1), queue("q"), pod_group("low", queue="q"), pod("low-0", group="low", on="n1"),
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10},
    pod_group("high", queue="q", priorityClassName="high"), pod("high-0", group="high"),
]  # fmt: skip


def told(bench: Bench, key: str) -> list[dict[str, Any]]:
    """The fields of ``key`` in one cycle."""
    counting = Counting()
    bench.cycle(counting)
    return counting.of(key)


# ---------------------------------------------------------------------- queues that are not there


def test_a_job_whose_queue_does_not_exist_is_told_as_the_session_opens() -> None:
    bench = Bench([node("n1"), pod_group("g", queue="gone"), pod("p", group="g")])
    assert told(bench, "job_queue_missing") == [{"queue": "gone", "job": "default/g"}]
    bench.tell(queue("gone"))
    assert told(bench, "job_queue_missing") == []


@pytest.mark.parametrize(
    ("action", "key"),
    [
        ("enqueue", "queue_missing"),
        ("allocate", "allocate_queue_missing"),
        ("preempt", "preempt_queue_missing"),
        ("reclaim", "queue_missing"),
    ],
)
def test_an_action_passes_over_a_job_whose_queue_the_session_lacks(action: str, key: str) -> None:
    bench = Bench(
        [node("n1"), queue("q"), pod_group("g", queue="q"), pod("p", group="g")], conf("gang", actions=action)
    )
    snapshot, counting = bench.snapshot(), Counting()
    del snapshot.queues["q"]
    plan = run_cycle(snapshot, bench.config, bench.registry, observer=counting)
    assert [(fields["queue"], fields["job"].uid) for fields in counting.of(key)] == [("q", "default/g")]  # type: ignore[attr-defined]
    assert (plan.binds, plan.evictions, plan.inconsistencies) == ([], [], [])


def test_sums_below_zero_are_raised_to_it_and_the_most_that_was_missing_is_known() -> None:
    """A sum of which nothing was ever counted is empty."""
    sums = [[], [0, -2, 5], [-1, -3], [4]]
    assert _stop_at_zero(sums) == {0: 1, 1: 3}
    assert sums == [[], [0, 0, 5], [0, 0], [4]]


# ---------------------------------------------------------------------- operations that cannot be taken back


def _evict(statement: Statement, session: Session) -> Task:
    task = task_of(session, "old")
    statement.evict(task, "test")
    return task


def _pipeline(statement: Statement, session: Session) -> Task:
    task = task_of(session, "new")
    statement.pipeline(task, "n1")
    return task


def _allocate(statement: Statement, session: Session) -> Task:
    task = task_of(session, "new")
    statement.allocate(task, session.nodes["n1"])
    return task


def _unpipeline(statement: Statement, session: Session) -> Task:
    task = task_of(session, "new")
    ReferenceView(session).pipeline(task, "n1")
    statement.unpipeline(task)
    return task


@pytest.mark.parametrize(
    ("operate", "key"),
    [
        (_evict, "unevict_failed"),
        (_pipeline, "unpipeline_failed"),
        (_allocate, "unallocate_failed"),
        (_unpipeline, "allocate_failed"),
    ],
)
def test_an_operation_whose_handler_fails_while_it_is_taken_back_is_told(
    operate: Callable[[Statement, Session], Task], key: str
) -> None:
    counting = Counting()
    failing: list[bool] = []

    def fail(_event: TaskEvent) -> None:
        if failing:
            raise RuntimeError("no way back")

    sick = answering("sick", on_allocate=fail, on_deallocate=fail)
    objects = [node("n1"), pod_group("g"), pod("old", group="g", on="n1"), pod("new", group="g")]
    with Bench(objects, conf("gang sick"), sick).open(counting) as session:
        statement = session.statement()
        task = operate(statement, session)
        failing.append(True)
        with pytest.raises(PluginFailed, match="no way back"):
            statement.discard()
        failing.clear()
        ((said),) = counting.of(key)
        assert said["task"] is task
        assert "no way back" in str(said["error"])


def test_an_eviction_that_the_books_refuse_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("not in the books")

    with Bench([node("n1"), pod_group("g"), pod("old", group="g", on="n1")]).open() as session:
        statement, task = session.statement(), task_of(session, "old")
        monkeypatch.setattr(Ledger, "evict", refuse)
        with pytest.raises(ValueError, match="not in the books"):
            statement.evict(task, "test")
        assert (statement.operations, task.status) == ([], TaskStatus.Running)  # so nothing is taken back


def test_a_reservation_whose_handler_fails_leaves_no_mark_of_evictions() -> None:
    def fail(_event: TaskEvent) -> None:
        raise RuntimeError("no way in")

    sick = answering("sick", on_allocate=fail)
    with Bench([node("n1"), pod_group("g"), pod("new", group="g")], conf("gang sick"), sick).open() as session:
        statement, task = session.statement(), task_of(session, "new")
        with pytest.raises(PluginFailed, match="no way in"):
            statement.pipeline(task, "n1", eviction_occurred=True)
        assert (statement.operations, task.node_name, task.eviction_occurred) == ([], "", False)


def test_a_task_of_a_job_that_the_session_lacks_is_refused_and_told() -> None:
    counting = Counting()
    bench = Bench([node("n1"), pod_group("g"), pod("p", group="g")])
    with bench.open() as other:
        stranger = task_of(other, "p")
    bench.tell(pod_group("g"), gone=True)
    with bench.open(counting) as session:
        with pytest.raises(PlacementError, match="failed to find job default/g"):
            session.statement().pipeline(stranger, "n1")
        assert counting.of("job_missing") == [{"job": "default/g", "session": session.uid, "step": "pipeline"}]


STEPS = [
    ("evicting", lambda statement, task, where: statement.evict(task, "test")),
    ("pipeline", lambda statement, task, where: statement.pipeline(task, where)),
    ("binding", lambda statement, task, where: statement.allocate(task, statement.session.nodes["n1"])),
    ("unpipeline", lambda statement, task, where: statement.unpipeline(task)),
]


@pytest.mark.parametrize(("step", "operate"), STEPS, ids=[step for step, _ in STEPS])
def test_no_step_is_done_with_a_task_whose_job_the_session_lacks(step: str, operate: Callable[..., None]) -> None:
    counting = Counting()
    bench = Bench([node("n1"), pod_group("g"), pod("p", group="g", on="n1")])
    with bench.open() as other:
        stranger = task_of(other, "p")
    bench.tell(pod_group("g"), gone=True)
    with bench.open(counting) as session:
        statement = session.statement()
        with pytest.raises(PlacementError, match="failed to find job default/g of task default/p"):
            operate(statement, stranger, "n1")
        assert counting.of("job_missing") == [{"job": "default/g", "session": session.uid, "step": step}]
        assert statement.operations == []


@pytest.mark.parametrize(
    ("step", "operate"), [each for each in STEPS if each[0] != "binding"], ids=["evict", "pipeline", "unpipeline"]
)
def test_no_step_is_done_on_a_node_that_the_session_lacks(step: str, operate: Callable[..., None]) -> None:
    counting = Counting()
    with Bench([node("n1"), pod_group("g"), pod("p", group="g")]).open(counting) as session:
        statement, task = session.statement(), task_of(session, "p")
        task.node_name = "nowhere"
        with pytest.raises(PlacementError, match="failed to find node nowhere for task default/p"):
            operate(statement, task, "nowhere")
        task.node_name = ""
        assert counting.of("node_missing") == [{"node": "nowhere", "session": session.uid, "step": step}]
        assert statement.operations == []


# ---------------------------------------------------------------------- actions


def test_a_reservation_to_which_a_handler_objects_is_told() -> None:
    def object_to(event: TaskEvent) -> None:
        event.err = "not there"

    bench = Bench(LOW_AND_HIGH, conf("priority objector", "predicates", actions="preempt"),
                  answering("objector", on_allocate=object_to))  # fmt: skip
    said = told(bench, "pipeline_failed")
    assert [(fields["task"].name, fields["node"]) for fields in said] == [("high-0", "n1")]
    assert bench.plan.evictions == []


def test_the_topology_aware_search_tells_that_no_node_is_eligible() -> None:
    objects = [node("n1", cpu=1, unschedulable=True), *LOW_AND_HIGH[1:]]
    more = "configurations:\n- {name: preempt, arguments: {enableTopologyAwarePreemption: true}}"
    bench = Bench(objects, conf("priority", "predicates", actions="preempt", more=more))
    assert [fields["task"].name for fields in told(bench, "preempt_no_nodes")] == ["high-0", "high-0"]
    assert bench.plan.evictions == []


BEST_EFFORT: list[Manifest] = [node("n1"), pod_group("g"), pod("p", group="g", cpu=0, memory=0)]


def test_backfill_tells_what_is_said_of_a_task_beforehand() -> None:
    refusing = answering("refusing", pre_predicate=lambda _task: Reason("not today"))
    said = told(
        Bench(BEST_EFFORT, conf("gang refusing", actions="backfill"), refusing), "backfill_pre_predicate_failed"
    )
    assert [(fields["task"].name, fields["error"]) for fields in said] == [("p", "not today")]


def test_backfill_tells_of_jobs_that_are_not_valid() -> None:
    objects = [node("n1"), pod_group("g", min_member=2), pod("p", group="g", cpu=0, memory=0)]
    (said,) = told(Bench(objects, conf("gang", actions="backfill")), "backfill_job_invalid")
    assert (said["job"].uid, said["queue"], said["reason"]) == ("default/g", "default", "NotEnoughTasks")


# ---------------------------------------------------------------------- plugins


def test_a_task_whose_job_is_gone_is_passed_over_by_name() -> None:
    bench = Bench([node("n1"), pod_group("g"), pod("p", group="g")])
    with bench.open() as other:
        stranger = task_of(other, "p")
    bench.tell(pod_group("g"), gone=True)
    counting = Counting()
    with bench.open(counting) as session:
        session.ask.preemptable(stranger, [stranger])
    said, *_ = counting.of("orphan_skipped")
    assert (said["plugin"], said["task"], said["job"]) == ("gang", "default/p", "default/g")


def test_scores_are_told_where_they_decide() -> None:
    one = [pod_group("g"), pod("p", group="g")]
    ranked = conf("gang", "predicates nodeorder", actions="allocate")
    (said,) = told(Bench([node("n1"), node("n2"), *one], ranked), "scores")
    assert (said["task"].name, sorted(said["scores"])) == ("p", ["n1", "n2"])
    assert len(set(said["scores"].values())) == 1
    assert told(Bench([node("n1"), *one], ranked), "scores") == []


def test_a_run_of_equal_tasks_tells_the_scores_of_its_first() -> None:
    gang = [pod_group("g", min_member=2), *(pod(f"p{number}", group="g") for number in range(2))]
    more = told(Bench([node("n1"), node("n2"), *gang], conf("gang", "binpack", actions="allocate")), "scores")
    assert [fields["task"].name for fields in more] == ["p0"]


def test_the_cache_of_predicates_tells_what_it_says_of_every_node() -> None:
    cached = "[{name: predicates, arguments: {predicate.CacheEnable: true}}]"
    selector = {"kubernetes.io/hostname": "n2"}
    choosy = pod("p", group="g", annotations={TEMPLATE_UID: "t"}, nodeSelector=selector)
    bench = Bench([node("n1"), node("n2"), pod_group("g"), choosy], conf("gang", cached))
    said = {(fields["node"], fields["name"], fields["fit"]) for fields in told(bench, "predicate_cached")}
    assert said == {("n1", "p", False), ("n2", "p", True)}


def test_victims_along_a_hierarchy_of_queues_are_told() -> None:
    paths = [queue(name, annotations={"volcano.sh/hierarchy": f"root/{name}", "volcano.sh/hierarchy-weights": "1/1"})
             for name in ("poor", "rich")]  # fmt: skip
    rich = [pod_group("r", queue="rich"), *(pod(f"r{number}", group="r", on="n1") for number in range(4))]
    poor = [pod_group("p", queue="poor"), *(pod(f"p{number}", group="p") for number in range(3))]
    text = conf(
        "[{name: gang, enableReclaimable: false}, {name: drf, enableHierarchy: true}]", "predicates", actions="reclaim"
    )
    said = told(Bench([node("n1", cpu=4), *paths, *rich, *poor], text), "hdrf_victims")
    assert said
    assert {name for fields in said for name in fields["victims"]} <= {f"default/r{number}" for number in range(4)}
    assert said[0]["victims"]


# ---------------------------------------------------------------------- as the session opens


def test_what_the_session_finds_is_told_in_numbers() -> None:
    objects = [node("n1"), node("n2"), node("n3"), queue("q"), pod_group("g"), pod("p", group="g")]
    bench = Bench(objects)
    assert told(bench, "snapshot_taken") == [{"jobs": 1, "queues": len(bench.snapshot().queues), "nodes": 3}]


def test_a_plugin_that_is_put_aside_is_told_with_its_error() -> None:
    def fail(job: object) -> None:
        raise ValueError("no idea")

    bench = Bench([node("n1"), pod_group("g"), pod("p", group="g")], conf("gang bad"), answering("bad", job_valid=fail))
    assert told(bench, "plugin_failed") == [{"name": "bad", "error": "bad: ValueError: no idea"}]


def test_a_job_that_asks_for_a_tier_which_no_hypernode_bears_is_complained_of() -> None:
    """Tiers have names of their own; one that a HyperNode bears is fine."""
    rack = hyper_node("s1", 1, "n1", tier_name="rack")
    for name, complaints in (("rack", 0), ("row", 1)):
        topology = {"mode": "hard", "highestTierName": name}
        bench = Bench([node("n1"), rack, pod_group("g", networkTopology=topology), pod("p", group="g")])
        found = [each["text"] for each in told(bench, "complaint")]
        assert found == ["job default/g asks for hypernode tier row, which no HyperNode bears"] * complaints
