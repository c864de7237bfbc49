"""When waiting jobs will start: draws of how long those that run go on, each run forward, and calibrated by the past.

A prediction is made only where there is a basis: the runtimes of most of what runs must be known, from users' estimates
or from jobs alike that have ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from stromboli.cluster.state import ClusterState
from stromboli.model.job import Job
from stromboli.model.names import JOB_NAME
from stromboli.model.podgroup import is_volcano_jobs
from stromboli.model.resources.axes import PODS, Axes
from stromboli.model.resources.resource import Resource
from stromboli.model.spec import Amount
from stromboli.model.status import ALLOCATED_STATUS, COMPLETED_STATUS, TaskStatus
from stromboli.model.task import Task
from stromboli.sim.explanation.reasons import waits
from stromboli.study.forecast import FAR, Holding, Situation, Waiting, starts
from stromboli.study.history import stem
from stromboli.study.runtimes import Floats, Runtimes, Sort, expected

DRAWS: Final = 64
LEVELS: Final = (0.5, 0.8, 0.95)
"""Which quantiles are told."""
UNKNOWN: Final = 0.2
"""Part of the room in use whose end may be unknown."""
SLACK: Final = 10.0
"""Seconds that are added to predictions and outcomes when they are compared: less than that does not matter."""
RECENT: Final = 400
"""Past predictions of which calibration takes account, the last ones."""
ENOUGH: Final = 20
"""Past predictions that it takes to calibrate by."""
STEP: Final = 0.05
"""By how much the quantile that calibration takes moves with each answer."""
NEAR: Final = 60
"""Past predictions of about the same length by which one is calibrated."""
HOLDS: Final = ALLOCATED_STATUS | {TaskStatus.Releasing}


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
    """A situation with names: the running and waiting jobs by number, and how long each of the former has run."""

    situation: Situation
    running: Sequence[tuple[Sort, float, float | None]]
    waiting: Sequence[tuple[str, Sort, float | None]]

    def number(self, job: str) -> int | None:
        """The number of a waiting job; None where it does not wait."""
        return next((number for number, (uid, _, _) in enumerate(self.waiting) if uid == job), None)


def sort_of(job: Job) -> Sort:
    """What a job is alike to."""
    task = next(iter(job.tasks.values()), None)
    name = job.name if task is None else task.annotations.get(JOB_NAME) or task.owner or job.name
    return Sort(job.facts.queue, f"{job.namespace}/{stem(name)}", len(job.tasks) or job.facts.min_available)


def awaits_pods(job: Job) -> bool:
    """Whether it is a Volcano Job whose pods are not made yet; its PodGroup says how many there will be."""
    return not job.tasks and waits(job) and is_volcano_jobs(job.name) and bool(job.facts.min_vector)


def scene_of(state: ClusterState, now: float, began: Mapping[str, float] = {}) -> Scene:
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
    return making.done(free)


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
        self._waiting: list[tuple[tuple[float, float, str], Waiting, tuple[str, Sort, float | None]]] = []

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
            self._waits(job, Waiting(each, len(off), least, queue), said, off[0].created)
        elif awaits_pods(job):
            count = job.facts.min_available
            each = np.ceil(self._vector(job.facts.min_vector) / count)
            each[PODS] = 1.0  # so that more of them than nodes may hold are not even tried
            self._waits(job, Waiting(each, count, count, queue), said)

    def _runs(self, job: Job, on: Sequence[Task], queue: int, said: float | None) -> None:
        held = np.array([self._vector(one.template.vector) for one in on])
        self._used[queue] += held.sum(axis=0)
        since = self._began.get(job.uid) or min(one.start_time or one.created for one in on)
        self._running.append(Holding(tuple(self._rows[one.node_name] for one in on), held, queue))
        self._about.append((sort_of(job), max(self._now - since, 0.0), said))

    def _waits(self, job: Job, waiting: Waiting, said: float | None, created: float = 0.0) -> None:
        place = (-job.facts.priority, job.facts.group.created or created, job.uid)
        self._waiting.append((place, waiting, (job.uid, sort_of(job), said)))

    def _vector(self, vector: Sequence[int]) -> Floats:
        found = np.zeros(self._width)
        vector = vector[: self._width]
        found[: len(vector)] = vector
        return found

    def done(self, free: Floats) -> Scene:
        """The scene."""
        self._waiting.sort(key=lambda one: one[0])
        situation = Situation(free, self._running, [one for _, one, _ in self._waiting], self._used, self._most)
        return Scene(situation, self._about, [about for _, _, about in self._waiting])


def _said(job: Job) -> float | None:
    """How long a job runs, as its user expects."""
    notes = (*(task.annotations for task in job.tasks.values()), job.annotations)
    return next((found for one in notes if (found := expected(one)) is not None), None)


class Calibration:
    """By which factors the quantiles of predictions must be stretched so that they cover what they say.

    For each level the factor is a quantile of outcome / prediction over the past predictions that were the most like
    it in length, the last ones first: split-conformal prediction with a relative score, by nearest neighbours, as
    sketches of short and of long waits are wrong in different ways.

    Waits of a cluster are not drawn from one distribution: load comes and goes.  So the quantile that is taken begins
    at the level and moves by :data:`STEP` with each answer that came true or not (:meth:`came`): adaptive conformal
    inference, whose long-run coverage is that of the level whatever the outcomes are (I. Gibbs, E. Candès, "Adaptive
    Conformal Inference Under Distribution Shift", NeurIPS 2021).  That holds here as long as the quantile stays between
    :data:`STEP` and 1, where it is stopped: at 1 the factor is the largest of the past ones that are looked at, so that
    outcomes which exceed their predictions by more each time are covered less often than the level says.
    """

    def __init__(self) -> None:
        self._raw: list[tuple[float, ...]] = []
        self._outcomes: list[float] = []
        self._taken = list(LEVELS)

    def __len__(self) -> int:
        return len(self._raw)

    def add(self, predicted: Floats, outcome: float) -> None:
        """A job that was predicted to start at these times, one a draw, has started after ``outcome`` seconds."""
        self._raw.append(tuple(quantile(predicted, level) for level in LEVELS))
        self._outcomes.append(outcome)
        del self._raw[:-RECENT], self._outcomes[:-RECENT]

    @property
    def is_ready(self) -> bool:
        """Whether there are enough past predictions to calibrate by."""
        return len(self) >= ENOUGH

    def came(self, number: int, covered: bool) -> None:
        """The calibrated quantile of level ``number`` covered an outcome, or did not."""
        taken = self._taken[number] + STEP * (LEVELS[number] - covered)
        self._taken[number] = min(max(taken, STEP), 1.0)

    def quantiles(self, predicted: Floats) -> tuple[float | None, ...]:
        """The calibrated quantiles of a prediction; None where they are infinite."""
        found = [self._stretched(quantile(predicted, level), number) for number, level in enumerate(LEVELS)]
        ordered = [max(found[: number + 1]) for number in range(len(found))]
        return tuple(None if one == np.inf else one for one in ordered)

    def _stretched(self, raw: float, number: int) -> float:
        if not self.is_ready or raw == np.inf:
            return raw
        past = np.array([one[number] for one in reversed(self._raw)]) + SLACK
        away = np.abs(np.log(past / (raw + SLACK))).round(1)
        near = np.argsort(away, kind="stable")[:NEAR]
        ratios = np.sort((np.array(self._outcomes[::-1])[near] + SLACK) / past[near])
        factor = float(ratios[min(int(np.ceil(self._taken[number] * (len(ratios) + 1))), len(ratios)) - 1])
        return max((raw + SLACK) * factor - SLACK, 0.0)


def quantile(ascending: Floats, level: float) -> float:
    """The least value that a part ``level`` does not exceed."""
    return float(ascending[max(int(np.ceil(level * len(ascending))) - 1, 0)])


class Forecaster:
    """Predicts with the ``runtimes`` of the past and the ``calibration`` by it."""

    def __init__(self, runtimes: Runtimes, calibration: Calibration, draws: int = DRAWS, seed: int = 0) -> None:
        self.runtimes, self.calibration, self.draws = runtimes, calibration, draws
        self._dice = np.random.default_rng(seed)

    def predict(self, scene: Scene, target: int) -> Floats | str:
        """When the waiting job number ``target`` starts, one answer a draw, ascending; or why that is unknown."""
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
        return starts(scene.situation, target, ends, np.array(whole).T)

    def _left(self, sort: Sort, elapsed: float, said: float | None) -> Floats | None:
        if said is not None and said > elapsed:
            return np.full(self.draws, said - elapsed)
        return self.runtimes.left(sort, elapsed, self.draws, self._dice)

    def eta(self, scene: Scene, target: int) -> Eta:
        """The answer for a waiting job."""
        uid, sort, _ = scene.waiting[target]
        position = sum(other.queue == sort.queue for _, other, _ in scene.waiting[:target])
        found = self.predict(scene, target)
        if isinstance(found, str):
            return Eta(uid, sort.queue, position, (None,) * len(LEVELS), "", found)
        if not np.isfinite(found).any():
            why = "no draw gives it room: it asks for more than what ends, or than its queue may have"
            return Eta(uid, sort.queue, position, (None,) * len(LEVELS), "", why)
        basis = f"calibrated by {len(self.calibration)} jobs" if self.calibration.is_ready else "not calibrated"
        return Eta(uid, sort.queue, position, self.calibration.quantiles(found), basis)

    def etas(self, scene: Scene, jobs: Iterable[str]) -> list[Eta]:
        """The answers for several waiting jobs; those that do not wait are left out."""
        numbers = [number for job in jobs if (number := scene.number(job)) is not None]
        return [self.eta(scene, number) for number in numbers]
