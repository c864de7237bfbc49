"""What would have followed from another configuration: the jobs of a record, simulated with it and with their own.

The record's own configuration is simulated first: by how much its jobs start elsewhere than they did is the model's
error, and differences below twice of that say nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Final, NamedTuple

from stromboli.cluster.files.written import Manifest
from stromboli.errors import NotFoundError, StudyError
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.model.names import CPU, GPU
from stromboli.sim.simulation.metrics import mean, percentile
from stromboli.sim.simulation.pods import JobRun
from stromboli.sim.simulation.simulation import Simulation
from stromboli.sim.simulation.unstarted import last_words
from stromboli.sim.simulation.workload import Workload
from stromboli.sim.world import SimChange, key_of
from stromboli.study.recorded.history import History
from stromboli.study.recorded.trace import RecordedTrace, recorded_trace
from stromboli.study.story import missing_job
from stromboli.study.sweeps.engines import PROCESSES, executor

MOST_SAID: Final = 50
"""Reasons that are kept of one job, the last ones."""


class Run:
    """One simulation of a record's jobs: ``runs`` by key, ``cycles``, and what PodGroups said meanwhile."""

    def __init__(self, workload: Workload, config: Config, registry: Registry, period: float, seconds: float) -> None:
        self._said: dict[str, list[tuple[float, str]]] = {}
        simulation = Simulation(workload, config, registry, period=period)
        simulation.world.follow(lambda change: self._hear(change, simulation.now))
        self.runs = {run.job.key: run for run in simulation.run(seconds)}
        self.cycles = simulation.cycles

    def _hear(self, change: SimChange, now: float) -> None:
        if change.kind != "PodGroup":
            return
        said, text = self._said.setdefault(key_of(change.body), []), last_words(change.body)
        if text and (not said or said[-1][1] != text):
            said.append((now, text))
            del said[:-MOST_SAID]

    def why(self, key: str, when: float) -> str:
        """What the PodGroup of a job said last by that time."""
        said = self._said.get(key, [])
        at = bisect_right(said, when, key=lambda one: one[0])
        return said[at - 1][1] if at else ""


class RunInputs(NamedTuple):
    """What a :class:`Run` depends on."""

    workload: Workload
    config: Config
    registry: Registry
    period: float
    seconds: float


def run_both(own: RunInputs, other: RunInputs, workers: int, tell: Callable[[str], object]) -> tuple[Run, Run]:
    """Both runs: one after the other, or with more than one of ``workers`` the other one in a process of its own.

    Where that process fails or is lost, its run follows here: it gives the same, or raises what it raises.
    """
    if workers < 2:
        tell("simulating the recorded configuration")
        first = Run(*own)
        tell("simulating the other configuration")
        return first, Run(*other)
    tell("simulating both configurations")
    with executor(PROCESSES, 1) as pool:
        elsewhere: Future[Run] = pool.submit(Run, *other)
        first = Run(*own)
        try:
            return first, elsewhere.result()
        except Exception:  # noqa: BLE001  # a lost process, a plugin that only this one has, or the run's own error
            tell("simulating the other configuration")
            return first, Run(*other)


class Quantiles(NamedTuple):
    """Of a number of seconds."""

    p50: float
    p95: float
    worst: float


class ModelError(NamedTuple):
    """How far the starts of ``jobs`` are from the recorded ones when their own configuration is simulated, in seconds.

    ``within`` is the part that starts within two periods.
    """

    jobs: int
    within: float
    p50: float
    p95: float
    worst: float

    @property
    def start_seconds(self) -> Quantiles:
        """The same distances by name."""
        return Quantiles(self.p50, self.p95, self.worst)

    @property
    def least(self) -> float:
        """Seconds below which a difference says nothing: twice the 95th percentile."""
        return 2 * self.p95


class JobRow(NamedTuple):
    """A job under both configurations: seconds from the first cycle; None: it did not start, or end, by the last one.

    ``change`` is by how much longer it waits with the other one, at least where ``bound`` is True; ``why`` is what
    its PodGroup says there when it has started here, or the other way round.
    """

    job: str
    queue: str
    submit: float
    recorded: float | None
    start: float | None
    other: float | None
    end: float | None
    other_end: float | None
    change: float
    bound: bool
    why: str


class QueueRow(NamedTuple):
    """A queue under both: jobs started, mean waits in seconds, hours of ``resource`` that its pods had, evictions."""

    queue: str
    jobs: int
    started: tuple[int, int]
    wait: tuple[float, float]
    resource: str
    hours: tuple[float, float]
    evictions: tuple[int, int]


class ClosedLoop:
    """The comparison of a ``history`` with what ``config`` would have made of it.

    ``objects`` (queues, priority classes) take the places of those of the record.  ``period`` is that of the record.
    With more than one of ``workers`` both simulations run at the same time.
    """

    def __init__(
        self, history: History, config: Config, registry: Registry, objects: Iterable[Manifest] = (),
        tell: Callable[[str], object] = lambda _: None, workers: int = 1,
    ) -> None:  # fmt: skip
        self.trace: RecordedTrace = recorded_trace(history, "record")
        self.period, self.seconds = history.period, history.last - history.first
        given, self._first = (registry, self.period, self.seconds), history.first
        own = RunInputs(self.trace.workload, history.config, *given)
        self.own, self.other = run_both(own, RunInputs(self.trace.workload.on(objects), config, *given), workers, tell)
        self.model_error = self._error()
        self.jobs = [row for job in self.trace.workload.jobs if (row := self._row(job.key)) is not None]

    def _recorded(self, key: str) -> float | None:
        started = self.trace.past[key].started
        return None if started is None else started - self._first

    def _counts(self, key: str) -> bool:
        """Whether a job says anything: it was seen whole, and did not run before."""
        past = self.trace.past[key]
        return not past.unseen and not (past.before and past.started is not None and past.started <= self._first)

    def _error(self) -> ModelError:
        far = []
        for key, run in self.own.runs.items():
            recorded = self._recorded(key)
            if self._counts(key) and (recorded is not None or run.start is not None):
                here, there = (self.seconds if one is None else one for one in (recorded, run.start))
                far.append(abs(here - there))
        within = sum(one <= 2 * self.period for one in far) / len(far) if far else 1.0
        return ModelError(len(far), within, percentile(far, 0.5), percentile(far, 0.95), max(far, default=0.0))

    def _row(self, key: str) -> JobRow | None:
        if not self._counts(key):
            return None
        own, other = self.own.runs[key], self.other.runs[key]
        starts = [self.seconds if run.start is None else run.start for run in (own, other)]
        change = starts[1] - starts[0]
        why = ""
        if change:
            slower, when = (self.other, starts[0]) if change > 0 else (self.own, starts[1])
            why = slower.why(key, when + self.period)
        bound = None in (own.start, other.start) and own.start != other.start
        return JobRow(
            key, own.job.queue, own.job.submit, self._recorded(key), own.start, other.start, own.end, other.end,
            change, bound, why,
        )  # fmt: skip

    # ------------------------------------------------------------------ what it says

    def need_job(self, key: str | None) -> None:
        """Raise NotFoundError or StudyError where a job, or with None any job, is not among those that are compared."""
        if any(key in (None, row.job) for row in self.jobs):
            return
        if key is None:
            raise StudyError("nothing is compared: the record saw no job there from its beginning")
        if key in self.own.runs:
            raise StudyError(f"job {key} is not compared: a part of it happened while nothing was recorded")
        raise NotFoundError("job", key, message=missing_job(key))

    def tells(self, row: JobRow) -> bool:
        """Whether the difference is beyond the model's error."""
        return abs(row.change) > max(self.model_error.least, 2 * self.period)

    def losers(self, most: int) -> list[JobRow]:
        """The jobs that wait longer with the other configuration, the worst first."""
        return sorted((row for row in self.jobs if row.change > 0 and self.tells(row)), key=_worst)[:most]

    def winners(self, most: int) -> list[JobRow]:
        """The jobs that wait less, the best first."""
        return sorted((row for row in self.jobs if row.change < 0 and self.tells(row)), key=_worst)[:most]

    def queues(self) -> Iterator[QueueRow]:
        """The queues, by name."""
        names = sorted({job.queue for job in self.trace.workload.jobs})
        for name in names:
            pairs = [(self.own.runs[key], self.other.runs[key]) for key in self._keys(name)]
            if pairs:
                yield _queue(name, pairs, {row.job: row for row in self.jobs}, self.seconds)

    def _keys(self, queue: str) -> list[str]:
        return [job.key for job in self.trace.workload.jobs if job.queue == queue]


def _worst(row: JobRow) -> tuple[float, str]:
    return -abs(row.change), row.job


class _Side(NamedTuple):
    """A queue under one configuration."""

    started: int
    wait: float
    hours: float
    evictions: int


def _queue(name: str, pairs: Sequence[tuple[JobRun, JobRun]], rows: Mapping[str, JobRow], seconds: float) -> QueueRow:
    own, other = zip(*pairs, strict=True)
    resource = GPU if any(run.job.asks().get(GPU) for run in own) else CPU
    here, there = (_side(runs, rows, resource, seconds) for runs in (own, other))
    return QueueRow(
        name, sum(run.job.key in rows for run in own), (here.started, there.started), (here.wait, there.wait), resource,
        (here.hours, there.hours), (here.evictions, there.evictions),
    )  # fmt: skip


def _side(runs: Sequence[JobRun], rows: Mapping[str, JobRow], resource: str, seconds: float) -> _Side:
    counted = [run for run in runs if run.job.key in rows]
    waits = [(seconds if run.start is None else run.start) - run.job.submit for run in counted]
    hours = sum(_hours(run, resource, seconds) for run in runs)
    return _Side(
        sum(run.start is not None for run in counted), mean(waits), hours, sum(run.evictions for run in runs)
    )  # fmt: skip


def _hours(run: JobRun, resource: str, seconds: float) -> float:
    """Hours of a resource that a job had; one that has not ended counts from its start."""
    asked = run.job.asks().get(resource, 0.0)
    held = run.held / run.job.size if run.job.size else 0.0
    if run.end is None and run.start is not None:
        held = max(held, seconds - run.start)
    return asked * held / 3600
