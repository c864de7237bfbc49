"""Acceptance rows S1: nodes, jobs and queues."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.framework.session.reference import ReferenceView
from stromboli.framework.session.session import Session
from stromboli.metrics.logs import LogObserver
from stromboli.model.resources.axes import Vector
from stromboli.model.resources.resource import Resource
from stromboli.model.snapshot import Snapshot
from stromboli.model.status import TaskStatus
from stromboli.model.table import Node, NodeTable
from stromboli.narration.observe import SILENT, Counting, Observer
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.acceptance.bench import NOW, Bench, binds, conf, task_of

GPU = "nvidia.com/gpu"
GIB = 2**30


def home(snapshot: Snapshot) -> Node:
    return Node(snapshot.table, 0)


def amounts(session: Session, vector: Vector) -> Resource:
    """A sum of requests, by name."""
    return session.axes.resource(session.axes.full(vector))


def cpus(node_: Node) -> tuple[float, ...]:
    """idle, used, releasing, pipelined, future idle in cores."""
    amounts = (node_.idle, node_.used, node_.releasing, node_.pipelined, node_.future_idle())
    return tuple(amount.milli_cpu / 1000 for amount in amounts)


# ---------------------------------------------------------------------- nodes


@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from(("add", "change", "go")), st.integers(0, 3000)), max_size=20),
    st.sampled_from(({}, {"volcano.sh/oversubscription-cpu": "500", "volcano.sh/oversubscription-memory": "1024"})),
)
def test_S1_20_idle_and_used_make_up_what_the_node_offers(steps: list[tuple[int, str, int]], notes: Any) -> None:
    bench = Bench([node("n1", cpu=2, memory="1Gi", annotations=notes), pod_group("g")])
    there: dict[int, Manifest] = {}
    for number, step, size in steps:
        if step == "go" and number in there:
            bench.tell(there.pop(number), gone=True)
        elif step != "go":
            there[number] = pod(f"p{number}", group="g", on="n1", cpu=f"{size}m", memory=size, deleting=bool(size % 2))
            bench.tell(there[number])
        own = home(bench.snapshot())
        offered = own.allocatable
        assert (offered.milli_cpu, offered.memory) == ((2500, GIB + 1024) if notes else (2000, GIB))
        assert own.idle.milli_cpu + own.used.milli_cpu == offered.milli_cpu
        assert own.idle.memory + own.used.memory == offered.memory
        requests = [each["spec"]["containers"][0]["resources"]["requests"] for each in there.values()]
        assert own.used.milli_cpu == sum(int(request["cpu"].removesuffix("m")) for request in requests)


def test_S1_21_used_counts_running_and_releasing() -> None:
    objects = [node("n1", cpu=4), pod("a", on="n1"), pod("b", on="n1", deleting=True)]
    assert cpus(home(Bench(objects).snapshot())) == (2, 2, 1, 0, 3)


@pytest.mark.parametrize(("pipelined", "future"), [("300m", 300), ("700m", -100)])
def test_S1_22_future_idle_is_idle_and_releasing_less_pipelined(pipelined: str, future: float) -> None:
    objects = [
        node("n1", cpu="600m"), pod_group("g"), pod("ends", group="g", cpu="500m", memory=0, on="n1", deleting=True),
        pod("waits", group="g", cpu=pipelined, memory=0),
    ]  # fmt: skip
    told = Counting()
    with Bench(objects).open(told) as session:
        assert told.of("resources_insufficient") == []
        session.statement().pipeline(task_of(session, "waits"), "n1")
        short = [(each["names"], str(each["available"]).split(",")[0]) for each in told.of("resources_insufficient")]
        assert short == ([(["cpu"], "cpu 600.00")] if future < 0 else [])
        assert session.nodes["n1"].idle.milli_cpu == 100
        assert session.nodes["n1"].future_idle().milli_cpu == future


@pytest.mark.parametrize(
    ("told", "muted", "reads"), [(Counting(), False, 1), (Counting(), True, 0), (SILENT, False, 0)]
)
def test_S1_22_what_will_be_idle_is_read_for_a_line_that_something_can_hear(
    monkeypatch: pytest.MonkeyPatch, told: Observer, muted: bool, reads: int
) -> None:
    found: list[int] = []
    future_of = NodeTable.future_of

    def reading(table: NodeTable, row: int) -> list[int]:
        found.append(row)
        return future_of(table, row)

    objects = [node("n1", cpu=1), pod_group("g"), pod("waits", group="g", cpu=1, memory=0)]
    with Bench(objects).open(told) as session:
        session.narrator.mute.on = muted
        monkeypatch.setattr(NodeTable, "future_of", reading)
        session.statement().pipeline(task_of(session, "waits"), "n1")
        assert len(found) == reads


EFFECTS: list[Any] = [
    pytest.param("Running", False, (2, 2, 0, 0), id="running"),
    pytest.param("Running", True, (2, 2, 2, 0), id="releasing"),
    pytest.param("Pending", False, (2, 2, 0, 0), id="bound"),
    pytest.param("Succeeded", False, (4, 0, 0, 0), id="succeeded"),
    pytest.param("Failed", False, (4, 0, 0, 0), id="failed"),
]


@pytest.mark.parametrize(("phase", "deleting", "expected"), EFFECTS)
def test_S1_23_S1_24_what_a_task_takes_and_gives_back(phase: str, deleting: bool, expected: tuple[int, ...]) -> None:
    bench = Bench([node("n1", cpu=4), pod_group("g")])
    initial = cpus(home(bench.snapshot()))
    task = pod("p", group="g", cpu=2, on="n1", phase=phase, deleting=deleting)
    bench.tell(task)
    assert cpus(home(bench.snapshot()))[:4] == expected
    bench.tell(task, gone=True)
    assert cpus(home(bench.snapshot())) == initial == (4, 0, 0, 0, 4)


def test_S1_23_S1_24_pipelined_and_binding_tasks() -> None:
    with Bench([node("n1", cpu=4), pod_group("g"), pod("p", group="g", cpu=2)]).open() as session:
        task, own = task_of(session, "p"), session.nodes["n1"]
        statement = session.statement()
        statement.pipeline(task, "n1")
        assert cpus(own)[:4] == (4, 0, 0, 2)
        statement.discard()
        assert cpus(own) == (4, 0, 0, 0, 4)
        statement.allocate(task, own)
        statement.commit()
        assert task.status is TaskStatus.Binding
        assert cpus(own)[:4] == (2, 2, 0, 0)


def test_S1_25_an_overfull_node_goes_negative_and_the_cycle_goes_on() -> None:
    objects = [node("n1", cpu=2), node("n2", cpu=1), pod_group("g"), pod("big", group="g", cpu=3, on="n1"),
               pod("p", group="g", cpu="100m")]  # fmt: skip
    bench = Bench(objects, conf("gang", "predicates"))
    assert cpus(home(bench.snapshot()))[:2] == (-1, 3)
    line = '"Idle resources turn into negative after allocated" nodeName="n1" task="default/big" resources="[cpu]"'
    assert any(text.startswith(line) for text in bench.logged(0))
    assert binds(bench.plan) == {"p": "n2"}


@pytest.mark.parametrize("level", [0, 3])
def test_S1_06_what_is_taken_off_below_zero_is_an_error_line(level: int) -> None:
    bench = Bench([node("n1", cpu=1), pod_group("g"), pod("waits", group="g", cpu=2, memory=0)])
    stream = StringIO()
    log = LogObserver(stream, level)
    with bench.open(log) as session:
        session.statement().pipeline(task_of(session, "waits"), "n1")
    log.flush()
    (line,) = [text for text in stream.getvalue().splitlines() if "not sufficient" in text]
    assert line.startswith("E")
    assert "resources <[cpu]> are not sufficient to do operation: <cpu 1000.00, " in line
    assert "> sub <cpu 2000.00, " in line


def test_S1_06_a_session_begins_with_a_line_on_what_too_much_is_reserved_of() -> None:
    """As after a node has become smaller: more is pipelined to it than is idle or about to become so."""
    bench = Bench([node("n1", cpu=3), pod_group("g"), pod("p", group="g", cpu=1)])
    snapshot, stream = bench.snapshot(), StringIO()
    snapshot.table.pipelined[0, 0] = 4000
    log = LogObserver(stream, 0)
    with Session.open(snapshot, bench.config, bench.registry, NOW, observer=log):
        log.flush()
    (line,) = [text for text in stream.getvalue().splitlines() if "not sufficient" in text]
    assert "<cpu 3000.00, " in line
    assert "> sub <cpu 4000.00, " in line


def test_S1_06_a_cycle_never_takes_off_what_is_not_there() -> None:
    told = Counting()
    bench = Bench([node("n1", cpu=1), pod_group("g"), *(pod(f"p{i}", group="g", cpu=1) for i in range(3))])
    assert len(bench.cycle(told).binds) == 1
    assert (told.of("resources_insufficient"), told.of("idle_negative")) == ([], [])


def test_S1_26_a_negative_amount_heals_in_the_next_snapshot() -> None:
    extra = pod("extra", group="g", cpu=3, on="n1")
    bench = Bench([node("n1", cpu=4), pod_group("g"), pod("p", group="g", cpu=2, on="n1"), extra])
    assert home(bench.snapshot()).idle.milli_cpu == -1000
    bench.tell(extra, gone=True)
    assert home(bench.snapshot()).idle.milli_cpu == 2000
    bench.tell(node("n1", cpu=1))
    assert home(bench.snapshot()).idle.milli_cpu == -1000
    bench.tell(node("n1", cpu=3))
    assert home(bench.snapshot()).idle.milli_cpu == 1000


# ---------------------------------------------------------------------- tasks and jobs

CONTAINERS = [
    {"name": "a", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}},
    {"name": "b", "resources": {"requests": {"cpu": "300m", "memory": "512Mi"}}},
]
STARTERS = [
    {"name": "i", "resources": {"requests": {"cpu": 1, "memory": "512Mi"}}},
    {"name": "j", "resources": {"requests": {"cpu": "200m", "memory": "2Gi"}}},
]


def test_S1_27_S1_29_a_pods_request_is_the_larger_of_containers_and_each_init_step() -> None:
    made = pod("p", group="g", containers=CONTAINERS, initContainers=STARTERS)
    with Bench([node("n1"), pod_group("g"), made]).open() as session:
        request = task_of(session, "p").request
        assert (request.milli_cpu, request.memory) == (1000, 2 * GIB)
        assert amounts(session, session.jobs["default/g"].sums.total).memory == 2 * GIB


def test_S1_28_a_sidecar_counts_with_the_containers() -> None:
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "200m"}}}
    main = [{"name": "a", "resources": {"requests": {"cpu": "500m"}}}]
    plain = pod("p", group="g", containers=main, initContainers=[sidecar])
    more = pod("q", group="g", containers=main, initContainers=[sidecar], overhead={"cpu": "50m"})
    with Bench([node("n1"), pod_group("g"), plain, more]).open() as session:
        assert task_of(session, "p").request.milli_cpu == 700
        assert task_of(session, "q").request.milli_cpu == 750


def test_S1_30_what_a_job_holds_and_asks_for() -> None:
    pods = [pod(f"p{i}", group="g", on="n1" if i < 2 else "") for i in range(5)]
    with Bench([node("n1", cpu=8), pod_group("g"), *pods]).open() as session:
        job = session.jobs["default/g"]
        assert amounts(session, job.sums.allocated).milli_cpu == 2000
        assert amounts(session, job.sums.total).milli_cpu == 5000


STATES: dict[str, tuple[dict[str, Any], TaskStatus]] = {
    "pending": ({}, TaskStatus.Pending), "bound": ({"on": "n1", "phase": "Pending"}, TaskStatus.Bound),
    "running": ({"on": "n1"}, TaskStatus.Running), "ending": ({"on": "n1", "deleting": True}, TaskStatus.Releasing),
    "succeeded": ({"on": "n1", "phase": "Succeeded"}, TaskStatus.Succeeded),
    "failed": ({"on": "n1", "phase": "Failed"}, TaskStatus.Failed),
    "odd": ({"on": "n1", "phase": "Odd"}, TaskStatus.Unknown),
}  # fmt: skip


def test_S1_31_every_task_is_in_exactly_one_set_of_the_index() -> None:
    pods = [pod(name, group="g", **fields) for name, (fields, _) in STATES.items()]
    objects = [node("n1", cpu=16), pod_group("g"), *pods, pod("q", group="g"), pod("r", group="g")]
    with Bench(objects).open() as session:
        job = session.jobs["default/g"]
        statement = session.statement()
        for step in (
            lambda: None,
            lambda: statement.allocate(task_of(session, "q"), session.nodes["n1"]),
            lambda: statement.pipeline(task_of(session, "r"), "n1"),
            lambda: statement.evict(task_of(session, "running"), "test"),
            statement.commit,
        ):
            step()
            members = [uid for own in job.index.values() for uid in own]
            assert sorted(members) == sorted(job.tasks)
            assert all(task.status is status for status, own in job.index.items() for task in own.values())
        assert {name: TaskStatus(status) for name, (_, status) in STATES.items() if name != "running"} == {
            task.name: task.status for task in job.tasks.values() if task.name in STATES and task.name != "running"
        }
    assert [str(status) for status in TaskStatus] == [
        "Pending", "Allocated", "Pipelined", "Binding", "Bound", "Running", "Releasing", "Succeeded", "Failed",
        "Unknown",
    ]  # fmt: skip


def test_S1_32_the_life_of_a_pod() -> None:
    """Pending, Allocated, Binding, Bound, Running, Releasing, gone; another one Pipelined before."""
    seen: list[TaskStatus] = []
    waiting = pod("p", group="g")
    bench = Bench([node("n1"), pod_group("g"), waiting, pod("w", group="g")])
    with bench.open() as session:
        task = task_of(session, "p")
        seen.append(task.status)
        with session.statement() as statement:
            statement.pipeline(task_of(session, "w"), "n1")
            assert task_of(session, "w").status is TaskStatus.Pipelined
            statement.allocate(task, session.nodes["n1"])
            seen.append(task.status)
            statement.commit()
        seen.append(task.status)
    for phase, deleting in (("Pending", False), ("Running", False), ("Running", True), ("Succeeded", False)):
        bench.tell(pod("p", group="g", on="n1", phase=phase, deleting=deleting))
        with bench.open() as session:
            seen.append(task_of(session, "p").status)
    assert [str(status) for status in seen] == [
        "Pending", "Allocated", "Binding", "Bound", "Running", "Releasing", "Succeeded",
    ]  # fmt: skip


# ---------------------------------------------------------------------- queues

QUEUES = "gang", "predicates proportion"


def shares(cpu: int, *queues: Manifest) -> dict[str, float]:
    """Deserved cores by queue where every queue asks for 200."""
    names = [each["metadata"]["name"] for each in queues]
    jobs = [pod_group(name, queue=name) for name in names]
    pods = [pod(f"{name}-{i}", group=name, cpu=100, memory=0) for name in names for i in range(2)]
    with Bench([node("n1", cpu=cpu), *queues, *jobs, *pods], conf(*QUEUES)).open() as session:
        return {name: session.queues[name].deserved.milli_cpu / 1000 for name in names}


def guaranteed(cpu: int) -> dict[str, Any]:
    return {"resource": {"cpu": cpu}}


def test_S1_33_a_queue_offers_what_it_holds_deserves_and_is_guaranteed() -> None:
    objects = [node("n1", cpu=10), queue("q", guarantee=guaranteed(1)), pod_group("g", queue="q"),
               pod("a", group="g", on="n1"), pod("b", group="g")]  # fmt: skip
    with Bench(objects, conf(*QUEUES)).open() as session:
        figures = ReferenceView(session).queue_figures("q")
        own = session.queues["q"]
        for name, cores in (("allocated", 1), ("deserved", 2), ("guarantee", 1)):
            assert isinstance(figures[name], Resource)
            assert getattr(own, name).milli_cpu == figures[name].milli_cpu == cores * 1000  # type: ignore[union-attr]


def test_S1_34_deserved_lies_between_guarantee_and_capability_by_weight() -> None:
    found = shares(
        100,
        queue("a", weight=3, guarantee=guaranteed(20), capability={"cpu": 50}),
        queue("b", weight=2, guarantee=guaranteed(10), capability={"cpu": 80}),
        queue("c", weight=5, guarantee=guaranteed(30)),
    )
    assert found == {"a": 30, "b": 20, "c": 50}


def test_S1_35_a_guarantee_lifts_a_queue_above_its_weight() -> None:
    assert shares(100, queue("a", guarantee=guaranteed(20)), queue("b", weight=9)) == {"a": 20, "b": 80}


def test_S1_36_an_overused_queue_is_skipped() -> None:
    objects = [node("n1", cpu=4, memory="64Gi", pods=9), queue("q", capability={"cpu": 2, "memory": "2Gi", "pods": 2}),
               pod_group("g", queue="q"), *(pod(f"p{i}", group="g", on="n1") for i in range(2)),
               pod("new", group="g")]  # fmt: skip
    bench = Bench(objects, conf(*QUEUES))
    assert "Queue <q> is overused, ignore it." in bench.logged(3)
    assert bench.plan.binds == []


@pytest.mark.parametrize(("cpu", "bound"), [(1, {"new": "n1"}), (2, {})])
def test_S1_37_a_queue_is_given_no_more_than_it_deserves(cpu: int, bound: dict[str, str]) -> None:
    objects = [node("n1", cpu=4), queue("q", capability={"cpu": 2}), pod_group("g", queue="q"),
               pod("old", group="g", on="n1"), pod("new", group="g", cpu=cpu)]  # fmt: skip
    assert binds(Bench(objects, conf(*QUEUES)).cycle()) == bound


def test_S1_38_only_what_lies_above_the_share_may_be_taken_back() -> None:
    """Allocated 4, deserved 2: two of the four pods."""
    objects = [node("n1", cpu=4), *(queue(name) for name in "ab"), pod_group("rich", queue="a"),
               pod_group("poor", queue="b"), *(pod(f"r{i}", group="rich", on="n1") for i in range(4)),
               *(pod(f"w{i}", group="poor") for i in range(4))]  # fmt: skip
    with Bench(objects, conf("gang", "proportion")).open() as session:
        assert session.queues["a"].deserved.milli_cpu == 2000
        rich = [task_of(session, f"r{i}") for i in range(4)]
        found = session.plugins["proportion"]
        reclaimable = ReferenceView(session).points["reclaimable"]["proportion"]
        assert found.name == "proportion"
        assert [task.name for task in reclaimable(task_of(session, "w0"), rich)] == ["r0", "r1"]


def test_S1_39_what_a_capability_leaves_out_is_unlimited_and_what_a_node_lacks_is_not_there() -> None:
    bare, with_gpu = node("n1", cpu=4), node("n2", cpu=4, resources={GPU: 1})
    objects = [queue("q", capability={"cpu": 2}), pod_group("g", queue="q"), pod("p", group="g", requests={GPU: 1})]
    assert binds(Bench([bare, with_gpu, *objects], conf(*QUEUES)).cycle()) == {"p": "n2"}
    plan = Bench([bare, *objects], conf("gang", "predicates")).cycle()
    assert plan.binds == []
    assert [update.message for update in plan.pod_conditions] == [
        "0/1 nodes are unavailable: 1 Insufficient nvidia.com/gpu."
    ]


@pytest.mark.parametrize("ending", ["bind", "discard"])
def test_S1_40_a_reservation_leaves_nothing_behind(ending: str) -> None:
    objects = [node("n1", cpu=1), pod_group("g"), pod("old", group="g", on="n1", deleting=True), pod("p", group="g")]
    bench = Bench(objects)
    with bench.open() as session:
        statement = session.statement()
        statement.pipeline(task_of(session, "p"), "n1")
        assert session.nodes["n1"].pipelined.milli_cpu == 1000
        if ending == "discard":
            statement.discard()
            assert session.nodes["n1"].pipelined.is_empty()
            return
    assert bench.cycle().reservations[0].node == "n1"
    bench.tell(objects[2], gone=True)
    assert binds(bench.cycle()) == {"p": "n1"}
    assert home(bench.snapshot()).pipelined.is_empty()
