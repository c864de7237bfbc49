"""``stromboli diff --closed-loop``: what would have followed from another configuration."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stromboli.cli.terminal import console, counted, print_table, say, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from stromboli.framework.config.config import Config
    from stromboli.framework.config.registry import Registry
    from stromboli.study.closed_loop import ClosedLoop, JobRow

SHOWN: Final = 10
"""Winners and losers that are listed."""


def compare(
    record: Path, config: Config, registry: Registry, span: tuple[float, float], queues: Path | None,
    job: str | None, into: Path | None, workers: int,
) -> bool:  # fmt: skip
    """Print what ``config`` would have made of the record's jobs; whether anything is beyond the model's error.

    With more than one of ``workers`` both simulations run at the same time.
    Raises RecordError, ManifestError, OSError, and NotFoundError or StudyError where ``job`` is not compared.
    """
    from stromboli.study.closed_loop import ClosedLoop
    from stromboli.study.recorded.history import History
    from stromboli.study.simulating import objects_in

    with _telling() as tell:
        tell("reading the record")
        history = History(record, registry, *span).read()
        objects = objects_in(queues) if queues is not None else ()
        found = ClosedLoop(history, config, registry, objects, tell, workers)
    found.need_job(job)
    _show_error(found)
    _show_queues(found)
    for title, rows in (("wait longer", found.losers(SHOWN)), ("wait less", found.winners(SHOWN))):
        _show_jobs(title, [row for row in rows if job in (None, row.job)])
    if into is not None:
        _write(found, into)
    return any(map(found.tells, found.jobs))


@contextmanager
def _telling() -> Iterator[Callable[[str], object]]:
    """A line on standard error that says what goes on, on a terminal only."""
    from rich.console import Console

    errors = Console(stderr=True)
    if not errors.is_terminal:
        yield lambda _: None
        return
    with errors.status("") as status:
        yield status.update


def _show_error(found: ClosedLoop) -> None:
    error = found.model_error
    console().print(
        f"model error: of {counted(error.jobs, 'job')}, {error.within:.1%} start within two periods of when they did "
        f"(P50 {error.p50:.1f} s, P95 {error.p95:.1f} s, worst {error.worst:.1f} s)"
    )
    console().print(f"differences up to {max(error.least, 2 * found.period):.1f} s are within the model's error")
    if found.trace.left_out:
        say(f"note: left out {counted(found.trace.left_out, 'job')} without pods, withdrawn or too large for the nodes")
    if groupless := found.trace.groupless:
        say(f"note: left out {counted(len(groupless), 'job')} whose pods have no PodGroup, such as {groupless[0]}")
    if found.trace.guessed:
        say(f"note: {counted(len(found.trace.guessed), 'job')} had not ended: their runtimes are lower bounds")


def _show_queues(found: ClosedLoop) -> None:
    view = table("QUEUE", ">JOBS", ">STARTED", ">MEAN WAIT", ">HOURS", "OF", ">EVICTIONS")
    for row in found.queues():
        view.add_row(
            row.queue, str(row.jobs), _both(row.started, "d"), _both(row.wait, ".1f"), _both(row.hours, ".2f"),
            row.resource, _both(row.evictions, "d"),
        )  # fmt: skip
    print_table(console(), view)


def _both(pair: Sequence[float], form: str) -> str:
    old, new = (format(one, form) for one in pair)
    return old if old == new else f"{old} -> {new}"


def _show_jobs(title: str, rows: Sequence[JobRow]) -> None:
    if not rows:
        return
    console().print(f"\njobs that {title} with the other configuration:")
    view = table("JOB", "QUEUE", ">WAITED", ">WAITS", ">CHANGE", "WHY")
    for row in rows:
        waits = ["-" if start is None else f"{start - row.submit:.1f} s" for start in (row.start, row.other)]
        change = f"{'at least ' if row.bound else ''}{row.change:+.1f} s"
        view.add_row(row.job, row.queue, *waits, change, row.why)
    print_table(console(), view)


def _write(found: ClosedLoop, into: Path) -> None:
    from stromboli.study.tables import Table

    into.mkdir(parents=True, exist_ok=True)
    Table([row._asdict() for row in found.jobs]).write(into / "jobs.csv")
