"""task-topology: buckets from annotations, the order of tasks, scores of nodes."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.framework.session.session import Session
from stromboli.plugins.task_topology import TaskTopology
from stromboli.plugins.task_topology.buckets import Buckets
from stromboli.plugins.task_topology.wishes import AFFINITY, ANTI_AFFINITY, LONGEST, MOST_NAMES, TASK_ORDER, Wishes
from stromboli.testing.builders import Manifest, node, pod, pod_group
from stromboli.testing.check_plugin import check_plugin
from tests.acceptance.bench import Bench, binds, conf, task_of

CONF = conf("gang task-topology", "predicates")


def job(tasks: Mapping[str, int], wishes: Mapping[str, str], on: Mapping[str, str] | None = None) -> list[Manifest]:
    """A PodGroup ``g`` with so many pods of each task, ``on`` nodes already where that names them."""
    found = [pod_group("g", min_member=sum(tasks.values()), annotations=dict(wishes))]
    for role, count in tasks.items():
        for name in (f"g-{role}-{i}" for i in range(count)):
            found.append(pod(name, group="g", role=role, on=(on or {}).get(name, "")))
    return found


def opened(objects: list[Manifest], weight: int = 1, *, compat: bool = False) -> Session:
    plugin = f"[{{name: gang}}, {{name: task-topology, arguments: {{task-topology.weight: {weight}}}}}]"
    return Bench(objects, conf(plugin, "predicates"), compat=compat).open()


def plugin_of(session: Session) -> TaskTopology:
    found = session.plugins["task-topology"]
    assert isinstance(found, TaskTopology)
    return found


def buckets(objects: list[Manifest]) -> list[list[str]]:
    """The tasks of each bucket by name, those that have a node as well."""
    with opened(objects) as session:
        made = plugin_of(session)._jobs.get("default/g")
        tasks = session.jobs["default/g"].tasks
        found: list[list[str]] = [[] for _ in made.all] if made else []
        for uid, bucket in made.of.items() if made else ():
            found[bucket.index].append(tasks[uid].name.removeprefix("g-"))
        return [sorted(names) for names in found]


PAIR, FOUR, TOGETHER = {"ps": 1, "w": 2}, {"ps": 2, "w": 2}, {AFFINITY: "ps,w"}


@pytest.mark.parametrize(
    ("tasks", "wishes", "on", "found"),
    [
        pytest.param(PAIR, TOGETHER, {}, [["ps-0", "w-0", "w-1"]], id="together"),
        pytest.param(
            FOUR, TOGETHER | {ANTI_AFFINITY: "ps"}, {}, [["ps-0", "w-0"], ["ps-1", "w-1"]], id="apart-from-itself"
        ),
        pytest.param(PAIR, TOGETHER, {"g-w-0": "n1"}, [["ps-0", "w-0", "w-1"]], id="with-those-placed"),
        pytest.param(
            {"ps": 2, "w": 1}, TOGETHER, {"g-ps-0": "n1", "g-ps-1": "n2"}, [["ps-0", "w-0"], ["ps-1"]], id="by-node"
        ),
        pytest.param(FOUR, {ANTI_AFFINITY: "ps,w"}, {}, [["ps-0", "ps-1"], ["w-0", "w-1"]], id="apart-from-others"),
        pytest.param({"a": 1, "b": 1, "c": 1}, {AFFINITY: "a,b"}, {}, [["a-0", "b-0"]], id="the-others-in-none"),
        pytest.param({"a": 1, "b": 1}, {AFFINITY: "a,x"}, {}, [], id="a-name-that-is-no-task"),
        pytest.param({"a": 1, "b": 1}, {AFFINITY: "a,b,a"}, {}, [], id="a-name-twice"),
        pytest.param({"a": 1, "b": 1}, {AFFINITY: "a, b"}, {}, [], id="names-are-not-trimmed"),
        pytest.param({"a": 1, "b": 1}, {AFFINITY: "a,b" + "," * LONGEST}, {}, [], id="too-long-to-be-read"),
        pytest.param({"a": 1, "b": 1}, {}, {}, [], id="no-wish"),
    ],
)
def test_buckets(tasks, wishes, on, found):
    assert buckets([node("n1"), node("n2"), *job(tasks, wishes, on)]) == found


def test_a_job_whose_wishes_cannot_be_read_is_named_in_the_log_and_told():
    objects = [node("n1"), *job({"a": 2}, {AFFINITY: "b"})]
    lines = Bench(objects, CONF).logged(4)
    assert any("task b do not exist in job <default/g>" in line for line in lines)
    said = [
        (event.kind, event.message)
        for event in Bench(objects, CONF).cycle().events
        if event.reason == "TaskTopologyIgnored"
    ]
    assert said == [("PodGroup", "task b do not exist in job <default/g>")]


@pytest.mark.parametrize(
    ("wishes", "order"),
    [
        ({AFFINITY: "a,b"}, ["a-0", "b-0", "a-1", "c-0"]),
        ({AFFINITY: "a,b", TASK_ORDER: "b,a"}, ["b-0", "a-0", "a-1", "c-0"]),
        ({AFFINITY: "c,b", ANTI_AFFINITY: "a"}, ["a-0", "b-0", "c-0", "a-1"]),
    ],
    ids=["buckets-first", "as-ordered", "larger-buckets-first"],
)
def test_the_order_of_tasks(wishes, order):
    with opened([node("n1"), *job({"a": 2, "b": 1, "c": 1}, wishes)]) as session:
        turns = session.tasks_in_turn(list(session.jobs["default/g"].tasks.values()))
        assert [task.name.removeprefix("g-") for task in turns] == order


@pytest.mark.parametrize(
    ("offers", "on", "score"),
    [
        pytest.param(8, {}, 1000, id="empty-and-room-for-all"),
        pytest.param(2, {}, pytest.approx(2000 / 3), id="room-for-two"),
        pytest.param(2, {"g-ps-0": "n1"}, pytest.approx(2000 / 3), id="one-there-room-for-one-more"),
        pytest.param(8, {"g-ps-0": "n1"}, 1000, id="one-there-room-for-all"),
        pytest.param("500m", {}, 0, id="no-room-at-all"),
    ],
)
def test_nodes_are_better_the_more_of_the_bucket_they_take(offers, on, score):
    with opened([node("n1", cpu=offers), *job({"ps": 1, "w": 2}, {AFFINITY: "ps,w"}, on)], weight=10) as session:
        found = plugin_of(session).with_its_bucket(task_of(session, "g-w-1"), session.table.view())
        assert found is not None
        assert found.tolist() == [score]


def test_a_bucket_of_one_has_all_of_it_with_it_and_what_is_in_none_has_no_score():
    objects = [*job({"a": 1, "b": 1}, {AFFINITY: "a"}), pod_group("h"), pod("h-0", group="h", role="a")]
    with opened([node("n1"), *objects], weight=10) as session:
        score = plugin_of(session).with_its_bucket
        view = session.table.view()
        found = {name: score(task_of(session, name), view) for name in ("g-a-0", "g-b-0", "h-0")}
        assert (found["g-b-0"], found["h-0"]) == (None, None)
        assert np.asarray(found["g-a-0"]).tolist() == [1000]


GPU = {"nvidia.com/gpu": 1}


@pytest.mark.parametrize(
    ("asking", "other", "offers", "fit"),
    [
        pytest.param({"requests": GPU}, {}, {}, 1, id="it has no room at all"),
        pytest.param({"requests": GPU}, {}, GPU, 3, id="it has the one there is"),
        pytest.param({}, {"cpu": 2, "requests": GPU}, {}, 2, id="the largest of the others finds none"),
        pytest.param({}, {"cpu": 2, "requests": GPU}, GPU, 3, id="the largest of the others has the one there is"),
        pytest.param({"requests": GPU}, {"cpu": 2, "requests": GPU}, GPU, 2, id="two want the one there is"),
    ],
)
def test_a_resource_that_only_some_request_is_counted(asking, other, offers, fit):
    """Those that come before the first that requests it know nothing of it."""
    bench = Bench([pod_group("g", annotations={AFFINITY: "a"})], CONF)
    bench.tell(*(pod(f"p{at}", group="g", role="a", **asks) for at, asks in ((2, {}), (1, other), (0, asking))))
    bench.tell(node("n1", resources=offers))
    with bench.open() as session:
        [bucket] = plugin_of(session)._jobs["default/g"].all
        assert bucket.fitting(task_of(session, "p0"), session.table.view(), waits=True).tolist() == [fit]


def test_room_of_pods_that_end_counts():
    """On four cores that a pod holds which ends, one of a core has room, and one of two others of two cores."""
    ends = pod("ends", on="n1", cpu=4)
    ends["metadata"]["deletionTimestamp"] = "2027-01-01T00:00:00Z"
    pods = [pod(f"p{at}", group="g", role="a", cpu=2 if at else 1) for at in range(3)]
    objects = [node("n1", cpu=4), ends, pod_group("g", annotations={AFFINITY: "a"}), *pods]
    with opened(objects) as session:
        plugin, asking = plugin_of(session), task_of(session, "p0")
        [bucket] = plugin._jobs["default/g"].all
        some = session.table.view(np.array([0]))
        assert bucket.fitting(asking, some, waits=True).tolist() == [2]
        room = plugin._rooms.of(asking.template, some)
        assert (room.fits.tolist(), room.more.tolist()) == ([True], [3])


def test_a_pod_that_has_its_place_and_none_waiting_beside_it_is_one():
    objects = [node("n1", cpu=1), *job({"a": 2}, {ANTI_AFFINITY: "a"}, {"g-a-0": "n1"})]
    with opened(objects) as session:
        task = task_of(session, "g-a-0")
        bucket = plugin_of(session)._jobs["default/g"].of[task.uid]
        assert bucket.fitting(task, session.table.view(), waits=False).tolist() == [1]


def test_pods_that_are_evicted_or_taken_back_count_with_those_that_are_unlike_them():
    """The one that runs is put off after the first question, and is of another size than the two that wait."""
    objects = [node("n1", cpu=9), *job({"a": 2, "b": 1}, {AFFINITY: "a,b"}, {"g-b-0": "n1"})]
    objects[-1]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "7"
    with opened(objects) as session:
        [bucket] = plugin_of(session)._jobs["default/g"].all
        asking, other, view = task_of(session, "g-a-0"), task_of(session, "g-b-0"), session.table.view()
        assert bucket.fitting(asking, view, waits=True).tolist() == [2]
        bucket.wait(other, 1)
        assert bucket.fitting(asking, view, waits=True).tolist() == [2]
        bucket.wait(other, -1)
        assert bucket.fitting(asking, view, waits=True).tolist() == [2]


def test_those_that_need_most_are_left_out_first():
    objects = job({"ps": 1, "w": 2}, {AFFINITY: "ps,w"})
    objects[1]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "7"
    with opened([node("n1", cpu=3), *objects]) as session:
        found = plugin_of(session).with_its_bucket(task_of(session, "g-w-1"), session.table.view())
        assert found is not None
        assert found.tolist() == [pytest.approx(200 / 3)]


def test_empty_names_are_not_paired():
    """They are not checked, so an annotation may have as many as it has commas; two billion pairs would not end."""
    with opened([node("n1"), *job({"a": 1}, {AFFINITY: "a" + "," * (LONGEST - 1)})]) as session:
        assert plugin_of(session)._jobs["default/g"].wishes.together == {"a": {""}, "": {"a"}}


@pytest.mark.parametrize(("names", "read"), [(MOST_NAMES, True), (MOST_NAMES + 1, False)])
def test_more_names_than_are_read(names, read):
    roles = [f"r{number}" for number in range(names)]
    with opened([node("n1"), *job(dict.fromkeys(roles, 1), {AFFINITY: ",".join(roles)})]) as session:
        assert ("default/g" in plugin_of(session)._jobs) is read


class Counted(Wishes):
    """Wishes that count how often they are asked."""

    asked = 0

    def attraction(self, name, other):
        Counted.asked += 1
        return super().attraction(name, other)


@pytest.mark.parametrize("count", [60, 240])
def test_buckets_are_not_compared_with_each_other(count):
    """Each task of a role that is apart from itself has a bucket of its own; none looks at all of the others."""
    with opened([node("n1"), *job({"a": count}, {ANTI_AFFINITY: "a"})]) as session:
        found, Counted.asked = session.jobs["default/g"], 0
        made = Buckets(found, Counted(apart={"a": {"a"}}, weight={"a": 4}), {})
    assert (len(made.all), Counted.asked) == (count, count - 1)


def test_what_is_evicted_does_not_wait_and_counts_again_when_that_is_undone():
    objects = [node("n1", cpu=8), *job({"ps": 1, "w": 2}, {AFFINITY: "ps,w"}, {"g-ps-0": "n1"})]
    with opened(objects) as session:
        [bucket] = plugin_of(session)._jobs["default/g"].all
        before = scores(session, "g-w-1")
        with session.statement() as trial:
            trial.evict(task_of(session, "g-ps-0"), "preempt")
            assert (bucket.waits, +bucket.on_row) == (2, {})
            assert scores(session, "g-w-1") < before
        assert (bucket.waits, +bucket.on_row, scores(session, "g-w-1")) == (2, {0: 1}, before)


def left_out_one_by_one(own, others, room):
    """The rule in plain words: how many fit when those that request most are left out first."""
    others = sorted(others, reverse=True)
    while others and own + sum(others) > room:
        others.pop(0)
    return len(others) + 1


@given(st.integers(1, 4), st.lists(st.integers(1, 4), max_size=6), st.lists(st.integers(0, 20), min_size=1, max_size=4))
def test_how_many_fit(own, others, rooms):
    pods = [pod(f"p{place}", group="g", role="a", cpu=cpu) for place, cpu in enumerate([own, *others])]
    objects = [*(node(f"n{place}", cpu=room) for place, room in enumerate(rooms)), pod_group("g"), *pods]
    objects[len(rooms)]["metadata"]["annotations"] = {AFFINITY: "a"}
    with opened(objects) as session:
        [bucket] = plugin_of(session)._jobs["default/g"].all
        found = bucket.fitting(task_of(session, "p0"), session.table.view(), waits=True)
    assert found.tolist() == [left_out_one_by_one(own, others, room) for room in rooms]


AMOUNTS = st.integers(0, 5)


@given(st.tuples(AMOUNTS, AMOUNTS), st.integers(1, 6), st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=1, max_size=5))
def test_the_room_for_pods_that_are_alike_is_that_of_any_pods(request, number, rooms):
    """What is kept of the room, and counted again on rows where something came or went, says the same."""
    alike = {"cpu": request[0], "memory": f"{request[1]}Gi"}
    pods = [pod(f"p{place}", group="g", role="a", **alike) for place in range(number)]
    nodes = [node(f"n{place}", cpu=cpu, memory=f"{memory}Gi") for place, (cpu, memory) in enumerate(rooms)]
    with opened([*nodes, pod_group("g", annotations={AFFINITY: "a"}), *pods]) as session:
        plugin, asking = plugin_of(session), task_of(session, "p0")
        [bucket] = plugin._jobs["default/g"].all
        for row in (None, *range(len(rooms)), 0):
            if row is not None:
                session.table.add(row, session.table.change({"used": session.ledger.arrays(asking.template)[0]}))
            whole = session.table.view()
            some = session.table.view(np.arange(len(rooms))[::-1])
            for view in (whole, some):
                room = plugin._rooms.of(asking.template, view)
                wanted = session.ledger.arrays(asking.template)[0][:, None]
                assert room.fits.tolist() == np.all(view.idle + view.releasing >= wanted, axis=0).tolist()
                plainly = bucket.fitting(asking, view, True).tolist()
                assert bucket.fitting(asking, view, True, room.more).tolist() == plainly


OVERFULL = [
    pytest.param({"cpu": 1, "memory": 0}, {"memory": "3Gi"}, 0, id="memory, which counts though the pods ask for none"),
    pytest.param({"cpu": 0, "memory": "1Gi"}, {"cpu": 9}, 0, id="cores, likewise"),
    pytest.param({"cpu": 1, "memory": 0}, {"requests": {"nvidia.com/gpu": 3}}, 3, id="GPUs, which then do not count"),
    pytest.param({"cpu": 1, "memory": 0}, {"memory": "2Gi"}, 3, id="all of the memory, and no more"),
]


@pytest.mark.parametrize(("asks", "runs", "more"), OVERFULL)
def test_what_is_overfull_counts_against_pods_as_it_does_when_they_are_placed(asks, runs, more):
    """Beside one of them a node of four cores has room for three, unless more runs on it than it has."""
    full = node("n1", cpu=4, memory="2Gi", resources={"nvidia.com/gpu": 1})
    there = pod("there", on="n1", **{"cpu": 0, "memory": 0, **runs})
    pods = [pod(f"p{place}", group="g", role="a", **asks) for place in range(9)]
    with opened([full, there, pod_group("g", annotations={AFFINITY: "a"}), *pods]) as session:
        asking, nodes = task_of(session, "p0"), session.table.view()
        [bucket] = plugin_of(session)._jobs["default/g"].all
        room = plugin_of(session)._rooms.of(asking.template, nodes)
        assert room.more.tolist() == [more]
        plainly = bucket.fitting(asking, nodes, True).tolist()
        assert bucket.fitting(asking, nodes, True, room.more).tolist() == plainly == [more + 1]


def test_how_many_fit_follows_those_that_come_and_go():
    objects = [node("n1", cpu=3), *job({"a": 4}, {AFFINITY: "a"})]
    with opened(objects) as session:
        [bucket] = plugin_of(session)._jobs["default/g"].all
        asking, other = task_of(session, "g-a-0"), task_of(session, "g-a-1")
        fit = [bucket.fitting(asking, session.table.view(), waits=True).tolist()]
        for change in (-1, -1, 1):
            bucket.wait(other, change)
            fit.append(bucket.fitting(asking, session.table.view(), waits=True).tolist())
    assert fit == [[3], [3], [2], [3]]


@pytest.mark.parametrize("compat", [False, True])
def test_what_is_taken_back_does_not_count(compat):
    """Two that repel themselves: where one was refused the score of the other stays as before; not so with compat."""
    objects = [node("n1"), *job({"a": 2}, {AFFINITY: "a", ANTI_AFFINITY: "a"})]
    with opened(objects, compat=compat) as session:
        before = scores(session)
        with session.statement() as trial:
            trial.pipeline(task_of(session, "g-a-0"), "n1")
        after = scores(session)
        assert (before == after) is not compat


def scores(session: Session, name: str = "g-a-1") -> list[float]:
    found = plugin_of(session).with_its_bucket(task_of(session, name), session.table.view())
    assert found is not None
    return [float(score) for score in found]


def test_stories():
    """Three nodes of 4 cores: each ps has its node, and its workers go with it."""
    nodes = [node(f"n{i}", cpu=4) for i in range(3)]
    tasks = job({"ps": 3, "w": 6}, {AFFINITY: "ps,w", ANTI_AFFINITY: "ps"})
    placed = binds(Bench([*nodes, *tasks], CONF).cycle())
    for name in ("n0", "n1", "n2"):
        assert sorted(each.split("-")[1] for each in placed if placed[each] == name) == ["ps", "w", "w"]


def test_it_keeps_its_promises():
    check_plugin(TaskTopology, examples=10)


@pytest.mark.parametrize(
    ("one", "other", "order"), [((3, 1), (1, 0), -2), ((1, 0), (3, 1), 2), ((2, 0), (2, 1), -1), ((2, 1), (2, 0), 1)]
)
def test_tasks_of_buckets_where_more_wait_come_before_and_then_those_of_earlier_buckets(one, other, order):
    """Each bucket by how many of its tasks wait, and its number."""
    with opened([node("n1"), *job({"a": 2, "b": 2}, {AFFINITY: "a,b"})]) as session:
        plugin, tasks = plugin_of(session), session.jobs["default/g"].tasks
        made: Any = plugin._jobs["default/g"]
        left, right = (next(task for task in tasks.values() if task.name == f"g-{name}-0") for name in "ab")
        made.of = {
            task.uid: SimpleNamespace(waits=waits, index=index)
            for task, (waits, index) in ((left, one), (right, other))
        }
        assert plugin.larger_buckets_first(left, right) == order
