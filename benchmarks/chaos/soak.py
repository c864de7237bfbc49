"""Whether memory stays flat: jobs, pods and events come and go for a while in three processes that are watched."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.chaos.outcomes import Effort, Outcome
from e2e.clusters import SERVERS, Refused
from e2e.objects import job, namespace
from e2e.real import UNREACHABLE
from e2e.stage import JOBS, Stage, staged
from stromboli.server.controllers.node_lifecycle import MOST_EVENTS

SPACE: Final = "soak"
PAUSE: Final = 0.5
"""Seconds between jobs."""
_MESSAGE: Final = "Successfully assigned soak/j123-main-0 to node-1"
SAMPLED: Final = 5.0
"""Seconds between samples."""
STANDING: Final = 20
"""Jobs that there may be at once; past these, those that are over go first."""
BOUND: Final = 0.02
"""What memory may grow by in ten minutes, as part of its level, over the second half of the time."""
PERIOD: Final = 600.0


@dataclass
class Memory:
    """Samples of a process: seconds, and MiB that are resident."""

    moments: list[float] = field(default_factory=list)
    sizes: list[float] = field(default_factory=list)

    def take(self, moment: float, pid: int) -> None:
        """Sample a process."""
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        kib = next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
        self.moments.append(moment)
        self.sizes.append(kib / 1024)


@dataclass(frozen=True)
class Trend:
    """The median of the second half in MiB, and what it grows by in ten minutes, in MiB."""

    level: float
    growth: float

    @property
    def is_flat(self) -> bool:
        """Whether it grows by less than what is allowed."""
        return self.growth < BOUND * self.level

    def __str__(self) -> str:
        return f"{self.level:.1f} MiB, {self.growth:+.2f} MiB ({self.growth / self.level:+.1%}) in 10 minutes"


def trend(moments: Sequence[float], sizes: Sequence[float]) -> Trend:
    """The least-squares line through the second half; the first is the warm-up.  Takes four samples or more."""
    half = len(moments) // 2
    slope = statistics.linear_regression(moments[half:], sizes[half:]).slope
    return Trend(statistics.median(sizes[half:]), slope * PERIOD)


def run(effort: Effort) -> Outcome:
    """Churn for as long as is asked, at most ``number`` jobs, and see what memory does."""
    outcome = Outcome(f"soak on the {effort.server} server", effort.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with staged(SERVERS[effort.server](folder / "server"), folder) as stage, stage.scheduler(name="schedules"):
            stage.create(namespace(SPACE))
            _fill(stage)
            for what, memory in _churn(stage, effort, outcome).items():
                found = trend(memory.moments, memory.sizes)
                print(f"{what}: from {memory.sizes[0]:.1f} MiB; {found}", flush=True)
                outcome.ends["flat" if found.is_flat else "growing"] += 1
                if not found.is_flat:
                    outcome.violated(0, f"{what} grows: {found}, more than {BOUND:.0%}")
    return outcome


def _fill(stage: Stage) -> None:
    """As many events as an embedded server keeps: else what is kept would grow for longer than half of the time."""
    about = {"apiVersion": "v1", "kind": "Pod", "namespace": SPACE, "name": "earlier"}
    event = {"involvedObject": about, "reason": "Scheduled", "message": _MESSAGE, "type": "Normal", "count": 1}
    for number in range(MOST_EVENTS):
        metadata = {"namespace": SPACE, "name": f"earlier.{number}"}
        stage.create({"apiVersion": "v1", "kind": "Event", "metadata": metadata, **event})


def _churn(stage: Stage, effort: Effort, outcome: Outcome) -> dict[str, Memory]:
    memories = {name: Memory() for name in ("server", "schedules", "controllers")}
    began = sampled = time.monotonic()
    for number, dice in effort.trials():
        command = f"sleep {dice.choice((1, 2))}"
        with suppress(Refused, *UNREACHABLE):
            stage.create(job(SPACE, f"j{number}", dice.randint(1, 4), "500m", command))
            _remove_oldest(stage, outcome)
        outcome.tried += 1
        if time.monotonic() - sampled >= SAMPLED:
            sampled = time.monotonic()
            for name, memory in memories.items():
                memory.take(sampled - began, _pid(stage, name))
        time.sleep(PAUSE)
    return memories


def _remove_oldest(stage: Stage, outcome: Outcome) -> None:
    """Delete the jobs that are over; too many of the others are a sign that nothing is scheduled."""
    there = stage.items(JOBS.format(SPACE))
    over = [one for one in there if _phase(one.get("status") or {}) == "Completed"]
    outcome.ends["jobs over"] += len(over)
    for one in over:
        stage.delete(f"{JOBS.format(SPACE)}/{one['metadata']['name']}")
    if len(there) - len(over) > STANDING:
        time.sleep(PAUSE)
        outcome.ends["waits for jobs"] += 1


def _phase(status: dict[str, dict[str, str]]) -> str:
    return (status.get("state") or {}).get("phase", "")


def _pid(stage: Stage, name: str) -> int:
    process = stage.server.process if name == "server" else stage.running[name]
    if process is None or process.poll() is not None:
        raise AssertionError(f"{name} has ended")
    return process.pid
