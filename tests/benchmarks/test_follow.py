"""Pods of a measured run: when they were created, bound and running, by the API server's log."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.live.audit import Audit
from benchmarks.live.follow import PAUSE, Times, until_running
from tests.support.virtual import run

SECOND = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


def line(client: str, verb: str, what: str, second: int, code: int = 200, name: str = "a") -> str:
    resource, _, subresource = what.partition("/")
    moment = f"2026-01-01T00:00:{second:02d}.500000Z"
    target = {"resource": resource, "subresource": subresource, "name": name}
    entry = {
        "verb": verb, "requestReceivedTimestamp": "2026-01-01T00:00:00.000000Z", "stageTimestamp": moment,
        "userAgent": f"{client}/1", "objectRef": target, "responseStatus": {"code": code},
    }  # fmt: skip
    return json.dumps(entry) + "\n"


STORY = [
    line("stromboli-controllers", "create", "pods", 1, code=409),
    line("stromboli-controllers", "create", "pods", 2, code=201),
    line("stromboli-scheduler", "patch", "pods/status", 3),  # that the pod waits
    line("stromboli-scheduler", "create", "pods/binding", 4, code=500),
    line("stromboli-scheduler", "create", "pods/binding", 5, code=201),
    line("stromboli-kubelets", "patch", "pods/status", 6),
    line("stromboli-kubelets", "patch", "pods/status", 7),  # that the pod has ended
    line("stromboli-kubelets", "patch", "pods/status", 8, name="b"),
]


def test_times_are_those_of_answers_that_are_no_errors(tmp_path: Path) -> None:
    log, times = tmp_path / "audit.log", Times()
    log.touch()

    async def write() -> None:
        for one in STORY:
            await asyncio.sleep(1.0)
            with log.open("a") as text:
                text.write(one)

    async def follow() -> None:
        writing = asyncio.create_task(write())
        await until_running(Audit(log), times, 2, 60.0, list)
        await writing

    run(follow())
    assert times == Times({"a": SECOND + 2.5}, {"a": SECOND + 5.5}, {"a": SECOND + 6.5, "b": SECOND + 8.5})


@pytest.mark.parametrize(("ended", "after"), [([], 60.0), (["scheduler: Traceback"], PAUSE)])
def test_following_ends_in_time_and_with_a_process(ended: list[str], after: float, tmp_path: Path) -> None:
    (tmp_path / "audit.log").touch()

    async def follow() -> float:
        began = asyncio.get_running_loop().time()
        with pytest.raises(TimeoutError):
            await until_running(Audit(tmp_path / "audit.log"), Times(), 1, 60.0, lambda: ended)
        return asyncio.get_running_loop().time() - began

    assert run(follow()) == after
