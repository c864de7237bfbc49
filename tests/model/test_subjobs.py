"""Sub-jobs: what a part of a job is, by its tasks."""

from __future__ import annotations

import pytest

from stromboli.model.subjobs import assign
from stromboli.testing.builders import cluster, pod, pod_group


@pytest.mark.parametrize(("priorities", "highest"), [((-5, -10), 0), ((-5, 3), 3), ((2, 7), 7)])
def test_priority_of_a_part_is_its_most_important_tasks_and_not_negative(priorities, highest):
    group = pod_group("g", subGroupPolicy=[{"name": "s", "matchLabelKeys": ["part"]}])
    pods = [
        pod(f"p{number}", group="g", labels={"part": "a"}, priority=value) for number, value in enumerate(priorities)
    ]
    parts = assign(cluster(group, *pods).jobs["default/g"])
    assert {uid: part.priority for uid, part in parts.items()} == {"default/g/s-a": highest}
