"""Traces, read and run: what commands and notebooks begin with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from stromboli.builtin import full_registry
from stromboli.cluster.files.documents import whole_objects
from stromboli.errors import ManifestError
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.sim.simulation.metrics import by_queue, figures
from stromboli.sim.simulation.simulation import JobRun, Simulation
from stromboli.sim.simulation.workload import Workload, nodes_of
from stromboli.sim.traces.trace_objects import Manifest
from stromboli.sim.traces.workloads import FORMATS, WITH_NODES, format_of


@dataclass(frozen=True)
class Result:
    """A simulation that has ended: its jobs, the figures of all and of each queue, and how many cycles it took."""

    runs: list[JobRun]
    figures: dict[str, float]
    queues: dict[str, dict[str, float]]
    cycles: int


def read_trace(trace: str | Path, nodes: str, form: str = "") -> Workload:
    """The workload in a file of ``form`` swf, philly, openb or dlrm; empty: as the file tells.

    ``nodes`` are such as ``120x2cpu``, or a file: manifests, or the list of nodes of openb and dlrm.  Raises
    ManifestError and OSError.
    """
    path = Path(trace)
    form = form or format_of(path)
    if form in WITH_NODES:
        return WITH_NODES[form](path, Path(nodes))
    if form not in FORMATS:
        known = ", ".join([*FORMATS, *WITH_NODES])
        raise ManifestError(f"its format is none of {known}; say which with --format", file=str(path))
    return FORMATS[form](path, objects_in(nodes) if Path(nodes).exists() else nodes_of(nodes))


def objects_in(file: str | Path) -> Iterator[Manifest]:
    """The objects of a file of manifests.  Raises ManifestError and OSError."""
    yield from whole_objects(file)


def simulate(
    workload: Workload, conf: str | Config = "", *, period: float | None = None, seed: int = 0,
    registry: Registry | None = None, progress: Callable[[Simulation], object] = lambda _: None,
) -> Result:  # fmt: skip
    """Run a workload with a configuration (a file; empty: the built-in one).

    ``period`` is None for a cycle at each event.  Raises ConfigError, PluginError and OSError.
    """
    registry = registry or full_registry("")
    config = conf if isinstance(conf, Config) else registry.configured(conf)
    simulation = Simulation(workload, config, registry, period=period, seed=seed, progress=progress)
    runs = simulation.run()
    return Result(runs, figures(runs, workload.capacity()), by_queue(runs), simulation.cycles)
