"""``stromboli sweep`` and ``stromboli report``: many simulations, and a page that shows what came of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stromboli.cli.exits import BAD_INPUT, EPILOG, INTERRUPTED
from stromboli.cli.insight.simulate import Form, LivesFile, Nodes, Period, Queues, Since, Span, jobs_of, tell_unstarted
from stromboli.cli.options import Compatibility
from stromboli.cli.terminal import console, counted, print_table, say, table

if TYPE_CHECKING:
    from stromboli.study.sweeps.sweep import Sweep

SWEEP_HELP = (
    """\
Examples:

stromboli sweep philly.csv --nodes 552x4gpu --conf a.conf --conf b.conf --seeds 20 --loads 0.8,1,1.2 --into out

stromboli sweep log.swf --nodes 120x2cpu --conf a.conf --engine tcp://scheduler:8786 --into out

The same command goes on where an earlier one ended, however it ended.

"""
    + EPILOG
)
REPORT_HELP = "Example: stromboli report out --to out.html\n\n" + EPILOG
SHOWN = ("unfinished", "mean_wait", "p95_wait", "bounded_slowdown", "goodput", "evictions")

Traces = Annotated[list[Path], typer.Argument(metavar="TRACE...", help="Traces: SWF, Philly, openb or DLRM.")]
Confs = Annotated[
    list[str] | None, typer.Option("--conf", metavar="FILE", help="A configuration; several times. Default: built-in.")
]


def sweep(
    traces: Traces, nodes: Nodes,
    into: Annotated[Path, typer.Option("--into", metavar="DIR", help="The folder of the sweep.")],
    conf: Confs = None,
    seeds: Annotated[str, typer.Option("--seeds", metavar="N", help="How many seeds, or which: 3,7,9.")] = "1",
    loads: Annotated[str, typer.Option("--loads", metavar="X,X", help="Times as many jobs, each of these.")] = "1",
    engine: Annotated[
        str, typer.Option("--engine", metavar="E", help="processes, dask, or a Dask scheduler's address.")
    ] = "processes",
    workers: Annotated[int, typer.Option("--workers", metavar="N", min=0, help="How many. Default: a CPU each.")] = 0,
    queues: Queues = None, period: Period = None, lives: LivesFile = None, form: Form = "", since: Since = 0.0,
    span: Span = float("inf"), compat: Compatibility = None,
) -> None:  # fmt: skip
    """Simulate every trace at every load with every seed under every configuration; what is done already stays."""
    import stromboli.study.api as api
    from stromboli.study.sweeps.engines import usable_cpus

    workloads = [jobs_of(trace, nodes, form, since, span) for trace in traces]
    with _progress() as told:
        found = api.sweep(
            workloads, [api.Conf.of(one)._replace(compat=compat is not None) for one in conf or [""]],
            seeds=_numbers(seeds, "--seeds"), loads=_loads(loads), queues=queues or "", period=period,
            lives=api.PLAIN if lives is None else api.read_lives(lives), engine=engine,
            workers=workers or usable_cpus(), into=into, told=told,
        )  # fmt: skip
    _show(found)
    raise typer.Exit(BAD_INPUT if found.problems else 0)


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a sweep.")],
    to: Annotated[Path | None, typer.Option("--to", metavar="FILE", help="Default: report.html in DIR.")] = None,
) -> None:
    """Write a sweep's report: one HTML file with tables and plots, which needs no network."""
    from stromboli.study.sweeps.sweep import Sweep

    file = Sweep(folder).report(to or folder / "report.html")
    console().print(f"wrote {file}", soft_wrap=True)


def _numbers(text: str, option: str) -> list[int]:
    """``20`` are the first twenty numbers from 0 on, ``3,7`` these two."""
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        raise typer.BadParameter("write a number, or numbers with commas between them", param_hint=option) from None
    if found[0] < 1 and "," not in text:
        raise typer.BadParameter("write how many seeds, 1 or more, or which: 3,7", param_hint=option)
    return found if "," in text else list(range(found[0]))


def _loads(text: str) -> list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    if not found or not all(0.01 <= load <= 100 for load in found):
        raise typer.BadParameter("write loads from 0.01 to 100, such as 0.8,1,1.2", param_hint="--loads")
    return found


@contextmanager
def _progress() -> Iterator[Callable[[int, int], object]]:
    """A bar of points on standard error, on a terminal only; Ctrl-C ends the command, which says how far it went."""
    counts = [0, 0]
    try:
        with _bar() as show:

            def tell(whole: int, done: int) -> None:
                counts[:] = whole, done
                show(whole, done)

            yield tell
    except KeyboardInterrupt:
        if whole := counts[0]:
            say(f"ended: {counts[1]} of {counted(whole, 'point')} done; run the same command again to go on")
        raise typer.Exit(INTERRUPTED) from None


@contextmanager
def _bar() -> Iterator[Callable[[int, int], object]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    view = Console(stderr=True)
    columns = ("points", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=view, transient=True, disable=not view.is_terminal) as bar:
        task = bar.add_task("points", total=None)
        yield lambda whole, done: bar.update(task, total=whole, completed=done)


def _show(found: Sweep) -> None:
    from stromboli.sim.simulation.metrics import OF_STARTED, mean

    view = table("CONF", "LOAD", ">POINTS", *(f">{name.upper().replace('_', ' ')}" for name in SHOWN))
    loads = sorted({one.title["load"] for one in found.results})
    for load in loads:
        for name in found.confs:
            values = {figure: found.values(name, figure, load) for figure in SHOWN}
            blank = OF_STARTED if found.unstarted_part(name, load) == 1 else ()
            cells = ("-" if figure in blank else f"{mean(each):.4g}" for figure, each in values.items())
            view.add_row(name, f"{load:g}", str(len(values[SHOWN[0]])), *cells)
    print_table(console(), view)
    for problem in found.problems:
        say(f"error: {problem}")
    for load in loads:
        for name in found.confs:
            jobs = int(sum(found.values(name, "jobs", load)))
            tell_unstarted(f"{name} at load {load:g}: ", found.unstarted(name, load), jobs)
    whole = counted(len(found.plan["points"]), "point")
    console().print(f"{len(found.results)} of {whole} done; stromboli report {found.folder} shows them", soft_wrap=True)
