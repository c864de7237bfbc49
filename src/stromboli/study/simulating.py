"""Traces, read and run: what commands and notebooks begin with."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from stromboli.builtin import full_registry
from stromboli.cluster.files.documents import whole_objects
from stromboli.errors import ManifestError
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.sim.simulation.accounts import Accounts
from stromboli.sim.simulation.lives import PLAIN, Lives
from stromboli.sim.simulation.metrics import by_queue, figures, job_row, sample_rows
from stromboli.sim.simulation.pods import JobRun
from stromboli.sim.simulation.simulation import Simulation
from stromboli.sim.simulation.unstarted import unstarted
from stromboli.sim.simulation.workload import Workload, nodes_of
from stromboli.sim.traces.trace_objects import Manifest
from stromboli.sim.traces.workloads import FORMATS, WITH_NODES, format_of
from stromboli.study.conf import Conf
from stromboli.study.tables import Table


@dataclass(frozen=True)
class Run:
    """A simulation that has ended: what became of each job, the sums over time, and how many cycles it took.

    ``unstarted`` says how many jobs never started, by why.
    """

    runs: list[JobRun]
    accounts: Accounts
    cycles: int
    unstarted: dict[str, int] = field(default_factory=dict)

    @cached_property
    def metrics(self) -> dict[str, float]:
        """All figures by name; docs/simulation.md has their formulas."""
        return figures(self.runs, self.accounts)

    @cached_property
    def by_queue(self) -> dict[str, dict[str, float]]:
        """The figures of each queue."""
        return by_queue(self.runs, self.accounts)

    @property
    def jobs(self) -> Table:
        """A row for each job."""
        return Table([job_row(run, self.accounts) for run in self.runs])

    @property
    def queues(self) -> Table:
        """A row for each queue."""
        return Table([{"queue": name, **row} for name, row in self.by_queue.items()])

    @property
    def samples(self) -> Table:
        """The cluster over time: at most 256 moments at equal distances."""
        return Table(sample_rows(self.accounts))

    def write(self, into: Path, form: str) -> None:
        """Write tables of ``form`` csv or parquet and ``figures.json`` into a folder.  Raises OSError."""
        into.mkdir(parents=True, exist_ok=True)
        for name, table in (("jobs", self.jobs), ("queues", self.queues), ("samples", self.samples)):
            table.write(into / f"{name}.{form}")
        (into / "figures.json").write_text(json.dumps(self.metrics, indent=2) + "\n", encoding="utf-8")


def read_trace(trace: str | Path, nodes: str = "", form: str = "") -> Workload:
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
    return FORMATS[form](path).on(nodes_in(nodes) if nodes else ())


def nodes_in(nodes: str) -> Iterator[Manifest]:
    """Nodes such as ``120x2cpu``, or those of a file of manifests.  Raises ManifestError and OSError."""
    return objects_in(nodes) if Path(nodes).exists() else nodes_of(nodes)


def objects_in(file: str | Path) -> Iterator[Manifest]:
    """The objects of a file of manifests.  Raises ManifestError and OSError."""
    yield from whole_objects(file)


def simulate(
    workload: Workload, conf: str | Path | Conf | Config = "", *, nodes: str = "", queues: str | Path = "",
    period: float | None = None, seed: int = 0, lives: Lives = PLAIN, registry: Registry | None = None,
    progress: Callable[[Simulation], object] = lambda _: None,
) -> Run:  # fmt: skip
    """Run a workload with a configuration: a file, the text of a :class:`Conf`; empty: the built-in one.

    ``nodes`` and ``queues`` (a file of manifests) replace those of the workload; ``period`` is None for a cycle at each
    event.  Raises ConfigError, ManifestError, PluginError and OSError.
    """
    registry = registry or full_registry("")
    config = conf if isinstance(conf, Config) else Conf.of(conf).config(registry)
    workload = workload.on(nodes_in(nodes)) if nodes else workload
    workload = workload.on(objects_in(queues)) if queues else workload
    simulation = Simulation(workload, config, registry, period=period, seed=seed, lives=lives, progress=progress)
    runs = simulation.run()
    return Run(runs, simulation.accounts, simulation.cycles, unstarted(workload, runs, simulation.world))
