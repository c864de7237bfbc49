"""Sort keys of jobs that are kept until a task of the job moves."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from stromboli.framework.extension.answers import until_it_moves
from stromboli.model.job import Job
from stromboli.model.status import TaskStatus


def test_a_key_that_tells_placed_tasks_from_bound_ones_is_asked_again_when_they_are_bound() -> None:
    """No sum of the job tells the two states apart."""
    task: Any = SimpleNamespace(uid="t", status=TaskStatus.Allocated, role="")
    job = Job("ns/a")
    job.index[TaskStatus.Allocated] = {"t": task}
    key = until_it_moves([lambda one: [*one.index]])
    assert key(job) == ([TaskStatus.Allocated],)
    job.shift([task], TaskStatus.Binding)
    assert key(job) == ([TaskStatus.Binding],)
