"""backfill: pods that ask for nothing are placed wherever predicates let them, as soon as their job may run."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.framework.books.plan import Plan
from stromboli.framework.session.session import Session
from stromboli.narration.observe import Counting, Placed
from stromboli.plugin import Reason
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.acceptance.bench import Bench, acting, answering, binds, conf, task_of
from tests.acceptance.stories import Story, held_on

TIERS = "gang", "predicates"
TEXT = conf(*TIERS, actions="backfill")


def idle_pods(name: str, count: int = 1, *, least: int = 1, **fields: Any) -> list[Manifest]:
    """A job whose pods ask for nothing; ``fields`` of its PodGroup."""
    group = pod_group(name, min_member=least, **{"phase": "Inqueue", **fields})
    return [group, *(pod(f"{name}-{i}", group=name, cpu=0, memory=0) for i in range(count))]


def with_spec(objects: list[Manifest], **spec: Any) -> list[Manifest]:
    """The same with more in the pods' specs."""
    for each in objects[1:]:
        each["spec"] |= spec
    return objects


@pytest.mark.parametrize(
    ("objects", "bound"),
    [
        pytest.param(idle_pods("g", 2), ["g-0", "g-1"], id="full-nodes-take-them"),
        pytest.param([pod_group("g"), pod("g-0", group="g", cpu=1)], [], id="only-pods-that-ask-for-nothing"),
        pytest.param(idle_pods("g", phase="Pending"), [], id="not-admitted"),
        pytest.param(idle_pods("g", least=2), [], id="too-few-pods-for-its-minimum"),
        pytest.param(with_spec(idle_pods("g"), schedulingGates=[{"name": "wait"}]), [], id="gated"),
        pytest.param(with_spec(idle_pods("g"), nodeSelector={"no": "where"}), [], id="no-node-by-predicates"),
        pytest.param(
            [pod_group("g", min_member=2), pod("g-0", group="g", cpu=0, memory=0), pod("g-1", group="g", cpu=2)],
            [],
            id="a-gang-that-lacks-others",
        ),
        pytest.param(idle_pods("g", queue="gone"), [], id="a-queue-that-is-not-there"),
    ],
)
def test_it_places_pods_that_ask_for_nothing_in_admitted_gangs_that_are_complete(
    objects: list[Manifest], bound: list[str]
) -> None:
    full = [node("n1", cpu=1), pod_group("old", phase="Running"), pod("old-0", group="old", on="n1", cpu=1)]
    assert sorted(binds(Bench([*full, *objects], TEXT).cycle())) == bound


def test_why_a_job_is_passed_over_is_logged() -> None:
    lines = Bench([node("n1"), *idle_pods("g", least=2)], TEXT).logged(4)
    assert any(line.startswith("Job <default/g> Queue <default> skip backfill, reason: NotEnough") for line in lines)


def test_one_refused_before_the_nodes_are_looked_at_is_passed_over_alone() -> None:
    refuses = answering("refuses", pre_predicate=lambda task: Reason("not yet") if task.name == "g-0" else None)
    objects = [node("n1"), node("n2"), *idle_pods("g"), *idle_pods("h")]
    bench = Bench(objects, conf("gang refuses", "predicates", actions="backfill"), refuses)
    lines = bench.logged(3)
    assert "PrePredicate for task default/g-0 failed in backfill for: not yet" in lines
    assert list(binds(bench.plan)) == ["h-0"]
    assert [event.message for event in bench.plan.events if event.key == "default/g-0"] == [
        "0/2 nodes are unavailable: 2 not yet."
    ]


def test_scores_that_fail_count_for_nothing() -> None:
    def fails(task: object, nodes: object) -> Any:
        raise ValueError("no scores")

    objects = [node("n1"), node("n2"), *idle_pods("g")]
    bench = Bench(
        objects, conf("gang fails", "predicates", actions="backfill"), answering("fails", batch_node_order=fails)
    )
    assert any("no scores" in line for line in bench.logged(3))
    assert binds(bench.plan) == {"g-0": "n1"}


def test_the_better_queue_and_the_better_job_come_first() -> None:
    """Each node takes one more pod."""
    queues = [queue("q1", priority=1), queue("q2", priority=2)]
    jobs = [*idle_pods("a", 2, queue="q1"), *idle_pods("b", 2, queue="q2", least=2), *idle_pods("c", queue="q2")]
    objects = [node("n1", pods=1), node("n2", pods=1), node("n3", pods=1), *queues, *jobs]
    assert sorted(binds(Bench(objects, conf("gang", "predicates capacity", actions="backfill")).cycle())) == [
        "b-0",
        "b-1",
        "c-0",
    ]


@pytest.mark.parametrize(("nodes", "bound"), [(1, {}), (2, {"g-0": "n2"})])
def test_one_that_holds_room_starts_where_there_is_some_and_else_goes_on_holding(
    nodes: int, bound: dict[str, str]
) -> None:
    """n1 takes one pod, and another pod still terminates there."""
    machines = [node(f"n{i + 1}", pods=1) for i in range(nodes)]
    ends = [pod_group("e", phase="Running"), pod("e-0", group="e", on="n1", cpu=1, memory=0, deleting=True)]
    group, holds = idle_pods("g")
    holds["metadata"]["annotations"] = {**holds["metadata"].get("annotations", {}), **held_on("n1")}
    story = Story([*machines, *ends, group, holds], nodes=0, text=TEXT)
    plan: Plan = story.cycle()
    assert binds(plan) == bound
    assert story.nodes_held() == ({} if bound else {"g-0": "n1"})


FULL = "0/1 nodes are unavailable: 1 node(s) pod number exceeded."


@pytest.mark.parametrize(("nodes", "bound", "told"), [(1, {}, [FULL]), (2, {"g-0": "n2"}, [])])
def test_without_lasting_reservations_what_waits_is_placed_as_any_other(
    nodes: int, bound: dict[str, str], told: list[str]
) -> None:
    """An earlier action lets it wait for n1, where a pod is ending; backfill looks for room that it can have now."""

    def reserve(session: Session) -> None:
        with session.statement() as statement:
            statement.pipeline(task_of(session, "g-0"), "n1")
            statement.keep()

    machines = [node(f"n{i + 1}", pods=1) for i in range(nodes)]
    ends = [pod_group("e", phase="Running"), pod("e-0", group="e", on="n1", cpu=0, memory=0, deleting=True)]
    text = conf(*TIERS, actions="reserve, backfill")
    story = Story(
        [*machines, *ends, *idle_pods("g")], nodes=0, text=text, gate=False, extra=[acting("reserve", reserve)]
    )
    plan = story.cycle()
    assert binds(plan) == bound
    assert [change.message for change in plan.pod_conditions] == told
    assert plan.reservations == []


@pytest.mark.parametrize("members", [1, 2])
@pytest.mark.parametrize("node_name", ["n1", "n2"])
def test_a_pod_placed_by_an_action_holds_room_no_longer(node_name: str, members: int) -> None:
    """Also where its gang is not whole yet, so that it is not bound."""

    def start(session: Any) -> None:
        session.allocate(task_of(session, "g-0"), session.nodes[node_name])

    pods = [pod(f"g-{i}", group="g", cpu=1, annotations=held_on("n1")) for i in range(members)]
    text = conf(*TIERS, actions="start")
    group = pod_group("g", min_member=members)
    story = Story([group, *pods], nodes=2, text=text, extra=[acting("start", start)])
    assert binds(story.cycle()) == ({"g-0": node_name} if members == 1 else {})
    assert story.nodes_held() == ({} if members == 1 else {"g-1": "n1"})


def test_every_pod_placed_is_counted() -> None:
    observer = Counting(["metric.e2e_job"])
    plan = Bench([node("n1"), *idle_pods("g", 2, created=7)], TEXT).cycle(observer)
    assert len(plan.binds) == 2
    ((_, told),) = observer.told
    assert told["placed"] == [Placed("default/g", "default", 7.0, 1)] * 2
