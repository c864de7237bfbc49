from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stromboli.api.scheduling import SubGroupPolicy
from stromboli.model.job import ALLOCATED, PIPELINED
from stromboli.model.status import TaskStatus
from stromboli.plugins.gang import Gang
from tests.plugins.support import FakeSession, asked, make_job, make_task, opened

PERMIT, REJECT = 1, -1
NOTHING: dict[str, int] = {}
READY = {"Allocated": 1, "Binding": 1, "Bound": 1, "Succeeded": 1}
ROLES = {"ps": 1, "worker": 2}
LACKS = "tasks in gang unschedulable: why j waits"


def plugin_with(*jobs, **settings):
    session = FakeSession(jobs=jobs, **settings)
    return opened(Gang(), session), session


def tasks_of(roles, uid="ns/j", **fields):
    """Tasks by role: {role: {state: how many}}."""
    return [
        make_task(f"{role}-{state}-{number}", uid, TaskStatus[state], role=role, **fields)
        for role, states in roles.items()
        for state, count in states.items()
        for number in range(count)
    ]


def policy(name="p", least=1, size=None):
    return SubGroupPolicy(name=name, min_sub_groups=least, sub_group_size=size, match_label_keys=("part",))


def parts_of(parts, uid="ns/j"):
    """Tasks by value of the label ``part``: {value: {state: how many}}."""
    return [
        make_task(f"{part}-{state}-{number}", uid, TaskStatus[state], labels={"part": part})
        for part, states in parts.items()
        for state, count in states.items()
        for number in range(count)
    ]


# ---------------------------------------------------------------------- can it start


@pytest.mark.parametrize(
    ("job", "answer"),
    [
        pytest.param(make_job(tasks={"Running": 1, "Pending": 1}, min_member=2), None, id="enough"),
        pytest.param(
            make_job(tasks={"Succeeded": 1, "Pipelined": 1}, min_member=2), None, id="succeeded-and-pipelined-count"
        ),
        pytest.param(
            make_job(tasks={"Failed": 1, "Releasing": 1, "Pending": 1}, min_member=2),
            ("NotEnoughTasks", "Not enough valid tasks for gang-scheduling, valid: 1, min: 2"),
            id="too-few",
        ),
        pytest.param(
            make_job(
                tasks=tasks_of({"ps": {"Failed": 1}, "worker": {"Pending": 2}}),
                min_member=3,
                min_task_member=ROLES,
            ),
            ("NotEnoughPodsOfTask", "Not enough valid pods of each task for gang-scheduling"),
            id="a-role-lacks-pods",
        ),
        pytest.param(
            make_job(tasks=tasks_of({"worker": {"Pending": 2}}), min_member=1, min_task_member=ROLES),
            None,
            id="roles-do-not-apply-below-their-sum",
        ),
        pytest.param(
            make_job(tasks=parts_of({"a": {"Pending": 1}}), min_member=9, sub_group_policy=(policy(least=2),)),
            ("NotEnoughPodsOfTask", "Not enough valid subGroups of each task for gang-scheduling"),
            id="too-few-sub-jobs-comes-before-too-few-tasks",
        ),
        pytest.param(
            make_job(tasks=parts_of({"a": {"Pending": 1}}), min_member=1, sub_group_policy=(policy(least=0),)),
            None,
            id="a-policy-without-minimum",
        ),
        pytest.param(
            make_job(
                tasks=parts_of({"a": {"Pending": 1}, "b": {"Pending": 1}}),
                min_member=1,
                sub_group_policy=(policy(least=2),),
            ),
            None,
            id="sub-jobs-enough",
        ),
    ],
)
def test_valid(job, answer):
    plugin, _ = plugin_with(job)
    assert plugin.has_pods_enough(job) == answer


# ---------------------------------------------------------------------- is it complete


@pytest.mark.parametrize(
    ("job", "ready", "pipelined", "starving"),
    [
        pytest.param(make_job(tasks={"Running": 2, "Pending": 2}, min_member=3), False, False, True, id="lacks-one"),
        pytest.param(make_job(tasks={"Running": 2, "Pipelined": 1}, min_member=3), False, True, False, id="pipelined"),
        pytest.param(make_job(tasks=READY, min_member=4), True, True, False, id="ready"),
        pytest.param(
            make_job(tasks={"Running": 1, "Pending": 1}, asks=NOTHING, min_member=2),
            True, True, True, id="best-effort-counts-but-starves",
        ),
        pytest.param(make_job(min_member=0), True, True, False, id="no-minimum"),
        pytest.param(
            make_job(
                tasks=tasks_of({"ps": {"Pending": 1}, "worker": {"Running": 3}}), min_member=3, min_task_member=ROLES
            ),
            False, False, False, id="a-role-lacks-tasks",
        ),
        pytest.param(
            make_job(
                tasks=tasks_of({"ps": {"Pipelined": 1}, "worker": {"Running": 3}}), min_member=3, min_task_member=ROLES
            ),
            False, True, False, id="the-role-will-be-there",
        ),
        pytest.param(
            make_job(
                tasks=parts_of({"a": {"Running": 2}, "b": {"Running": 1}}), min_member=2,
                sub_group_policy=(policy(least=2, size=2),),
            ),
            False, False, False, id="a-sub-job-lacks-tasks",
        ),
        pytest.param(
            make_job(
                tasks=parts_of({"a": {"Running": 2}, "b": {"Running": 1, "Pipelined": 1}}), min_member=2,
                sub_group_policy=(policy(least=2, size=2),),
            ),
            False, True, False, id="a-sub-job-will-be-there",
        ),
        pytest.param(
            make_job(
                tasks=parts_of({"a": {"Running": 1}}), min_member=1, sub_group_policy=(policy(), policy("q")),
            ),
            False, False, False, id="one-of-two-policies-has-no-sub-job",
        ),
    ],
)  # fmt: skip
def test_complete(job, ready, pipelined, starving):
    plugin, _ = plugin_with(job)
    assert plugin.is_complete(job) == ready
    assert plugin.will_be_complete(job) == (PERMIT if pipelined else REJECT)
    assert plugin.lacks_tasks(job) == starving


def test_sub_jobs_answer_for_themselves():
    job = make_job(
        tasks=parts_of({"a": {"Running": 1, "Pipelined": 1}}), min_member=9, sub_group_policy=(policy(size=2),)
    )
    plugin, session = plugin_with(job)
    (sub,) = session.sub_jobs(job).values()
    assert not plugin.part_is_complete(sub)
    assert plugin.part_will_be_complete(sub) == PERMIT
    assert not plugin.part_turn(sub)


def test_a_sub_job_that_still_lacks_tasks_is_rejected_unless_they_have_second_places():
    job = make_job(tasks=parts_of({"a": {"Running": 1, "Pending": 1}}), sub_group_policy=(policy(size=2),))
    plugin, session = plugin_with(job)
    (sub,) = session.sub_jobs(job).values()
    answers = []
    for counted in ((), sub.task_uids[:1], ["another"]):
        session.ledger.second_places = SimpleNamespace(counted={*counted})
        answers.append(plugin.part_will_be_complete(sub))
    assert answers == [REJECT, PERMIT, REJECT]


def test_best_effort_tasks_of_a_sub_job_count_before_they_are_placed_and_no_more_afterwards():
    task = make_task("t", asks=NOTHING, labels={"part": "a"})
    job = make_job(tasks=[task], sub_group_policy=(policy(size=2),))
    plugin, session = plugin_with(job)
    (sub,) = session.sub_jobs(job).values()
    assert plugin.part_complete_after(sub, task, 1) == 2


def test_tasks_are_in_vain_while_another_policy_has_no_sub_job():
    (task,) = tasks = parts_of({"a": {"Pending": 1}})
    job = make_job(tasks=tasks, min_member=1, sub_group_policy=(policy(), policy("q")))
    plugin, _ = plugin_with(job)
    assert plugin.complete_after(job, task, 1) == 2


@pytest.mark.parametrize(
    ("states", "after"),
    [({"Running": 1, "Pipelined": 1}, 2), ({"Running": 4}, 1), ({}, 3)],
    ids=["lacks", "has", "few"],
)
def test_minimum_is_reached_after_so_many_more(states, after):
    job = make_job(tasks={**states, "Pending": 4}, min_member=4)
    plugin, _ = plugin_with(job)
    assert plugin.sated_after(job, job.tasks["ns/j/pending-0"], 2) == after


@pytest.mark.parametrize(("running", "spare"), [(2, False), (3, False), (4, True)])
def test_only_a_job_beyond_its_minimum_has_anything_to_spare(running, spare):
    job = make_job(tasks={"Running": running}, min_member=3)
    plugin, _ = plugin_with(job)
    for point in ("preemptable", "reclaimable"):
        assert asked(plugin, point, "job")(make_task("p", "ns/p"), job) is spare


roles = st.fixed_dictionaries(
    {
        role: st.fixed_dictionaries(
            {state: st.integers(0, 3) for state in ("Pending", "Running", "Pipelined", "Succeeded")}
        )
        for role in ("ps", "worker")
    }
)


few = st.integers(0, 3)


def allocate_one_by_one(session, job, tasks, ready, k):
    """After how many allocations of ``tasks`` the job says it is ready, asking after each one."""
    for count, task in enumerate(tasks[:k], 1):
        session.place(task, ALLOCATED)
        if ready(session.jobs[job.uid]):
            return count
    return k + 1


def some(role: str, **states: int) -> dict[str, dict[str, int]]:
    """Tasks of one role by their states, and none of the other."""
    none = dict.fromkeys(("Pending", "Running", "Pipelined", "Succeeded"), 0)
    return {"ps": none, "worker": none, role: {**none, **states}}


@example(some("worker", Pending=2), 1, 1, 1, True, 2)  # fewer are needed than all roles together: none is by its role
@example(some("worker", Pending=3), 1, 1, 0, False, 3)  # none of them is of the role that lacks one
@example(some("worker", Pending=1), 2, 0, 0, True, 1)  # it asks for nothing and counts already, and one is lacking
@given(roles, st.integers(0, 9), st.integers(0, 3), st.integers(0, 3), st.booleans(), st.integers(1, 4))
def test_many_is_asking_after_every_allocation(drawn, least, ps, workers, best_effort, k):
    tasks = tasks_of(drawn, asks=NOTHING if best_effort else {"cpu": 1})
    job = make_job(tasks=tasks, min_member=least, min_task_member={"ps": ps, "worker": workers})
    plugin, session = plugin_with(job)
    pending = [task for task in tasks if task.role == "worker" and task.status is TaskStatus.Pending]
    if not pending:
        return
    k = min(k, len(pending))
    answer = plugin.complete_after(session.jobs[job.uid], pending[0], k)
    assert answer == allocate_one_by_one(session, job, pending, plugin.is_complete, k)


@given(
    st.fixed_dictionaries(dict.fromkeys("ab", st.fixed_dictionaries(dict.fromkeys(("Pending", "Running"), few)))),
    st.integers(0, 6), st.integers(0, 2), st.integers(1, 3), st.integers(1, 3),
)  # fmt: skip
def test_many_of_jobs_with_sub_jobs(parts, least, groups, size, k):
    tasks = parts_of(parts)
    job = make_job(tasks=tasks, min_member=least, sub_group_policy=(policy(least=groups, size=size),))
    plugin, session = plugin_with(job)
    pending = [task for task in tasks if task.labels["part"] == "a" and task.status is TaskStatus.Pending]
    if not pending:
        return
    k = min(k, len(pending))
    mine = session.jobs[job.uid]
    own = next(sub for sub in session.sub_jobs(mine).values() if pending[0].uid in sub.task_uids)
    answers = plugin.complete_after(mine, pending[0], k), plugin.part_complete_after(own, pending[0], k)
    part_ready = [plugin.part_is_complete(own)]

    def ready(now):
        part_ready.append(plugin.part_is_complete(own))
        return plugin.is_complete(now)

    assert answers[0] == allocate_one_by_one(session, job, pending, ready, k)
    for task in pending[:k]:
        if session.jobs[job.uid].tasks[task.uid].status is not ALLOCATED:
            session.place(task, ALLOCATED)
            part_ready.append(plugin.part_is_complete(own))
    assert answers[1] == next((count for count, holds in enumerate(part_ready) if count and holds), k + 1)


# ---------------------------------------------------------------------- orders and victims


@pytest.mark.parametrize(("left", "right", "answer"), [(2, 3, 1), (3, 2, -1), (2, 2, 0), (3, 3, 0)])
def test_incomplete_jobs_first(left, right, answer):
    """``left`` and ``right`` are minimums of jobs with two running tasks."""
    one, other = (make_job(f"ns/j{least}", {"Running": 2, "Pending": 1}, min_member=least) for least in (left, right))
    plugin, session = plugin_with(one, other)
    assert plugin.incomplete_first(one, other) == answer
    assert plugin.turn(one) - plugin.turn(other) == answer
    assert session.told("gang_job_order")[0]["left_ready"] == (left == 2)
    sub = SimpleNamespace(is_ready=lambda: left == 2), SimpleNamespace(is_ready=lambda: right == 2)
    assert plugin.incomplete_part_first(*sub) == answer


@pytest.mark.parametrize(
    ("states", "least", "candidates", "victims"),
    [
        pytest.param({"Running": 2, "Pending": 2}, 3, 1, 0, id="ready-2-of-3"),
        pytest.param({"Running": 5}, 3, 5, 2, id="first-two-of-five"),
        pytest.param({"Running": 3}, 3, 1, 0, id="exactly-the-minimum"),
        pytest.param({"Running": 2, "Succeeded": 2}, 3, 2, 1, id="succeeded-counts"),
        pytest.param({"Running": 2}, 0, 2, 2, id="no-minimum"),
    ],
)
@pytest.mark.parametrize("point", ["preemptable", "reclaimable"])
def test_only_what_is_beyond_the_minimum_may_go(point, states, least, candidates, victims):
    job = make_job("ns/v", states, min_member=least)
    plugin, session = plugin_with(job)
    running = list(job.of(TaskStatus.Running))[:candidates]
    assert asked(plugin, point)(make_task("p", "ns/p"), running) == running[:victims]
    told = session.told("gang_refused")
    assert len(told) == candidates - victims
    assert all((each["ready"], each["min_available"]) == (job.ready_task_num() - victims, least) for each in told)


def test_jobs_are_counted_one_by_one_and_orphans_skipped():
    jobs = [make_job(f"ns/{name}", {"Running": 2}, min_member=1) for name in "ab"]
    plugin, session = plugin_with(*jobs)
    (a1, a2), (b1, _) = ([*job.tasks.values()] for job in jobs)
    orphan = make_task("o", "ns/gone")
    assert plugin.spare_minimum(make_task("p", "ns/p"), [a1, orphan, b1, a2]) == [a1, b1]
    assert session.told("orphan_skipped") == [{"plugin": "gang", "what": "preemptee", "task": "ns/o", "job": "ns/gone"}]
    assert session.told("gang_victims") == [{"victims": ["ns/running-0", "ns/running-0"], "task": "ns/p"}]


def test_gang_actions_may_take_any_task():
    plugin, _ = plugin_with()
    tasks = [make_task()]
    assert plugin.allow_bundles(None, tasks) == tasks


# ---------------------------------------------------------------------- the end of the session


def closed(*jobs):
    plugin, session = plugin_with(*jobs)
    plugin.on_session_close(session)
    return session


def shown(condition):
    return condition.type, condition.status, condition.reason, condition.message, condition.transition_id


@pytest.mark.parametrize(
    ("job", "condition"),
    [
        pytest.param(
            make_job(tasks={"Running": 2}, min_member=2),
            ("Scheduled", "True", "tasks in gang are ready to be scheduled", "", "session-1"),
            id="complete",
        ),
        pytest.param(
            make_job(tasks={"Running": 1, "Pending": 3}, min_member=3),
            ("Unschedulable", "True", "NotEnoughResources", f"2/4 {LACKS}", "session-1"),
            id="incomplete",
        ),
        pytest.param(
            make_job(tasks={"Running": 2, "Pending": 1}, min_member=3),
            ("Unschedulable", "True", "NotEnoughResources", f"1/3 {LACKS}", "session-1"),
            id="lacks-one",
        ),
        pytest.param(
            make_job(
                tasks=[
                    make_task("a", last=ALLOCATED), make_task("b", last=ALLOCATED), make_task("c", last=PIPELINED),
                    make_task("d"),
                ],
                min_member=4,
            ),
            ("Unschedulable", "True", "NotEnoughResources", f"2/4 {LACKS}", "session-1"),
            id="tasks-that-had-a-place-are-not-missing",
        ),
        pytest.param(make_job(min_member=3), None, id="no-tasks"),
        pytest.param(make_job(tasks={"Running": 1, "Releasing": 2}, min_member=3), None, id="skip-while-ending"),
        pytest.param(
            make_job(tasks={"Running": 1, "Releasing": 1}, min_member=3),
            ("Unschedulable", "True", "NotEnoughResources", f"2/2 {LACKS}", "session-1"),
            id="too-few-even-with-the-ending-ones",
        ),
        pytest.param(
            make_job(tasks={"Running": 1, "Releasing": 2, "Pending": 1}, min_member=3),
            ("Unschedulable", "True", "NotEnoughResources", f"2/4 {LACKS}", "session-1"),
            id="no-skip-while-a-task-waits",
        ),
    ],
)  # fmt: skip
def test_condition(job, condition, monkeypatch):
    monkeypatch.setattr("stromboli.plugins.gang.fit_error", lambda job: f"why {job.name} waits")
    found = closed(job).conditions.get(job.uid)
    assert (found and shown(found)) == condition


def test_figures():
    session = closed(
        make_job("ns/done", {"Running": 1}, min_member=1), make_job("ns/waits", {"Pending": 2}, min_member=2),
        make_job("ns/ends", {"Releasing": 2}, min_member=2), make_job("ns/empty", min_member=2),
    )  # fmt: skip
    (told,) = session.told("metric.unschedule_task_count")
    assert told == {"counts": {"ns/done": 0, "ns/waits": 2}}
    assert (len(told["counts"]), repr(told["counts"])) == (2, "{'ns/done': 0, 'ns/waits': 2}")
    assert [uid in told["counts"] for uid in ("ns/ends", "ns/empty", "ns/unknown")] == [False] * 3
    assert session.told("metric.unschedule_job_count") == [{"count": 1}]
    assert session.told("metric.job_retry_counts") == [{"jobs": ["ns/waits"]}]


def test_figures_are_for_observers_that_want_them():
    job = make_job(tasks={"Running": 1}, min_member=1)
    plugin, session = plugin_with(job, keys=())
    plugin.on_session_close(session)
    assert (session.observer.counts.total(), len(session.conditions)) == (0, 1)
