"""task-topology: which bucket a task joins, and what buckets count as tasks are placed, evicted and taken back."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stromboli.framework.session.session import Session
from stromboli.model.status import TaskStatus
from stromboli.plugins.task_topology import TaskTopology
from stromboli.plugins.task_topology.wishes import AFFINITY, ANTI_AFFINITY
from stromboli.testing.builders import Manifest, node, pod, pod_group
from tests.acceptance.bench import Bench, conf, task_of

CONF = conf("gang task-topology", "predicates")


def opened(objects: list[Manifest]) -> Session:
    return Bench(objects, CONF).open()


def plugin_of(session: Session) -> TaskTopology:
    found = session.plugins["task-topology"]
    assert isinstance(found, TaskTopology)
    return found


def job(group: str, near: str = "", far: str = "") -> Manifest:
    wishes = {key: text for key, text in ((AFFINITY, near), (ANTI_AFFINITY, far)) if text}
    return pod_group(group, annotations=wishes)


@pytest.mark.parametrize(
    ("requests", "joined"),
    [
        ([(1, "4Gi"), (3, "1Gi")], "a-1"),
        ([(1, "3Gi"), (4, "1Gi")], "a-0"),
        ([(1, "1Gi"), (1, "1Gi")], "a-0"),
        ([(2, 0), (1, 0)], "a-1"),
    ],
)
def test_of_equal_buckets_the_smaller_is_joined_and_a_mebibyte_counts_as_a_thousandth(
    requests: list[tuple[int, int | str]], joined: str
) -> None:
    pods = [pod(f"a-{at}", group="g", role="a", cpu=cpu, memory=memory) for at, (cpu, memory) in enumerate(requests)]
    objects = [node("n"), job("g", "a,b", "a"), *pods, pod("b-0", group="g", role="b")]
    with opened(objects) as session:
        made = plugin_of(session)._jobs["default/g"]
        assert made.of[task_of(session, "b-0").uid] is made.of[task_of(session, joined).uid]


def test_tasks_on_a_node_share_a_bucket_and_those_that_wait_join_by_rank() -> None:
    placed = [pod(f"{role}-{at}", group="g", role=role, on=f"n{at}") for role in "ab" for at in (0, 1)]
    objects = [node("n0"), node("n1"), job("g", "a,b"), *placed, pod("gone", group="g", role="a", on="n7")]
    with opened([*objects, pod("b-2", group="g", role="b"), pod("a-2", group="g", role="a")]) as session:
        made = plugin_of(session)._jobs["default/g"]
        names = {task.uid: task.name for task in session.jobs["default/g"].tasks.values()}
        found = [sorted(names[uid] for uid, one in made.of.items() if one is bucket) for bucket in made.all]
        assert found == [["a-0", "a-2", "b-0", "b-2"], ["a-1", "b-1"], ["gone"]]
        assert [+bucket.on_row for bucket in made.all] == [{0: 2}, {1: 2}, {-1: 1}]
        assert made.most == max(bucket.number for bucket in made.all)


def test_a_bucket_is_as_large_as_what_waits_in_it_requests() -> None:
    """A core counts a thousand, a mebibyte and a pod one: 3025 in the first, 3024 in the second with ``c-0``."""
    asked = [("a-0", "a", "2", "1Gi"), ("a-1", "a", "1", "1000Mi"), ("c-0", "c", "1022m", "0"), ("c-1", "c", "1", "0")]
    pods = [pod(name, group="g", role=role, cpu=cpu, memory=memory) for name, role, cpu, memory in asked]
    with opened([node("n"), job("g", "a,c", "a"), *pods]) as session:
        made = plugin_of(session)._jobs["default/g"].of
        found = [made[task_of(session, name).uid].index for name, *_ in asked]
        assert found == [0, 1, 1, 1]


def test_answers_are_shared_by_pods_of_a_bucket_that_are_alike() -> None:
    pods = [pod(f"{role}-{at}", group="g", role=role) for role in "abc" for at in (0, 1)]
    with opened([node("n"), job("g", "a,b", "a"), pod_group("h"), *pods, pod("other", group="h")]) as session:
        kind = plugin_of(session)._kind
        keys = {task.name: kind(task) for task in session.jobs["default/g"].tasks.values()}
        made = plugin_of(session)._jobs["default/g"]
        for name in ("a-0", "a-1", "b-0", "b-1"):
            task = task_of(session, name)
            assert keys[name] == (task.template, "default/g", made.of[task.uid].index, name[0])
        assert (keys["c-0"], kind(task_of(session, "other"))) == (None, None)
        hooks = {hook.point.name: hook for hook, _ in plugin_of(session).hooks()}
        assert hooks["batch_node_order"].key == kind
        assert hooks["task_order"].key != kind


def test_tasks_of_different_jobs_have_no_order_but_that_those_in_buckets_come_first() -> None:
    rows = [("g", "a"), ("g", "x"), ("h", "a"), ("h", "x"), ("i", "a")]
    pods = [pod(f"{group}-{role}", group=group, role=role) for group, role in rows]
    with opened([node("n"), job("g", "a"), job("h", "a"), pod_group("i"), *pods]) as session:
        order = plugin_of(session).larger_buckets_first
        tasks = {f"{group}-{role}": task_of(session, f"{group}-{role}") for group, role in rows}
        found = {(one, other): order(tasks[one], tasks[other]) for one in tasks for other in tasks}
        in_buckets = {"g-a", "h-a"}
        for (one, other), turn in found.items():
            wanted = 0 if "i-a" in (one, other) else (one not in in_buckets) - (other not in in_buckets)
            assert turn == wanted, (one, other)


ROLES = "aabbc"
MOVES = st.lists(st.tuples(st.integers(0, 6), st.sampled_from(["n0", "n1"])), max_size=10)


def check_counts(session: Session, placed: set[str], evicted: set[str]) -> None:
    """What all buckets count is what the tasks' places say."""
    made = plugin_of(session)._jobs["default/g"]
    tasks = session.jobs["default/g"].tasks
    repels: dict[str, Counter[int]] = {}
    assert made._waits == {uid for uid in made.of if tasks[uid].status is TaskStatus.Pending}
    for bucket in made.all:
        mine = [tasks[uid] for uid, one in made.of.items() if one is bucket]
        waiting = [task for task in mine if task.status is TaskStatus.Pending]
        there = [task for task in mine if task.node_name and task.name not in evicted]
        assert (bucket.waits, bucket.number) == (len(waiting), len(mine))
        assert +bucket.waiting == Counter(task.template for task in waiting)
        assert +bucket.on_row == Counter(session.table.row(task.node_name) for task in there)
        for task in there:
            if task.name in placed:
                for name in made.wishes.apart.get(task.role, ()):
                    repels.setdefault(name, Counter())[session.table.row(task.node_name)] += 1
    assert {name: +rows for name, rows in made.repulsion.items() if +rows} == repels


@pytest.mark.law("buckets count what is where")
@settings(max_examples=40)
@given(MOVES)
def test_buckets_count_what_is_where_whatever_is_tried(moves: list[tuple[int, str]]) -> None:
    names = [f"p{at}" for at in range(5)]
    pods = [
        pod(name, group="g", role=role, cpu=at % 2) for at, (name, role) in enumerate(zip(names, ROLES, strict=True))
    ]
    running = [pod(f"r{at}", group="g", role=role, on=f"n{at}") for at, role in enumerate("ab")]
    with opened([node("n0", cpu=99), node("n1", cpu=99), job("g", "a,b", "b;c"), *pods, *running]) as session:
        check_counts(session, set(), set())
        with session.statement() as trial:
            placed, evicted = set[str](), set[str]()
            for at, where in moves:
                task = task_of(session, [*names, "r0", "r1"][at])
                if task.status is TaskStatus.Pending:
                    trial.pipeline(task, where)
                    placed.add(task.name)
                elif task.status is TaskStatus.Running:
                    trial.evict(task, "preempt")
                    evicted.add(task.name)
                check_counts(session, placed, evicted)
        check_counts(session, set(), set())
        made = plugin_of(session)._jobs["default/g"]
        assert (made._placed, made._evicted) == (set(), set())
        assert made._waits == {task_of(session, name).uid for name in names}
