"""A reach that one job leaves to the next equals a fresh one."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec import structs

from stromboli.framework.books import candidates
from stromboli.framework.books.candidates import Candidates, Columns
from stromboli.framework.session.session import Session
from stromboli.model.job import Job, gives_single_tasks
from stromboli.model.snapshot import Evictable, NodeTasks
from stromboli.testing.builders import node, pod, pod_group
from tests.acceptance.bench import Bench
from tests.acceptance.fights import priority_class

REQUESTS = [np.array([cores * 1000, 0, 0, 0], dtype=np.int64) for cores in (1, 2, 3)]


def cluster() -> Bench:
    """Two nodes of three cores, on each a pod of ``a`` and one of ``b``."""
    nodes = [node(f"n{number}", cpu=3) for number in range(2)]
    groups = [pod_group(name, min_member=1, phase="Running") for name in "ab"]
    return Bench([*nodes, *groups, *(pod(f"{name}-{i}", group=name, on=f"n{i}") for name in "ab" for i in range(2))])


def of_a(job: Job) -> bool:
    return job.name == "a"


def fresh(session: Session) -> Candidates:
    return Candidates(session.snapshot, session.jobs, session.ledger)


@pytest.mark.parametrize("request_", REQUESTS)
def test_a_reach_is_up_to_date_whatever_was_asked_before(request_: np.ndarray) -> None:
    with cluster().open() as session:
        first = session.candidates.reach(of_a)
        for asked in REQUESTS:
            first.hopeful(session.table, [0], asked)
        statement = session.statement()
        statement.evict(
            next(task for job in session.jobs.values() for task in job.tasks.values() if task.key == "default/a-0"), "t"
        )
        again, new = session.candidates.reach(of_a), fresh(session).reach(of_a)
        assert again is first
        assert again.count.tolist() == new.count.tolist() == [0, 1]
        assert again.empty.tolist() == new.empty.tolist() == [True, False]
        assert again.freed.tolist() == new.freed.tolist()
        assert [[task.name for task in first.tasks(row)] for row in range(2)] == [[], ["a-1"]]
        hopeful = again.hopeful(session.table, [0], request_)
        assert hopeful.tolist() == new.hopeful(session.table, [0], request_).tolist()
        assert session.candidates.reach(lambda job: True) is not first
        assert session.candidates.reach(of_a, bound=False) is not first
        statement.discard()
        assert session.candidates.reach(of_a).count.tolist() == [1, 1]


@pytest.mark.parametrize("bound", [True, False])
def test_a_task_whose_eviction_is_reverted_is_in_reach_again(bound: bool) -> None:
    with cluster().open() as session:
        reach = session.candidates.reach(of_a, bound=bound)
        with session.statement() as statement:
            statement.evict(reach.tasks(1)[0], "t")
            reach.refresh()
            assert reach.count.tolist() == [1, 0]
        reach.refresh()
        assert (reach.count.tolist(), [task.name for task in reach.tasks(1)]) == ([1, 1], ["a-1"])


def test_a_reach_that_is_kept_names_the_remaining_tasks_after_each_eviction() -> None:
    with cluster().open() as session:
        reach = session.candidates.reach(of_a)
        with session.statement() as statement:
            statement.evict(reach.tasks(1)[0], "t")
            assert [reach.tasks(row) for row in range(2)] == [[session.jobs["default/a"].tasks["default/a-0"]], []]
            statement.rollback(0)
        assert [task.name for task in reach.tasks(1)] == ["a-1"]


@pytest.mark.parametrize("evicted", [1, 2, 16, 17, 40])
@pytest.mark.parametrize("request_", REQUESTS)
def test_hopeful_nodes_are_kept_up_with_few_and_with_many_evictions(request_: np.ndarray, evicted: int) -> None:
    """Forty nodes of three cores, on each a pod of one core that may go; the waiting pods want two cores."""
    names = [f"n{number:02}" for number in range(40)]
    groups = [pod_group("a", min_member=0, phase="Running"), pod_group("c")]
    pods = [pod(f"a-{name}", group="a", on=name) for name in names]
    pods += [pod(f"c-{name}", group="c", cpu=2) for name in names]
    with Bench([*(node(name, cpu=3) for name in names), *groups, *pods]).open() as session:
        reach = session.candidates.reach(of_a)
        before = reach.hopeful(session.table, [0], request_).tolist()
        with session.statement() as statement:
            for row in range(evicted):
                statement.evict(reach.tasks(row)[0], "t")
                statement.pipeline(session.jobs["default/c"].tasks[f"default/c-{names[row]}"], names[row])
            new = fresh(session).reach(of_a)
            kept = session.candidates.reach(of_a)
            found = kept.hopeful(session.table, [0], request_).tolist()
            assert found == new.hopeful(session.table, [0], request_).tolist()
            assert found.count(True) == (40 if request_[0] == 1000 else 40 - evicted)
            statement.rollback(0)
        assert session.candidates.reach(of_a).hopeful(session.table, [0], request_).tolist() == before


def test_a_session_knows_all_templates_whether_or_not_its_snapshot_lists_them() -> None:
    with cluster().open() as listed:
        numbers = [template.number for template in listed.snapshot.templates or ()]
        assert [template.number for template in listed.snapshot.all_templates()] == numbers != []
    with cluster().open() as counted:
        counted.snapshot.templates = None
        assert sorted({template.number for template in counted.snapshot.all_templates()}) == sorted(numbers)


def test_what_may_be_evicted_is_found_again_on_nodes_that_have_changed() -> None:
    """A pod comes, one ends, one says that it stays, and the queue of a job is not there."""
    bench = cluster()

    def names() -> list[str]:
        with bench.open() as session:
            return [task.name for task in session.candidates.columns.tasks]

    assert names() == names() == ["a-0", "b-0", "a-1", "b-1"]
    bench.tell(pod("a-2", group="a", on="n0"))
    assert names() == ["a-0", "b-0", "a-2", "a-1", "b-1"]
    stays = pod("b-1", group="b", on="n1", annotations={"volcano.sh/preemptable": "false"})
    bench.tell(pod("a-0", group="a", on="n0", phase="Succeeded"), stays)
    assert names() == ["b-0", "a-2", "a-1"]
    bench.tell(pod_group("a", min_member=1, phase="Running", queue="none"))
    assert names() == ["b-0"]


def test_what_is_read_of_the_tasks_of_a_node() -> None:
    low = pod("a-0", group="a", on="n0", priority=1)
    high = pod("b-0", group="b", on="n0", priority=5, phase="Pending")
    with Bench([node("n0", cpu=3), *(pod_group(name, phase="Running") for name in "ab"), low, high]).open() as session:
        found = session.snapshot.node_tasks[0].evictable
        said = {task.name: (task.priority, bool(runs)) for task, runs in zip(found.tasks, found.running, strict=True)}
        assert said == {"a-0": (1, True), "b-0": (5, False)}
        assert found.lowest == session.candidates.columns.lowest == 1
        assert session.candidates.reach(lambda _: True, bound=False).count.tolist() == [1]


def test_an_empty_reach_is_known_without_looking_at_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked_at(*_: object) -> Columns:
        raise AssertionError("tasks were looked at")

    monkeypatch.setattr(candidates, "Columns", looked_at)
    with cluster().open() as session:
        reach = session.candidates.reach(lambda _: False)
        reach.refresh()
        assert (reach.count.tolist(), reach.empty.tolist(), reach.tasks(1)) == ([0, 0], [True, True], [])
        assert reach.freed.shape == (len(session.table.alloc), 2)
        assert not reach.freed.any()
        assert [reach.hopeful(session.table, [0], wanted).tolist() for wanted in REQUESTS] == [
            [True] * 2,
            [False] * 2,
            [False] * 2,
        ]
        with pytest.raises(AssertionError, match="looked at"):
            session.candidates.reach(of_a)


def test_the_tasks_of_nodes_are_looked_at_once_and_only_for_a_job_that_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[int] = []

    def counted(on_node: NodeTasks) -> Evictable:
        looks.append(len(on_node))
        return Evictable.of(list(on_node.values()))

    with cluster().open() as session:
        found = fresh(session)
        monkeypatch.setattr(NodeTasks, "evictable", property(counted))
        assert found.jobs_by_priority == {("default", 0): dict.fromkeys(["default/a", "default/b"])}
        assert found.reach_of([], bound=True, only_best_effort=False).count.tolist() == [0, 0]
        assert looks == []
        assert found.reach_of(["default/a"], bound=True, only_best_effort=False).count.tolist() == [1, 1]
        assert looks == [2, 2]
        assert found.reach(lambda _: True).count.tolist() == [2, 2]
        assert (dict(found.numbers), len(found.columns.tasks)) == ({"default/a": 0, "default/b": 1}, 4)
        assert looks == [2, 2]


def test_the_jobs_of_which_single_tasks_may_go_have_bound_or_running_tasks() -> None:
    """Those of ``b`` go together; ``c`` waits, ``d`` has ended, ``e`` is being bound, and the pod of ``f`` stays."""
    bench = cluster()
    bench.tell(*(pod_group(name, phase="Running") for name in "cde"))
    bench.tell(priority_class("high", 7), pod_group("f", phase="Running", priorityClassName="high"))
    bench.tell(pod("c-0", group="c"), pod("d-0", group="d", on="n0", phase="Succeeded"))
    bench.tell(pod("e-0", group="e", on="n0", phase="Pending"))
    bench.tell(pod("f-0", group="f", on="n0", annotations={"volcano.sh/preemptable": "false"}))
    b = bench.state.jobs["default/b"].facts
    b.group = structs.replace(b.group, evicted_whole=True)
    with bench.open() as session:
        found = session.candidates
        jobs = session.jobs.values()
        assert [job.name for job in jobs if gives_single_tasks(job)] == ["a", "e", "f"]
        groups = {group: list(uids) for group, uids in found.jobs_by_priority.items()}
        assert groups == {("default", 0): ["default/a", "default/e"], ("default", 7): ["default/f"]}
        of = found.reach_of(["default/a", "default/f"], bound=True, only_best_effort=False)
        assert (of.count.tolist(), list(found.numbers)) == ([1, 1], ["default/a", "default/b", "default/e"])
