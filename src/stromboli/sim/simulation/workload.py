"""Workloads: the jobs of a trace, and the nodes and queues that they run on, whatever file they come from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import ceil, inf
from random import Random
from typing import Any, Final

from stromboli.errors import ManifestError
from stromboli.model.names import CPU, EPHEMERAL_STORAGE, GPU, HUGE_PAGES_PREFIX, MEMORY, PODS
from stromboli.model.resources import quantity
from stromboli.model.values import duration
from stromboli.sim.traces.trace_objects import Manifest, node, queue


@dataclass(frozen=True, slots=True)
class Pods:
    """``count`` equal pods of a job: quantities by resource, and what else their specs and metadata say."""

    count: int
    requests: Mapping[str, str]
    spec: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SimJob:
    """A job that comes at ``submit``, and whose pods run for ``runtime`` seconds each (None: for ever).

    Times count from the workload's beginning.  The job starts when ``least`` pods have nodes (0: all of them).
    ``user`` is whose it is, as far as the trace says.  Where the trace says how much of one resource the job uses and
    not by how many pods, ``divides`` names the resource: pods are made as the nodes allow.  ``pods_delay`` is how many
    seconds after its admission the job's pods are made, as those of Volcano's Jobs are; None: they come with it.
    """

    name: str
    submit: float
    runtime: float | None
    pods: tuple[Pods, ...]
    queue: str = "default"
    user: str = ""
    priority_class: str = ""
    least: int = 0
    divides: str = ""
    namespace: str = "default"
    group: Mapping[str, Any] = field(default_factory=dict)
    cancelled: float | None = None
    pods_delay: float | None = None

    @property
    def key(self) -> str:
        """The key of its PodGroup."""
        return f"{self.namespace}/{self.name}"

    @property
    def size(self) -> int:
        """How many pods it has."""
        return sum(some.count for some in self.pods)

    def earlier(self, seconds: float) -> SimJob:
        """The same job, all of whose times are ``seconds`` earlier."""
        cancelled = None if self.cancelled is None else self.cancelled - seconds
        return replace(self, submit=self.submit - seconds, cancelled=cancelled)

    def asks(self) -> dict[str, float]:
        """What all its pods ask for together, by resource, in the base unit of each."""
        total: dict[str, float] = {}
        for some in self.pods:
            for name, amount in some.requests.items():
                total[name] = total.get(name, 0.0) + some.count * amount_of(amount)
        return total


@dataclass(frozen=True, slots=True)
class TimedChange:
    """An object that comes or changes ``at`` so many seconds from the workload's beginning, or goes then."""

    at: float
    object: Manifest
    stays: bool = True


@dataclass(frozen=True)
class Workload:
    """Jobs in the order in which they come, and the objects that are there before: nodes, queues, priority classes.

    ``changes`` are what becomes of objects later.
    """

    name: str
    jobs: tuple[SimJob, ...]
    objects: tuple[Manifest, ...] = ()
    changes: tuple[TimedChange, ...] = ()

    def window(self, length: float | str = inf, since: float | str = 0.0) -> Workload:
        """The jobs that come within so long from ``since`` on, and the cluster as it is then; times count from there.

        In seconds, or such as ``14d`` and ``36h``.  Raises DurationError.
        """
        begin, span = _seconds(since), _seconds(length)
        return self._from(begin, (job for job in self.jobs if begin <= job.submit < begin + span))

    def part(self, first: int, count: int) -> Workload:
        """So many jobs from number ``first`` (0: the first one) on; times count from when the first of them comes."""
        kept = self.jobs[first : first + count]
        return self._from(kept[0].submit if kept else 0.0, kept)

    def _from(self, begin: float, jobs: Iterable[SimJob]) -> Workload:
        """With ``jobs`` alone, and all times from ``begin`` on; what changed before has changed the objects."""
        objects = {_title(each): each for each in self.objects}
        for change in sorted((one for one in self.changes if one.at < begin), key=lambda one: one.at):
            objects.pop(_title(change.object), None)
            if change.stays:
                objects[_title(change.object)] = change.object
        changes = tuple(replace(one, at=one.at - begin) for one in self.changes if one.at >= begin)
        moved = tuple(job.earlier(begin) for job in jobs)
        return replace(self, jobs=moved, objects=tuple(objects.values()), changes=changes)

    def scaled(self, load: float, seed: int = 0) -> Workload:
        """``load`` times as many jobs in the same time: some are left out, or come again with a second's fraction.

        Which, is drawn with ``seed``: each whole part of ``load`` repeats every job, the rest is its probability.
        """
        if load == 1.0:
            return self
        dice, found = Random(seed), []
        for job in self.jobs:
            copies = int(load) + (dice.random() < load % 1)
            found += [replace(job, name=f"{job.name}-x{copy}" if copy else job.name) for copy in range(copies)]
        return replace(self, jobs=tuple(found))

    def on(self, objects: Iterable[Manifest]) -> Workload:
        """The same jobs with other objects: nodes replace all nodes, other kinds those of the same name and namespace.

        What is replaced does not change later, either.
        """
        given = list(objects)
        kinds = {"Node"} & {str(each["kind"]) for each in given}
        names = {_title(each) for each in given}

        def stays(each: Manifest) -> bool:
            return each["kind"] not in kinds and _title(each) not in names

        changes = tuple(one for one in self.changes if stays(one.object))
        found = replace(self, objects=(*filter(stays, self.objects), *given), changes=changes)
        return found._divided() if kinds else found

    def _divided(self) -> Workload:
        """With as few pods for each job that may be divided as the largest node allows."""
        largest: dict[str, int] = {}
        for name in {job.divides for job in self.jobs} - {""}:
            largest[name] = max(int(min(largest_node(self.objects, name), 1e6)), 1)
        jobs = (
            replace(job, pods=pods_of(int(job.asks()[job.divides]), largest[job.divides], job.divides))
            if job.divides
            else job
            for job in self.jobs
        )
        return replace(self, jobs=tuple(jobs))

    def whole(self) -> Workload:
        """With a Queue for each job whose queue is not among the objects."""
        known = {str(_title(each)[2]) for each in self.objects if each["kind"] == "Queue"}
        missing = dict.fromkeys(job.queue for job in self.jobs if job.queue not in known)
        return replace(self, objects=(*self.objects, *map(queue, missing)))

    def capacity(self) -> dict[str, float]:
        """What all nodes offer together, by resource, in the base unit of each."""
        total: dict[str, float] = {}
        for offer in map(offered_by, self.objects):
            for name, amount in offer.items():
                total[name] = total.get(name, 0.0) + amount_of(amount)
        return total


def offered_by(body: Any) -> Mapping[str, str]:
    """Quantities by resource that an object offers: none unless it is a node."""
    offer: Mapping[str, str] = body["status"]["allocatable"] if body["kind"] == "Node" else {}
    return offer


def _title(body: Manifest) -> tuple[object, object, object]:
    """What tells an object from all others: kind, namespace (empty for one without) and name."""
    metadata: Any = body["metadata"]
    return body["kind"], metadata.get("namespace") or "", metadata["name"]


@lru_cache(4096)
def amount_of(text: str) -> float:
    """A quantity in its base unit: cores, bytes, pieces."""
    return float(quantity.parse(text))


def text_of(amount: float) -> str:
    """A quantity of so many cores, bytes or pieces, to thousandths: the reverse of :func:`amount_of`."""
    return f"{amount:.3f}".rstrip("0").rstrip(".")


NODES: Final = re.compile(r"([1-9][0-9]{0,5})x(.+)")
PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?(?:[KMGT]i)?)([a-z][\w./-]*)?")
DAYS: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)d")
SHORT: Final = {"cpu": CPU, "cpus": CPU, "gpu": GPU, "memory": MEMORY, "mem": MEMORY}
PLAIN_NAMES: Final = frozenset({PODS, EPHEMERAL_STORAGE, *SHORT})
"""Names of resources that have no domain in front of them."""
FORM: Final = (
    "the form is COUNTxAMOUNT[+AMOUNT...][,COUNTx...], such as 552x96cpu+8gpu+512Gi or 10x4cpu+2example.com/card"
)


def nodes_of(text: str) -> Iterator[Manifest]:
    """Nodes as a command line states them: ``120x2cpu``, ``552x8gpu+96cpu+512Gi,10x64cpu``.  Raises ManifestError."""
    for number, group in enumerate(text.split(",")):
        found = NODES.fullmatch(group.strip())
        if found is None:
            raise _refused(text, f"{group!r} is no group of nodes")
        offer = dict(_offered(part, text) for part in found[2].split("+"))
        for each in range(int(found[1])):
            yield node(f"node-{number}-{each:05d}", "", offer)


def _offered(part: str, text: str) -> tuple[str, str]:
    found = PART.fullmatch(part)
    if found is None or not (found[2] or found[1].endswith("i")):
        raise _refused(text, f"{part!r} is no amount")
    name = found[2] or MEMORY
    if not (name in PLAIN_NAMES or "/" in name or name.startswith(HUGE_PAGES_PREFIX)):
        raise _refused(text, f"{part!r} is no amount, as {name} is no resource")
    return SHORT.get(name, name), found[1]


def _refused(text: str, problem: str) -> ManifestError:
    return ManifestError(f"{problem}; {FORM}", object=f"--nodes {text!r}")


@lru_cache(4096)
def pods_of(amount: int, largest: int, resource: str) -> tuple[Pods, ...]:
    """As few pods as nodes with at most ``largest`` of a resource allow that ask for ``amount`` together."""
    count = ceil(amount / largest)
    each, more = divmod(amount, count)
    parts = ((count - more, each), (more, each + 1))
    return tuple(Pods(number, {resource: str(size)}) for number, size in parts if number)


def _seconds(length: float | str) -> float:
    """Seconds of a number, or of a text such as ``14d`` or ``1h30m``.  Raises DurationError."""
    if not isinstance(length, str):
        return float(length)
    found = DAYS.fullmatch(length)
    return float(found[1]) * 86_400 if found else duration.seconds(length)


def largest_node(objects: Iterable[Manifest], resource: str = CPU) -> float:
    """The most that a node offers of a resource; infinite without nodes."""
    offers = [amount_of(offered_by(each).get(resource, "0")) for each in objects if each["kind"] == "Node"]
    return max(offers, default=inf)


def in_order(jobs: Iterable[SimJob]) -> tuple[SimJob, ...]:
    """Jobs by when they come; of those at the same time the file's order stays."""
    return tuple(sorted(jobs, key=lambda job: job.submit))
