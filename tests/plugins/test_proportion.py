from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.errors import NotFoundError
from stromboli.framework.books.cycle_state import CycleState
from stromboli.framework.extension.handlers import TaskEvent
from stromboli.model.job import ALLOCATED, PENDING
from stromboli.model.resources.axes import CPU
from stromboli.model.resources.resource import INFINITE
from stromboli.plugins.proportion import Proportion
from tests.plugins.support import GPU, FakeSession, make_job, make_queue, make_task, opened, vector

PERMIT, REJECT = 1, -1


def plugin_with(total, queues, jobs, **settings):
    session = FakeSession(total, queues=queues, jobs=jobs, **settings)
    return opened(Proportion(), session), session


def asking(name, cpu, **fields):
    """A job in queue ``name`` whose one pending task asks for ``cpu``."""
    return make_job(f"ns/{name}", [make_task("t", f"ns/{name}", asks={"cpu": cpu})], name, **fields)


def cpu_of(session, figure):
    return {name: figures[figure].milli_cpu / 1000 for name, figures in session.figures.items()}


# ---------------------------------------------------------------------- what queues may have, ask for and deserve


@pytest.mark.parametrize(
    ("capability", "milli_cpu", "memory"),
    [
        pytest.param(None, None, None, id="S3-58-unset"),
        pytest.param({"cpu": 0, "memory": "1Gi"}, INFINITE, 2**30, id="S3-58-cpu-0"),
        pytest.param({"cpu": 4}, 4000, INFINITE, id="S3-58-memory-left-out"),
        pytest.param({}, None, None, id="S3-58-empty"),
    ],
)
def test_capability(capability, milli_cpu, memory):
    _, session = plugin_with({"cpu": 30}, [make_queue("q", capability=capability)], [asking("q", 1)])
    found = session.figures["q"]["capability"]
    assert (found and (found.milli_cpu, found.memory)) == (None if milli_cpu is None else (milli_cpu, memory))


@pytest.mark.parametrize(
    ("queues", "expected"),
    [
        pytest.param([make_queue("a", {"cpu": 20}), make_queue("b")], {"a": 30, "b": 10}, id="S3-59"),
        pytest.param(
            [make_queue("a", {"cpu": 20}, capability={"cpu": 25}), make_queue("b")], {"a": 25, "b": 10}, id="S3-59-cut"
        ),
        pytest.param(
            [make_queue("a", {"cpu": 20}), make_queue("b", {"cpu": 20})],
            {"a": 20, "b": 20},
            id="guaranteed-more-than-there-is",
        ),
        pytest.param(
            [make_queue("a"), make_queue("b"), make_queue("idle", {"cpu": 12})],
            {"a": 18, "b": 18},
            id="queues-without-jobs-too",
        ),
    ],
)
def test_real_capability(queues, expected):
    _, session = plugin_with({"cpu": 30}, queues, [asking("a", 1), asking("b", 1)])
    assert cpu_of(session, "realCapability") == expected


@pytest.mark.parametrize(
    ("tasks", "least", "allocated", "requested", "elastic"),
    [
        pytest.param({"Running": 2, "Pending": 3}, None, 2, 5, 2, id="S3-60-allocated-and-request"),
        pytest.param({"Running": 5}, {"cpu": 3}, 5, 5, 2, id="S3-60-elastic"),
        pytest.param(
            {"Running": 1, "Releasing": 1, "Succeeded": 1}, {"cpu": 3}, 1, 1, 0, id="ending-tasks-do-not-count"
        ),
    ],
)
def test_allocated_request_elastic(tasks, least, allocated, requested, elastic):
    _, session = plugin_with({"cpu": 30}, [make_queue("q")], [make_job(tasks=tasks, queue="q", min_resources=least)])
    assert [cpu_of(session, figure)["q"] for figure in ("allocated", "request", "elastic")] == [
        allocated,
        requested,
        elastic,
    ]


@pytest.mark.parametrize(
    ("job", "inqueue"),
    [
        pytest.param(make_job(tasks={"Binding": 1}, queue="q", min_resources={"cpu": 4}), 3, id="S3-61-inqueue"),
        pytest.param(
            make_job(tasks={"Running": 1}, queue="q", phase="Running", min_member=1, min_resources={"cpu": 4}),
            3,
            id="S3-61-running",
        ),
        pytest.param(
            make_job(tasks={"Running": 1}, queue="q", phase="Running", min_member=2, min_resources={"cpu": 4}),
            0,
            id="S3-61-too-few",
        ),
        pytest.param(
            make_job(tasks=[make_task(gates=("example.com/gate",))], queue="q", min_resources={"cpu": 4}),
            3,
            id="S3-61-less-gated",
        ),
    ],
)
def test_inqueue(job, inqueue):
    _, session = plugin_with({"cpu": 30}, [make_queue("q")], [job])
    assert cpu_of(session, "inqueue")["q"] == inqueue


@pytest.mark.parametrize(
    ("total", "queues", "requests", "deserved"),
    [
        pytest.param(30, {"a": (1,), "b": (2,), "c": (3,)}, (2, 40, 40), (2, 11.2, 16.8), id="S3-62"),
        pytest.param(
            30, {"a": (1, 20), "b": (2,), "c": (3,)}, (2, 40, 40), (20, 10, 10), id="S3-62-guarantee-beyond-the-cluster"
        ),
        pytest.param(
            100, {"a": (3, 20, 50), "b": (2, 10, 80), "c": (5, 30)}, (200, 200, 200), (30, 20, 50), id="S1-34"
        ),
        pytest.param(100, {"a": (1, 20), "b": (9,)}, (200, 200), (20, 80), id="S1-35"),
        pytest.param(
            30, {"a": (1,), "b": (1,), "idle": (8,)}, (20, 20), (15, 15), id="queues-without-jobs-have-no-weight"
        ),
    ],
)
def test_deserved(total, queues, requests, deserved):
    made = [
        make_queue(
            name,
            {"cpu": row[1]} if len(row) > 1 else None,
            weight=row[0],
            capability={"cpu": row[2]} if len(row) > 2 else None,
        )
        for name, row in queues.items()
    ]
    jobs = [asking(name, request) for name, request in zip(queues, requests, strict=False)]
    _, session = plugin_with({"cpu": total, "pods": 100}, made, jobs)
    assert list(cpu_of(session, "deserved").values()) == pytest.approx(list(deserved))


def test_what_others_are_guaranteed_the_whole_of_limits_admission_not_shares():
    queues = [make_queue("a", {GPU: 8}), make_queue("b")]
    jobs = [
        make_job(f"ns/{name}", [make_task("t", f"ns/{name}", asks={GPU: 4})], name, min_resources={GPU: 4})
        for name in "ab"
    ]
    plugin, session = plugin_with({"cpu": 30, GPU: 8}, queues, jobs)
    assert GPU not in session.figures["b"]["realCapability"].scalars
    assert session.figures["b"]["deserved"].scalars[GPU] == 4000
    assert plugin.has_room(jobs[1]) == REJECT


def test_queues_without_jobs_publish_nothing():
    plugin, session = plugin_with({"cpu": 30}, [make_queue("a"), make_queue("idle", {"cpu": 2})], [asking("a", 1)])
    assert list(session.figures) == ["a"]
    assert plugin.has_its_share(session.queues["idle"])


# ---------------------------------------------------------------------- order, share, placements


def two_queues(running, priorities=(0, 0), wanted=10):
    """Queues a and b that deserve ``wanted`` cpus each and hold ``running``."""
    queues = [make_queue(name, priority=priority) for name, priority in zip("ab", priorities, strict=True)]
    jobs = [
        make_job(f"ns/{name}", {"Running": held, "Pending": wanted - held}, name)
        for name, held in zip("ab", running, strict=True)
    ]
    plugin, session = plugin_with({"cpu": 40, "pods": 100}, queues, jobs)
    return plugin, session, (session.queues["a"], session.queues["b"])


@pytest.mark.parametrize(
    ("running", "priorities", "answer"),
    [
        pytest.param((9, 1), (5, 1), -1, id="S3-63-priority-beats-share"),
        pytest.param((9, 1), (1, 1), 1, id="S3-63-smaller-share"),
        pytest.param((3, 3), (0, 0), 0, id="S3-63-equal"),
    ],
)
def test_order(running, priorities, answer):
    plugin, _, queues = two_queues(running, priorities)
    assert plugin.due_first(*queues) == answer
    assert plugin.due_first(*reversed(queues)) == -answer


def test_share():
    plugin, session, (queue, _) = two_queues((9, 1))
    assert plugin.turn(queue) == (0, 0.9)
    assert session.figures["a"]["share"] == 0.9


def test_two_queues_alternate():
    """S3-66: shares move with each placement, and back."""
    plugin, session, queues = two_queues((0, 0))
    turns = []
    for number in (0, 0, 1, 1, 2, 2):
        first = min(queues, key=plugin.turn)
        turns.append(first.name)
        session.place(session.jobs[f"ns/{first.name}"].tasks[f"ns/{first.name}/pending-{number}"])
    assert turns == ["a", "b"] * 3
    session.place(session.jobs["ns/b"].tasks["ns/b/pending-0"], PENDING)
    assert min(queues, key=plugin.turn).name == "b"


@pytest.mark.parametrize(("running", "answer"), [(10, True), (9, False)])
def test_overused_when_all_that_is_deserved_is_held(running, answer):
    plugin, session, (queue, _) = two_queues((running, 0))
    assert plugin.has_its_share(queue) == answer
    assert len(session.told("proportion_overused")) == answer


def memory_full():
    """A queue beyond its memory (its tasks hold more than others left it), with cpu to spare."""
    running = make_task("big", "ns/a", ALLOCATED, asks={"cpu": 1, "memory": "8Gi"})
    waits = [make_task("cpu", "ns/a", asks={"cpu": 1}), make_task("both", "ns/a", asks={"cpu": 1, "memory": "1Gi"})]
    jobs = [
        make_job("ns/a", [running, *waits], "a"),
        make_job("ns/b", [make_task("t", "ns/b", asks={"cpu": 9, "memory": "8Gi"})], "b"),
    ]
    plugin, session = plugin_with({"cpu": 10, "memory": "8Gi", "pods": 10}, [make_queue("a"), make_queue("b")], jobs)
    return plugin, session, session.queues["a"], waits


def test_only_what_is_asked_for_is_compared():
    """S3-67."""
    plugin, session, queue, (cpu, both) = memory_full()
    assert plugin.stays_within_share(queue, cpu)
    assert not plugin.stays_within_share(queue, both)
    assert session.told("proportion_refused")[0]["queue"] == "a"
    assert plugin.may_take_back(queue, [cpu])
    assert not plugin.may_take_back(queue, [cpu, both])
    assert not plugin.has_its_share(queue)


def test_tasks_are_added_up_where_several_are_to_be_placed():
    plugin, _, (queue, _) = two_queues((8, 0))
    task = make_task()
    assert [plugin.may_take_back(queue, [task] * count) for count in (0, 2, 3)] == [True, True, False]


@pytest.mark.parametrize("state", ["Closed", "Closing", "Unknown", ""])
def test_queues_that_are_not_open_get_nothing(state):
    job = asking("q", 1, phase="Pending", min_resources={"cpu": 1})
    plugin, session = plugin_with({"cpu": 9}, [make_queue("q", state=state)], [job])
    queue, (task,) = session.queues["q"], job.tasks.values()
    assert not plugin.stays_within_share(queue, task)
    assert not plugin.may_take_back(queue, [task])
    assert plugin.times_within_share(queue, task, 3) == 0
    assert plugin.has_room(job) == REJECT
    assert session.events == []
    assert session.told("queue_closed_allocate")[0] == {"queue": "q", "state": state}
    assert session.told("queue_closed_enqueue") == [{"queue": "q", "state": state, "job": "ns/q"}]


@given(st.integers(0, 10), st.integers(0, 12), st.sampled_from(["500m", 1, "1500m", 0]))
def test_many_is_asking_before_every_placement(running, k, cpu):
    """A queue that deserves 10.5 cpus."""
    jobs = [make_job("ns/a", {"Running": running, "Pending": 10 - running}, "a"), asking("a2", 30)]
    jobs[1].facts.queue = "a"
    like = [make_task(f"more-{number}", "ns/a", asks={"cpu": cpu}) for number in range(k)]
    for task in like:
        jobs[0].add(task)
    plugin, session = plugin_with({"cpu": "10500m", "pods": 99}, [make_queue("a")], jobs)
    queue = session.queues["a"]
    expected = plugin.times_within_share(queue, make_task(asks={"cpu": cpu}), k)
    count = 0
    while count < k and plugin.stays_within_share(queue, like[count]):
        session.place(like[count])
        count += 1
    assert expected == count


# ---------------------------------------------------------------------- victims


@pytest.mark.parametrize(
    ("running", "victims"), [(15, 5), (10, 0), (11, 1), (3, 0)], ids=["as-long-as-beyond", "exactly", "one", "below"]
)
def test_victims_until_the_queue_has_no_more_than_it_deserves(running, victims):
    jobs = [make_job("ns/a", {"Running": running, "Pending": 20 - running}, "a"), asking("b", 20)]
    plugin, session = plugin_with({"cpu": 20, "pods": 100}, [make_queue("a"), make_queue("b")], jobs)
    candidates = [task for task in jobs[0].tasks.values() if task.status is not PENDING]
    assert plugin.beyond_share(make_task("r", "ns/b"), candidates) == candidates[:victims]
    assert len(session.told("proportion_victims")[0]["victims"]) == victims


def test_one_dimension_beyond_is_enough():
    plugin, session, _, _ = memory_full()
    (running,) = (task for task in session.jobs["ns/a"].tasks.values() if task.status is ALLOCATED)
    assert plugin.beyond_share(make_task("r", "ns/b"), [running]) == [running]


def test_a_queue_beyond_its_share_alone_may_have_victims():
    plugin, session = plugin_with({"cpu": 4}, [make_queue("a"), make_queue("b")],
                                  [make_job("ns/a", {"Running": 3}, "a"), asking("b", 9)])  # fmt: skip
    jobs = [session.jobs["ns/a"], session.jobs["ns/b"], make_job("ns/stray", queue="nowhere")]
    assert [plugin.queue_may_be_beyond_share(make_task(), job) for job in jobs] == [True, False, False]


def test_a_queue_that_cannot_be_used_neither_gets_nor_gives_anything():
    """It is guaranteed more than there is."""
    jobs = [make_job("ns/q", {"Running": 2, "Pending": 1}, "q", min_resources={"cpu": 1}), asking("r", 9)]
    plugin, session = plugin_with({"cpu": 9, "pods": 99}, [make_queue("q", {"cpu": 99}), make_queue("r")], jobs)
    queue, task = session.queues["q"], jobs[0].tasks["ns/q/pending-0"]
    running = [jobs[0].tasks[f"ns/q/running-{number}"] for number in range(2)]
    assert not plugin.has_its_share(queue)
    assert not plugin.stays_within_share(queue, task)
    assert plugin.times_within_share(queue, task, 2) == 0
    assert not plugin.may_take_back(queue, [task])
    assert not plugin.would_stay_within_share(CycleState(), queue, task)
    assert plugin.has_room(jobs[0]) == REJECT
    assert plugin.beyond_share(make_task("t", "ns/r"), running) == []
    assert not plugin.queue_may_be_beyond_share(make_task("t", "ns/r"), jobs[0])
    assert (session.told("proportion_refused"), session.told("proportion_refused_simulated")) == ([], [])


def test_orphans_are_no_victims():
    plugin, session, _ = two_queues((9, 9))
    assert plugin.beyond_share(make_task("r", "ns/b"), [make_task("o", "ns/gone")]) == []
    assert session.told("orphan_skipped")[0]["what"] == "reclaimee"


# ---------------------------------------------------------------------- admission


def admission(least, **fields):
    """Capacity 10; 6 cpus held, 2 admitted, 1 elastic."""
    running = make_job("ns/r", {"Running": 6}, "q", phase="Running", min_member=9, min_resources={"cpu": 5})
    admitted = make_job("ns/i", queue="q", min_resources={"cpu": 2})
    job = make_job("ns/new", queue="q", phase="Pending", min_resources=least)
    plugin, session = plugin_with({"cpu": 10, "memory": "1Gi"}, [make_queue("q", **fields)], [running, admitted, job])
    return plugin, session, job


@pytest.mark.parametrize(
    ("least", "vote", "text"),
    [
        pytest.param({"cpu": 3}, PERMIT, None, id="S3-64-fits"),
        pytest.param({"cpu": 4}, REJECT, "queue resource quota insufficient: insufficient cpu", id="S3-64-does-not"),
        pytest.param(None, PERMIT, None, id="S3-65-no-minResources"),
        pytest.param(
            {GPU: 1, "example.com/fpga": 2, "memory": "2Gi", "cpu": 9},
            REJECT,
            "queue resource quota insufficient: insufficient cpu, insufficient memory, insufficient example.com/fpga,"
            " insufficient nvidia.com/gpu",
            id="S3-65-names-in-order",
        ),
        pytest.param({"pods": 500}, PERMIT, None, id="pods-are-not-looked-at"),
        pytest.param({"memory": "1Gi"}, PERMIT, None, id="cpu-not-asked-for"),
    ],
)
def test_admission(least, vote, text):
    plugin, session, job = admission(least)
    assert plugin.has_room(job) == vote
    assert session.events == ([] if text is None else [("ns/new", "Normal", "Unschedulable", text)])


def test_admission_without_capability_is_held_to_the_cluster():
    """S3-65: real capability is always there; the cluster's total takes the place of an unset capability."""
    plugin, _, job = admission({"cpu": 3}, capability={"cpu": 9})
    assert plugin.has_room(job) == REJECT


def test_admitted_jobs_count_for_later_ones():
    plugin, _, job = admission({"cpu": 2})
    assert plugin.has_room(job) == PERMIT
    plugin.admit(job)
    assert plugin.accounts["q"].inqueue[CPU] == 4000
    assert plugin.has_room(job) == REJECT


def test_placements_count_at_once():
    plugin, session, job = admission({"cpu": 3})
    one = make_task("late", "ns/r")
    session.jobs["ns/r"].add(one)
    session.place(one)
    assert plugin.has_room(job) == REJECT


# ---------------------------------------------------------------------- tried moves


def test_tried_moves_count_in_their_own_state_only():
    plugin, session, (queue, _) = two_queues((9, 1))
    held = list(session.jobs["ns/a"].tasks.values())
    task, state = held[-1], CycleState()
    assert plugin.would_stay_within_share(state, queue, task)
    assert plugin.try_adding(state, task, task, None) is None
    twin = state.clone()
    assert not plugin.would_stay_within_share(state, queue, task)
    assert plugin.try_removing(twin, task, held[0], None) is None
    assert plugin.would_stay_within_share(twin, queue, task)
    assert not plugin.would_stay_within_share(state, queue, task)
    assert len(session.told("proportion_refused_simulated")) == 2


def test_tried_moves_of_orphans():
    plugin, _, _ = two_queues((0, 0))
    text = "[proportion] job ns/gone not found in session (orphaned task from deleted PodGroup)"
    assert str(plugin.try_adding(CycleState(), None, make_task("o", "ns/gone"), None)) == text
    stray = make_job("ns/stray", {"Pending": 1}, "nowhere")
    other, _ = plugin_with({"cpu": 1}, [make_queue("q")], [asking("q", 1), stray])
    (task,) = stray.tasks.values()
    assert str(other.try_removing(CycleState(), None, task, None)) == "[proportion] queue nowhere not found"


# ---------------------------------------------------------------------- what is reported


def test_lines_of_the_opening():
    queues = [make_queue("a"), make_queue("b", weight=2), make_queue("idle", {"cpu": 1})]
    _, session = plugin_with({"cpu": 30, "pods": 99}, queues, [asking("a", 2), asking("b", 60)])
    counts = session.observer.counts
    assert [told["queue"] for told in session.told("queue_met")] == ["a"]
    assert [told["deserved"].milli_cpu for told in session.told("queue_deserved")] == pytest.approx(
        [2000, 20000, 29000], abs=1001
    )
    once = ("total_resource", "total_guarantee", "remaining_exhausted")
    assert {key: counts[key] for key in once} == dict.fromkeys(once, 1)
    assert (counts["considering_job"], counts["queue_sums"], counts["queue_attributes_added"]) == (2, 2, 2)


def test_weights_exhausted():
    _, session = plugin_with({"cpu": 30, "pods": 99}, [make_queue("a")], [asking("a", 2)])
    assert (session.observer.counts["weights_exhausted"], session.observer.counts["remaining_exhausted"]) == (1, 0)


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("queue_weight", [("a", 1, 3), ("b", 2, 3), ("b", 2, 2)]),
        ("queue_sums", ["a", "b"]),
        ("queue_attributes_added", [{"queue": "a"}, {"queue": "b"}]),
        ("queue_met", [{"queue": "a"}]),
        ("remaining", [8.0, 0.0]),
        ("queue_attributes", [2.0, 20.0, 28.0]),
    ],
)  # fmt: skip
def test_each_line_is_told_though_no_other_is_wanted(key, told):
    """Of 30 cores a asks for 2; b gets its 20 of the first round and the 8 that a leaves."""
    queues = [make_queue("a"), make_queue("b", weight=2)]
    _, session = plugin_with({"cpu": 30, "pods": 99}, queues, [asking("a", 2), asking("b", 60)], keys=(key,))
    shown = {
        "queue_weight": lambda fields: (fields["queue"], fields["weight"], fields["total_weight"]),
        "queue_sums": lambda fields: fields["queue"],
        "remaining": lambda fields: fields["remaining"].milli_cpu / 1000,
        "queue_attributes": lambda fields: fields["deserved"].milli_cpu / 1000,
    }.get(key, dict)
    assert [shown(fields) for fields in session.told(key)] == told


def test_events_are_heard_only_to_be_told_on():
    points = {
        keys: {hook.point.name for hook, _ in opened(Proportion(), FakeSession({"cpu": 1}, keys=keys)).hooks()}
        for keys in ((), ("queue_event_allocated",))
    }
    assert not {"on_allocate", "on_deallocate"} & points[()]
    assert {"on_allocate", "on_deallocate"} & points["queue_event_allocated",] == {"on_allocate"}


def test_events():
    plugin, session, _ = two_queues((9, 1))
    task = next(iter(session.jobs["ns/a"].tasks.values()))
    plugin.placed(TaskEvent(task))
    plugin.removed(TaskEvent(make_task("o", "ns/gone")))
    assert session.told("queue_event_allocated")[0]["share"] == 0.9
    assert session.told("orphan_skipped")[0]["what"] == "deallocate event for task"


def test_figures_for_metrics():
    queues = [make_queue("a", weight=3), make_queue("idle")]
    job = make_job("ns/a", {"Running": 2, "Pending": 2}, "a", min_resources={"cpu": 3})
    plugin, session = plugin_with({"cpu": 30, "pods": 99}, queues, [job])
    session.place(job.tasks["ns/a/pending-0"])
    plugin.has_its_share(session.queues["a"])
    plugin.admit(job)
    plugin.on_session_close(session)
    figures = session.told("metric.queue_figures")[0]["figures"]
    a, idle = figures["a"], figures["idle"]
    assert (a.allocated.vector[CPU], a.request.vector[CPU], a.inqueue.vector[CPU]) == (3000, 4000, 1000)
    assert (a.deserved.milli_cpu, a.share, a.weight, a.overused) == (4000, 0.75, 3, False)
    assert (idle.allocated.vector[CPU], idle.share, idle.weight, idle.deserved) == (0, None, None, None)


def test_told_fields_are_those_of_the_catalogue():
    """The sessions of these tests check every field; here, that the check bites."""
    session = FakeSession({"cpu": 1})
    with pytest.raises(NotFoundError):
        session.tells("queue_met")()
    assert vector({"cpu": 1})[CPU] == 1000
