"""Which events reach a job, and what its policies make of them."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.api.batch import Job
from stromboli.api.kinds import POD_GROUPS
from stromboli.api.read import read
from stromboli.controllers.changes import Emit
from stromboli.controllers.jobs.requests import Choice, Request, choose
from stromboli.controllers.jobs.timers import Timers
from stromboli.controllers.manager import Manager
from stromboli.controllers.work import About, Work
from tests.controllers.cluster import Cluster, job, started, task

HERE = Request("PodFailed", job_uid="u", version=1, task="t", pod="j-t-0", exit_code=3)
RESTART, ABORT = Choice("RestartJob"), Choice("AbortJob")
SYNC = Choice("SyncJob")


def with_policies(*of_job: Any, of_task: tuple[Any, ...] = ()) -> Job:
    found = job(task(policies=list(of_task)), policies=list(of_job))
    return read(Job, found | {"metadata": {"name": "j", "uid": "u"}, "status": {"version": 1}})


def when(event: str = "", action: str = "RestartJob", **fields: Any) -> dict[str, Any]:
    return {**({"event": event} if event else {}), "action": action, **fields}


@pytest.mark.parametrize(
    ("found", "request_", "choice"),
    [
        (with_policies(), HERE, SYNC),
        (with_policies(when("PodFailed")), HERE, RESTART),
        (with_policies(when("PodFailed")), HERE._replace(action="AbortJob"), ABORT),
        (with_policies(when("PodFailed")), HERE._replace(event="OutOfSync"), SYNC),
        (with_policies(when("*")), HERE, RESTART),
        (with_policies(when("*")), HERE._replace(event="PodRunning"), SYNC),
        (with_policies(when("*")), HERE._replace(event="PodPending"), SYNC),
        (with_policies(when("*", timeout="1m30s")), HERE._replace(event="PodPending"), Choice("RestartJob", 90.0)),
        (with_policies(when("PodFailed", timeout="soon")), HERE, RESTART),
        (with_policies(when("PodFailed")), HERE._replace(job_uid="other"), SYNC),
        (with_policies(when("PodFailed")), HERE._replace(version=0), SYNC),
        (with_policies(when(exitCode=3)), HERE, RESTART),
        (with_policies(when(exitCode=4)), HERE, SYNC),
        *((with_policies(when(exitCode=code)), Request("PodFailed", job_uid="u", version=1), SYNC) for code in (0, 1)),
        (with_policies(when(events=["PodEvicted", "PodFailed"])), HERE, RESTART),
        (with_policies(when("PodFailed", "AbortJob"), when("PodFailed")), HERE, ABORT),
        (with_policies(when("PodFailed"), of_task=(when("PodFailed", "AbortJob"),)), HERE, ABORT),
        (with_policies(when("PodFailed"), of_task=(when("PodFailed", "AbortJob"),)), HERE._replace(task="x"), RESTART),
        (with_policies(when("PodFailed"), of_task=(when("PodEvicted", "AbortJob"),)), HERE, RESTART),
    ],
)  # fmt: skip
def test_choosing(found: Job, request_: Request, choice: Choice) -> None:
    assert choose(found, request_) == choice


def events(cluster: Cluster) -> list[str]:
    """The events that wait for the job, and have them forgotten."""
    manager: Manager = cluster.manager
    found = [request.event for request in manager._requests.pop(("ns", "j"), {})]
    manager.ready.clear()
    return found


def test_what_pods_tell() -> None:
    heeded = [{"events": ["TaskFailed", "TaskCompleted"], "action": "AbortJob"}]
    cluster = started(task("a", 2, maxRetry=2), running=False, policies=heeded)
    for do, told in (
        (lambda: cluster.pod_phase("j-a-0", "Running"), "PodRunning"),
        (lambda: cluster.pod_phase("j-a-0", "Running", restarts=1), "OutOfSync"),
        (lambda: cluster.pod_phase("j-a-1", "Pending", restarts=1), "TaskFailed"),
        (lambda: cluster.pod_phase("j-a-1", "Running", restarts=1), "PodRunning"),
        (lambda: cluster.pod_phase("j-a-0", "Succeeded"), "OutOfSync"),
        (lambda: cluster.pod_phase("j-a-1", "Succeeded"), "TaskCompleted"),
        (lambda: cluster.remove("pods", "j-a-1"), "PodEvicted"),
        (lambda: cluster.pod_phase("j-a-0", "Failed", 3), "PodFailed"),
        (lambda: cluster.kill("j-a-0", out_of_sync=True), "OutOfSync"),
        (lambda: cluster.remove("pods", "j-a-0"), "OutOfSync"),
        (lambda: cluster.change(POD_GROUPS, "j-uid-2", {"status": {"phase": "Unknown"}}), "Unknown"),
        (lambda: cluster.change(POD_GROUPS, "j-uid-2", {"status": {"phase": "Running"}}), "OutOfSync"),
    ):
        do()
        assert events(cluster) == [told]
    cluster.change(POD_GROUPS, "j-uid-2", {"status": {"running": 3}})
    assert events(cluster) == [], "only the phase counts"


def test_a_task_without_a_limit_never_fails() -> None:
    heeded = [{"event": "TaskFailed", "action": "AbortJob"}]
    for most, told in ((-1, "OutOfSync"), (100, "TaskFailed"), (101, "OutOfSync")):
        cluster = started(task("a", 1, maxRetry=most), policies=heeded)
        cluster.pod_phase("j-a-0", "Running", restarts=100)
        assert events(cluster) == [told]


@pytest.mark.parametrize(
    ("of_task", "of_job", "told"),
    [
        ([], [], "OutOfSync"),
        (["TaskCompleted"], ["PodFailed"], "TaskCompleted"),
        (["PodFailed"], ["TaskCompleted"], "TaskCompleted"),
        (["*"], [], "TaskCompleted"),
        (["PodFailed"], ["PodEvicted"], "OutOfSync"),
    ],
)
def test_a_task_has_succeeded_where_any_policy_asks_for_it(of_task: list[str], of_job: list[str], told: str) -> None:
    policies = [{"event": event, "action": "AbortJob"} for event in of_task]
    heeded = [{"event": event, "action": "AbortJob"} for event in of_job]
    cluster = started(task("a", 1, policies=policies), policies=heeded)
    cluster.pod_phase("j-a-0", "Succeeded")
    assert events(cluster) == [told]


@pytest.mark.parametrize(
    ("others", "before", "told"),
    [
        ({}, 1, "OutOfSync"),
        ({"j-a-1": ("Running", 1)}, 0, "TaskFailed"),
        ({"j-a-1": ("Failed", 1)}, 0, "OutOfSync"),
        ({"j-b-0": ("Running", 1)}, 0, "OutOfSync"),
        ({"j-a-1": ("Pending", 1)}, 1, "OutOfSync"),
    ],
    ids=["too few", "with another of the task", "that has ended", "of another task", "not restarted again"],
)
def test_restarts_of_a_tasks_living_pods_count_together(
    others: dict[str, tuple[str, int]], before: int, told: str
) -> None:
    heeded = [{"event": "TaskFailed", "action": "AbortJob"}]
    cluster = started(task("a", 2, maxRetry=2), task("b", 1, maxRetry=2), policies=heeded)
    cluster.pod_phase("j-a-0", "Running", restarts=before)
    for name, (phase, restarts) in others.items():
        cluster.pod_phase(name, phase, restarts=restarts)
    cluster.settle()
    cluster.pod_phase("j-a-0", "Running", restarts=1)
    assert events(cluster) == [told]


def test_what_waits_a_short_time_waits_no_longer() -> None:
    found = with_policies(when("PodFailed", timeout="500ms"), when("PodEvicted", timeout="-1s"))
    assert choose(found, HERE) == Choice("RestartJob", 0.5)
    assert choose(found, HERE._replace(event="PodEvicted")) == Choice("RestartJob", 0.0)


def test_the_pod_of_a_task_that_the_job_no_longer_has_tells_nothing_special() -> None:
    cluster = started(task("a", 1), policies=[{"event": "*", "action": "AbortJob"}])
    cluster.pod_phase("j-a-0", "Running", restarts=1)
    cluster.change("pods", "j-a-0", {"metadata": {"annotations": {"volcano.sh/task-spec": "gone"}}})
    events(cluster)
    cluster.pod_phase("j-a-0", "Succeeded")
    assert events(cluster) == ["OutOfSync"]


@pytest.mark.parametrize(("phase", "code"), [("Failed", 7), ("Succeeded", 0), ("Running", 0)])
def test_only_of_a_failed_pod_the_exit_code_counts(phase: str, code: int) -> None:
    cluster = started(task("a", 1))
    cluster.pod_phase("j-a-0", phase, 7, restarts=1)
    assert [request.exit_code for request in cluster.manager._requests["ns", "j"]] == [code]


def test_what_was_asked_meanwhile_is_judged_after_the_first_action() -> None:
    cluster = started(task("a", 2), policies=[when("PodFailed", "RestartTask")])
    requests = [Request(action="RestartPod", pod="j-a-0"), Request(action="RestartPod", pod="j-a-1")]
    _, left = cluster.manager.jobs.look(("ns", "j"), requests, cluster.now)
    assert list(left) == requests[1:]


def test_pods_seen_for_the_first_time_only_tell_that_they_wait() -> None:
    """A controller that starts finds running pods: they are not pending."""
    cluster = started(task("a", 1), policies=[{"event": "PodPending", "action": "RestartJob", "timeout": "1m"}])
    again = Cluster()
    for resource in ("queues.scheduling.volcano.sh", "jobs.batch.volcano.sh", POD_GROUPS, "pods"):
        for found in cluster.objects[resource].values():
            again.store(resource, found)
    again.settle()
    assert again.manager.jobs.timers.next() is None
    assert again.phase() == "Running"


# ---------------------------------------------------------------------- timers


LATE = [
    {"event": "PodPending", "action": "RestartPod", "timeout": "1m"},
    {"event": "PodFailed", "action": "RestartJob", "timeout": "2m"},
]


def test_an_action_is_put_off_and_done() -> None:
    cluster = started(task("a", 2), policies=LATE)
    cluster.pod_phase("j-a-0", "Failed", 1)
    cluster.settle()
    assert "Execute action RestartJob after 2m0s" in set(cluster.told("ExecuteAction"))
    cluster.now += 119
    cluster.settle()
    assert cluster.phase() == "Running"
    cluster.now += 1
    cluster.settle()
    assert cluster.phase() == "Restarting"
    assert cluster.manager.jobs.timers.next() is None


def test_what_recovers_is_left_alone() -> None:
    cluster = started(task("a", 2), running=False, policies=LATE)
    assert cluster.manager.jobs.timers.next() == cluster.now + 60
    cluster.pod_phase("j-a-0", "Running")
    cluster.pod_phase("j-a-1", "Running")
    cluster.settle()
    assert cluster.manager.jobs.timers.next() is None
    cluster.pod_phase("j-a-0", "Failed", 1)
    cluster.settle()
    cluster.pod_phase("j-a-0", "Running")
    cluster.settle()
    cluster.now += 1000
    cluster.settle()
    assert cluster.phase() == "Running"


def test_a_pod_that_is_told_why_it_waits_still_waits() -> None:
    cluster = started(task("a", 1), running=False, policies=LATE)
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    cluster.change("pods", "j-a-0", {"status": {"conditions": [unschedulable]}})
    cluster.settle()
    assert cluster.manager.jobs.timers.next() == cluster.now + 60


def test_what_waits_no_longer_when_its_time_comes_is_left_alone() -> None:
    """A pod that the controller itself took away, or that ended at once, tells no event of its own."""
    cluster = started(task("a", 2, minAvailable=1), running=False, policies=LATE)
    cluster.pod_phase("j-a-0", "Succeeded")
    cluster.change("jobs.batch.volcano.sh", "j", {"spec": {"tasks": [task("a", 1, minAvailable=1)]}})
    cluster.settle()
    cluster.reap()
    cluster.now += 1000
    cluster.settle()
    assert set(cluster.told("ExecuteAction")) == {"Execute action RestartPod after 1m0s"}


def test_only_the_pod_that_waits_too_long_is_restarted() -> None:
    cluster = started(task("a", 2, minAvailable=1), running=False, policies=LATE)
    cluster.pod_phase("j-a-0", "Running")
    cluster.settle()
    before = cluster.pods()["j-a-0"]["metadata"]["uid"]
    cluster.now += 60
    cluster.settle()
    assert cluster.names() == ["j-a-0"]
    cluster.reap()
    cluster.settle()
    assert cluster.names() == ["j-a-0", "j-a-1"]
    assert cluster.pods()["j-a-0"]["metadata"]["uid"] == before


def test_a_whole_restart_calls_everything_off() -> None:
    cluster = started(task("a", 2), running=False, policies=LATE)
    cluster.command("RestartJob", "Job", "j")
    cluster.settle()
    assert cluster.manager.jobs.timers.next() is None


def test_a_job_that_is_gone_takes_its_timers_along() -> None:
    cluster = started(task("a", 2), running=False, policies=LATE)
    cluster.remove("jobs.batch.volcano.sh", "j")
    cluster.settle()
    assert cluster.manager.jobs.timers.next() is None


@pytest.mark.parametrize("called_off", ["due", "done", "called off"])
def test_nothing_is_kept_of_a_job_whose_delayed_actions_are_over(called_off: str) -> None:
    timers, key = Timers(), ("ns", "j")
    put_off = [HERE._replace(event="PodPending", pod=f"j-t-{number}", pod_uid="p") for number in range(2)]
    for request in put_off:
        assert timers.add(key, request, "RestartPod", 60.0)
    assert timers.next() == 60.0
    if called_off == "due":
        assert [request.pod for _, request in timers.due(60.0)] == ["j-t-0", "j-t-1"]
    elif called_off == "done":
        timers.done(key, "RestartJob", HERE)
    else:
        for request in put_off:
            timers.heard(key, request._replace(event="PodRunning"))
    assert (timers.next(), vars(timers)) == (None, {"_timers": {}})


@pytest.mark.parametrize(
    ("asked", "said"), [([], ["SyncJob"]), (["RestartJob"], ["RestartJob"]), (["", "AbortJob"], ["AbortJob"])]
)
def test_a_job_that_fails_too_often_is_terminated_and_told_by_what_was_asked_of_it(
    asked: list[str], said: list[str]
) -> None:
    cluster, work = started(task("a", 1)), Work(About.job, ("ns", "j"))
    for action in asked:
        cluster.manager.ask_job(work.key, Request("CommandIssued", action) if action else Request("PodFailed"))
    cluster.manager.look(work, cluster.now)
    outcome = cluster.manager.give_up(work)
    texts = [change.message for change in outcome.changes() if isinstance(change, Emit)]
    assert texts == [f"Job failed on action {action} for retry limit reached" for action in said]
    cluster.settle()
    assert cluster.phase() == "Terminating"


KEY, PUT_OFF = ("ns", "j"), HERE._replace(pod_uid="u0", partition="0")


@pytest.mark.parametrize(
    ("action", "changed", "called_off"),
    [
        ("RestartTask", {"pod": "j-t-1"}, True), ("RestartTask", {"task": "other"}, False),
        ("RestartPod", {"task": "other"}, True), ("RestartPod", {"pod": "j-t-1"}, False),
        ("RestartPartition", {"pod": "j-t-1"}, True), ("RestartPartition", {"partition": "1"}, False),
        ("RestartPartition", {"task": "other"}, False),
        ("RestartJob", {"task": "other", "pod": "j-o-1"}, True), ("AbortJob", {}, True), ("SyncJob", {}, False),
    ],
)  # fmt: skip
def test_what_is_done_calls_off_what_waits_at_its_level(action: str, changed: dict[str, str], called_off: bool) -> None:
    timers = Timers()
    assert timers.add(KEY, PUT_OFF, "RestartPod", 5.0)
    timers.done(("ns", "another"), action, PUT_OFF)
    assert timers.next() == 5.0
    timers.done(KEY, action, PUT_OFF._replace(**changed))  # type: ignore[arg-type]
    assert (timers.next() is None) is called_off


@pytest.mark.parametrize(
    ("waits_for", "heard", "changed", "called_off"),
    [
        ("PodPending", "PodRunning", {}, True), ("PodPending", "PodPending", {}, False),
        ("PodPending", "OutOfSync", {}, False), ("PodPending", "PodFailed", {}, True),
        ("PodFailed", "PodRunning", {}, True), ("PodEvicted", "PodRunning", {}, True),
        ("PodFailed", "PodPending", {}, False), ("PodFailed", "PodRunning", {"pod_uid": "later"}, False),
        ("PodFailed", "PodRunning", {"pod": "j-t-1"}, False), ("TaskCompleted", "PodRunning", {}, False),
    ],
)  # fmt: skip
def test_what_a_pod_does_meanwhile_calls_off_what_waits(
    waits_for: str, heard: str, changed: dict[str, str], called_off: bool
) -> None:
    timers = Timers()
    timers.add(KEY, PUT_OFF._replace(event=waits_for), "RestartJob", 5.0)
    timers.heard(KEY, PUT_OFF._replace(event=heard, **changed))  # type: ignore[arg-type]
    assert (timers.next() is None) is called_off


def test_timers_are_due_in_their_order_each_once() -> None:
    timers, other = Timers(), ("ns", "k")
    assert timers.add(KEY, PUT_OFF, "RestartPod", 5.0)
    assert not timers.add(KEY, PUT_OFF, "RestartPod", 1.0), "it waits already"
    assert timers.add(other, PUT_OFF, "RestartJob", 3.0)
    assert timers.add(KEY, PUT_OFF._replace(pod="j-t-1"), "RestartPod", 9.0)
    assert timers.next() == 3.0
    assert timers.due(2.9) == []
    assert [(job, request.action) for job, request in timers.due(5.0)] == [(other, "RestartJob"), (KEY, "RestartPod")]
    assert (timers.due(5.0), timers.next()) == ([], 9.0)
    timers.forget(KEY)
    assert timers.next() is None
