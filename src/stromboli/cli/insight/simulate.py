"""``stromboli simulate``: a trace in virtual time, and what a configuration makes of it."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stromboli.cli.exits import EPILOG
from stromboli.cli.options import Compatibility, PluginsDirectory
from stromboli.cli.terminal import console, counted, print_table, say, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stromboli.sim.simulation.simulation import Simulation
    from stromboli.sim.simulation.workload import Workload
    from stromboli.study.simulating import Run

SIMULATE_HELP = (
    """\
Examples:

stromboli simulate lublin_256.swf --nodes 1x256cpu --conf fifo.conf --queues fifo.yaml

stromboli simulate philly.csv --nodes 552x4gpu --period 10 --into out

"""
    + EPILOG
)

Trace = Annotated[Path, typer.Argument(metavar="TRACE", help="A trace: SWF, Philly, openb or DLRM; also with .gz.")]
Nodes = Annotated[
    str, typer.Option("--nodes", metavar="NODES", help="Nodes, such as 552x96cpu+8gpu+512Gi, or a file of nodes.")
]
Form = Annotated[str, typer.Option("--format", metavar="F", help="swf, philly, openb or dlrm. Default: as it says.")]
Queues = Annotated[
    Path | None, typer.Option("--queues", metavar="FILE", help="Manifests to begin with: queues, priority classes.")
]
Period = Annotated[
    float | None, typer.Option("--period", metavar="S", min=0.001, help="Seconds between cycles. Default: at events.")
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="Of the scheduler, and of the jobs that --load draws.")]
LivesFile = Annotated[
    Path | None, typer.Option("--lives", metavar="FILE", help="How pods start, save, fail and begin again.")
]
Since = Annotated[float, typer.Option("--from", metavar="S", help="Only jobs from this second of the trace on.")]
Span = Annotated[float, typer.Option("--for", metavar="S", help="Only jobs of so many seconds. Default: all.")]


def simulate(
    trace: Trace, nodes: Nodes,
    conf: Annotated[str, typer.Option("--conf", metavar="FILE", help="Default: the built-in configuration.")] = "",
    form: Form = "", queues: Queues = None, period: Period = None, seed: Seed = 0, since: Since = 0.0,
    span: Span = float("inf"),
    load: Annotated[float, typer.Option("--load", metavar="X", min=0.01, help="Times as many jobs.")] = 1.0,
    into: Annotated[Path | None, typer.Option("--into", metavar="DIR", help="Write tables and figures.")] = None,
    parquet: Annotated[bool, typer.Option("--parquet", help="Write tables as Parquet (needs pyarrow).")] = False,
    lives: LivesFile = None,
    compat: Compatibility = None, plugins_dir: PluginsDirectory = None,
) -> None:  # fmt: skip
    """Run a trace in virtual time: the scheduler's own cycle decides, jobs live for their runtimes."""
    from stromboli.builtin import full_registry
    from stromboli.sim.simulation.lives import PLAIN, read_lives
    from stromboli.sim.simulation.unstarted import startable
    from stromboli.study.simulating import simulate as run

    registry = full_registry(plugins_dir or "")
    config = registry.configured(conf, compat=compat is not None)
    workload = startable(jobs_of(trace, nodes, form, since, span).scaled(load, seed))
    life = PLAIN if lives is None else read_lives(lives)
    with _progress(len(workload.jobs)) as tell:
        found = run(
            workload, config, queues=queues or "", period=period, seed=seed, lives=life, registry=registry,
            progress=tell,
        )  # fmt: skip
    _show(found)
    if into is not None:
        found.write(into, "parquet" if parquet else "csv")


def jobs_of(trace: Path, nodes: str, form: str, since: float, span: float) -> Workload:
    """The jobs of a trace that come within a window.  Raises BadParameter where there are others alone."""
    from stromboli.study.simulating import read_trace

    whole = read_trace(trace, nodes, form)
    found = whole.window(span, since)
    if whole.jobs and not found.jobs:
        raise typer.BadParameter(
            f"none of the jobs of {trace} comes then; they come from {whole.jobs[0].submit:g} to "
            f"{whole.jobs[-1].submit:g} s",
            param_hint="--from, --for",
        )
    return found


@contextmanager
def _progress(jobs: int) -> Iterator[Callable[[Simulation], object]]:
    """A bar on standard error while jobs end, on a terminal only."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not Console(stderr=True).is_terminal) as bar:
        task = bar.add_task("jobs ended", total=jobs)
        yield lambda simulation: bar.update(task, completed=simulation.ended)


COLUMNS = ("jobs", "unfinished", "mean_wait", "p95_wait", "bounded_slowdown", "evictions")


def _show(found: Run) -> None:
    view = table("QUEUE", ">JOBS", ">UNFINISHED", ">MEAN WAIT", ">P95 WAIT", ">SLOWDOWN", ">EVICTIONS")
    for name, figures in [*found.by_queue.items(), ("all", found.metrics)]:
        view.add_row(name, *(_cell(figures, column) for column in COLUMNS))
    print_table(console(), view)
    for name, value in found.metrics.items():
        if name not in COLUMNS:
            console().print(f"{name}: {value:.4g}")
    console().print(counted(found.cycles, "cycle"))
    tell_unstarted("", found.unstarted, len(found.runs))


def _cell(figures: dict[str, float], column: str) -> str:
    from stromboli.sim.simulation.metrics import OF_STARTED

    if column in OF_STARTED and figures["unstarted"] == figures["jobs"]:
        return "-"
    return f"{figures[column]:.10g}" if column in COLUMNS[:2] else f"{figures[column]:.2f}"


def tell_unstarted(where: str, reasons: dict[str, int], jobs: int) -> None:
    """Say on standard error how many jobs never started, and why."""
    from stromboli.sim.simulation.unstarted import in_short

    if many := sum(reasons.values()):
        say(f"note: {where}{many:,} of {counted(jobs, 'job')} never started, no wait counts them: {in_short(reasons)}")
