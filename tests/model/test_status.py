"""The state of a task follows from its pod."""

from __future__ import annotations

import pytest

from stromboli.model import status
from stromboli.model.status import TaskStatus


@pytest.mark.parametrize(
    ("phase", "deleting", "node", "expected"),
    [
        ("Running", False, "n1", TaskStatus.Running),
        ("Running", True, "n1", TaskStatus.Releasing),
        ("Pending", False, "", TaskStatus.Pending),
        ("Pending", False, "n1", TaskStatus.Bound),
        ("Pending", True, "", TaskStatus.Releasing),
        ("Pending", True, "n1", TaskStatus.Releasing),
        ("Succeeded", False, "n1", TaskStatus.Succeeded),
        ("Succeeded", True, "n1", TaskStatus.Succeeded),
        ("Failed", False, "", TaskStatus.Failed),
        ("Failed", True, "n1", TaskStatus.Failed),
        ("Unknown", False, "n1", TaskStatus.Unknown),
        ("Unknown", True, "n1", TaskStatus.Unknown),
        ("", False, "", TaskStatus.Unknown),
        ("Whatever", True, "", TaskStatus.Unknown),
    ],
)
def test_status_of(phase: str, deleting: bool, node: str, expected: TaskStatus) -> None:
    assert status.status_of(phase, deleting, node) is expected


def test_values_are_flags_and_names_are_printed() -> None:
    assert [member.value for member in TaskStatus] == [2**power for power in range(10)]
    assert str(TaskStatus.Pipelined) == f"{TaskStatus.Pipelined}" == "Pipelined"
    assert f"{TaskStatus.Bound:>6}" == " Bound"
    assert TaskStatus["Releasing"] is TaskStatus(64)


@pytest.mark.parametrize(
    ("members", "names"),
    [
        pytest.param(status.ALLOCATED_STATUS, "Bound Binding Running Allocated", id="allocated"),
        pytest.param(status.READY_STATUS, "Bound Binding Running Allocated Succeeded", id="ready"),
        pytest.param(status.VALID_STATUS, "Bound Binding Running Allocated Succeeded Pipelined Pending", id="valid"),
        pytest.param(status.PREEMPTABLE_STATUS, "Bound Running", id="preemptable"),
        pytest.param(status.COMPLETED_STATUS, "Failed Succeeded", id="completed"),
        pytest.param(status.SCHEDULED_STATUS, "Running Bound Failed Succeeded", id="scheduled"),
    ],
)
def test_sets(members: frozenset[TaskStatus], names: str) -> None:
    assert members == {TaskStatus[name] for name in names.split()}


def test_is_allocated_is_membership_in_the_set() -> None:
    assert [member for member in TaskStatus if status.is_allocated(member)] == [
        TaskStatus.Allocated,
        TaskStatus.Binding,
        TaskStatus.Bound,
        TaskStatus.Running,
    ]
