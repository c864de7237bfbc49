"""What plugins made for the reference ask a session, what they see of nodes, and the small parts that serve both."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from types import SimpleNamespace
from typing import Any

import pytest

from stromboli.allocation.pending_tasks import TaskCursor
from stromboli.api.scheduling import PodGroupCondition
from stromboli.errors import PluginError
from stromboli.framework.books.cycle_state import CycleState
from stromboli.framework.books.priority_queue import HeapQueue
from stromboli.framework.extension.action import Action
from stromboli.framework.extension.guards import settled
from stromboli.framework.extension.order import TaskTurn, by_name, compare, name_key
from stromboli.framework.extension.prefilters import AllAgree
from stromboli.framework.session.reference import ReferenceView
from stromboli.framework.session.session import Session
from stromboli.framework.statement.operation import Pipeline
from stromboli.plugin import Plugin, arg, arg_section
from stromboli.plugins.gang import LackingTasks
from stromboli.sim.between import apply_plan
from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import Bench, conf, task_of

OBJECTS = [
    node("n1", cpu=4), node("n2", cpu=8), pod_group("g", min_member=2), pod("a", group="g", on="n1"),
    pod("b", group="g"),
]  # fmt: skip


def test_what_is_asked_of_jobs_and_noted_for_them() -> None:
    with Bench(OBJECTS).open() as session:
        view, job = ReferenceView(session), session.jobs["default/g"]
        assert [view.is_job_terminated(uid) for uid in ("default/g", "default/gone")] == [False, True]
        assert view.job_fit_error(job).startswith("pod group is not ready, 1 Pending, 1 Running, 2 minAvailable")
        view.mark_job_dirty("default/g")
        assert view.dirty_jobs == {"default/g"}
        view.record_pod_group_event(job, "Warning", "Why", "so it is")
        event = session.plan.events[-1]
        assert (event.kind, event.reason, event.message) == ("PodGroup", "Why", "so it is")
        view.update_pod_group_condition(job, PodGroupCondition("Mine", "True"))
        assert [one.type for one in session.pod_groups.conditions["default/g"]] == ["Mine"]


@pytest.mark.parametrize(("switch", "on"), [("", False), (", enableHierarchy: true", True)])
def test_whether_a_plugins_hierarchy_is_on(switch: str, on: bool) -> None:
    text = conf(f"[{{name: gang}}, {{name: capacity{switch}}}]")
    with Bench([*OBJECTS, {**node("n3")}], text).open() as session:
        assert ReferenceView(session).hierarchy_enabled("capacity") is on


def test_what_is_seen_of_a_node() -> None:
    held = node("n3", cpu=4)
    held["status"]["images"] = [{"names": ["app:1"], "sizeBytes": 800}]
    with Bench([*OBJECTS, held]).open() as session:
        assert (len(session.nodes), list(session.nodes)) == (3, ["n1", "n2", "n3"])
        assert session.nodes["n2"].allocatable.milli_cpu == 8000
        assert [(image.names, image.size_bytes) for image in session.nodes["n3"].images] == [(("app:1",), 800)]
        assert session.nodes["n1"].images == ()


def test_a_plugin_registers_while_it_opens_and_at_no_other_time() -> None:
    with Bench(OBJECTS).open() as session, pytest.raises(PluginError, match="cannot register predicate"):
        session.register("predicate", "gang", lambda task, node: None)


def test_a_session_is_asked_nothing_that_is_no_point() -> None:
    with Bench(OBJECTS).open() as session, pytest.raises(AttributeError, match="no_such_point"):
        getattr(session.ask, "no_such_point")  # noqa: B009


def test_operations_are_shown_by_kind_and_pods() -> None:
    with Bench(OBJECTS).open() as session:
        job = session.jobs["default/g"]
        assert repr(Pipeline(job, [task_of(session, "b")], [0], False)) == "Pipeline(default/b)"


def test_a_section_of_arguments_has_the_defaults_of_its_parts() -> None:
    class Sectioned(Plugin):
        name = "sectioned"
        limits = arg_section("limits", arg("cpu", int, 80), arg("mem", int, 70))

    found: list[Any] = []

    class Looking(Sectioned):
        name = "looking"

        def on_session_open(self, session: Any) -> None:
            found.append(self.limits)

    for arguments in ("", ", arguments: {limits: {cpu: 5}}"):
        Bench(OBJECTS, conf(f"[{{name: looking{arguments}}}]"), Looking).cycle()
    assert found == [{"cpu": 80, "mem": 70}, {"cpu": 5, "mem": 70}]


def test_what_a_task_keeps_is_forgotten_when_it_is_deleted() -> None:
    state = CycleState()
    state.write("a", 1)
    for _ in range(2):
        state.delete("a")
    assert (state.get("a"), state.get("a", 2)) == (None, 2)


def test_a_clone_leaves_out_the_same_plugins_and_more_by_itself() -> None:
    state = CycleState()
    state.skip_filter_plugins.add("a")
    state.skip_score_plugins.add("b")
    twin = state.clone()
    assert (twin.skip_filter_plugins, twin.skip_score_plugins) == ({"a"}, {"b"})
    twin.skip_filter_plugins.add("c")
    twin.skip_score_plugins.add("c")
    assert (state.skip_filter_plugins, state.skip_score_plugins) == ({"a"}, {"b"})


def test_clones_of_queues_go_on_from_the_same_place_by_themselves() -> None:
    queue = HeapQueue[Any](compare)
    for number in (3, 1, 2):
        queue.push(number)
    twin = queue.clone()
    assert [twin.pop() for _ in range(3)] == [1, 2, 3]
    assert (len(twin), len(queue), queue.pop()) == (0, 3, 1)
    numbers: list[Any] = [1, 2, 3]
    cursor = TaskCursor(numbers, 1, queue)
    again = cursor.clone()
    again.choose_next()
    assert (again.tasks, cursor.tasks, len(queue)) == (numbers, numbers, 2)


def test_names_are_ordered_alike_by_key_and_in_pairs() -> None:
    items = [SimpleNamespace(name=name) for name in ("b", "B", "a10", "a2", "")]
    assert sorted(items, key=name_key) == sorted(items, key=cmp_to_key(by_name))


def test_turns_that_are_equal_have_one_hash() -> None:
    first, twin, later = (TaskTurn(SimpleNamespace(index=index, created=1, uid="u")) for index in (1, 1, 2))
    assert first == twin != later
    assert len({first, twin, later}) == 2


class Named:
    """A candidate."""

    def __init__(self, uid: str) -> None:
        self.uid = uid


def test_of_victims_that_are_no_candidates_those_go_that_guards_permit() -> None:
    """A budget of one: each may go alone."""
    candidates, others = ([Named(uid) for uid in uids] for uids in ("ad", "bc"))

    def one_at_a_time(tasks: Sequence[Any]) -> Sequence[Any]:
        return tasks[:1]

    assert [one.uid for one in settled([one_at_a_time], lambda _: others, candidates)] == ["b"]
    assert [one.uid for one in settled([one_at_a_time], list, candidates)] == ["a"]


@pytest.mark.parametrize(
    ("guards", "tiers", "tier"),
    [([], [], 0), ([True], [], 0), ([False], [], -1), ([False], [[True]], -1), ([True], [[False], [True, True]], 1),
     ([], [[True, False]], -1)],
)  # fmt: skip
def test_the_first_tier_that_could_take_from_a_job(guards: list[bool], tiers: list[list[bool]], tier: int) -> None:
    def saying(word: bool) -> Any:
        return lambda actor, job: word

    found = AllAgree([list(map(saying, one)) for one in tiers], list(map(saying, guards)))
    nothing: Any = None
    assert (found.tier(nothing, nothing), found(nothing, nothing)) == (tier, tier >= 0)


def test_what_gangs_lack_is_known_of_gangs_alone() -> None:
    lacking = LackingTasks(["a", "b", "c"])
    lacking.known["a"] = 3
    lacking.without.add("b")
    assert (dict(lacking), lacking.get("b"), lacking.get("d")) == ({"a": 3, "c": 0}, None, None)


def test_an_action_is_begun_and_ended_and_takes_its_parents_arguments() -> None:
    steps: list[Any] = []

    class Parent(Action):
        name = "parent"
        times = arg("times", int, 3)

        def initialize(self) -> None:
            steps.append("begin")

        def uninitialize(self) -> None:
            steps.append("end")

    class Child(Parent):
        name = "child"
        more = arg("more", int, 4)

        def execute(self, session: Session) -> None:
            steps.append((self.times, self.more))
            raise ValueError("in the middle")

    bench = Bench(OBJECTS)
    with bench.open() as session, pytest.raises(ValueError, match="middle"):
        Child({"times": 5}).run(session)
    assert steps == ["begin", (5, 4), "end"]


def test_what_a_plugin_registers_again_replaces_its_own_answer_of_that_point_alone() -> None:
    asked: list[str] = []

    def noting(word: str) -> Any:
        def answer(*_: object) -> int:
            asked.append(word)
            return 0

        return answer

    def registering(plugin: str, *words: tuple[str, str]) -> type[Plugin]:
        def on_session_open(_self: Plugin, session: Any) -> None:
            for point, word in words:
                session.register(point, plugin, noting(word))

        return type(plugin, (Plugin,), {"name": plugin, "on_session_open": on_session_open})

    first = registering("first", ("job_order", "old"), ("task_order", "before"), ("job_order", "new"))
    with Bench(OBJECTS, conf("first second"), first, registering("second", ("job_order", "other"))).open() as session:
        for answer in (*session.hooks.answers.of("job_order"), *session.hooks.answers.of("task_order")):
            answer.function(None, None)
    assert asked == ["new", "other", "before"]


HELD = [node("n1", cpu=1), node("n2"), pod("ends", group="old", on="n1", deleting=True), pod_group("g"),
        pod("b", group="g")]  # fmt: skip


@pytest.mark.parametrize(("compat", "stated"), [(False, ["n1"]), (True, [])])
def test_a_reservation_that_a_plugin_makes_is_stated_on_the_pod(compat: bool, stated: list[str]) -> None:
    with Bench(HELD, compat=compat).open() as session:
        ReferenceView(session).pipeline(task_of(session, "b"), "n1")
    assert [each.held.node for each in session.plan.annotations if each.held] == stated


@pytest.mark.parametrize("compat", [False, True])
def test_a_reservation_of_a_task_that_a_plugin_places_is_stated_no_more(compat: bool) -> None:
    bench = Bench(HELD, compat=compat)
    with bench.open() as session:
        ReferenceView(session).pipeline(task_of(session, "b"), "n1")
    apply_plan(bench.state, session.plan)
    with bench.open() as session:
        view, task = ReferenceView(session), task_of(session, "b")
        if compat:
            view.pipeline(task, "n1")
        assert task.node_name == "n1"
        view.allocate(task, session.nodes["n2"])
    assert [bind.node for bind in session.plan.binds] == ["n2"]
    assert [each.held for each in session.plan.annotations] == ([] if compat else [None])
