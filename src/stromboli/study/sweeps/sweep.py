"""Sweeps: points that are run once each, whatever happens meanwhile, and what they have shown."""

from __future__ import annotations

import fcntl
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from stromboli.errors import StudyError, in_words
from stromboli.sim.simulation.metrics import Row, mean
from stromboli.study.conf import Conf
from stromboli.study.sweeps.engines import executor
from stromboli.study.sweeps.points import Outcome, Point, run_point, versions
from stromboli.study.tables import Table, needed, write_whole

PLAN: Final = "sweep.json"
POINTS: Final = "points"
TRIES: Final = 3
"""How often a point may lose its worker."""
AHEAD: Final = 1
"""Points that wait at the workers for their turn, beyond those that run."""

MORE_IS_BETTER: Final = ("goodput", "jain", "utilisation", "jobs")
"""Beginnings of the names of figures of which more is better; of all others less is."""

Told = Callable[[int, int], object]
"""Hears how many points there are and how many are done."""


@dataclass(frozen=True)
class Sweep:
    """A sweep in a folder: its plan, and the points that are done.  ``problems`` are of points that cannot be run."""

    folder: Path
    problems: tuple[str, ...] = ()

    @cached_property
    def plan(self) -> dict[str, Any]:
        """The points in order (``key`` and titles), the configurations' texts, and the versions.  Raises StudyError."""
        try:
            found: dict[str, Any] = json.loads((self.folder / PLAN).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise StudyError(f"{self.folder} holds no sweep: {error}; make one with stromboli sweep") from None
        return found

    @cached_property
    def results(self) -> list[Result]:
        """The points that are done, in the plan's order."""
        files = ((point, self.folder / POINTS / f"{point['key']}.parquet") for point in self.plan["points"])
        return [_result(point, file) for point, file in files if file.exists()]

    @property
    def points(self) -> Table:
        """A row for each point: trace, configuration, load, seed, and all figures."""
        return Table([{**one.title, **one.figures} for one in self.results])

    @property
    def confs(self) -> dict[str, str]:
        """The texts of the configurations by name, in the order in which they were given."""
        found: dict[str, str] = self.plan["confs"]
        return found

    def values(self, conf: str, figure: str, load: float | None = None) -> list[float]:
        """A figure of all points of a configuration, of one load or all of them."""
        chosen = (one for one in self.results if one.title["conf"] == conf and load in (None, one.title["load"]))
        return [one.figures[figure] for one in chosen if figure in one.figures]

    def best(self, figure: str, at_most: Mapping[str, float] | None = None) -> str:
        """The configuration whose mean of a figure is best, of those whose means stay within ``at_most``.

        Figures leave out jobs that never started, so a configuration that leaves more of them unstarted than another
        one is not compared.  Raises StudyError where none stays within, where no point has the figure, or where no
        configuration started any job.
        """
        limits = dict(at_most or {})
        known = {name for one in self.results for name in one.figures}
        if unknown := sorted({figure, *limits} - known):
            raise StudyError(f"no figure {unknown[0]!r}; there are {', '.join(sorted(known))}")
        some = self._that_start_most()
        fit = [name for name in some if all(mean(self.values(name, key)) <= most for key, most in limits.items())]
        if not fit:
            raise StudyError(
                "no configuration stays within " + ", ".join(f"{key} {most:g}" for key, most in limits.items())
            )
        sign = -1 if more_is_better(figure) else 1
        return min(fit, key=lambda name: sign * mean(self.values(name, figure)))

    def _that_start_most(self) -> list[str]:
        """The configurations that have points and leave the smallest part of their jobs unstarted."""
        parts = {name: self.unstarted_part(name) for name in self.confs if self.values(name, "jobs")}
        least = min(parts.values())
        if least == 1:
            raise StudyError("no configuration started any job, so none is best; stromboli simulate says why")
        return [name for name, part in parts.items() if part == least]

    def unstarted_part(self, conf: str, load: float | None = None) -> float:
        """The part of the jobs that a configuration never started, of one load or all of them."""
        jobs = sum(self.values(conf, "jobs", load))
        return sum(self.values(conf, "unstarted", load)) / jobs if jobs else 0.0

    def unstarted(self, conf: str, load: float) -> dict[str, int]:
        """How many jobs a configuration never started at a load, by why."""
        found = (one for one in self.results if (one.title["conf"], one.title["load"]) == (conf, load))
        return dict(sum((Counter(one.unstarted) for one in found), Counter[str]()))

    def report(self, file: str | Path) -> Path:
        """Write a report as one HTML file.  Raises StudyError and OSError."""
        from stromboli.study.report.report import write_report

        return write_report(self, Path(file))


@dataclass(frozen=True)
class Result:
    """A point that is done: its titles, its figures, those of its queues, and its samples over time.

    ``unstarted`` says how many jobs never started, by why.
    """

    title: Mapping[str, Any]
    file: Path
    figures: dict[str, float]
    queues: dict[str, dict[str, float]]
    samples: list[Row]
    unstarted: dict[str, int]

    @property
    def jobs(self) -> Table:
        """A row for each job."""
        return Table(needed("pyarrow.parquet").read_table(self.file).to_pylist())


def _result(point: Mapping[str, Any], file: Path) -> Result:
    notes = needed("pyarrow.parquet").read_schema(file).metadata
    found = (json.loads(notes.get(name, b"{}")) for name in (b"figures", b"queues", b"samples", b"unstarted"))
    return Result({key: value for key, value in point.items() if key != "key"}, file, *found)


def more_is_better(figure: str) -> bool:
    """Whether a larger value is the better one."""
    return figure.startswith(MORE_IS_BETTER)


def run_sweep(
    points: Sequence[Point], into: Path, engine: str, workers: int, told: Told = lambda whole, done: None
) -> Sweep:
    """Run the points whose files are not in the folder yet, and write each as it is done.

    A point that fails, or whose worker is lost :data:`TRIES` times, is one of the problems; the others go on.  Only
    one sweep at a time writes into a folder.  Raises StudyError where that is so, or, in the end, where every point
    has lost its workers, and OSError.
    """
    (into / POINTS).mkdir(parents=True, exist_ok=True)
    with _alone(into):
        write_whole(into / PLAN, _plan_of(points))
        work = _Work(points, into / POINTS, told)
        while work.left:
            work.round(engine, workers)
        work.check()
    return Sweep(into, tuple(work.problems[point.key] for point in points if point.key in work.problems))


class _Work:
    """The points that are ``left``, by key, and the ``problems`` of those that cannot be run.

    A point during which workers were lost is run alone from then on, so that none is blamed for another's end.
    """

    def __init__(self, points: Sequence[Point], folder: Path, told: Told) -> None:
        self._folder, self._many, self._told = folder, len(points), told
        self.left = {point.key: point for point in points if not self._file(point).exists()}
        self.problems: dict[str, str] = {}
        self._lost: Counter[str] = Counter()
        self._ran, self._given_up = self._many - len(self.left), 0
        told(self._many, self._many - len(self.left))

    def round(self, engine: str, workers: int) -> None:
        """Run the points that have lost no worker yet, or the first of those that have."""
        batch = [point for key, point in self.left.items() if not self._lost[key]] or list(self.left.values())[:1]
        with executor(engine, min(workers, len(batch))) as pool:
            for point, outcome in _outcomes(pool, batch):
                self._ran += 1
                self._ended(point, outcome)
        for point in [point for point in batch if point.key in self.left][: workers + AHEAD]:
            self._lose(point)

    def check(self) -> None:
        """Raise StudyError where workers were lost and no point was ever run to its end."""
        if self._given_up and not self._ran:
            raise StudyError(
                f"the workers of all {self._given_up} points were lost {TRIES} times each, and none is done; "
                "is memory short?"
            )

    def _ended(self, point: Point, outcome: Outcome) -> None:
        if outcome.problem:
            title = ", ".join(f"{key} {value}" for key, value in point.title.items())
            self.problems[point.key] = f"{title}: {outcome.problem}"
        else:
            write_whole(self._file(point), outcome.parquet)
        del self.left[point.key]
        self._told(self._many, self._many - len(self.left))

    def _lose(self, point: Point) -> None:
        """A worker was lost while ``point`` may have run."""
        self._lost[point.key] += 1
        if self._lost[point.key] == TRIES:
            self._given_up += 1
            self._ended(point, Outcome(problem=f"its worker was lost {TRIES} times; is memory short?"))

    def _file(self, point: Point) -> Path:
        return self._folder / f"{point.key}.parquet"


def _outcomes(pool: Executor, points: Sequence[Point]) -> Iterator[tuple[Point, Outcome]]:
    """What comes of points, as it comes; nothing of those whose workers are lost."""
    futures: dict[Future[Outcome], Point] = {}
    with suppress(BrokenExecutor):  # a pool that has lost a worker takes no more points
        for point in points:
            futures[pool.submit(run_point, point)] = point
    for future in as_completed(futures):
        try:
            outcome = future.result()
        except BrokenExecutor:
            continue
        except Exception as error:  # noqa: BLE001  # an engine gives a point up: that is what came of it
            outcome = Outcome(problem=in_words(error))
        yield futures[future], outcome


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    with (folder / ".lock").open("w", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StudyError(f"another sweep writes into {folder}; wait for it, or name another folder") from None
        yield


def _plan_of(points: Sequence[Point]) -> bytes:
    confs: dict[str, Conf] = {point.conf.name: point.conf for point in points}
    plan = {
        "points": [{"key": point.key, **point.title} for point in points],
        "confs": {name: conf.text for name, conf in confs.items()},
        "versions": versions(),
    }
    return json.dumps(plan, indent=1).encode()
