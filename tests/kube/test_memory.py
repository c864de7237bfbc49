"""Free memory goes back to the system, although what stays lies between it."""

from __future__ import annotations

import subprocess
import sys

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


def test_what_is_free_between_what_stays_is_given_back() -> None:
    subprocess.run([sys.executable, "-c", FRAGMENTED], check=True)
