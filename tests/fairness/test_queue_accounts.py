"""What proportion and capacity have in common: whose turn it is, what they tell, and what queues may hold."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.narration.observe import Counting
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.acceptance.bench import Bench, answering, binds, conf, task_of

PLUGINS = ["proportion", "capacity"]


def waits(name: str, on: str, **spec: Any) -> list[Manifest]:
    return [pod_group(name, queue=on, **spec), pod(f"{name}-0", group=name, cpu=4, memory=0)]


@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize(("priorities", "first"), [((1, 2), "b-0"), ((2, 1), "a-0"), ((1, 1), "a-0")])
def test_the_queue_of_the_higher_priority_is_first_also_next_to_an_order_without_keys(
    plugin: str, priorities: tuple[int, int], first: str
) -> None:
    own = answering("own", queue_order=lambda left, right: 0)
    queues = [
        queue(name, priority=each, created=i) for i, (name, each) in enumerate(zip("ab", priorities, strict=True))
    ]
    objects = [node("n1", cpu=8), *queues, *waits("a", "a"), *waits("b", "b")]
    text = conf(f"gang {plugin}", "predicates own", actions="allocate")
    assert next(iter(binds(Bench(objects, text, own).cycle()))) == first


@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize(("cores", "permitted"), [(4, True), (9, False)])
def test_a_vote_on_admission_is_told_with_what_it_weighs(plugin: str, cores: int, permitted: bool) -> None:
    observer = Counting(("enqueue_amounts", "enqueue_vote"))
    objects = [node("n1", cpu=8), queue("q"), *waits("g", "q", phase="Pending", minResources={"cpu": cores})]
    Bench(objects, conf("gang", f"predicates {plugin}", actions="enqueue")).cycle(observer)
    (amounts,), (vote,) = observer.of("enqueue_amounts"), observer.of("enqueue_vote")
    assert (amounts["name"], amounts["queue"]) == ("g", "q")
    assert amounts["min_resources"].milli_cpu == 1000 * cores  # type: ignore[attr-defined]
    assert vote == {"name": "g", "permitted": permitted}


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_job_without_minimal_resources_is_admitted_and_that_is_told(plugin: str) -> None:
    observer = Counting(("min_resources_unset",))
    objects = [node("n1", cpu=1), queue("q"), *waits("g", "q", phase="Pending")]
    with Bench(objects, conf("gang", f"predicates {plugin}")).open(observer) as session:
        assert session.ask.job_enqueueable(session.jobs["default/g"])
    assert observer.of("min_resources_unset") == [{"name": "g"}]


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_queue_that_is_closed_admits_nothing_and_starts_nothing_which_is_told(plugin: str) -> None:
    observer = Counting(("queue_closed_allocate", "queue_closed_enqueue"))
    closed = queue("q", state="Closed")
    objects = [node("n1", cpu=8), closed, *waits("g", "q", phase="Pending", minResources={"cpu": 1})]
    objects += waits("h", "q", phase="Inqueue")
    plan = Bench(objects, conf("gang", f"predicates {plugin}", actions="enqueue, allocate")).cycle(observer)
    assert plan.binds == []
    enqueued, started = observer.of("queue_closed_enqueue"), observer.of("queue_closed_allocate")
    assert enqueued == [{"queue": "q", "state": "Closed", "job": "default/g"}]
    assert {"queue": "q", "state": "Closed"} in started


@pytest.mark.parametrize("plugin", PLUGINS)
def test_what_comes_and_goes_is_told_with_the_share_of_its_queue(plugin: str) -> None:
    keys = ("queue_event_allocated", "queue_event_deallocated")
    observer = Counting(keys)
    objects = [node("n1", cpu=8), queue("q", deserved={"cpu": 8}), *waits("g", "q")]
    with Bench(objects, conf("gang", f"predicates {plugin}")).open(observer) as session:
        with session.statement() as statement:
            statement.allocate(task_of(session, "g-0"), session.nodes["n1"])
        told = {key: observer.of(key) for key in keys}
    assert [len(each) for each in told.values()] == [1, 1]
    for (fields,) in told.values():
        assert (fields["plugin"], fields["task"]) == (plugin, "default/g-0")
        assert fields["request"].milli_cpu == 4000  # type: ignore[attr-defined]


@pytest.mark.parametrize("plugin", PLUGINS)
def test_as_the_session_opens_the_cluster_its_guarantees_and_its_jobs_are_told(plugin: str) -> None:
    keys = ("total_resource", "total_guarantee", "considering_job")
    observer = Counting(keys)
    objects = [node("n1", cpu=8), queue("q", guarantee={"resource": {"cpu": 2}}), *waits("g", "q"), *waits("h", "q")]
    with Bench(objects, conf("gang", f"predicates {plugin}")).open(observer):
        pass
    (total,), (guarantee,) = observer.of("total_resource"), observer.of("total_guarantee")
    assert total["total"].milli_cpu == 8000  # type: ignore[attr-defined]
    assert guarantee["guarantee"].milli_cpu == 2000  # type: ignore[attr-defined]
    assert observer.of("considering_job") == [{"job": "default/g"}, {"job": "default/h"}]


@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.parametrize(("limit", "told"), [({}, [{"queue": "q", "job": "default/g"}]), ({"cpu": 8}, [])])
def test_that_a_queue_without_limits_admits_a_job_is_told(plugin: str, limit: Any, told: list[Any]) -> None:
    observer = Counting(("capability_unset",))
    objects = [node("n1", cpu=8), queue("q", capability=limit)]
    objects += waits("g", "q", phase="Pending", minResources={"cpu": 1})
    Bench(objects, conf("gang", f"predicates {plugin}", actions="enqueue")).cycle(observer)
    assert observer.of("capability_unset") == told
