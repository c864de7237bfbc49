"""What may go wrong on each kind of server with real processes, and how everything is whole again afterwards."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from e2e.dumps import differences
from e2e.objects import job
from e2e.stage import Stage, until

AWAY = 30.0
"""Seconds for which the API server is gone."""

SIZE = 16


def test_server_goes_away_and_comes_back(stage: Stage, space: str) -> None:
    with stage.scheduler():
        stage.create(job(space, "before", 4, command="sleep 2"), job(space, "stays", 2))
        kept = stage.until_bound(space, "stays", 2)
        stage.create(job(space, "during", 6, cpu="2", command="sleep 2"))
        stage.server.kill()
        time.sleep(AWAY)
        stage.server.start()
        stage.create(job(space, "after", 3, command="sleep 1"))
        for name, count in (("before", 4), ("during", 6), ("after", 3)):
            assert stage.until_phase(space, name, "Completed")["succeeded"] == count
        assert stage.bound(space, "stays") == kept
        until(lambda: not differences(stage, "scheduler"), "the state equals a fresh list")
        assert not [line for line in stage.logged("scheduler") if line["key"] == "drift_found"]


@pytest.mark.parametrize("bound", [1, 7, 15])
def test_scheduler_is_killed_amid_a_gang(stage: Stage, space: str, bound: int) -> None:
    slow = ("--kube-api-qps=8", "--kube-api-burst=8")
    with stage.scheduler(*slow, name="killed") as first:
        stage.create(job(space, "gang", SIZE))
        before = stage.until_bound(space, "gang", bound)
        first.kill()
        first.wait()
        before = stage.bound(space, "gang")
    with stage.scheduler():
        stage.until_phase(space, "gang", "Running")
        after = stage.bound(space, "gang")
        assert len(after) == SIZE
        assert before.items() <= after.items()
        until(lambda: not differences(stage, "scheduler"), "the state equals a fresh list")
    assert not [target for target, times in _bindings(stage, space).items() if times > 1]


def _bindings(stage: Stage, space: str) -> Counter[str]:
    """How often each pod of a namespace was bound, where the server writes that down."""
    targets = [entry["objectRef"] for entry in stage.server.audit() if entry["responseStatus"]["code"] == 201]
    binds = [one for one in targets if one.get("subresource") == "binding" and one["namespace"] == space]
    return Counter(one["name"] for one in binds)
