"""Which phase of a job follows, case by case, and what each action does in each phase."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from stromboli.api.batch import Job
from stromboli.api.read import read
from stromboli.controllers.jobs.counting import Counts
from stromboli.controllers.jobs.states import FINISHED, How, step_for
from stromboli.controllers.jobs.status import running_duration
from stromboli.controllers.pods import pod_view

ALL, ALIVE, PART, SYNC = How.KILL_ALL, How.KILL_ALIVE, How.KILL_TARGET, How.SYNC


def job(phase: str, *replicas: int, status: dict[str, Any] | None = None, **spec: Any) -> Job:
    """A job in a phase, with a task of so many replicas each; ``least`` are those that each needs."""
    least = spec.pop("least", (None,) * len(replicas))
    tasks = [{"name": f"t{at}", "replicas": number, "minAvailable": least[at]} for at, number in enumerate(replicas)]
    state = {"state": {"phase": phase}, **(status or {})}
    return read(Job, {"metadata": {"name": "j", "namespace": "ns"}, "spec": {"tasks": tasks, **spec}, "status": state})


def counts(**pods: int) -> Counts:
    found = Counts()
    for phase, number in pods.items():
        setattr(found, phase, number)
    return found


@pytest.mark.parametrize(
    ("phase", "actions", "step"),
    [
        *((phase, ["RestartJob"], (ALL, True, True)) for phase in ("Pending", "Running", "Unheard")),
        *((phase, ["RestartTask", "RestartPod", "RestartPartition"], (PART, True, False))
          for phase in ("Pending", "Running")),
        *((phase, ["AbortJob", "TerminateJob", "CompleteJob"], (ALIVE, False, True))
          for phase in ("Pending", "Running")),
        *((phase, ["SyncJob", "ResumeJob", "EnqueueJob"], (SYNC, False, False)) for phase in ("Pending", "Running")),
        ("Restarting", ["SyncJob"], (SYNC, False, False)),
        ("Restarting", ["RestartTask", "RestartPod", "RestartPartition"], (PART, False, False)),
        ("Restarting", ["RestartJob", "AbortJob"], (ALL, False, False)),
        *((phase, ["ResumeJob"], (ALIVE, True, True)) for phase in ("Aborting", "Aborted")),
        *((phase, ["SyncJob", "AbortJob"], (ALIVE, False, False)) for phase in ("Aborting", "Aborted")),
        *((phase, ["SyncJob", "ResumeJob", "RestartJob"], (ALIVE, False, False))
          for phase in ("Completing", "Terminating", *FINISHED)),
    ],
)  # fmt: skip
def test_what_an_action_does_to_pods(phase: str, actions: list[str], step: tuple[How, bool, bool]) -> None:
    found = {action: step_for(phase, action) for action in actions}
    assert {action: (one.how, one.retry, one.begins) for action, one in found.items()} == dict.fromkeys(actions, step)


@pytest.mark.parametrize(
    ("phase", "action", "following"),
    [
        *((phase, action, "Restarting") for phase in ("Pending", "Running")
          for action in ("RestartJob", "RestartTask", "RestartPod", "RestartPartition")),
        *((phase, "AbortJob", "Aborting") for phase in ("Pending", "Running")),
        *((phase, "TerminateJob", "Terminating") for phase in ("Pending", "Running")),
        *((phase, "CompleteJob", "Completing") for phase in ("Pending", "Running")),
        *((phase, "ResumeJob", "Restarting") for phase in ("Aborting", "Aborted")),
        *((phase, "SyncJob", phase) for phase in ("Aborted", *FINISHED)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("pods", [{}, {"running": 2}])
def test_a_phase_that_follows_whatever_the_pods_do(
    phase: str, action: str, following: str, pods: dict[str, int]
) -> None:
    assert step_for(phase, action).settle(job(phase, 2), counts(**pods)) == following


@pytest.mark.parametrize(
    ("phase", "gone"), [("Aborting", "Aborted"), ("Completing", "Completed"), ("Terminating", "Terminated")]
)
@pytest.mark.parametrize(
    ("pods", "is_gone"),
    [
        ({}, True),
        ({"succeeded": 1, "failed": 1, "unknown": 1}, True),
        ({"pending": 1}, False),
        ({"running": 1}, False),
        ({"terminating": 1}, False),
        ({"running": 1, "terminating": 1}, False),
    ],
)
def test_a_job_has_ended_once_no_pod_is_alive(phase: str, gone: str, pods: dict[str, int], is_gone: bool) -> None:
    assert step_for(phase, "SyncJob").settle(job(phase, 2), counts(**pods)) == (gone if is_gone else phase)


@pytest.mark.parametrize(
    ("least", "pods", "phase"),
    [
        (2, {"pending": 2}, "Pending"),
        (2, {"running": 1}, "Pending"),
        (2, {"running": 2}, "Running"),
        (3, {"running": 1, "succeeded": 1, "failed": 1}, "Running"),
        (0, {"pending": 3}, "Pending"),
        (0, {"failed": 1}, "Running"),
        (2, {"running": 1, "pending": 1, "terminating": 1, "unknown": 1}, "Pending"),
    ],
)
def test_a_job_runs_once_enough_pods_have_started(least: int, pods: dict[str, int], phase: str) -> None:
    assert step_for("Pending", "SyncJob").settle(job("Pending", 3, minAvailable=least), counts(**pods)) == phase


@pytest.mark.parametrize(
    ("spec", "status", "terminating", "phase"),
    [
        ({}, {}, 0, "Pending"),
        ({"minAvailable": 2}, {}, 1, "Pending"),
        ({"minAvailable": 2}, {}, 2, "Restarting"),
        ({"minAvailable": 3}, {"minAvailable": 1}, 2, "Pending"),
        ({"minAvailable": 1}, {"minAvailable": 3}, 1, "Restarting"),
        ({}, {"retryCount": 2}, 0, "Pending"),
        ({}, {"retryCount": 3}, 0, "Failed"),
        ({"maxRetry": 1}, {"retryCount": 1}, 0, "Failed"),
        ({"maxRetry": 5}, {"retryCount": 4}, 0, "Pending"),
    ],
)
def test_a_job_that_restarts(spec: dict[str, int], status: dict[str, int], terminating: int, phase: str) -> None:
    found = job("Restarting", 2, 1, status=status, **spec)
    assert step_for("Restarting", "SyncJob").settle(found, counts(terminating=terminating)) == phase


@pytest.mark.parametrize(
    ("replicas", "spec", "pods", "phase"),
    [
        ((), {}, {"succeeded": 1}, "Running"),
        ((2, 1), {"minAvailable": 3}, {"running": 3}, "Running"),
        ((2, 1), {"minAvailable": 3}, {"running": 2, "pending": 1}, "Pending"),
        ((2, 1), {"minAvailable": 2}, {"running": 2, "pending": 1}, "Running"),
        ((2, 1), {"minAvailable": 2}, {"running": 1, "pending": 2}, "Pending"),
        ((2, 1), {"minAvailable": 1}, {"succeeded": 2, "running": 1}, "Running"),
        ((2, 1), {"minAvailable": 1}, {"succeeded": 2, "failed": 1}, "Completed"),
        ((2, 1), {"minAvailable": 3}, {"succeeded": 2, "failed": 1}, "Failed"),
        ((2, 1), {"minAvailable": 2}, {"succeeded": 2, "failed": 1}, "Completed"),
        ((2, 1), {"minSuccess": 2}, {"succeeded": 1, "running": 2}, "Running"),
        ((2, 1), {"minSuccess": 2}, {"succeeded": 2, "running": 1}, "Completed"),
        ((2, 1), {"minSuccess": 2}, {"succeeded": 1, "failed": 2}, "Failed"),
        ((2, 1), {"minSuccess": 0}, {"running": 3}, "Completed"),
    ],
)
def test_how_a_job_that_runs_ends(replicas: tuple[int, ...], spec: Any, pods: dict[str, int], phase: str) -> None:
    assert step_for("Running", "SyncJob").settle(job("Running", *replicas, **spec), counts(**pods)) == phase


@pytest.mark.parametrize(
    ("least", "spec", "succeeded", "phase"),
    [
        ((1, 1), {"minAvailable": 2}, (1, 1), "Completed"),
        ((1, 1), {"minAvailable": 2}, (2, 0), "Failed"),
        ((1, 1), {"minAvailable": 1}, (2, 0), "Completed"),
        ((1, None), {"minAvailable": 1}, (2, 0), "Completed"),
        ((2, None), {"minAvailable": 2}, (1, 1), "Failed"),
        ((0, 0), {"minAvailable": 0}, (0, 0), "Completed"),
        ((1, 1), {"minAvailable": 2}, (2, None), "Completed"),
        ((1, 1), {"minAvailable": 2, "minSuccess": 4}, (2, 1), "Failed"),
    ],
)
def test_each_task_must_succeed_as_often_as_it_needs_where_the_job_needs_them_all(
    least: tuple[int | None, ...], spec: Any, succeeded: tuple[int | None, ...], phase: str
) -> None:
    found, pods = job("Running", 2, 2, least=least, **spec), Counts()
    for at, number in enumerate(succeeded):
        for each in range(0 if number is None else 2):
            pods.add(f"t{at}", "Succeeded" if number is not None and each < number else "Failed")
    pods.failed += 4 - pods.failed - pods.succeeded
    assert step_for("Running", "SyncJob").settle(found, pods) == phase


def test_pods_are_counted_by_phase_and_by_task() -> None:
    found = Counts()
    for phase in ("Pending", "Running", "Running", "Succeeded", "Failed", "Odd", "Unknown"):
        found.add("t", phase)
    found.add("u", "Running")
    assert (found.pending, found.running, found.succeeded, found.failed, found.unknown) == (1, 3, 1, 1, 2)
    assert found.alive == 4
    phases = {"Pending": 1, "Running": 2, "Succeeded": 1, "Failed": 1, "Odd": 1, "Unknown": 1}
    assert {name: state.phase for name, state in found.task_states().items()} == {"t": phases, "u": {"Running": 1}}


def test_pods_that_are_being_deleted_count_as_such_whatever_their_phase() -> None:
    deleted = {"deletionTimestamp": "2023-11-14T22:13:21Z"}
    pods = [{"metadata": {"name": "a"}, "status": {"phase": "Running"}}]
    pods += [{"metadata": {"name": name, **deleted}, "status": {"phase": "Running"}} for name in ("b", "c", "d")]
    found = Counts()
    found.add_all(pod_view(msgspec.json.encode(pod)) for pod in pods)
    assert (found.running, found.terminating) == (1, 3)


@pytest.mark.parametrize(("later", "text"), [(90, "1m30s"), (0, "0s"), (-5, "0s")])
def test_how_long_a_job_has_been_there(later: float, text: str) -> None:
    made = {"name": "j", "namespace": "ns", "creationTimestamp": "1970-01-01T00:10:00Z"}
    assert running_duration(read(Job, {"metadata": made}), 600 + later + 0.9) == text
