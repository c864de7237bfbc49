"""The past of a record that is written by hand: jobs of one name, and jobs that ran before it began."""

from __future__ import annotations

from pathlib import Path

import pytest

from stromboli.builtin import full_registry
from stromboli.study.recorded.history import History
from stromboli.study.recorded.trace import Runtimes, recorded_trace
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.support.written_record import BEGIN, WrittenRecord

REGISTRY = full_registry("")


def test_jobs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """Two end within a second, a third lives on; a pod without a PodGroup has the name of one."""
    record = WrittenRecord(tmp_path)
    record.begin(0)
    record.apply(queue("default"), node("n1", cpu=9), pod_group("a"), pod("a", on="n1"))
    for number in range(3):
        record.apply({**(found := pod("a-0", group="a")), "metadata": {**found["metadata"], "uid": f"u{number}"}})
        record.cycle(number / 5)
        record.cycle(number / 5 + 0.1)
        if number < 2:
            record.apply(found, stays=False)
    record.close()
    history = History(tmp_path, REGISTRY).read()
    assert len(history.jobs) == 4
    trace = recorded_trace(history, "record")
    assert sorted(trace.past) == ["default/a", "default/a-2", "default/a-3", "default/a-4"]
    assert sorted(job.ended is None for job in trace.past.values()) == [False, False, True, True]
    assert [job.came - BEGIN for job in history.jobs.values()] == sorted(
        job.came - BEGIN for job in history.jobs.values()
    )


def test_what_ran_before_the_record_began_teaches_no_runtime(tmp_path: Path) -> None:
    """Nothing says when it began: a job alike counts with the runtimes of those that were seen whole."""
    record = WrittenRecord(tmp_path)
    record.apply(queue("default"), node("n1", cpu=4), pod_group("run-1"), pod("run-1-0", group="run-1", on="n1"))
    record.begin(0)
    record.cycle(0)
    record.apply(pod_group("run-2"), pod("run-2-0", group="run-2"), pod_group("run-3"))
    record.cycle(5)
    record.apply(pod("run-1-0", group="run-1", on="n1"), stays=False)
    record.cycle(10)
    record.apply(pod("run-2-0", group="run-2", on="n1"), stays=False)
    record.apply(pod("run-3-0", group="run-3", cpu=9))
    record.cycle(100)
    record.close()
    history = History(tmp_path, REGISTRY).read()
    assert Runtimes(history.jobs.values(), history.first).usual(history.jobs["default/run-3"]) == 95


def test_the_period_is_that_of_the_cycles_so_far(tmp_path: Path) -> None:
    record = WrittenRecord(tmp_path)
    record.begin(0)
    record.cycle(0)
    record.close()
    history = History(tmp_path, full_registry(""))
    assert history.period == 1.0
    for cuts, period in (([0.0, 4.0], 4.0), ([0.0, 4.0, 6.0, 8.0], 2.0)):
        history.cuts = cuts
        assert history.period == history.period == period


def test_pods_that_controllers_put_into_a_group_later_are_one_job_from_when_the_first_came(tmp_path: Path) -> None:
    """Pods of other operators come without a PodGroup; the controllers make one, and write its name on each of them."""
    record = WrittenRecord(tmp_path)
    record.begin(0)
    record.apply(queue("default"), queue("team"), node("n1", cpu=9), pod("w-0"))
    record.cycle(0)
    record.cycle(1)
    record.apply(pod("w-1"))
    record.cycle(2)
    record.apply(pod_group("gang", queue="team", min_member=2), pod("w-0", group="gang"))
    record.cycle(3)
    record.apply(pod("w-1", group="gang"))
    record.cycle(4)
    record.cycle(5)
    record.close()
    history = History(tmp_path, REGISTRY).read()
    (job,) = history.jobs.values()
    assert (job.uid, job.queue, job.least, len(job.slots), job.before) == ("default/gang", "team", 2, 2, True)
    assert (job.came, job.started) == (BEGIN, BEGIN + 4)
    trace = recorded_trace(history, "record")
    assert ([job.queue for job in trace.workload.jobs], trace.groupless) == (["team"], ())


@pytest.mark.parametrize(("comes", "jobs", "groupless"), [(False, 1, ("default/mistyped",)), (True, 2, ())])
def test_pods_of_a_group_that_never_comes_make_no_job(
    comes: bool, jobs: int, groupless: tuple[str, ...], tmp_path: Path
) -> None:
    """No scheduler places them, and a simulation would: it gives each job a PodGroup."""
    record = WrittenRecord(tmp_path)
    record.begin(0)
    record.apply(queue("default"), node("n1", cpu=9), pod_group("g"), pod("g-0", group="g"), pod("p", group="mistyped"))
    record.cycle(0)
    if comes:
        record.apply(pod_group("mistyped"))
    record.cycle(1)
    record.cycle(2)
    record.close()
    trace = recorded_trace(History(tmp_path, REGISTRY).read(), "record")
    assert (len(trace.workload.jobs), trace.groupless) == (jobs, groupless)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_pod_that_has_run_stays_in_the_past_when_another_takes_its_place(grouped: bool, tmp_path: Path) -> None:
    """Its node goes, and the one that comes for it waits without a PodGroup, or is put into one."""
    record = WrittenRecord(tmp_path)
    record.begin(0)
    record.apply(queue("default"), node("n1"), node("n2"), pod("w-0", on="n1"))
    record.cycle(0)
    record.cycle(5)
    record.apply(pod("w-0", on="n1"), node("n1"), stays=False)
    record.apply(again(pod("w-0")))
    record.cycle(10)
    record.cycle(15)
    if grouped:
        record.apply(pod_group("gang"), again(pod("w-0", group="gang")))
    record.cycle(20)
    record.cycle(25)
    record.close()
    history = History(tmp_path, REGISTRY).read()
    lone, *others = history.jobs.values()
    assert (lone.uid, lone.came, lone.started, lone.evictions) == ("default/pod/w-0", BEGIN, BEGIN, 1)
    trace = recorded_trace(history, "record")
    assert (len(trace.workload.jobs), trace.groupless) == (1 + grouped, ())
    if grouped:
        ((slot,), (gang,)) = lone.slots.values(), others
        assert (lone.ended, slot.runtime, slot.waits) == (BEGIN + 10, 10, False)
        assert (gang.uid, gang.came, gang.before, gang.started) == ("default/gang", BEGIN + 10, False, BEGIN + 20)


def again(found: Manifest) -> Manifest:
    """Another pod of that name."""
    return {**found, "metadata": {**found["metadata"], "uid": "another"}}
