"""All that ``import stromboli.study`` offers, under one name each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from stromboli.builtin import full_registry
from stromboli.errors import StudyError
from stromboli.sim.simulation.lives import PLAIN, Lives, read_lives
from stromboli.sim.simulation.unstarted import startable
from stromboli.sim.simulation.workload import Pods, SimJob, Workload
from stromboli.study.conf import Conf, builtin
from stromboli.study.opened import Record, open_record
from stromboli.study.simulating import Run, nodes_in, objects_in, read_trace, simulate
from stromboli.study.sweeps.engines import PROCESSES
from stromboli.study.sweeps.points import Options, points_of
from stromboli.study.sweeps.sweep import Sweep, Told, run_sweep
from stromboli.study.tables import Table

__all__ = [
    "PLAIN",
    "Conf",
    "Lives",
    "Pods",
    "Record",
    "Run",
    "SimJob",
    "Sweep",
    "Table",
    "Workload",
    "builtin",
    "open_record",
    "open_sweep",
    "read_dlrm",
    "read_lives",
    "read_openb",
    "read_philly",
    "read_swf",
    "read_trace",
    "simulate",
    "sweep",
]


def read_swf(file: str | Path) -> Workload:
    """A log in the Standard Workload Format.  Raises ManifestError."""
    return read_trace(file, form="swf")


def read_philly(file: str | Path) -> Workload:
    """Jobs of Microsoft's Philly clusters, as CSV.  Raises ManifestError."""
    return read_trace(file, form="philly")


def read_openb(file: str | Path, nodes: str | Path) -> Workload:
    """Alibaba's openb trace with its list of nodes.  Raises ManifestError."""
    return read_trace(file, str(nodes), "openb")


def read_dlrm(file: str | Path, nodes: str | Path) -> Workload:
    """Alibaba's DLRM trace on the nodes of the spot GPU trace.  Raises ManifestError."""
    return read_trace(file, str(nodes), "dlrm")


def open_sweep(folder: str | Path) -> Sweep:
    """A sweep that was made before, as far as it went."""
    return Sweep(Path(folder))


def sweep(
    traces: Iterable[Workload], confs: Sequence[str | Path | Conf], *, into: str | Path, seeds: Iterable[int] = (0,),
    loads: Iterable[float] = (1.0,), nodes: str = "", queues: str | Path = "", period: float | None = None,
    lives: Lives = PLAIN, engine: str = PROCESSES, workers: int = 2, told: Told = lambda whole, done: None,
) -> Sweep:  # fmt: skip
    """Simulate every trace at every load with every seed under every configuration, and keep each result in a folder.

    What the folder holds already is not run again, so an interrupted sweep goes on.  ``engine`` is ``processes``,
    ``dask`` for a cluster on this machine, or the address of a Dask scheduler; results are equal, whatever it is.
    Every configuration is checked before anything runs, and whether nodes can take any job of each trace.  Raises
    ConfigError, ManifestError, StudyError and OSError.
    """
    given, registry = [Conf.of(conf) for conf in confs], full_registry("")
    if twice := sorted({conf.name for conf in given if sum(other.name == conf.name for other in given) > 1}):
        raise StudyError(f"two configurations are called {twice[0]}; name their files otherwise")
    for conf in given:
        conf.config(registry)
    workloads = list(traces)
    if nodes:
        offered = list(nodes_in(nodes))
        workloads = [workload.on(offered) for workload in workloads]
    if queues:
        brought = list(objects_in(queues))
        workloads = [workload.on(brought) for workload in workloads]
    points = list(points_of(map(startable, workloads), given, list(seeds), list(loads), Options(period, lives)))
    if not points:
        raise StudyError("there is nothing to run; give at least one trace, configuration, seed and load")
    return run_sweep(points, Path(into), engine, workers, told)
