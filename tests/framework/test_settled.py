"""Which jobs need no look in a cycle: their tasks are decided, and their status says all there is to say."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.cluster.mirror import Mirror
from stromboli.framework.books.phases import is_settled
from stromboli.framework.books.plan import Bind
from stromboli.model.names import POD_GROUP_SCHEDULED, REASON_GANG_READY
from stromboli.testing.builders import node, pod, pod_group, state

READY = [{"type": POD_GROUP_SCHEDULED, "status": "True", "reason": REASON_GANG_READY}]
RUNNING: dict[str, Any] = {"phase": "Running", "running": 1, "conditions": READY}
STANDING = [
    pytest.param("n1", RUNNING, True, id="it runs, and says so"),
    pytest.param("n1", {**RUNNING, "phase": "Inqueue"}, False, id="another phase"),
    pytest.param("n1", {**RUNNING, "running": 2}, False, id="another number"),
    pytest.param("n1", {**RUNNING, "conditions": []}, False, id="no condition"),
    pytest.param("", {"phase": "Inqueue", "conditions": READY}, True, id="it is being bound, and says so"),
    pytest.param("", {"phase": "Inqueue"}, False, id="it is being bound without a condition"),
    pytest.param("", {"phase": "Running", "conditions": READY}, False, id="it is being bound and says that it runs"),
]


@pytest.mark.parametrize(("on", "status", "settled"), STANDING)
def test_a_job_is_settled(on: str, status: dict[str, Any], settled: bool) -> None:
    mirror = Mirror(state(node("n1"), {**pod_group("g"), "status": status}, pod("g-0", group="g", on=on)))
    if not on:
        mirror.assume_bound(Bind("default/g-0", "default/g-0", "default/g", "n1"))
    assert is_settled(mirror.state.snapshot().jobs["default/g"]) is settled
