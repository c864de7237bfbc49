"""Acceptance rows S0: the session, from its opening to its close."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from stromboli.framework.books.cluster_view import ClusterView
from stromboli.framework.books.hyper_nodes import TOP
from stromboli.framework.books.plan import Event, Plan
from stromboli.framework.extension.points import POINTS
from stromboli.framework.session.closing import MOST_NAMES
from stromboli.framework.session.reference import ReferenceView
from stromboli.framework.session.session import Session
from stromboli.framework.session.topology import job_topology
from stromboli.model.codec import encode_snapshot
from stromboli.model.jobs.hyper_nodes import JobHyperNodes
from stromboli.model.status import TaskStatus
from stromboli.model.table import Node
from stromboli.plugin import Plugin, arg, on_allocate, on_deallocate
from stromboli.plugins.priority import Priority
from stromboli.testing.builders import Manifest, hyper_node, node, pod, pod_group, queue
from tests.acceptance.bench import Bench, acting, answering, binds, conf, phases, task_of
from tests.acceptance.clusters import ONE_JOB, TREE

GPU = "nvidia.com/gpu"


def fail(_session: Session) -> None:
    raise ZeroDivisionError("boom")


# ---------------------------------------------------------------------- the cycle


def test_S0_01_close_runs_and_the_next_cycle_starts_when_an_action_fails() -> None:
    text = conf("gang", "predicates", actions="allocate, boom, backfill")
    bench = Bench([*ONE_JOB, pod("late", group="g")], text, acting("boom", fail))
    first = bench.cycle()
    assert binds(first) == {"late": "n1", "p": "n1"}
    assert any("action boom failed: ZeroDivisionError: boom" in text for text in first.inconsistencies)
    assert [update.key for update in first.pod_groups] == ["default/g"]
    assert bench.cycle().session != first.session


def test_S0_01_actions_run_in_the_order_of_the_configuration_on_one_session() -> None:
    seen: list[tuple[str, str]] = []
    first = acting("first", lambda session: seen.append(("first", session.uid)))
    second = acting("second", lambda session: seen.append(("second", session.uid)))
    plan = Bench(ONE_JOB, conf("gang", actions="second, first"), first, second).cycle()
    assert seen == [("second", plan.session), ("first", plan.session)]


def test_S0_02_every_session_has_its_own_uid_and_marks_new_conditions_with_it() -> None:
    bench = Bench([node("n1", cpu=1), pod_group("g", min_member=2), pod("p", group="g"), pod("q", group="g")])
    plans = [bench.cycle()]
    bench.tell(node("n1", cpu=2))
    plans.append(bench.cycle())
    assert plans[0].session != plans[1].session
    for plan, kind in zip(plans, ("Unschedulable", "Scheduled"), strict=True):
        (update,) = plan.pod_groups
        assert [c.transition_id for c in update.conditions if c.type == kind] == [plan.session]


@pytest.mark.parametrize("hook", ["on_session_open", "on_session_close", "hooks"])
def test_S0_01_a_plugin_of_our_own_that_fails_is_put_aside_like_others(
    hook: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(_self: Plugin, *_arguments: Any) -> None:
        raise ZeroDivisionError("boom")

    monkeypatch.setattr(Priority, hook, failing)
    plan = Bench(ONE_JOB, conf("priority gang", "predicates")).cycle()
    assert binds(plan) == {"p": "n1"}
    assert plan.inconsistencies == ["plugin priority: ZeroDivisionError: boom"]


def test_S0_03_what_a_session_changes_never_reaches_the_state() -> None:
    bench = Bench([*ONE_JOB, queue("default", capability={"cpu": 3})])
    before = encode_snapshot(bench.snapshot())
    with bench.open() as session:
        session.statement().allocate(task_of(session, "p"), ReferenceView(session).node_list[0])
        session.jobs["default/g"].phase = "Running"
        session.queues["default"].sums.allocated[0] += 5
    after = bench.snapshot()
    after.number = 1
    assert encode_snapshot(after) == before


def test_S0_04_events_during_a_session_count_in_the_next() -> None:
    bench: Bench

    def meddle(_session: Session) -> None:
        bench.tell(node("n2", cpu=9, resources={GPU: 1}), pod("new", group="g", cpu=5, requests={GPU: 1}))

    text = conf("gang", "predicates proportion", actions="meddle, allocate, backfill")
    bench = Bench(ONE_JOB, text, acting("meddle", meddle))
    first = bench.cycle()
    assert binds(first) == {"p": "n1"}
    assert first.inconsistencies == []
    assert binds(bench.cycle()) == {"new": "n2"}


# ---------------------------------------------------------------------- what a session offers

ATTRIBUTES: dict[str, Callable[[Any], bool]] = {
    "uid": lambda uid: len(uid) == 36,
    "jobs": lambda jobs: list(jobs) == ["default/g"],
    "nodes": lambda nodes: list(nodes) == ["n1", "n2"],
    "csi_nodes_status": lambda status: status == {"n1": {"limited": True, "any": False}},
    "revocable_nodes": lambda nodes: list(nodes) == ["n2"],
    "queues": lambda queues: list(queues) == ["default"],
    "namespace_info": lambda namespaces: dict(namespaces) == {},
    "node_map": lambda nodes: [view.name for view in nodes.values()] == ["n1", "n2"],
    "pod_lister": lambda lister: lister.list() == [],
    "tiers": lambda tiers: [[option.name for option in tier] for tier in tiers] == [["gang"], ["reader"]],
    "configurations": lambda configurations: [c.name for c in configurations] == ["allocate"],
    "node_list": lambda nodes: [node.name for node in nodes] == ["n1", "n2"],
    "hyper_nodes": lambda hyper_nodes: list(hyper_nodes) == [TOP],
    "hyper_node_tier_name_map": lambda names: dict(names) == {},
    "hyper_nodes_set_by_tier": lambda tiers: dict(tiers) == {1: [TOP]},
    "hyper_nodes_tiers": lambda tiers: tiers == [1],
    "real_nodes_list": lambda nodes: [node.name for node in nodes[TOP]] == ["n1", "n2"],
    "real_nodes_set": lambda nodes: nodes[TOP] == {"n1", "n2"},
    "hyper_nodes_ready_to_schedule": lambda ready: ready is True,
    "nodes_in_shard": lambda names: names == frozenset(),
    "dirty_jobs": lambda jobs: jobs == set(),
    "pod_group_old_state": lambda old: old.status["default/g"].phase == "Inqueue",
    "total_resource": lambda total: total.milli_cpu == 8000,
    "plugins": lambda plugins: list(plugins) == ["gang", "reader"],
    "event_handlers": lambda handlers: handlers == [],
    "points": lambda points: "gang" not in points["predicate"],
}


@pytest.mark.parametrize("attribute", ATTRIBUTES)
def test_S0_05_a_plugin_reads_every_attribute(attribute: str) -> None:
    read: list[Any] = []

    class Reader(Plugin):
        name = "reader"

        def on_session_open(self, session: ClusterView) -> None:
            read.append(ATTRIBUTES[attribute](getattr(session, attribute)))

    drivers = [{"name": "limited", "allocatable": {"count": 5}}, {"name": "any"}]
    csi = {
        "kind": "CSINode",
        "apiVersion": "storage.k8s.io/v1",
        "metadata": {"name": "n1"},
        "spec": {"drivers": drivers},
    }
    objects = [*ONE_JOB, node("n2", labels={"volcano.sh/revocable-zone": "z"}), csi]
    more = "configurations: [{name: allocate, arguments: {predicateErrorCacheEnable: true}}]"
    assert Bench(objects, conf("gang", "reader", more=more), Reader).cycle().inconsistencies == []
    assert read == [True]


def test_S0_06_guarantees_and_deserved_shares_add_up_over_the_queues() -> None:
    objects = [
        queue("default"),
        queue("a", guarantee={"resource": {"cpu": 2}}, deserved={"cpu": 4}),
        queue("b", guarantee={"resource": {"cpu": 3}}, deserved={"cpu": 6}),
    ]
    with Bench(objects, conf("gang")).open() as session:
        assert (ReferenceView(session).total_guarantee.milli_cpu, ReferenceView(session).total_deserved.milli_cpu) == (
            5000,
            10000,
        )


def test_S0_06_with_a_hierarchy_only_the_children_of_root_count() -> None:
    objects = [
        queue("root"),
        queue("a", parent="root", guarantee={"resource": {"cpu": 2}}),
        queue("b", parent="a", guarantee={"resource": {"cpu": 1}}),
    ]
    with Bench(objects, conf("gang")).open() as session:
        assert ReferenceView(session).total_guarantee.milli_cpu == 2000


def test_S0_07_cordoned_nodes_count_in_the_total() -> None:
    with Bench([node("a", cpu=4, memory="1Gi"), node("b", cpu=6, memory="2Gi", unschedulable=True)]).open() as session:
        assert ReferenceView(session).total_resource.milli_cpu == 10000
        assert ReferenceView(session).total_resource.memory == 3 * 2**30


def test_S0_08_a_cycle_that_changes_nothing_writes_no_podgroup() -> None:
    bench = Bench(ONE_JOB)
    assert phases(bench.cycle()) == {"g": "Inqueue"}
    assert phases(bench.cycle()) == {"g": "Running"}
    with bench.open() as session:
        old = ReferenceView(session).pod_group_old_state.status["default/g"]
        session.jobs["default/g"].phase = "Inqueue"
        assert ReferenceView(session).pod_group_old_state.status["default/g"] is old
    assert bench.cycle().pod_groups == []


class Order:
    """Notes how far the plan has come at every step of opening and closing."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.steps: list[tuple[str, str, int, int]] = []
        self.ends: list[tuple[str, str]] = []

    def wants(self, key: str) -> bool:
        return key in ("session_opened", "session_closed")

    def tell(self, key: str, fields: object) -> None:
        self.note("told", key)

    def started(self, kind: str, name: str) -> None:
        self.note(kind, name)

    def ended(self, kind: str, name: str) -> None:
        self.ends.append((kind, name))

    def note(self, kind: str, name: str) -> None:
        plan = self.session.plan if self.session else None
        self.steps.append((kind, name, len(plan.pod_groups) if plan else 0, len(plan.queues) if plan else 0))


def test_S0_09_close_order_is_plugins_then_jobs_then_queues_then_the_notice() -> None:
    order = Order()

    def meet(session: Session) -> None:
        order.session = session

    bench = Bench(ONE_JOB, conf("gang priority", actions="meet, allocate"), acting("meet", meet))
    bench.cycle(order)
    assert [kind for kind, *_ in order.steps if kind in ("open_session", "plugin_open", "told", "action")] == [
        "open_session", "plugin_open", "plugin_open", "told", "action", "action", "told",
    ]  # fmt: skip
    closing = order.steps[[kind for kind, *_ in order.steps].index("plugin_close") :]
    assert closing == [
        ("plugin_close", "priority", 0, 0), ("plugin_close", "gang", 0, 0), ("told", "session_closed", 1, 1),
    ]  # fmt: skip
    assert [name for kind, name in order.ends if kind == "plugin_close"] == ["priority", "gang"]
    assert sorted(order.ends) == sorted((kind, name) for kind, name, *_ in order.steps if kind != "told")


def test_S0_10_node_map_and_pod_lister_follow_placements() -> None:
    objects = [*ONE_JOB, pod("old", group="g", on="n1"), pod("wait", group="g")]
    with Bench(objects).open() as session:
        view = ReferenceView(session).node_map["n1"]
        task, waiting = task_of(session, "p"), task_of(session, "wait")
        assert (ReferenceView(session).pod_lister.get(task), [t.name for t in view.pods]) == (None, ["old"])
        statement = session.statement()
        statement.allocate(task, session.nodes["n1"])
        statement.pipeline(waiting, "n1")
        assert ReferenceView(session).pod_lister.get(task) is task
        assert task.node_name == "n1"
        assert sorted(t.name for t in ReferenceView(session).pod_lister.list()) == ["old", "p"]
        assert [t.name for t in view.pods] == ["old", "p", "wait"]
        assert view.requested.milli_cpu == 3000
        statement.evict(task_of(session, "old"), "test")
        assert [t.name for t in view.pods] == ["p", "wait"]
        statement.discard()
        assert [t.name for t in view.pods] == ["old"]


@pytest.mark.parametrize(
    ("tiers", "root", "ascending"), [((), 1, [1]), ((1, 2), 3, [1, 2, 3]), ((2, 1, 3), 4, [1, 2, 3, 4])]
)
def test_S0_11_S0_12_the_root_lies_above_all_tiers(tiers: tuple[int, ...], root: int, ascending: list[int]) -> None:
    bench = Bench([node("n1"), node("n2"), *(hyper_node(f"s{tier}", tier, "n1") for tier in tiers)])
    with bench.open() as session:
        assert session.hyper_nodes[TOP].tier == root
        assert session.hyper_nodes.node_names[TOP] == {"n1", "n2"}
        assert [node.name for node in ReferenceView(session).real_nodes_list[TOP]] == ["n1", "n2"]
        assert ReferenceView(session).hyper_nodes_tiers == ascending
        assert all(session.hyper_nodes.by_tier[tier] == [f"s{tier}"] for tier in tiers)
        assert all(session.hyper_nodes[f"s{tier}"].parent == TOP for tier in tiers)
        assert session.hyper_nodes.top.children == [f"s{tier}" for tier in tiers]


@pytest.mark.parametrize(
    ("places", "found"),
    [(("n0",), "s0"), (("n0", "n1"), "s0"), (("n1", "n2"), "s2"), (("n0", "n3"), TOP), ((), ""), (("gone",), "")],
)
def test_S0_13_the_hypernode_of_placed_tasks_is_found_again(places: tuple[str, ...], found: str) -> None:
    pods = [pod(f"p{place}", group="g", on=place) for place in places]
    with Bench([*TREE, *pods, pod("waits", group="g")]).open() as session:
        job = session.jobs["default/g"]
        assert job.hyper_nodes.allocated == found
        assert [sub.allocated_hyper_node for sub in session.sub_jobs(job).values()] == [found]
        assert session.pod_groups.moved == ({"default/g"} if found else set())


def test_S0_13_a_job_lies_where_all_its_parts_lie() -> None:
    policy = {"name": "part", "matchLabelKeys": ["part"], "networkTopology": {"highestTierAllowed": 1}}
    objects = [
        *TREE, pod_group("parts", subGroupPolicy=[policy]),
        *(pod(f"p{i}", group="parts", on=f"n{i}", labels={"part": f"{i}"}) for i in (1, 2)),
    ]  # fmt: skip
    with Bench(objects).open() as session:
        job = session.jobs["default/parts"]
        assert [sub.allocated_hyper_node for sub in session.sub_jobs(job).values()] == ["s0", "s1"]
        assert job.hyper_nodes.allocated == "s2"


@pytest.mark.parametrize(
    ("recorded", "pods", "found"),
    [
        ("deleted", [], ""),
        ("s0", [pod("p", group="g")], ""),
        ("deleted", [pod("p", group="g", on="n0")], "s0"),
        ("s0", [pod("p", group="g", on="n0")], "s0"),
    ],
)
def test_S0_14_a_recorded_hypernode_that_is_invalid_is_cleared(recorded: str, pods: list[Manifest], found: str) -> None:
    bench = Bench([*TREE, *pods])
    snapshot = bench.snapshot()
    snapshot.jobs["default/g"].hyper_nodes = JobHyperNodes(recorded)
    with Session.open(snapshot, bench.config, bench.registry) as session:
        assert session.jobs["default/g"].hyper_nodes.allocated == found
        assert session.pod_groups.moved == ({"default/g"} if (pods and found) or recorded != found else set())
        assert snapshot.jobs["default/g"].hyper_nodes.allocated == recorded


@pytest.mark.parametrize(
    ("stated", "tier"),
    [
        ({"mode": "hard", "highestTierAllowed": 1}, 1), ({"mode": "hard", "highestTierName": "block"}, 2),
        ({"mode": "soft", "highestTierName": "block"}, 3), ({"mode": "soft"}, 3), ({"mode": "hard"}, None),
        ({"mode": "hard", "highestTierName": "unknown"}, None),
    ],
)  # fmt: skip
def test_S0_12_soft_topologies_and_tier_names_become_tiers(stated: dict[str, Any], tier: int | None) -> None:
    policy = {"name": "part", "matchLabelKeys": ["part"], "networkTopology": {"mode": "soft"}}
    objects = [
        *TREE, pod_group("whole", networkTopology=stated), pod("a", group="whole"),
        pod_group("parts", networkTopology=stated, subGroupPolicy=[policy]),
        pod("b", group="parts", labels={"part": "0"}),
    ]  # fmt: skip
    with Bench(objects).open() as session:
        for group, widest in (("whole", tier), ("parts", 3 if tier is None else tier)):
            job = session.jobs[f"default/{group}"]
            asked = job_topology(session, job)
            assert asked is not None
            assert (asked.mode, asked.highest_tier_allowed) == ("hard", tier)
            parts = [sub.network_topology for sub in session.sub_jobs(job).values()]
            assert [part and (part.mode, part.highest_tier_allowed) for part in parts] == [("hard", widest)]
            assert job.facts.group.spec.network_topology is not asked


# ---------------------------------------------------------------------- cycle state


def test_S0_17_every_pending_task_has_a_cycle_state() -> None:
    objects = [*ONE_JOB, pod("gated", group="g", schedulingGates=[{"name": "wait"}]), pod("run", group="g", on="n1")]
    with Bench(objects).open() as session:
        states = {task.name: session.cycle_state(task.uid) for task in session.jobs["default/g"].tasks.values()}
        assert sorted(states) == ["gated", "p", "run"]
        assert all(session.cycle_state(f"default/{name}") is state for name, state in states.items())


def test_S0_18_a_filter_reads_what_the_same_tasks_pre_filter_wrote() -> None:
    found: dict[str, object] = {}
    note = object()

    class Pair(Plugin):
        name = "pair"

        def on_session_open(self, session: ClusterView) -> None:
            self.session = session
            session.register("pre_predicate", self.name, self.before)
            session.register("predicate", self.name, self.during)

        def before(self, task: Any) -> None:
            if task.name == "p":
                self.session.cycle_state(task.uid).write("note", note)

        def during(self, task: Any, node: Node) -> None:
            try:
                found[task.name] = self.session.cycle_state(task.uid).read("note")
            except KeyError as error:
                found[task.name] = str(error)

    Bench([*ONE_JOB, pod("q", group="g", cpu=2)], conf("gang", "pair"), Pair).cycle()
    assert found == {"p": note, "q": "'note'"}


def test_S0_19_cycle_states_end_with_the_session() -> None:
    bench = Bench(ONE_JOB)
    with bench.open() as session:
        session.cycle_state("default/p").write("note", 1)
    with bench.open() as session, pytest.raises(KeyError, match="note"):
        session.cycle_state("default/p").read("note")


# ---------------------------------------------------------------------- the close


def test_S0_20_plugins_close_in_the_reverse_of_their_opening_order() -> None:
    seen: list[str] = []

    def made(letter: str) -> type[Plugin]:
        opened = lambda _self, _session: seen.append(f"open {letter}")  # noqa: E731
        closed = lambda _self, _session: seen.append(f"close {letter}")  # noqa: E731
        return type(letter, (Plugin,), {"name": letter, "on_session_open": opened, "on_session_close": closed})

    Bench(ONE_JOB, conf("a b", "c"), *(made(letter) for letter in "abc")).cycle()
    assert seen == ["open a", "open b", "open c", "close c", "close b", "close a"]


def test_S0_22_what_queues_hold_is_written_at_the_close() -> None:
    objects = [node("n1"), queue("q"), pod_group("g", queue="q"), *(pod(f"p{i}", group="g", on="n1") for i in range(2))]
    plan = Bench(objects).cycle()
    written = {update.name: update.allocated for update in plan.queues}
    assert written["q"]["cpu"] == "2"
    assert written["default"]["cpu"] == "0"


def test_S0_22_names_that_users_invent_are_bounded_and_those_left_out_are_counted() -> None:
    names = [f"made.up/r{number:03}" for number in range(MOST_NAMES + 6)]
    pods = [pod(f"p{number}", group="g", on="n1", requests={name: 1}) for number, name in enumerate(names)]
    stated = {"status": {"state": "Open", "allocated": dict.fromkeys(names[-3:], "9")}}
    plan = Bench([node("n1"), queue("q") | stated, pod_group("g", queue="q"), *pods]).cycle()
    written = {update.name: update.allocated for update in plan.queues}
    assert {name for name in written["q"] if name in names} == {*names[: MOST_NAMES - 3], *names[-3:]}
    text = f"status.allocated names {MOST_NAMES} of {MOST_NAMES + 6} resources that no node offers; 6 are left out"
    assert (event_texts(plan, "q"), event_texts(plan, "default")) == ([text], [])


def event_texts(plan: Plan, name: str) -> list[str]:
    return [event.message for event in plan.events if (event.kind, event.key) == ("Queue", name)]


def test_S0_23_a_sessions_tables_are_released_after_its_close() -> None:
    kept: list[weakref.ref[Any]] = []
    look = acting("look", lambda session: kept.extend((weakref.ref(session), weakref.ref(session.table.used))))
    plan = Bench(ONE_JOB, conf("gang", "predicates proportion", actions="look, allocate"), look).cycle()
    gc.collect()
    assert plan.binds
    assert [ref() for ref in kept] == [None, None]


# ---------------------------------------------------------------------- operations


def test_S0_36_allocate_takes_idle_room_and_pipeline_reserves() -> None:
    with Bench([*ONE_JOB, pod("q", group="g")]).open() as session:
        home = session.nodes["n1"]
        with session.statement() as statement:
            statement.allocate(task_of(session, "p"), home)
            assert task_of(session, "p").status is TaskStatus.Allocated
            assert (home.idle.milli_cpu, home.pipelined.milli_cpu) == (3000, 0)
        with session.statement() as statement:
            statement.pipeline(task_of(session, "q"), "n1")
            assert task_of(session, "q").status is TaskStatus.Pipelined
            assert (home.idle.milli_cpu, home.pipelined.milli_cpu) == (4000, 1000)
            assert home.future_idle().milli_cpu == 3000


class Hears(Plugin):
    """Notes every event; its arguments say how many of the two parts it has."""

    name = "hears"
    prefix = arg("hears.prefix", str, "")
    heard: list[tuple[str, str, str]] = []

    @on_allocate
    def came(self, event: Any) -> None:
        self.heard.append(("came", event.task.name, event.task.node_name))

    @on_deallocate
    def left(self, event: Any) -> None:
        self.heard.append(("left", event.task.name, event.task.node_name))


def test_S0_37_evict_marks_the_task_tells_once_and_keeps_the_reason() -> None:
    Hears.heard = []
    objects = [node("n1"), pod_group("g"), pod("run", group="g", on="n1")]
    with Bench(objects, conf("gang", "hears"), Hears).open() as session:
        task = task_of(session, "run")
        with session.statement() as statement:
            statement.evict(task, "preempt")
            assert task.status is TaskStatus.Releasing
            assert session.nodes["n1"].releasing.milli_cpu == 1000
            statement.commit()
    assert Hears.heard == [("left", "run", "n1")]
    (eviction,) = session.plan.evictions
    assert (eviction.key, eviction.node, eviction.reason) == ("default/run", "n1", "preempt")


@pytest.mark.parametrize("part", ["allocate", "deallocate"])
def test_S0_38_either_half_of_a_handler_may_be_missing(part: str) -> None:
    heard: list[tuple[str, str]] = []

    class Half(Plugin):
        name = "half"

        def on_session_open(self, session: ClusterView) -> None:
            for number in "12":
                ReferenceView(session).add_event_handler(
                    **{part: lambda event, n=number: heard.append((n, event.task.name))}
                )

    objects = [*ONE_JOB, pod("run", group="g", on="n1")]
    with Bench(objects, conf("gang", "half"), Half).open() as session, session.statement() as statement:
        statement.allocate(task_of(session, "p"), session.nodes["n1"])
        statement.evict(task_of(session, "run"), "test")
        statement.commit()
    name = "p" if part == "allocate" else "run"
    assert heard == [("1", name), ("2", name)]


def test_S0_38_a_handlers_objection_takes_the_placement_back() -> None:
    def object_to(event: Any) -> None:
        event.err = "no"

    plugin = answering("objects", on_allocate=object_to)
    bench = Bench(ONE_JOB, conf("gang", "objects predicates"), plugin)
    plan = bench.cycle()
    assert plan.binds == []
    with bench.open() as session:
        assert session.nodes["n1"].idle.milli_cpu == 4000
        assert task_of(session, "p").status is TaskStatus.Pending


def test_S0_39_actions_and_plugins_ask_every_question_and_record_events() -> None:
    answered: dict[str, Any] = {}

    def ask(session: Session) -> None:
        task, other = task_of(session, "p"), task_of(session, "q")
        job, queues = session.jobs["default/g"], session.queues["default"]
        part, nodes = session.sub_jobs(job)[job.uid], [*session.nodes.values()]
        arguments = {
            "left": job, "right": job, "job": job, "jobs": [job], "queue": queues, "task": task, "tasks": [task],
            "node": nodes[0], "nodes": nodes, "sub_job": part, "preemptor": task, "hyper_node": session.hyper_nodes.top,
            "preemptees": [other], "reclaimer": task, "reclaimees": [other], "candidates": [other],
            "preemptor_queue": queues, "nodes_by_score": {}, "nodes_by_hyper_node": {},
            "purpose": "Allocate", "state": session.cycle_state(task.uid), "task_to_schedule": task, "scores": [],
            "context": type("Context", (), {"kind": "GangReclaim", "job": job, "task": task}),
            "event": type("Event", (), {"task": task, "err": None}),
        }  # fmt: skip
        by_kind = {"task_order": task, "queue_order": queues, "victim_queue_order": queues, "sub_job_order": part,
                   "cluster_order": queues}  # fmt: skip
        for name, point in POINTS.items():
            given = {**arguments, "left": by_kind.get(name, job), "right": by_kind.get(name, job)}
            wanted = ("job", "sub_job") if point.unsplit else point.arguments
            answered[name] = getattr(session.ask, name)(*(given[argument] for argument in wanted))
        session.pod_groups.record_event(job, "Normal", "Asked", "everything")

    everything = "gang priority conformance sla", "overcommit drf predicates proportion nodeorder binpack resourcequota"
    bench = Bench([*ONE_JOB, pod("q", group="g")], conf(*everything, actions="ask"), acting("ask", ask))
    plan = bench.cycle()
    assert plan.inconsistencies == []
    assert set(answered) == set(POINTS)
    assert Event("PodGroup", "default/g", "Normal", "Asked", "everything") in plan.events


@pytest.mark.parametrize("capability", ["kube_client", "vc_client", "client_config", "informers", "recorder"])
def test_S0_39_clients_that_this_run_lacks_are_refused_by_name(capability: str) -> None:
    class Wants(Plugin):
        name = "wants"

        def on_session_open(self, session: ClusterView) -> None:
            getattr(session, capability)

    plan = Bench(ONE_JOB, conf("gang", "wants predicates"), Wants).cycle()
    expected = f"CapabilityMissing: plugin wants asks for {capability}, which a plan run does not offer"
    assert any(expected in text for text in plan.inconsistencies)
    assert binds(plan) == {"p": "n1"}


def test_S0_45_jobs_with_a_topology_wait_until_hypernodes_are_ready() -> None:
    objects: list[Manifest] = [
        node("n1", cpu=8), pod_group("plain"), pod("a", group="plain"),
        pod_group("close", networkTopology={"mode": "hard", "highestTierAllowed": 2}), pod("b", group="close"),
        hyper_node("s0", 1, "n1", below=("s1",)), hyper_node("s1", 2, below=("s0",)),
    ]  # fmt: skip
    bench = Bench(objects)
    lines = bench.logged()
    assert any("hyperNodes are not ready for scheduling" in line for line in lines)
    assert binds(bench.plan) == {"a": "n1"}
    problem = "cyclic dependency detected: HyperNode s0 is already in the ancestor chain [s0 s1]"
    assert problem in bench.plan.inconsistencies
    bench.tell(hyper_node("s1", 2))
    assert binds(bench.cycle()) == {"b": "n1"}
