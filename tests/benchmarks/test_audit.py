"""The end of a measurement on a live cluster: nothing is written any more, or not for long enough."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from benchmarks.live.audit import Audit
from tests.support.virtual import run


def entry(verb: str) -> str:
    return (
        f'{{"verb": "{verb}", "requestReceivedTimestamp": "2026-01-01T00:00:00.0Z", "userAgent": "kubelets/1",'
        ' "objectRef": {"resource": "leases"}}\n'
    )


@pytest.mark.parametrize(
    ("verb", "count", "after", "last"),
    [
        ("update", 0, 3.0, ""),
        ("update", 5, 7.0, ""),  # the fifth is seen after four seconds
        ("get", 100, 3.0, ""),
        ("update", 100, 60.0, "kubelets update leases"),
    ],
)
def test_a_cluster_is_quiet_without_writes_and_waited_for_a_minute(
    verb: str, count: int, after: float, last: str, tmp_path: Path
) -> None:
    log = tmp_path / "audit.log"
    log.write_text(entry("update"))  # what was written before does not count

    async def write() -> None:
        for _ in range(count):
            await asyncio.sleep(0.75)
            with log.open("a") as text:
                text.write(entry(verb))

    async def wait() -> tuple[float, str]:
        writing = asyncio.create_task(write())
        began = asyncio.get_running_loop().time()
        found = await Audit(log).until_quiet(3.0, 60.0)
        writing.cancel()
        return asyncio.get_running_loop().time() - began, found

    assert run(wait()) == (after, last)
