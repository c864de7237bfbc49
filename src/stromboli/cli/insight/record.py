"""``stromboli record`` and ``stromboli replay``: what a record holds, whether it is whole, and its cycles once more."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stromboli.cli.exits import BAD_INPUT, EPILOG, WAITING
from stromboli.cli.options import Compatibility, PluginsDirectory
from stromboli.cli.terminal import console, counted, print_table, say, table
from stromboli.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stromboli.study.contents import Contents
    from stromboli.study.diff import Row
    from stromboli.study.replay import Difference

REPLAY_HELP = (
    """\
Examples:

stromboli replay rec

stromboli replay rec --until 2026-11-20T10:03:00Z --job team-a/train-7

stromboli replay rec --from 2026-11-20T10:02:59Z --until 2026-11-20T10:03:00Z -v 5 --pdb

"""
    + EPILOG
)

DIFF_HELP = "Example: stromboli diff rec --conf new.conf --from 2026-11-20T10:00:00Z\n\n" + EPILOG

app = typer.Typer(name="record", help="Look at what serve --record has written.", no_args_is_help=True, epilog=EPILOG)

Record = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the record, or one of its files.")]
Until = Annotated[str | None, typer.Option("--until", metavar="T", help="End before this time: RFC 3339, or seconds.")]
Since = Annotated[str | None, typer.Option("--from", metavar="T", help="Begin at this time: RFC 3339, or seconds.")]
Job = Annotated[str | None, typer.Option("--job", metavar="JOB", help="Show what became of namespace/podgroup.")]


@app.command("info", epilog=EPILOG)
def info(record: Record) -> None:
    """Say what the segments of a record hold: times, cycles, entries, bytes, versions."""
    from stromboli.model.values.times import stamp
    from stromboli.study.contents import contents

    view = table("SEGMENT", "FROM", "UNTIL", ">CYCLES", ">ENTRIES", ">BYTES", "STROMBOLI")
    bad = False
    for one in contents(record):
        times = [stamp(time) if time else "-" for time in (one.since, one.until)]
        view.add_row(one.file.name, *times, str(one.cycles), str(one.entries), str(one.bytes), one.version)
        bad = _tell(one) or bad
    print_table(console(), view)
    raise typer.Exit(BAD_INPUT if bad else 0)


@app.command("verify", epilog=EPILOG)
def verify(record: Record) -> None:
    """Read a record whole, and say what of it is damaged; ends with 2 then.

    A file that ends in the middle of a frame is no damage: its scheduler was killed.
    """
    from stromboli.study.contents import contents

    found = list(contents(record))
    bad = [one for one in found if _tell(one)]
    whole = f"{len(found) - len(bad)} of {counted(len(found), 'segment')} whole"
    console().print(f"{whole}, {counted(sum(one.cycles for one in found), 'cycle')}")
    raise typer.Exit(BAD_INPUT if bad else 0)


@app.command("anonymise", epilog=EPILOG)
def anonymise(
    record: Record,
    into: Annotated[Path, typer.Option("--into", metavar="DIR", help="Where the other record goes: a new folder.")],
    plugins_dir: PluginsDirectory = None,
) -> None:
    """Write a record with other names for all that users have named, to be given away.

    Its cycles are run once more on the renamed inputs, so it is replayed like any other.
    """
    from stromboli.builtin import full_registry
    from stromboli.study.anonymised import Anonymised

    found = Anonymised(record, into, full_registry(plugins_dir or ""))
    found.write()
    console().print(
        f"{counted(found.cycles, 'cycle')} written, {found.alike:,} of them decide the same by other names; "
        "the configuration's text is kept as it is"
    )
    if found.left_out:
        many = counted(found.left_out, "cycle")
        say(f"note: the plans of {many} are left out, as they cannot be made by the other names: {found.why}")


def _tell(one: Contents) -> bool:
    """Say what is odd about a segment; whether it is damaged."""
    if one.problem:
        say(f"error: {one.problem}")
    elif one.cut_off:
        say(f"note: {one.file} ends in the middle of a frame, which is left out")
    return bool(one.problem)


def replay(
    record: Record, since: Since = None, until: Until = None, job: Job = None, plugins_dir: PluginsDirectory = None,
    verbosity: Annotated[int, typer.Option("-v", metavar="N", min=0, max=5, help="Log the cycles up to level N.")] = 0,
    debugger: Annotated[
        bool, typer.Option("--pdb", help="Step through the cycle that differs, or the last one, in Python's debugger.")
    ] = False,
) -> None:  # fmt: skip
    """Run recorded cycles once more and compare their plans; ends with 1 at the first that differs, and shows it.

    Where nothing is there to compare, or no such job, it ends with 2.
    """
    from stromboli.builtin import full_registry
    from stromboli.cli.plan import LogForm, observer_of
    from stromboli.study.replay import Replay, read_span
    from stromboli.study.story import Story, missing_job

    story = None if job is None else Story(job)
    begin, end = _times(since, until)
    found = Replay(full_registry(plugins_dir or ""), story=story, since=begin)
    found.observer = observer_of(verbosity, LogForm.text, lambda: found.now)
    read_span(record, begin, end, found.read)
    found.check(record)
    for span in story.spans if story is not None else ():
        console().print(str(span), highlight=False, soft_wrap=True)
    outside = f", {found.outside} not replayable" if found.outside else ""
    console().print(f"{found.equal} of {counted(found.equal + found.outside, 'cycle')} equal{outside}")
    if found.difference is not None:
        _show(found.difference)
    if debugger:
        found.debug()
    if found.difference is not None:
        raise typer.Exit(WAITING)
    if story is not None and not story.was_there:
        raise NotFoundError("job", story.uid, message=missing_job(story.uid))


def _show(found: Difference) -> None:
    from stromboli.model.values.times import stamp

    say(f"{found.file}, entry {found.entry}: the plan of {stamp(found.now)} is another one now")
    for line in found.lines:
        say(f"  {line}")


def diff(
    record: Record,
    conf: Annotated[str, typer.Option("--conf", metavar="FILE", help="The configuration to compare with.")],
    since: Since = None, until: Until = None,
    job: Annotated[str | None, typer.Option("--job", metavar="JOB", help="Only this job: namespace/podgroup.")] = None,
    compat: Compatibility = None, plugins_dir: PluginsDirectory = None,
    closed_loop: Annotated[
        bool, typer.Option("--closed-loop", help="Show what would have followed, by simulating the record's jobs.")
    ] = False,
    queues: Annotated[
        Path | None, typer.Option("--queues", metavar="FILE", help="Other queues, for --closed-loop.")
    ] = None,
    into: Annotated[
        Path | None, typer.Option("--into", metavar="DIR", help="Write all jobs as a table, for --closed-loop.")
    ] = None,
    workers: Annotated[
        int, typer.Option("--workers", metavar="N", min=0, help="1 or 2 processes, for --closed-loop. Default: by CPU.")
    ] = 0,
) -> None:  # fmt: skip
    """Show what another configuration would have decided in each recorded cycle; ends with 1 if anything.

    Every cycle begins from what was recorded, so the table says what would have been decided at that moment, and not
    what would have followed.  That is what --closed-loop estimates: which jobs would have waited longer or shorter.
    """
    from stromboli.builtin import full_registry
    from stromboli.study.diff import PolicyDiff
    from stromboli.study.replay import need_cycles, read_span
    from stromboli.study.story import missing_job

    if closed_loop:
        more = compat, plugins_dir, queues, into, workers
        raise typer.Exit(WAITING if _compare(record, conf, (since, until), job, more) else 0)
    if queues is not None or into is not None or workers:
        raise typer.BadParameter("goes with --closed-loop", param_hint="--queues, --into, --workers")
    registry = full_registry(plugins_dir or "")
    begin, end = _times(since, until)
    found = PolicyDiff(registry.configured(conf, compat=compat is not None), registry, begin)
    read_span(record, begin, end, found.read)
    need_cycles(record, found.cycles)
    if job is not None and job not in found.jobs:
        raise NotFoundError("job", job, message=missing_job(job))
    rows = [row for row in found.rows if job in (None, row.job)]
    _show_rows(rows)
    console().print(f"{counted(len(rows), 'difference')} in {counted(found.cycles, 'cycle')}")
    raise typer.Exit(WAITING if rows else 0)


def _show_rows(rows: Sequence[Row]) -> None:
    from rich.table import Table

    from stromboli.model.values.times import stamp

    view = Table("TIME", "WHAT", "JOB", "POD", "RECORDED", "OTHER", box=None)
    for row in rows:
        view.add_row(stamp(row.now), row.what, row.job, row.pod, row.recorded or "-", row.other or "-")
    if rows:
        print_table(console(), view)


def _compare(
    record: Path, conf: str, span: tuple[str | None, str | None], job: str | None,
    more: tuple[str | None, str | None, Path | None, Path | None, int],
) -> bool:  # fmt: skip
    from stromboli.builtin import full_registry
    from stromboli.cli.insight.closed_loop import compare
    from stromboli.study.sweeps.engines import usable_cpus

    compat, plugins_dir, queues, into, workers = more
    registry = full_registry(plugins_dir or "")
    config = registry.configured(conf, compat=compat is not None)
    return compare(record, config, registry, _times(*span), queues, job, into, workers or usable_cpus())


def _times(since: str | None, until: str | None, last: str = "--until") -> tuple[float, float]:
    """The times that the options ``--from`` and ``last`` state, else all times."""
    from stromboli.cli.options import time_of

    begin = time_of(since, "--from") if since is not None else 0.0
    return begin, time_of(until, last) if until is not None else float("inf")


def explain_past(record: str, job: str, since: str, until: str) -> None:
    """Print when the standing of ``job`` changed in a record, and why it was so."""
    from stromboli.builtin import full_registry
    from stromboli.cli.explain_view import show_explanation
    from stromboli.study.past import Past

    past = Past(Path(record), job, full_registry(""), *_times(since or None, until or None, "--to"))
    told = past.spans()
    if not any(span.pods for span in told):
        raise NotFoundError("job", job, message=f"there is no job {job} in that part of the record")
    for span in told:
        console().print(str(span), highlight=False, soft_wrap=True)
    for span, found in past.explained():
        console().print(f"\n{span}", highlight=False, soft_wrap=True)
        show_explanation(console(), found)
