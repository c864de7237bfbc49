"""Free memory goes back to the system, although what stays lies between it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from stromboli.kube import memory

FRAGMENTED = """
import asyncio
from pathlib import Path
from stromboli.kube.memory import give_back, giving_back

def resident() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) >> 10

found = [bytes(2000) for _ in range(50_000)]
kept = found[::50]
del found
before = resident()

async def once() -> None:
    task = asyncio.create_task(giving_back(every=0.01))
    while before - resident() < 60:
        await asyncio.sleep(0.01)
    task.cancel()

asyncio.run(asyncio.wait_for(once(), 60))
assert len(kept) == 1000
"""


@pytest.mark.skipif(memory._trim() is None, reason="the C library has no malloc_trim")
def test_what_is_free_between_what_stays_is_given_back() -> None:
    subprocess.run([sys.executable, "-c", FRAGMENTED], check=True)


def test_the_loop_goes_on_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), threading.Event()
    went_on: list[bool] = []

    def trim(_: int) -> int:
        begun.set()
        went_on.append(ended.wait(10))  # in vain if the loop waits for it
        return 1

    monkeypatch.setattr(memory, "_trim", lambda: trim)

    async def story() -> None:
        task = asyncio.create_task(memory.giving_back(every=0.0))
        async with asyncio.timeout(30):
            while not begun.is_set():
                await asyncio.sleep(0.01)
        ended.set()
        task.cancel()

    asyncio.run(story())
    assert went_on[0]


def test_where_the_c_library_cannot_nothing_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_trim", lambda: None)
    assert not memory.give_back()
