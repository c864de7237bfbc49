"""Bundles of victims: which tasks are safe, what a bundle is worth, and which goes first."""

from __future__ import annotations

import pytest
from msgspec import structs

from stromboli.api.fields import LabelSelector
from stromboli.api.scheduling import SubGroupPolicy
from stromboli.model.job import RUNNING, SUCCEEDED
from stromboli.model.subjobs import assign
from stromboli.preemption.bundles import Bundle, Kind, Spare, bundles_of, in_order, total
from tests.plugins.support import make_job, make_task


def members(uid="ns/j", priorities=(5, 4, 3, 2, 1), **fields):
    return [
        make_task(f"t{number}", uid, RUNNING, priority=priority, node_name="n0", **fields)
        for number, priority in enumerate(priorities)
    ]


def names(bundles):
    return [(bundle.kind.name, [task.name for task in bundle.tasks]) for bundle in bundles]


def cut(job, tasks=None):
    return bundles_of(job, list(job.tasks.values()) if tasks is None else tasks, assign(job))


def test_the_worked_example():
    job = make_job(tasks=members(), min_member=3)
    safe, whole = cut(job)
    assert names([safe, whole]) == [("SURPLUS", ["t4", "t3"]), ("GANG", ["t2", "t1", "t0"])]
    need = total(members(priorities=(0, 0, 0, 0)))
    assert safe.worth(need) == float("inf")
    # pods count as cpu does here: (3/4 + 3/4) / (5/4 + 5/4)
    assert whole.worth(need) == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("least", "safe"),
    [(5, 0), (4, 1), (1, 4), (0, 5), (6, 5)],
    ids=["all-needed", "one-spare", "one-needed", "none-needed", "broken-already"],
)
def test_what_a_gang_can_spare(least, safe):
    found = {bundle.kind: len(bundle.tasks) for bundle in cut(make_job(tasks=members(), min_member=least))}
    assert found == {kind: size for kind, size in ((Kind.SURPLUS, safe), (Kind.GANG, 5 - safe)) if size}


def test_tasks_that_have_succeeded_count_and_tasks_elsewhere_do_not_go():
    done = make_task("done", status=SUCCEEDED)
    job = make_job(tasks=[*members(), done], min_member=5)
    here = [job.tasks["ns/j/t4"], job.tasks["ns/j/t0"]]
    safe, whole = cut(job, here)
    assert names([safe, whole]) == [("SURPLUS", ["t4"]), ("GANG", ["t0"])]
    assert whole.loss[0] == 6000, "what the job loses is all of it, wherever it is"
    assert whole.gain[0] == 1000


def test_equal_priorities_go_by_uid():
    assert names(cut(make_job(tasks=members(priorities=(1, 1, 1)), min_member=2)))[0] == ("SURPLUS", ["t0"])


def test_roles_keep_their_minimum():
    tasks = members(priorities=(1, 1, 1), role="ps") + [
        make_task(f"w{n}", status=RUNNING, role="worker", node_name="n0", priority=9) for n in range(3)
    ]
    job = make_job(tasks=tasks, min_member=3, min_task_member={"ps": 2, "worker": 1})
    assert names(cut(job)) == [("SURPLUS", ["t0", "w0", "w1"]), ("GANG", ["t1", "t2", "w2"])]
    smaller = make_job(tasks=tasks, min_member=2, min_task_member={"ps": 2, "worker": 1})
    assert names(cut(smaller))[0] == ("SURPLUS", ["t0", "t1", "t2", "w0"]), (
        "minMember below the roles' sum: roles are off"
    )


def test_what_each_role_can_spare_counts_pods_without_requests_that_wait_and_roles_without_a_pod():
    light = make_task("light", role="ps")
    light.template.best_effort = True
    job = make_job(tasks=[*members(priorities=(1, 1), role="ps"), light], min_member=5,
                   min_task_member={"ps": 2, "worker": 1})  # fmt: skip
    assert Spare(job, assign(job)).roles == {"ps": 1, "worker": -1}


def split_job(least_groups, least, sizes=(2, 2, 2)):
    policy = SubGroupPolicy(
        name="g", sub_group_size=2, min_sub_groups=least_groups, match_label_keys=("part",),
        label_selector=LabelSelector(),
    )  # fmt: skip
    tasks = [
        make_task(f"p{part}-{n}", status=RUNNING, labels={"part": str(part)}, node_name="n0", priority=part)
        for part, size in enumerate(sizes)
        for n in range(size)
    ]
    return make_job(tasks=tasks, min_member=least, sub_group_policy=(policy,))


def test_sub_groups_keep_their_number():
    assert names(cut(split_job(2, 0))) == [("SURPLUS", ["p0-0", "p0-1"]), ("GANG", ["p1-0", "p1-1", "p2-0", "p2-1"])]
    assert names(cut(split_job(3, 0))) == [("GANG", ["p0-0", "p0-1", "p1-0", "p1-1", "p2-0", "p2-1"])]
    # p1 lacks a task already, so the other one of it costs nothing
    assert names(cut(split_job(2, 0, (2, 1, 2)))) == [("SURPLUS", ["p1-0"]), ("GANG", ["p0-0", "p0-1", "p2-0", "p2-1"])]


def test_the_first_pod_that_a_sub_group_loses_counts_once():
    job = split_job(1, 0)
    spare = Spare(job, assign(job))
    found = [(spare.take(job.tasks[f"ns/j/{name}"]), dict(spare.groups)) for name in ("p0-0", "p0-1", "p1-0", "p2-0")]
    assert found == [*[(True, {"ns/j/g": 1})] * 2, (True, {"ns/j/g": 0}), (False, {"ns/j/g": 0})]


def test_a_job_without_sub_groups_can_spare_all_of_it():
    job = make_job(tasks=members(priorities=(1,)), min_member=0)
    assert list(Spare(job, assign(job)).groups.values()) == [1]


@pytest.mark.parametrize(("elsewhere", "found"), [(0, [("GANG", ["t1", "t0"])]), (1, [])])
def test_what_goes_only_whole_is_one_bundle_and_none_while_a_pod_of_it_runs_elsewhere(elsewhere, found):
    job = make_job(tasks=members(priorities=(2, 1)), min_member=0)
    job.facts.group = structs.replace(job.facts.group, evicted_whole=True)
    here = list(job.tasks.values())
    for number in range(elsewhere):
        job.add(make_task(f"e{number}", status=RUNNING, node_name="n1"))
    assert names(cut(job, here)) == found


@pytest.mark.parametrize(
    ("gone", "broken"), [((), False), ((0,), True), ((0, 1), True), ((0, 1, 2), False), ((3,), False), ((3, 4), False)]
)
def test_a_gang_bundle_is_broken_by_some_of_its_pods_and_not_by_all_of_them_or_others(gone, broken):
    _, whole = cut(make_job(tasks=members(), min_member=3))
    assert whole.is_broken_by({f"ns/j/t{number}" for number in gone}) is broken


def test_the_smallest_need_counts():
    assert one("ns/a", Kind.GANG, 1, loss=4).worth((1,)) == pytest.approx(1 / 4000)


def test_what_may_not_go_shrinks_a_safe_bundle_and_drops_a_whole_one():
    safe, whole = cut(make_job(tasks=members(), min_member=3))
    left = safe.allowed({"ns/j/t3"})
    assert left is not None
    assert (names([left]), left.gain[0]) == ([("SURPLUS", ["t3"])], 1000)
    assert safe.allowed({"ns/j/t0"}) is None
    assert whole.allowed({"ns/j/t0", "ns/j/t1"}) is None
    assert whole.allowed({"ns/j/t0", "ns/j/t1", "ns/j/t2"}) == whole


def one(name, kind, cpu, loss=0):
    task = make_task("t", name, RUNNING, asks={"cpu": cpu})
    return Bundle(kind, make_job(name, [task]), (task,), task.template.vector, (loss * 1000,))


def test_the_order_of_bundles():
    small, large = one("ns/b", Kind.GANG, 1, loss=4), one("ns/c", Kind.GANG, 2, loss=4)
    twin, safe = one("ns/a", Kind.GANG, 1, loss=4), one("ns/z", Kind.SURPLUS, 1)
    every = [small, large, twin, safe]
    assert in_order(every, (2000,), lambda *_: 0) == [safe, large, twin, small]
    last_first = in_order(every, (2000,), lambda left, right: 1 if left.uid < right.uid else -1)
    assert last_first == [safe, large, small, twin]
