from __future__ import annotations

import pytest

from stromboli.model.resources.axes import CPU
from stromboli.plugins.overcommit import DEFAULT_FACTOR, Overcommit
from tests.plugins.support import GPU, FakeSession, make_job, make_task, opened

PERMIT, REJECT = 1, -1


def plugin_on(total, used=None, jobs=(), **arguments):
    session = FakeSession(total, used, jobs=jobs)
    return opened(Overcommit(arguments), session), session


@pytest.mark.parametrize(
    ("total", "used", "factor", "idle"),
    [
        pytest.param(100, 0, 1.2, 120_000, id="S3-12-100-cpu"),
        pytest.param(10, 9, 1.2, 3_000, id="S3-12-9-used"),
        pytest.param(10, 13, 1.2, -1_000, id="below-zero"),
        pytest.param(10, 0, 2, 20_000, id="whole-factor"),
    ],
)
def test_idle(total, used, factor, idle):
    plugin, _ = plugin_on({"cpu": total}, {"cpu": used}, **{"overcommit-factor": factor})
    assert plugin.idle[CPU] == pytest.approx(idle)


def test_idle_of_other_resources():
    plugin, session = plugin_on({"cpu": 1, GPU: 10}, {GPU: 2})
    assert plugin.idle[session.axes.index[GPU]] == pytest.approx(10_000)


@pytest.mark.parametrize(
    ("factor", "text"),
    [
        pytest.param(
            0.5,
            "Invalid input 0.500000 for overcommit-factor, reason: overcommit-factor cannot be less than 1,"
            " using default value: 1.200000.",
            id="S3-13",
        ),
        pytest.param("2", "Could not parse argument: 2 for key overcommit-factor to float64", id="a-text"),
    ],
)
def test_a_bad_factor_is_complained_of_and_not_used(factor, text):
    plugin = Overcommit({"overcommit-factor": factor})
    assert (plugin.factor, [complaint.text for complaint in plugin.complaints]) == (DEFAULT_FACTOR, [text])


@pytest.mark.parametrize("key", ["overcommit-factor", "max-queue-overcommit-factor"])
def test_a_factor_of_1_is_none_to_complain_of(key):
    plugin = Overcommit({key: 1.0})
    assert (plugin.complaints, 1.0 in (plugin.factor, plugin.max_queue_factor)) == ([], True)


def with_gates():
    return make_task("gated", "ns/a", gates=("example.com/gate",), asks={"cpu": 1})


@pytest.mark.parametrize(
    ("jobs", "admitted"),
    [
        pytest.param([make_job("ns/a", min_resources={"cpu": 2})], 2000, id="S3-14-inqueue"),
        pytest.param(
            [make_job("ns/a", {"Binding": 1}, min_resources={"cpu": 2})], 2000, id="S3-14-in-full-while-inqueue"
        ),
        pytest.param(
            [make_job("ns/a", {"Running": 1}, phase="Running", min_member=1, min_resources={"cpu": 3})],
            2000,
            id="S3-14-running",
        ),
        pytest.param(
            [make_job("ns/a", {"Running": 1}, phase="Running", min_member=2, min_resources={"cpu": 3})],
            0,
            id="S3-14-too-few-run",
        ),
        pytest.param([make_job("ns/a", [with_gates()], min_resources={"cpu": 2})], 1000, id="S3-14-less-gated"),
        pytest.param([make_job("ns/a", phase="Pending", min_resources={"cpu": 2})], 0, id="pending"),
        pytest.param([make_job("ns/a", {"Pending": 1})], 0, id="no-minResources"),
    ],
)
def test_what_is_admitted_already(jobs, admitted):
    plugin, _ = plugin_on({"cpu": 10}, jobs=jobs)
    assert plugin.admitted[CPU] == admitted


def test_jobs_are_let_in_while_there_is_room():
    """S3-14, S3-16, S3-17: idle 3, admitted 2; the next of 1 enters, the one after it does not."""
    inqueue = make_job("ns/in", min_resources={"cpu": 2})
    first, second = (make_job(f"ns/{name}", phase="Pending", min_resources={"cpu": 1}) for name in ("first", "second"))
    plugin, session = plugin_on({"cpu": 10}, {"cpu": 9}, [inqueue, first, second])
    assert plugin.has_room(first) == PERMIT
    assert plugin.has_room(second) == PERMIT
    plugin.admit(first)
    assert plugin.has_room(second) == REJECT
    assert session.events == [("ns/second", "Normal", "Unschedulable", "resource in cluster is overused: overused cpu")]
    assert (len(session.told("overcommit_permitted")), session.told("overcommit_refused")) == (
        2,
        [{"job": "ns/second"}],
    )


@pytest.mark.parametrize(
    ("least", "vote"),
    [
        pytest.param(None, PERMIT, id="S3-15-no-minResources"),
        pytest.param({GPU: 1}, PERMIT, id="S3-15-only-what-is-asked-for"),
        pytest.param({"cpu": 1, GPU: 1}, REJECT, id="cpu-is-overfull"),
        pytest.param({"pods": 500}, PERMIT, id="pods-are-not-looked-at"),
        pytest.param({"example.com/fpga": 1}, REJECT, id="not-offered"),
    ],
)
def test_only_what_is_asked_for_is_compared(least, vote):
    job = make_job(phase="Pending", min_resources=least)
    plugin, _ = plugin_on({"cpu": 10, GPU: 2}, {"cpu": 20}, [job])
    assert plugin.has_room(job) == vote


def test_shortages_are_named_cpu_memory_then_by_name():
    job = make_job(phase="Pending", min_resources={GPU: 1, "example.com/fpga": 1, "memory": 1, "cpu": 1})
    plugin, session = plugin_on({}, jobs=[job])
    plugin.has_room(job)
    short = "overused cpu, overused memory, overused example.com/fpga, overused nvidia.com/gpu"
    assert session.events[0][3] == f"resource in cluster is overused: {short}"


def test_all_that_is_asked_for_may_be_lacking():
    job = make_job(phase="Pending", min_resources={"cpu": 1, "memory": 1, "pods": 1})
    plugin, session = plugin_on({}, jobs=[job])
    assert plugin.has_room(job) == REJECT
    assert session.events[0][3] == "resource in cluster is overused: overused cpu, overused memory"


def test_what_was_admitted_is_weighed_against_what_is_idle():
    inqueue = make_job("ns/in", min_resources={"cpu": 2})
    job = make_job(phase="Pending", min_resources={"cpu": 3})
    plugin, _ = plugin_on({"cpu": 10}, {"cpu": 10}, [inqueue, job], **{"overcommit-factor": 1.5})
    found = plugin.weighed(job)
    assert {what: numbers["cpu"] for what, numbers in found.numbers.items()} == {
        "request": 3000, "admitted": 2000, "idle": 5000,
    }  # fmt: skip
    assert (found.limit, found.words) == ("idle", "idle {} (overcommit-factor included)")


def test_jobs_without_minimum_count_nothing():
    """S3-17: best-effort jobs do not count."""
    job = make_job(phase="Pending")
    plugin, session = plugin_on({"cpu": 10}, jobs=[job])
    plugin.admit(job)
    assert not any(plugin.admitted)
    assert plugin.has_room(job) == PERMIT
    assert session.told("overcommit_best_effort") == [{"job": "ns/j"}]


def test_admission_leaves_gated_pods_out():
    job = make_job("ns/a", [with_gates()], phase="Pending", min_resources={"cpu": 3})
    plugin, _ = plugin_on({"cpu": 10}, jobs=[job])
    plugin.admit(job)
    assert plugin.admitted[CPU] == 2000


def test_it_says_when_it_comes_and_goes():
    plugin, session = plugin_on({"cpu": 10})
    plugin.on_session_close(session)
    assert (len(session.told("overcommit_entered")), len(session.told("overcommit_left"))) == (1, 1)
