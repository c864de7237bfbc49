"""What a record teaches about waiting: how long jobs run, and how far predictions of their starts were off."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from stromboli.cluster.state import ClusterState
from stromboli.errors import RecordError
from stromboli.framework.config.registry import Registry
from stromboli.journal.segments import segments
from stromboli.model.job import Job
from stromboli.study.calibration import Calibration, Open
from stromboli.study.eta import DRAWS, HOLDS, NONE, Forecaster, Rules, awaits_pods, rules_of, scene_of, sort_of
from stromboli.study.replay import Moment, Reading
from stromboli.study.runtimes import Floats, Runtimes, Sort

EVERY: Final = 60.0
"""Seconds of the record between two of them."""


class Answer(NamedTuple):
    """A prediction that has come true or not: made ``asked`` (seconds since 1970) of a job of ``queue``.

    ``quantiles`` are what was told, calibrated by what was known then, unless that was too little (``calibrated``);
    ``outcome`` is what came, in seconds from then.
    """

    job: str
    queue: str
    asked: float
    quantiles: tuple[float | None, ...]
    outcome: float
    calibrated: bool


class _Prediction(NamedTuple):
    """A prediction of a start: its ``draws``, the calibrated quantiles ``said``, and the answer ``told``.

    ``ahead`` is as in a scene; ``open`` are those of either quantiles of which the outcome is not known yet, none where
    too little was known to calibrate by.
    """

    draws: Floats
    said: tuple[float | None, ...]
    ahead: float | None
    told: tuple[float | None, ...]
    open: tuple[Open, ...]


@dataclass
class _Seen:
    sort: Sort
    since: float
    started: float | None = None
    prediction: _Prediction | None = None
    asked: float = 0.0
    tried: bool = False


class Learner:
    """Looks at a cluster cycle by cycle; ``runtimes`` and ``calibration`` are what it has learned, ``began`` when jobs
    that run have started.  ``rules`` are those of the configuration.

    Every ``every`` seconds it predicts when a job starts that has begun to wait, by what was known at that time, and
    notes what became of it in ``answers``.
    """

    def __init__(self, every: float = EVERY, draws: int = DRAWS, rules: Rules = NONE) -> None:
        self.runtimes, self.calibration, self.rules = Runtimes(), Calibration(), rules
        self.forecaster = Forecaster(self.runtimes, self.calibration, draws)
        self._every, self._next, self._last = every, 0.0, 0.0
        self._jobs: dict[str, _Seen] = {}
        self.answers: list[Answer] = []

    @property
    def began(self) -> dict[str, float]:
        """When the jobs that run have started, in seconds since 1970."""
        return {uid: seen.started for uid, seen in self._jobs.items() if seen.started is not None}

    def look(self, state: ClusterState, now: float) -> None:
        """Take in how the cluster stands."""
        self._last = self._last or now
        for uid in [uid for uid in self._jobs if uid not in state.jobs]:
            self._over(self._jobs.pop(uid), now)
        waits: list[str] = []
        for uid, job in state.jobs.items():
            if self._stands(uid, job, now):
                waits.append(uid)
        if waits and now >= self._next:
            self._try(state, waits[0], now)
        self._last = now

    def _stands(self, uid: str, job: Job, now: float) -> bool:
        """Note how a job stands; whether it waits since before this moment, and nothing was predicted of it yet."""
        holds = sum(len(job.index.get(status, ())) for status in HOLDS)
        seen = self._jobs.get(uid)
        if holds >= max(job.facts.min_available, 1):
            fresh, seen = seen is None, self._jobs.setdefault(uid, _Seen(sort_of(job), now))
            if seen.started is None:
                seen.sort = sort_of(job)  # a PodGroup comes before its pods
                self._starts(uid, seen, _ran_since(job) if fresh else None)
        elif seen is None:
            self._jobs[uid] = _Seen(sort_of(job), now)
        elif seen.started is not None:
            self._jobs.pop(uid)
            self._over(seen, now)
        elif job.tasks or awaits_pods(job):
            for quantiles in seen.prediction.open if seen.prediction else ():
                quantiles.waits(now - seen.asked)
            return not seen.tried
        return False

    def _starts(self, uid: str, seen: _Seen, ran_since: float | None) -> None:
        """The last look came before the cycle that has placed it; a job that was placed at once did not wait.

        Of a job that was never seen waiting its pods may say that it had started before.
        """
        seen.started = self._last if ran_since is None else min(self._last, ran_since)
        if seen.prediction is not None and (outcome := self._last - seen.asked) > 0:
            self._came_true(uid, seen, seen.prediction, outcome)
        seen.prediction = None

    def _came_true(self, uid: str, seen: _Seen, found: _Prediction, outcome: float) -> None:
        self.answers.append(Answer(uid, seen.sort.queue, seen.asked, found.told, outcome, bool(found.open)))
        self.calibration.add(found.draws, outcome)
        if found.open:
            self.calibration.head_of_line.add(found.said, seen.sort.queue, found.ahead, outcome)
        for quantiles in found.open:
            quantiles.started(outcome)

    def _over(self, seen: _Seen, now: float) -> None:
        if seen.started is not None:
            self.runtimes.add(seen.sort, now - seen.started)

    def _try(self, state: ClusterState, uid: str, now: float) -> None:
        seen, self._next = self._jobs[uid], now + self._every
        scene = scene_of(state, now, self.began, self.rules)
        target = scene.number(uid)
        seen.tried, seen.asked = True, now
        found = "" if target is None else self.forecaster.predict(scene, [target])
        if target is not None and not isinstance(found, str) and np.isfinite(found).any():
            seen.prediction = self._predicted(found[0], seen.sort.queue, scene.ahead[target])

    def _predicted(self, draws: Floats, queue: str, ahead: float | None) -> _Prediction:
        calibration = self.calibration
        said = calibration.quantiles(draws)
        told = calibration.head_of_line.or_else(said, queue, ahead)
        followed = (Open(said, calibration.came), Open(told, calibration.told_came)) if calibration.is_ready else ()
        return _Prediction(draws, said, ahead, told, followed)


def _ran_since(job: Job) -> float | None:
    """When the first of the pods that hold a node started, as their kubelets say; None where none does."""
    told = [one.start_time for status in HOLDS for one in job.index.get(status, {}).values() if one.start_time]
    return min(told, default=None)


def learned(record: Path, registry: Registry, until: float = float("inf")) -> tuple[Learner, Moment]:
    """What a record teaches, and its last cycle.  Raises RecordError."""
    learner, last = Learner(), list[Moment]()
    reading = Reading(registry)

    def begun(moment: Moment) -> None:
        last[:] = [moment]
        learner.rules = rules_of(moment.config)
        learner.look(moment.rim.state, moment.cut.now)

    found = segments(record)
    for segment in found:
        if not reading.read(segment, begun, until=until):
            break
    if not last:
        raise RecordError(found[0].path, 0, "there is no cycle in that part of the record")
    return learner, last[0]
