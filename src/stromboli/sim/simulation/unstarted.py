"""Jobs that a simulation never starts, and why: the nodes are too small, or the scheduler's own words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from stromboli.cluster.body import part
from stromboli.errors import StudyError
from stromboli.model.names import CONDITION_TRUE, CPU, GPU, MEMORY
from stromboli.model.resources import quantity
from stromboli.sim.simulation.pods import JobRun
from stromboli.sim.simulation.workload import SimJob, Workload, offered_by
from stromboli.sim.world import SimWorld

CHECKED: Final = (CPU, MEMORY, GPU)
"""Resources that nodes offer in their status; plugins offer others in ways of their own."""
STUCK: Final = "waiting when nothing more could happen"


class Offers:
    """The most that one node offers, and all of them together, at any time of a workload, as the scheduler counts."""

    def __init__(self, workload: Workload) -> None:
        bodies: list[Any] = [*workload.objects, *(change.object for change in workload.changes)]
        nodes = dict.fromkeys((body["metadata"]["name"], tuple(offered_by(body).items())) for body in bodies)
        self._largest: dict[str, int] = {}
        self._whole: dict[str, int] = {}
        for _, offer in nodes:
            for name, text in offer:
                amount = _counted(name, text)
                self._largest[name] = max(self._largest.get(name, 0), amount)
                self._whole[name] = self._whole.get(name, 0) + amount

    def lack(self, job: SimJob) -> str:
        """Why the nodes can never take a job, as a clause; empty where they may."""
        return next((why for name in CHECKED if (why := self._lack(job, name))), "")

    def _lack(self, job: SimJob, name: str) -> str:
        if not any(name in some.requests for some in job.pods):
            return ""
        sizes = [_counted(name, some.requests.get(name, "0")) for some in job.pods for _ in range(some.count)]
        needed = sorted(sizes)[: job.least or job.size]
        if not self._largest.get(name):
            return f"no node offers {name}" if any(needed) else ""
        if max(needed, default=0) > self._largest[name]:
            return f"a pod asks for more {name} than any node offers"
        return f"the job asks for more {name} than all nodes offer" if sum(needed) > self._whole[name] else ""


def _counted(name: str, text: str) -> int:
    """A quantity as the scheduler counts it: memory in bytes, all else in thousandths, rounded up."""
    return quantity.whole(text) if name == MEMORY else quantity.milli(text)


def startable(workload: Workload) -> Workload:
    """The workload itself, if it has jobs and the nodes can take at least one of them.  Raises StudyError."""
    if not workload.jobs:
        raise StudyError(
            f"{workload.name}: no job is left to simulate; look at the file, and at --from, --for and --load"
        )
    offers = Offers(workload)
    if all(map(offers.lack, workload.jobs)):
        reasons = Counter(map(offers.lack, workload.jobs))
        many = "its job" if len(workload.jobs) == 1 else f"any of its {len(workload.jobs):,} jobs"
        raise StudyError(f"{workload.name}: the nodes cannot take {many}: {in_short(reasons)}; state other --nodes")
    return workload


def unstarted(workload: Workload, runs: Iterable[JobRun], world: SimWorld) -> dict[str, int]:
    """How many jobs of a simulation that has ended never started, by why, the most frequent reason first."""
    offers = Offers(workload)
    reasons = Counter(_why(run.job, offers, world) for run in runs if run.start is None)
    return dict(reasons.most_common())


def _why(job: SimJob, offers: Offers, world: SimWorld) -> str:
    if job.cancelled is not None:
        return "withdrawn before they started"
    return offers.lack(job) or last_words(world.get("PodGroup", job.key)) or STUCK


def last_words(group: Any) -> str:
    """What a PodGroup says last of how it stands; empty where it says nothing, or is None."""
    conditions = part(group or {}, "status", "conditions") or ()
    texts = [one.get("message") for one in conditions if one.get("status") == CONDITION_TRUE and one.get("message")]
    return str(texts[-1]) if texts else ""


def in_short(reasons: dict[str, int], most: int = 3) -> str:
    """The most frequent reasons with how many jobs they keep from starting."""
    found = Counter(reasons).most_common()
    told = [f"{why} ({many:,})" for why, many in found[:most]]
    rest = sum(many for _, many in found[most:])
    return "; ".join([*told, f"other reasons ({rest:,})"] if rest else told)
