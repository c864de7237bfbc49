"""The past of a record that is written by hand: jobs of one name, and jobs that ran before it began."""

from __future__ import annotations

from pathlib import Path

from stromboli.builtin import full_registry
from stromboli.study.history import History
from stromboli.study.recorded_trace import recorded_trace
from stromboli.testing.builders import node, pod, pod_group
from tests.support.written_record import BEGIN, WrittenRecord

REGISTRY = full_registry("")


def test_jobs_of_one_name_are_told_apart(tmp_path: Path) -> None:
    """Two end within a second, a third lives on; a pod without a PodGroup has the name of one."""
    record = WrittenRecord(tmp_path)
    record.begin(0)
    record.apply(node("n1", cpu=9), pod_group("a"), pod("a", on="n1"))
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
    assert [job.came - BEGIN for job in history.jobs.values()] == sorted(job.came - BEGIN for job in history.jobs.values())
