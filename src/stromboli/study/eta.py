"""When waiting jobs will start: draws of how long those that run go on, each run forward, and calibrated by the past.

A prediction is made only where there is a basis: the runtimes of most of what runs must be known, from users' estimates
or from jobs alike that have ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from stromboli.cluster.state import ClusterState
from stromboli.framework.config.argument import convert
from stromboli.framework.config.config import Config
from stromboli.model.job import Job
from stromboli.model.names import JOB_NAME
from stromboli.model.podgroup import is_volcano_jobs
from stromboli.model.queue import QueueSpec
from stromboli.model.resources.axes import PODS, Axes
from stromboli.model.resources.resource import Resource
from stromboli.model.spec import Amount
from stromboli.model.status import ALLOCATED_STATUS, COMPLETED_STATUS, TaskStatus
from stromboli.model.task import Task
from stromboli.sim.explanation.reasons import waits
from stromboli.study.calibration import LEVELS, Calibration
from stromboli.study.forecast import FAR, MOST_KINDS, Holding, Sharing, Situation, Waiting, starts
from stromboli.study.recorded.past_jobs import stem
from stromboli.study.runtimes import Floats, Runtimes, Sort, expected

DRAWS: Final = 16
"""As many for answers as for the predictions by which they are calibrated, so that both are off in the same way."""
UNKNOWN: Final = 0.2
"""Part of the room in use whose end may be unknown."""
HOLDS: Final = ALLOCATED_STATUS | {TaskStatus.Releasing}
SHARES: Final = "proportion"
"""The plugin that shares the cluster out by weights."""
ADMITS: Final = "overcommit"
"""The plugin that limits what is admitted."""
FACTOR_KEY: Final = "overcommit-factor"
FACTOR: Final = 1.2
"""What it takes the cluster to be larger by, where the configuration says nothing that can be used."""


class Rules(NamedTuple):
    """Whether queues share the cluster out by weight; up to how many times its size jobs are admitted (None: all)."""

    shares: bool = False
    factor: float | None = None

    def sharing(self, queues: Sequence[QueueSpec], total: Floats) -> Sharing | None:
        """How queues share ``total``; after them stands one for the jobs whose queue is gone."""
        if not self.shares:
            return None
        weights = np.array([float(max(one.weight, 1)) for one in queues] + [1.0])
        ranks = np.array([-float(one.priority) for one in queues] + [0.0])
        return Sharing(weights, ranks, total, self.factor)


NONE: Final = Rules()


def rules_of(config: Config) -> Rules:
    """The rules of a configuration."""
    plugins = {one.name: one.arguments for one in config.plugins()}
    if "enqueue" not in config.actions or ADMITS not in plugins:
        return Rules(SHARES in plugins)
    told = convert(plugins[ADMITS].get(FACTOR_KEY), float)
    return Rules(SHARES in plugins, told if told is not None and told >= 1.0 else FACTOR)


class Eta(NamedTuple):
    """When a job starts, in seconds from now: quantiles, None where a draw says never; ``basis`` is empty without any.

    ``position`` is how many waiting jobs stand before it, in its queue; ``why`` says what is missing.
    """

    job: str
    queue: str
    position: int
    quantiles: tuple[float | None, ...]
    basis: str
    why: str = ""


@dataclass(frozen=True)
class Scene:
    """A situation with names: the running and waiting jobs by number, and how long each of the former has run.

    ``ahead`` is for each waiting job by how many seconds the one that has waited longest has waited longer than it, of
    those that stand before it in its queue; None where none has.
    """

    situation: Situation
    running: Sequence[tuple[Sort, float, float | None]]
    waiting: Sequence[tuple[str, Sort, float | None]]
    ahead: Sequence[float | None]

    def number(self, job: str) -> int | None:
        """The number of a waiting job; None where it does not wait."""
        return self._numbers.get(job)

    def standing(self, number: int) -> tuple[str, str, int]:
        """A waiting job's uid, its queue, and how many stand before it there."""
        uid, sort, _ = self.waiting[number]
        return uid, sort.queue, self._positions[number]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {uid: number for number, (uid, _, _) in reversed(list(enumerate(self.waiting)))}

    @cached_property
    def _positions(self) -> list[int]:
        seen, found = Counter[str](), list[int]()
        for _, sort, _ in self.waiting:
            found.append(seen[sort.queue])
            seen[sort.queue] += 1
        return found


def sort_of(job: Job) -> Sort:
    """What a job is alike to."""
    task = next(iter(job.tasks.values()), None)
    name = job.name if task is None else task.annotations.get(JOB_NAME) or task.owner or job.name
    return Sort(job.facts.queue, f"{job.namespace}/{stem(name)}", len(job.tasks) or job.facts.min_available)


def awaits_pods(job: Job) -> bool:
    """Whether it is a Volcano Job whose pods are not made yet; its PodGroup says how many there will be."""
    return not job.tasks and waits(job) and is_volcano_jobs(job.name) and bool(job.facts.min_vector)


def scene_of(state: ClusterState, now: float, began: Mapping[str, float] = {}, rules: Rules = NONE) -> Scene:
    """The cluster as it stands; ``began`` says of jobs, by uid, when they started, where the status of their pods does
    not.
    """
    table = state.nodes.snapshot()
    free = (table.alloc - table.used).T.astype(float)
    making = _Scene(table.statics.row, list(state.queues), free.shape[1], now, began)
    for name, queue in state.queues.items():
        making.limit(name, state.axes, queue.spec.capability or {})
    for job in state.jobs.values():
        making.add(job)
    total = table.alloc.sum(axis=1).astype(float)
    return making.done(free, rules.sharing([queue.spec for queue in state.queues.values()], total))


_Place = tuple[float, float, str]
"""Less priority, the time of creation, and the uid: the order in which jobs wait."""


class _Scene:
    def __init__(
        self, rows: Mapping[str, int], queues: Sequence[str], width: int, now: float, began: Mapping[str, float]
    ) -> None:
        self._rows, self._width, self._now, self._began = rows, width, now, began
        self._queues = {name: number for number, name in enumerate(queues)}
        self._used = np.zeros((len(queues) + 1, width))
        self._most = np.full((len(queues) + 1, width), FAR)
        self._running: list[Holding] = []
        self._about: list[tuple[Sort, float, float | None]] = []
        self._waiting: list[tuple[_Place, Waiting, tuple[str, Sort, float | None], float | None]] = []
        """In what order jobs wait, and since when; None for those that have started and would have more pods."""

    def limit(self, queue: str, axes: Axes, capability: Mapping[str, Amount]) -> None:
        """A queue has at most so much."""
        vector = axes.requested(Resource.from_list(capability))
        for name in capability:
            if (column := axes.index.get(name, self._width)) < self._width:
                self._most[self._queues[queue], column] = vector[column]

    def add(self, job: Job) -> None:
        """Take a job in."""
        queue = self._queues.get(job.facts.queue, len(self._queues))
        tasks = job.tasks.values()
        on = [one for one in tasks if one.status in HOLDS and one.node_name in self._rows]
        off = [one for one in tasks if not one.own_node and one.status not in COMPLETED_STATUS]
        said = _said(job)
        if on:
            self._runs(job, on, queue, said)
        if off:
            least = min(max(job.facts.min_available - len(on), 1), len(off))
            each = np.array([self._vector(one.template.vector) for one in off]).max(axis=0)
            waiting = Waiting(each, len(off), least, queue, _is_admitted(job))
            made = min(one.created for one in off)
            self._waits(job, waiting, said, made, started=len(on) >= max(job.facts.min_available, 1))
        elif awaits_pods(job):
            count = job.facts.min_available
            each = np.ceil(self._vector(job.facts.min_vector) / count)
            each[PODS] = 1.0  # so that more of them than nodes may hold are not even tried
            self._waits(job, Waiting(each, count, count, queue, _is_admitted(job)), said)

    def _runs(self, job: Job, on: Sequence[Task], queue: int, said: float | None) -> None:
        held = np.array([self._vector(one.template.vector) for one in on])
        self._used[queue] += held.sum(axis=0)
        since = self._began.get(job.uid) or min(one.start_time or one.created for one in on)
        self._running.append(Holding(tuple(self._rows[one.node_name] for one in on), held, queue))
        self._about.append((sort_of(job), max(self._now - since, 0.0), said))

    def _waits(
        self, job: Job, waiting: Waiting, said: float | None, created: float = 0.0, *, started: bool = False
    ) -> None:
        first = job.facts.group.created or created
        place = (-job.facts.priority, first, job.uid)
        since = max(first, created)  # pods that were made again wait since then
        self._waiting.append((place, waiting, (job.uid, sort_of(job), said), None if started else since))

    def _vector(self, vector: Sequence[int]) -> Floats:
        found = np.zeros(self._width)
        vector = vector[: self._width]
        found[: len(vector)] = vector
        return found

    def done(self, free: Floats, sharing: Sharing | None) -> Scene:
        """The scene."""
        self._waiting.sort(key=lambda one: one[0])
        waiting = [one for _, one, _, _ in self._waiting]
        situation = Situation(free, self._running, waiting, self._used, self._most, sharing)
        return Scene(situation, self._about, [about for _, _, about, _ in self._waiting], list(self._ahead()))

    def _ahead(self) -> Iterator[float | None]:
        """By how much the job that has waited longest of those before each job of its queue has waited longer."""
        oldest: dict[int, float] = {}
        for _, one, _, since in self._waiting:
            before = oldest.get(one.queue, np.inf)
            yield since - before if since is not None and since > before else None
            if since:
                oldest[one.queue] = min(before, since)


def _is_admitted(job: Job) -> bool:
    """Whether it need not wait for admission (any more)."""
    return not job.is_pending() or job.facts.min_resources is None


def _said(job: Job) -> float | None:
    """How long a job runs, as its user expects."""
    notes = (*(task.annotations for task in job.tasks.values()), job.annotations)
    return next((found for one in notes if (found := expected(one)) is not None), None)


class Forecaster:
    """Predicts with the ``runtimes`` of the past and the ``calibration`` by it."""

    def __init__(self, runtimes: Runtimes, calibration: Calibration, draws: int = DRAWS, seed: int = 0) -> None:
        self.runtimes, self.calibration, self.draws = runtimes, calibration, draws
        self._dice = np.random.default_rng(seed)

    def predict(self, scene: Scene, targets: Sequence[int]) -> Floats | str:
        """When the waiting jobs of those numbers start, a row each, one answer a draw, ascending; or why that is
        unknown.
        """
        left, unknown = [], 0.0
        total = sum(one.held[:, 0].sum() for one in scene.situation.running) or 1.0
        for holding, (sort, elapsed, said) in zip(scene.situation.running, scene.running, strict=True):
            found = self._left(sort, elapsed, said)
            if found is None:
                unknown += holding.held[:, 0].sum()
                found = np.full(self.draws, np.inf)
            left.append(found)
        if unknown / total > UNKNOWN:
            return f"no basis: of {unknown / total:.0%} of the room in use it is not known how long it will be used"
        runtimes = [self._left(sort, 0.0, said) for _, sort, said in scene.waiting]
        whole = [np.full(self.draws, np.inf) if one is None else one for one in runtimes]
        shape = (self.draws, len(left))
        ends = np.array(left).T if left else np.zeros(shape)
        return starts(scene.situation, targets, ends, np.array(whole).T)

    def _left(self, sort: Sort, elapsed: float, said: float | None) -> Floats | None:
        if said is not None and said > elapsed:
            return np.full(self.draws, said - elapsed)
        return self.runtimes.left(sort, elapsed, self.draws, self._dice)

    def etas(self, scene: Scene, jobs: Iterable[str]) -> list[Eta]:
        """The answers for several waiting jobs; those that do not wait are left out."""
        targets = [number for job in jobs if (number := scene.number(job)) is not None]
        found = self.predict(scene, targets) if targets else ""
        if isinstance(found, str):
            return [self._unknown(scene, target, found) for target in targets]
        return [self._answer(scene, target, one) for target, one in zip(targets, found, strict=True)]

    def _unknown(self, scene: Scene, target: int, why: str) -> Eta:
        return Eta(*scene.standing(target), (None,) * len(LEVELS), "", why)

    def _answer(self, scene: Scene, target: int, found: Floats) -> Eta:
        if not np.isfinite(found).any():
            why = "no draw gives it room: it asks for more than what ends, or than its queue may have"
            if target not in scene.situation.sketched:
                why = f"no basis: jobs before it ask for {MOST_KINDS} different amounts, and no more are sketched"
            return self._unknown(scene, target, why)
        uid, queue, position = scene.standing(target)
        said = self.calibration.quantiles(found)
        told = self.calibration.head_of_line.or_else(said, queue, scene.ahead[target])
        by_head = "" if told == said else "; as long as the first before it has waited"
        return Eta(uid, queue, position, told, self.calibration.basis + by_head)
