"""The points of a sweep: one simulation each, named by all that it depends on."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from importlib.metadata import version
from itertools import product
from typing import Final, NamedTuple

import msgspec

from stromboli.errors import in_words
from stromboli.sim.simulation.lives import PLAIN, Lives
from stromboli.sim.simulation.unstarted import startable
from stromboli.sim.simulation.workload import Workload
from stromboli.study.conf import Conf
from stromboli.study.simulating import simulate

VERSIONS: Final = ("stromboli", "numpy", "pyarrow")
"""Packages that results and their bytes depend on, in addition to Python."""


class Options(NamedTuple):
    """What all points of a sweep have in common; see :func:`~stromboli.study.simulating.simulate`."""

    period: float | None = None
    lives: Lives = PLAIN


@dataclass(frozen=True)
class Point:
    """A simulation to run: a trace with ``load`` times its jobs, under a configuration, with a seed.

    ``key`` names it by a digest of all inputs and of the versions of what computes it.
    """

    key: str
    workload: Workload
    conf: Conf
    seed: int
    load: float
    options: Options

    @property
    def title(self) -> dict[str, str | int | float]:
        """How tables name it."""
        return {"trace": self.workload.name, "conf": self.conf.name, "load": self.load, "seed": self.seed}


def versions() -> dict[str, str]:
    """What computes, by name."""
    return {"python": platform.python_version(), **{name: version(name) for name in VERSIONS}}


def points_of(
    traces: Iterable[Workload], confs: Sequence[Conf], seeds: Sequence[int], loads: Sequence[float], options: Options
) -> Iterator[Point]:
    """All points of a sweep, configurations of one seed next to each other."""
    computes = versions()
    for workload in traces:
        digest = blake2b(
            msgspec.json.encode([workload.jobs, workload.objects, workload.changes]), digest_size=16
        ).hexdigest()
        for load, seed, conf in product(loads, seeds, confs):
            inputs = [
                computes, workload.name, digest, conf.name, conf.text, conf.compat, seed, load, options.period,
                msgspec.to_builtins(options.lives),
            ]  # fmt: skip
            key = blake2b(json.dumps(inputs, sort_keys=True).encode(), digest_size=16).hexdigest()
            yield Point(key, workload, conf, seed, load, options)


class Outcome(NamedTuple):
    """What a worker sends back: a Parquet file, or why there is none."""

    parquet: bytes = b""
    problem: str = ""


def run_point(point: Point) -> Outcome:
    """Run one point: the jobs as a Parquet file whose metadata hold the figures, the queues and the samples."""
    from stromboli.study.tables import parquet_bytes

    options = point.options
    try:
        workload = startable(point.workload.scaled(point.load, point.seed))
        run = simulate(workload, point.conf, period=options.period, seed=point.seed, lives=options.lives)
        notes = {"point": point.title, "figures": run.metrics, "queues": run.by_queue, "samples": run.samples.rows}
        notes["unstarted"] = run.unstarted
        return Outcome(parquet_bytes(run.jobs, {name: json.dumps(note) for name, note in notes.items()}))
    except Exception as error:  # noqa: BLE001  # whatever fails is what came of this point; the others go on
        return Outcome(problem=in_words(error))
