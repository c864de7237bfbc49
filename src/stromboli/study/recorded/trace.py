"""A record as a trace for the simulator: the jobs that came, how long they ran, and the nodes that came and went."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from statistics import median
from typing import Any, Final

from stromboli.cluster.files.written import Manifest
from stromboli.cluster.lives import RUN_FOR
from stromboli.model.names import GROUP_NAME
from stromboli.model.reservation import written
from stromboli.model.resources import quantity
from stromboli.model.values.times import moment, stamp
from stromboli.sim.simulation.workload import Pods, SimJob, TimedChange, Workload, text_of
from stromboli.sim.traces.trace_objects import START
from stromboli.study.recorded.history import History
from stromboli.study.recorded.past_jobs import LONE, PastJob, Slot, stem

LATE: Final = 0.5
"""Parts of a period by which a pod's end is earlier than the cycle that saw it, on average."""


@dataclass(frozen=True)
class RecordedTrace:
    """The trace, and by the key of each job what the record says of it; ``guessed`` are keys of those whose runtime it
    does not say: they had not ended, or not begun.  ``left_out`` counts jobs of which no pod was made, and none is
    guessed: they were withdrawn, or ask for more pods than the nodes may hold.  ``groupless`` are those whose pods
    never had a PodGroup, nor a node: no scheduler would have placed them.
    """

    workload: Workload
    past: Mapping[str, PastJob]
    guessed: frozenset[str]
    left_out: int = 0
    groupless: tuple[str, ...] = ()


def recorded_trace(history: History, name: str) -> RecordedTrace:
    """The trace of what :class:`~stromboli.study.recorded.history.History` has read."""
    making = _Making(history)
    waiting = list(_not_admitted(history))
    groupless = tuple(job.uid for job in history.jobs.values() if _is_groupless(job))
    for job in (*(job for job in history.jobs.values() if not _is_groupless(job)), *waiting):
        making.add(job)
    jobs = tuple(sorted(making.jobs, key=lambda job: job.submit))
    changes = tuple(TimedChange(one.at - history.first, one.object, one.stays) for one in history.changes)
    objects = tuple(_shifted(one, START.timestamp() - history.first) for one in history.objects)
    workload = Workload(name, jobs, objects, changes)
    left_out = history.withdrawn + len(history.not_admitted) - len(waiting)
    return RecordedTrace(workload, making.past, frozenset(making.guessed), left_out, groupless)


def _is_groupless(job: PastJob) -> bool:
    had_node = job.started is not None or job.evictions or any(slot.bound is not None for slot in job.slots.values())
    return not job.group and not had_node


def _not_admitted(history: History) -> Iterator[PastJob]:
    """Volcano's Jobs that were not admitted by the end: their pods, which were never created, are as PodGroups say.

    PodGroups may say any number; together they are given as many pods as the nodes may hold, the first ones first.
    """
    room = sum(_most_pods(one) for one in history.objects if one["kind"] == "Node")
    for uid, found in history.not_admitted.items():
        namespace, _, name = uid.partition("/")
        spec, count = found.group["spec"], found.group["spec"].get("minMember", 0)
        if not 0 < count <= room or not spec.get("minResources"):
            continue
        room -= count
        queue = spec.get("queue") or history.default_queue
        job = PastJob(uid, found.came or history.last, found.group, queue, f"{namespace}/{stem(name)}", count,
                      before=False, admitted=history.last)  # fmt: skip
        pod = {
            "metadata": {},
            "spec": {"containers": [{"resources": {"requests": _part(spec["minResources"], count)}}]},
        }
        job.slots = {str(number): Slot(f"{uid}-{number}", pod, history.last) for number in range(count)}
        yield job


def _most_pods(node: Manifest) -> int:
    return int(quantity.parse(str(node["status"]["allocatable"].get("pods", 0))))


def _part(amounts: Mapping[str, object], count: int) -> dict[str, str]:
    """What one of ``count`` pods asks for that ask for so much together; what quotas alone count is left out."""
    own = {name: amount for name, amount in amounts.items() if not _OF_QUOTAS.match(name)}
    return {name: text_of(float(Fraction(quantity.parse(str(amount))) / count)) for name, amount in own.items()}


_OF_QUOTAS: Final = re.compile(r"requests\.|limits\.|count/|pods$")
"""Prefixes of what quotas count in addition to the requests of containers."""


def _shifted(found: Manifest, seconds: float) -> Manifest:
    """An object created so much later: relative to a simulation's objects, it is as old as when the record began."""
    metadata = found["metadata"]
    if created := metadata.get("creationTimestamp"):
        metadata = {**metadata, "creationTimestamp": stamp(moment(created) + seconds)}
    return {**found, "metadata": metadata}


class _Making:
    def __init__(self, history: History) -> None:
        self._history, self._runtimes = history, Runtimes(history.jobs.values(), history.first)
        self.jobs: list[SimJob] = []
        self.past: dict[str, PastJob] = {}
        self._named: Counter[tuple[str, str]] = Counter()
        self.guessed: set[str] = set()

    def add(self, job: PastJob) -> None:
        """Add a job."""
        namespace, _, name = job.uid.partition("/")
        name = self._unique(namespace, re.sub("[^a-z0-9.]+", "-", name.removeprefix(LONE)))
        found = SimJob(
            name, self._at(job.came), self._longest(job), tuple(self._pods(job, slot) for slot in job.slots.values()),
            job.queue, job.owner, least=job.least, namespace=namespace, group=_group(job.group),
            cancelled=None if job.cancelled is None else self._at(job.cancelled), pods_delay=self._pods_delay(job),
        )  # fmt: skip
        self.jobs.append(found)
        self.past[found.key] = job
        if any(slot.runtime is None for slot in job.slots.values()) and job.cancelled is None:
            self.guessed.add(found.key)

    def _unique(self, namespace: str, name: str) -> str:
        """``name``, with a number where another job of the trace has it: jobs of one name came one after the other."""
        self._named[namespace, name] += 1
        many = self._named[namespace, name]
        return name if many == 1 else self._unique(namespace, f"{name}-{many}")

    def _at(self, when: float) -> float:
        return max(when - self._history.first, 0.0)

    def _pods_delay(self, job: PastJob) -> float | None:
        """How long after it was admitted enough pods of a job had come; None where they did not wait for that."""
        if job.admitted is None:
            return None
        came = sorted(slot.came for slot in job.slots.values())[: job.least]
        return max(came[-1] - job.admitted - LATE * self._history.period, 0.0)

    def _longest(self, job: PastJob) -> float:
        return max((self._runtime(job, slot) for slot in job.slots.values()), default=0.0)

    def _runtime(self, job: PastJob, slot: Slot) -> float:
        """Seconds; of a pod that had not ended, those that it had run, of one that never ran, those of alike ones."""
        if slot.bound is None:
            return self._runtimes.usual(job)
        return max((slot.ended or self._history.last) - slot.bound - LATE * self._history.period, 0.001)

    def _pods(self, job: PastJob, slot: Slot) -> Pods:
        metadata, spec = slot.pod["metadata"], dict(slot.pod["spec"])
        runtime, node = self._runtime(job, slot), spec.pop("nodeName", "")
        if job.before and slot.bound == self._history.first and node:
            spec["nodeName"] = node
        told = metadata.get("annotations", {})
        kept = {key: text for key, text in told.items() if key != GROUP_NAME and key not in written(told)}
        shown = {key: metadata[key] for key in ("labels", "ownerReferences") if key in metadata}
        shown["annotations"] = {**kept, RUN_FOR: f"{runtime:.3f}"}
        return Pods(1, _requests(spec), spec, shown)


class Runtimes:
    """How long pods ran that have ended, without those that ran before ``first``: when they began is unknown."""

    def __init__(self, jobs: Iterable[PastJob], first: float) -> None:
        self._by: dict[tuple[str, ...], list[float]] = {}
        for job in jobs:
            for slot in job.slots.values():
                if slot.runtime is not None and not (job.before and slot.bound == first):
                    for key in ((job.queue, job.owner), (job.queue,), ()):
                        self._by.setdefault(key, []).append(slot.runtime)

    def usual(self, job: PastJob) -> float:
        """The median of pods of the same owner in its queue, else of its queue, else of all; 60 without any."""
        keys = ((job.queue, job.owner), (job.queue,), ())
        return max(next((median(self._by[key]) for key in keys if key in self._by), 60.0), 0.001)


def _requests(spec: Mapping[str, Any]) -> dict[str, str]:
    """What the containers ask for together."""
    asked = [(one.get("resources") or {}).get("requests") or {} for one in spec.get("containers") or ()]
    return dict(_total(tuple((name, str(amount)) for requests in asked for name, amount in requests.items())))


@lru_cache(maxsize=1 << 10)
def _total(asked: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Amounts of the same resource added up; the pods of a job ask for the same."""
    total: dict[str, Fraction] = {}
    for name, amount in asked:
        total[name] = total.get(name, Fraction(0)) + Fraction(quantity.parse(amount))
    return tuple((name, text_of(float(amount))) for name, amount in total.items())


def _group(found: Manifest) -> dict[str, Any]:
    """What the PodGroup says, but for its identity and its size in a trace."""
    if not found:
        return {"spec": {"minResources": {}}}
    metadata = {key: found["metadata"][key] for key in ("labels", "annotations") if key in found["metadata"]}
    status = {"phase": found["status"]["phase"]} if found["status"].get("phase") else {}
    return {"metadata": metadata, "spec": {"minResources": {}, **found["spec"]}, "status": status}
