"""Acceptance rows S3: overcommit, proportion, resourcequota, sla, priority and the rest, from objects to decisions."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from stromboli.framework.session.reference import ReferenceView
from stromboli.metrics.prometheus import MetricsObserver, new_registry
from stromboli.plugins.overcommit import Overcommit
from stromboli.plugins.sla import Sla
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.acceptance.bench import GPU, NOW, Bench, binds, conf, messages, task_of

ENQUEUE = "enqueue, allocate, backfill"


def waiting(name: str, cpu: Any = None, *, extra: dict[str, Any] | None = None, **fields: Any) -> list[Manifest]:
    """A PodGroup that waits to be admitted, with one pod; ``cpu`` and ``extra`` are its minResources."""
    least = {**({} if cpu is None else {"cpu": cpu}), **(extra or {})}
    spec: dict[str, Any] = {**fields, **({"minResources": least} if least else {})}
    group = pod_group(name, phase="Pending", **spec)
    return [group, pod(f"{name}-0", group=name, cpu=0, memory=0)]


def admitted(bench: Bench) -> list[str]:
    """The PodGroups that the cycle lets in."""
    plan = bench.cycle()
    inside = {update.key.partition("/")[2] for update in plan.pod_groups if update.phase == "Inqueue"}
    return sorted(inside | {bind.job.partition("/")[2] for bind in plan.binds})


# ---------------------------------------------------------------------- overcommit

OVERCOMMIT = conf("overcommit", actions="enqueue")


@pytest.mark.parametrize(("factor", "cpu", "enters"), [("", 120, True), ("", 121, False), ("1.5", 150, True)])
def test_S3_12_the_cluster_counts_a_factor_larger(factor: str, cpu: int, enters: bool) -> None:
    text = conf(
        f"[{{name: overcommit, arguments: {{{factor and 'overcommit-factor: ' + factor}}}}}]", actions="enqueue"
    )
    bench = Bench([node("n1", cpu=100, memory="64Gi"), *waiting("g", cpu)], text)
    assert admitted(bench) == (["g"] if enters else [])


def test_S3_12_what_is_used_is_taken_off() -> None:
    """10 cores, 9 in use: 3 are left."""
    for cpu, enters in ((3, True), (4, False)):
        objects = [node("n1", cpu=10), pod("old", on="n1", cpu=9, memory=0), *waiting("g", cpu)]
        assert admitted(Bench(objects, OVERCOMMIT)) == (["g"] if enters else [])


def test_S3_13_a_factor_below_1_is_replaced_with_a_warning() -> None:
    bench = Bench([node("n1")], conf("[{name: overcommit, arguments: {overcommit-factor: 0.5}}]", actions="enqueue"))
    text = (
        "Invalid input 0.500000 for overcommit-factor, reason: overcommit-factor cannot be less than 1,"
        " using default value: 1.200000."
    )
    assert text in bench.logged(1)
    with bench.open() as session:
        plugin = session.plugins["overcommit"]
        assert isinstance(plugin, Overcommit)
        assert plugin.factor == 1.2


INQUEUE = pod_group("in", phase="Inqueue", minResources={"cpu": 2}, created=1)


def test_S3_14_S3_16_what_was_admitted_before_counts_and_a_refusal_says_so() -> None:
    """Idle 3, admitted 2: a job of 1 enters, the next does not."""
    objects = [node("n1", cpu=10), pod("old", on="n1", cpu=9, memory=0), INQUEUE,
               *waiting("a", 1, created=2), *waiting("b", 1, created=3)]  # fmt: skip
    bench = Bench(objects, OVERCOMMIT)
    assert admitted(bench) == ["a"]
    assert "resource in cluster is overused: overused cpu" in messages(bench.plan, "default/b")
    event = next(event for event in bench.plan.events if event.key == "default/b" and "overused" in event.message)
    assert (event.kind, event.type, event.reason) == ("PodGroup", "Normal", "Unschedulable")


def test_S3_14_a_running_job_counts_with_what_it_lacks_and_gated_pods_do_not() -> None:
    running = pod_group("run", phase="Running", min_member=1, minResources={"cpu": 4})
    objects = [node("n1", cpu=10, memory="64Gi"), running, pod("run-0", group="run", on="n1", cpu=1)]
    gated = pod("run-1", group="run", cpu=2, schedulingGates=[{"name": "other"}])
    for pods, room in (([], 8), ([gated], 10)):  # 12 - 1 used - (4 - 1 lacking, less 2 gated)
        for cpu, enters in ((room, True), (room + 1, False)):
            bench = Bench([*objects, *pods, *waiting("g", cpu)], OVERCOMMIT)
            assert ("g" in admitted(bench)) is enters


def test_S3_15_only_what_is_asked_for_is_compared() -> None:
    full = [node("n1", cpu=1, resources={GPU: 1}), pod("old", on="n1", cpu=3, memory=0)]
    objects = [*full, *waiting("none"), *waiting("gpu", extra={GPU: 1}), *waiting("cpu", 1)]
    assert admitted(Bench(objects, OVERCOMMIT)) == ["gpu", "none"]


def test_S3_17_two_jobs_compete_for_the_room_of_one_and_best_effort_ones_take_none() -> None:
    objects = [node("n1", cpu=5), *waiting("a", 6, created=1), *waiting("b", 6, created=2), *waiting("free", created=0)]
    assert admitted(Bench(objects, OVERCOMMIT)) == ["a", "free"]


# ---------------------------------------------------------------------- priority, gang


def ranked(name: str, value: int) -> list[Manifest]:
    priority = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
    }
    return [priority, pod_group(name, priorityClassName=name), pod(f"{name}-0", group=name)]


def test_S3_40_the_more_important_job_and_task_go_first() -> None:
    assert binds(Bench([node("n1", cpu=1), *ranked("a5", 5), *ranked("b10", 10)]).cycle()) == {"b10-0": "n1"}
    tasks = [pod(f"t{value}", group="g", priority=value) for value in (5, 10)]
    assert binds(Bench([node("n1", cpu=1), pod_group("g"), *tasks]).cycle()) == {"t10": "n1"}
    with Bench([*ranked("a", 5), *ranked("b", 5)]).open() as session:
        assert (
            ReferenceView(session).points["job_order"]["priority"](session.jobs["default/a"], session.jobs["default/b"])
            == 0
        )


def test_S3_41_only_strictly_less_important_victims() -> None:
    objects = [node("n1", cpu=9), *ranked("low", 1), *ranked("same", 5), *ranked("new", 5)]
    for each in objects:
        if each["kind"] == "Pod" and not each["metadata"]["name"].startswith("new"):
            each["spec"]["nodeName"], each["status"]["phase"] = "n1", "Running"
    with Bench(objects, conf("priority")).open() as session:
        candidates = [task_of(session, name) for name in ("low-0", "same-0")]
        found = session.ask.preemptable(task_of(session, "new-0"), candidates)
    assert [task.name for task in found] == ["low-0"]


def test_S3_41_within_a_job_only_less_important_tasks() -> None:
    own = [pod(f"t{i}", group="g", priority=i, on="n1" if i < 3 else "") for i in (1, 2, 3)]
    with Bench([node("n1"), pod_group("g"), *own, pod("p", group="g", priority=2)], conf("priority")).open() as session:
        found = session.ask.preemptable(task_of(session, "p"), [task_of(session, "t1"), task_of(session, "t2")])
    assert [task.name for task in found] == ["t1"]


@pytest.mark.parametrize(("plugins", "starving"), [("priority", True), ("gang", False), ("gang priority", False)])
def test_S3_42_with_priority_alone_a_job_starves_until_all_its_tasks_are_placed(plugins: str, starving: bool) -> None:
    pods = [pod(f"p{i}", group="g", on="n1" if i < 3 else "") for i in range(4)]
    with Bench([node("n1"), pod_group("g", min_member=3), *pods], conf(plugins)).open() as session:
        assert session.ask.job_starving(session.jobs["default/g"]) is starving


# ---------------------------------------------------------------------- resourcequota

QUOTA = conf("resourcequota", actions="enqueue")


def quota(hard: dict[str, Any], used: dict[str, Any] | None = None, name: str = "q") -> Manifest:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name, "namespace": "default"},
            "status": {"hard": hard, "used": used or {}}}  # fmt: skip


TEN = quota({"cpu": 10}, {"cpu": 6})


@pytest.mark.parametrize(
    ("quotas", "job", "enters"),
    [
        pytest.param([quota({"cpu": 1})], waiting("g"), True, id="S3-47-no-minResources"),
        pytest.param([quota({"cpu": 1})], waiting("g", 2, namespace="other"), True, id="S3-47-unknown-namespace"),
        pytest.param([quota({"cpu": 0})], waiting("g", extra={GPU: 1}), True, id="S3-47-only-keys-of-hard"),
        pytest.param([quota({"cpu": 9}), quota({"cpu": 1}, name="r")], waiting("g", 2), False, id="S3-47-all-quotas"),
        pytest.param([TEN], [*waiting("a", 2), *waiting("g", 2, created=9)], True, id="S3-48-2"),
        pytest.param([TEN], [*waiting("a", 2), *waiting("g", 3, created=9)], False, id="S3-48-3"),
    ],
)  # fmt: skip
def test_quotas_of_the_namespace(quotas: list[Manifest], job: list[Manifest], enters: bool) -> None:
    job = [each for each in job if each["kind"] == "PodGroup"]
    bench = Bench([node("n1"), *quotas, *job], QUOTA)
    assert ("g" in admitted(bench)) is enters
    refused = [event for event in bench.plan.events if event.message.startswith("resource quota insufficient")]
    assert len(refused) == (not enters)


def test_S3_49_the_event_names_the_failing_keys() -> None:
    hard, used = {"cpu": "3", "memory": "9Gi"}, {"cpu": "2", "memory": "1Gi"}
    bench = Bench([node("n1"), quota(hard, used), *waiting("g", 2, extra={"memory": "1Gi"})], QUOTA)
    bench.cycle()
    text = "resource quota insufficient, requested: map[cpu:2], used: map[cpu:2], limited: map[cpu:3]"
    assert text in messages(bench.plan, "default/g")


# ---------------------------------------------------------------------- sla

SLA = '[{name: sla, arguments: {sla-waiting-time: "2h30m"}}]'


def aged(name: str, age: int, **fields: Any) -> Manifest:
    return pod_group(name, created=int(NOW) - age, phase="Pending", minResources={"cpu": 99}, **fields)


@pytest.mark.parametrize(
    ("text", "notes", "overdue_after"),
    [
        pytest.param(SLA, {}, 150 * 60, id="S3-50-global"),
        pytest.param(SLA, {"sla-waiting-time": "1h"}, 3600, id="S3-50-the-jobs-own"),
        pytest.param(SLA, {"volcano.sh/sla-waiting-time": "30m", "sla-waiting-time": "1h"}, 1800, id="S3-51-both-keys"),
        pytest.param(SLA, {"sla-waiting-time": "abc"}, 150 * 60, id="S3-51-unreadable-so-global"),
        pytest.param(SLA, {"sla-waiting-time": "-1h"}, 150 * 60, id="S3-51-negative-so-global"),
        pytest.param("sla", {}, None, id="S3-51-neither"),
        pytest.param("[{name: sla, arguments: {sla-waiting-time: abc}}]", {}, None, id="S3-51-global-unreadable"),
        pytest.param("[{name: sla, arguments: {sla-waiting-time: -1h}}]", {}, None, id="S3-51-global-negative"),
    ],
)
def test_S3_53_a_job_that_waited_too_long_enters_a_full_cluster(
    text: str, notes: Any, overdue_after: int | None
) -> None:
    """sla in tier 1, overcommit in tier 2, no room at all."""
    for age, enters in ((overdue_after or 10**6, overdue_after is not None), ((overdue_after or 1) - 1, False)):
        objects = [node("n1", cpu=1), aged("g", age, annotations=notes)]
        assert admitted(Bench(objects, conf(text, "overcommit", actions="enqueue"))) == (["g"] if enters else [])


def test_S3_52_jobs_with_a_deadline_first_and_the_earlier_one_before() -> None:
    def job(name: str, created: int, wait: str = "") -> list[Manifest]:
        notes = {"sla-waiting-time": wait} if wait else {}
        return [pod_group(name, created=created, annotations=notes), pod(f"{name}-0", group=name)]

    objects = [*job("none", 1), *job("late", 2, "3h"), *job("soon", 9000, "1h"), *job("also", 1)]
    plan = Bench([node("n1"), *objects], conf("sla gang")).cycle()
    assert [bind.key for bind in plan.binds] == [f"default/{name}-0" for name in ("late", "soon", "also", "none")]
    with Bench([node("n1"), *objects], conf("sla")).open() as session:
        ask = ReferenceView(session).points["job_order"]["sla"]
        assert ask(session.jobs["default/none"], session.jobs["default/also"]) == 0


# ---------------------------------------------------------------------- proportion

SHARE = conf("gang", "predicates proportion", actions="enqueue, allocate")


def job_in(name: str, queue_: str, pods: int, running: int = 0, cpu: Any = 1, **fields: Any) -> list[Manifest]:
    fields.setdefault("phase", "Running" if running else "Inqueue")
    own = [pod(f"{name}-{i}", group=name, cpu=cpu, memory=0, on="n1" if i < running else "") for i in range(pods)]
    return [pod_group(name, queue=queue_, **fields), *own]


def figures(objects: list[Manifest], queue_: str, name: str) -> float:
    with Bench(objects, SHARE).open() as session:
        amount = ReferenceView(session).queue_figures(queue_)[name]
        assert not isinstance(amount, float | None)
        return amount.milli_cpu / 1000


@pytest.mark.parametrize(
    ("capability", "limit"),
    [
        pytest.param(None, 40, id="S3-58-unset"),
        pytest.param({"cpu": 0, "memory": "64Gi"}, 40, id="S3-58-cpu-0"),
        pytest.param({"cpu": 4}, 4, id="S3-58-cpu-4"),
    ],
)
def test_a_capability_limits_where_it_is_above_0(capability: Any, limit: int) -> None:
    fields = {} if capability is None else {"capability": capability}
    bench = Bench([node("n1", cpu=40), queue("q", **fields), *job_in("g", "q", 50)], SHARE)
    assert len(bench.cycle().binds) == limit


def test_S3_59_what_others_are_guaranteed_is_not_there() -> None:
    objects = [node("n1", cpu=30), queue("a", guarantee={"resource": {"cpu": 20}}), queue("b"), *job_in("g", "b", 1)]
    assert figures(objects, "b", "realCapability") == 10


def test_S3_60_what_a_queue_holds_and_asks_for() -> None:
    objects = [node("n1", cpu=9), queue("q"), *job_in("g", "q", 5, running=2)]
    assert [figures(objects, "q", name) for name in ("allocated", "request")] == [2, 5]
    elastic = [node("n1", cpu=9), queue("q"), *job_in("g", "q", 5, running=5, minResources={"cpu": 3})]
    assert figures(elastic, "q", "elastic") == 2


def test_S3_61_what_admitted_jobs_still_need() -> None:
    objects = [node("n1", cpu=9), queue("q"), *job_in("g", "q", 2, running=1, phase="Inqueue", minResources={"cpu": 4})]
    assert figures(objects, "q", "inqueue") == 3


def test_S3_62_shares_go_by_weight_until_requests_are_met() -> None:
    queues = [queue("w1", weight=1), queue("w2", weight=2), queue("w3", weight=3)]
    jobs = [*job_in("a", "w1", 1, cpu=2), *job_in("b", "w2", 1, cpu=40), *job_in("c", "w3", 1, cpu=40)]
    found = [figures([node("n1", cpu=30), *queues, *jobs], name, "deserved") for name in ("w1", "w2", "w3")]
    assert found == [pytest.approx(share) for share in (2, 11.2, 16.8)]


def test_S3_63_priority_of_the_queue_goes_before_its_share() -> None:
    queues = [queue("rich", priority=5), queue("poor", priority=1)]
    jobs = [*job_in("r", "rich", 10, running=4), *job_in("p", "poor", 10, running=1)]
    plan = Bench([node("n1", cpu=10), *queues, *jobs], SHARE).cycle()
    assert plan.binds[0].job == "default/r"
    with Bench([node("n1", cpu=10), *queues, *jobs], SHARE).open() as session:
        assert session.ask.queue_order(session.queues["rich"], session.queues["poor"]) < 0


@pytest.mark.parametrize(("cpu", "enters"), [(3, True), (4, False)])
def test_S3_64_S3_65_the_minimum_must_fit_with_what_is_held_and_admitted(cpu: int, enters: bool) -> None:
    """Capability 10, allocated 6, admitted 2, elastic 1."""
    objects = [
        node("n1", cpu=40), queue("q", capability={"cpu": 10}),
        *job_in("run", "q", 6, running=6, minResources={"cpu": 5}),
        pod_group("in", queue="q", minResources={"cpu": 2}), *waiting("g", cpu, queue="q"),
    ]  # fmt: skip
    bench = Bench(objects, conf("proportion", actions="enqueue"))
    assert ("g" in admitted(bench)) is enters
    text = "queue resource quota insufficient: insufficient cpu"
    assert (text in messages(bench.plan, "default/g")) is not enters


def test_S3_65_a_job_without_a_minimum_always_enters() -> None:
    full = [node("n1", cpu=1), queue("q", capability={"cpu": 1}), *job_in("run", "q", 1, running=1)]
    assert "g" in admitted(Bench([*full, *waiting("g", queue="q")], conf("proportion", actions="enqueue")))


def test_S3_66_shares_move_with_every_placement_so_that_queues_alternate() -> None:
    jobs = [*(each for i in range(3) for name in "ab" for each in job_in(f"{name}{i}", name, 1))]
    plan = Bench([node("n1", cpu=6), queue("a"), queue("b"), *jobs], SHARE).cycle()
    assert [bind.key.partition("/")[2][0] for bind in plan.binds] == ["a", "b", "a", "b", "a", "b"]


def test_S3_67_only_what_a_task_asks_for_is_compared() -> None:
    """Memory is above the share, the task asks for cpu alone."""
    objects = [
        node("n1", cpu=8, memory="8Gi"), queue("q", capability={"memory": "1Gi"}),
        pod_group("old", queue="q"), pod("old-0", group="old", on="n1", cpu="100m", memory="2Gi"),
        *job_in("g", "q", 1),
    ]  # fmt: skip
    assert binds(Bench(objects, SHARE).cycle()) == {"g-0": "n1"}


def test_S3_68_the_figures_of_queues_are_metrics_and_empty_queues_show_0() -> None:
    samples = new_registry()
    nowhere = pod("g-x", group="g", memory=0, nodeSelector={"disk": "none"})
    objects = [node("n1", cpu=10), queue("q", weight=3), queue("empty"), *job_in("g", "q", 3, running=1), nowhere]
    Bench(objects, SHARE).cycle(MetricsObserver(samples))

    def value(name: str, queue_name: str) -> Any:
        return samples.get_sample_value(f"volcano_queue_{name}", {"queue_name": queue_name})

    assert [value(name, "q") for name in ("allocated_milli_cpu", "request_milli_cpu", "deserved_milli_cpu")] == [
        3000, 4000, 4000,
    ]  # fmt: skip
    assert (value("weight", "q"), value("overused", "q")) == (3, 0)
    assert [value(f"{name}_milli_cpu", "empty") for name in ("allocated", "request")] == [0, 0]


@pytest.mark.parametrize(
    ("waiting", "error"),
    [
        ({"sla-waiting-time": "abc"}, "abc"),
        ({"volcano.sh/sla-waiting-time": "-1h"}, "invalid sla waiting time -1h"),
        ({"volcano.sh/sla-waiting-time": "0s"}, "invalid sla waiting time 0s"),
        ({"sla-waiting-time": "9" * 10_000}, "999"),
        ({"sla-waiting-time": "1h"}, ""),
        ({}, ""),
    ],
)
def test_S3_51_a_jobs_waiting_time_that_cannot_be_used_is_logged(waiting: dict[str, str], error: str) -> None:
    group = pod_group("g", annotations=waiting)
    bench = Bench([node("n1"), group, pod("p", group="g")], conf("gang sla"))
    with bench.open() as session:
        sla = session.plugins["sla"]
        assert isinstance(sla, Sla)
        assert (sla.deadline(session.jobs["default/g"]) == inf) is (bool(error) or not waiting)
    lines = bench.logged(0)
    found = [
        line for line in lines if line.startswith("Error occurs in parsing waiting time for job <default/g>, err:")
    ]
    assert len(found) == (1 if error else 0)
    assert all(error in line and len(line) < 300 for line in found)
