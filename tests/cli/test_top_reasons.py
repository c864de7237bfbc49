"""What ``top`` says of the first job of each queue that waits."""

from __future__ import annotations

import pytest

from stromboli.cli.vcctl.top_picture import Lately, picture_of
from stromboli.cluster.events import Added
from stromboli.cluster.objects import from_value
from stromboli.cluster.state import ClusterState
from stromboli.testing.builders import Manifest, pod, pod_group, queue

REFUSED = [{"type": "Unschedulable", "status": "True", "message": "no room"}]


@pytest.mark.parametrize(
    ("objects", "name", "why"),
    [
        pytest.param([pod("p", group="mistyped")], "", "there is no PodGroup of that name", id="no PodGroup"),
        pytest.param(
            [pod_group("g", queue="gone"), pod("p", group="g")], "gone", "there is no queue gone", id="no queue"
        ),
        pytest.param(
            [{**pod_group("g"), "status": {"phase": "Inqueue", "conditions": REFUSED}}, pod("p", group="g")],
            "default", "no room", id="refused",
        ),
        pytest.param(
            [pod_group("g"), pod("p", group="g")], "default", "the scheduler has not said why yet", id="nothing yet"
        ),
    ],
)  # fmt: skip
def test_the_first_job_that_waits_says_why(objects: list[Manifest], name: str, why: str) -> None:
    state = ClusterState()
    for one in (queue("default"), *objects):
        state.apply(Added(one["kind"], from_value(one["kind"], one)))
    found = picture_of(state, Lately())
    assert [line.why for line in found.queues if line.name == name] == [why]
