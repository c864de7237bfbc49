"""``stromboli eta``: when jobs that wait, or are about to be submitted, will start."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stromboli.cli.exits import BAD_INPUT, EPILOG, OK, WAITING
from stromboli.cli.options import PluginsDirectory
from stromboli.cli.terminal import console, print_table, say, say_some, table
from stromboli.errors import ManifestError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stromboli.sim.planning import Planning
    from stromboli.study.eta import Eta

ETA_HELP = (
    """\
Examples:

stromboli eta job.yaml --record /var/lib/stromboli/record

stromboli eta --record /var/lib/stromboli/record

"""
    + EPILOG
)

MOST = 50
"""Waiting jobs that are answered for, the first ones."""
NO_JOB = "no job comes of it that the cluster of the record does not have already"
"""What is said of a file, or of a job that is not submitted, without an answer."""


def eta(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Manifests of jobs. Default: the jobs that wait.")
    ] = None,
    record: Annotated[
        Path, typer.Option("--record", metavar="DIR", help="The record of the cluster's scheduler.")
    ] = Path("record"),
    until: Annotated[str, typer.Option("--at", metavar="T", help="At this time. Default: the record's end.")] = "",
    plugins_dir: PluginsDirectory = None,
) -> None:
    """Say when jobs will start: P50, P80 and P95, calibrated by how such answers have come true in the record.

    Ends with 1 where there is no basis for an answer: then no number is given; and with 2 where the file, or an object
    in it, cannot be used, or no job comes of it.
    """
    found, planning = predicted(record, file, until, plugins_dir or "")
    if file is not None:
        _tell_file(file, found, planning)
    elif not found:
        say("note: nothing waits")
    show(found, planning)
    raise typer.Exit(_code(file, found, planning))


def _tell_file(file: Path, found: Sequence[Eta], planning: Planning) -> None:
    """Say on standard error what of the file could not be used, and whether no job came of it."""
    loading = planning.loading
    say_some("error", [str(error) for error in loading.problems], 50)
    say_some("warning", [str(error) for error in loading.ignored])
    say_some("note", loading.kinds_ignored())
    if not found and not loading.problems:
        say(f"error: {file}: {NO_JOB}")


def _code(file: Path | None, found: Sequence[Eta], planning: Planning) -> int:
    if planning.loading.problems or (file is not None and not found):
        return BAD_INPUT
    return WAITING if any(not one.basis for one in found) else OK


def foretell(body: Mapping[str, Any], record: str) -> None:
    """Say when a job would start that is not submitted.  Raises RecordError, ManifestError and OSError."""
    import json
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        json.dump(body, file)
        file.flush()
        found, planning = predicted(Path(record), Path(file.name), "")
    if problem := next(iter(planning.loading.problems), None):
        raise ManifestError(problem.problem, object=problem.object, path=problem.path)
    if not found:
        say(f"note: {NO_JOB}")
    show(found, planning)


def predicted(record: Path, file: Path | None, until: str, plugins: str = "") -> tuple[list[Eta], Planning]:
    """The answers for the jobs of a file, or for those that wait.  Raises RecordError, ManifestError and OSError."""
    from stromboli.builtin import full_registry
    from stromboli.cli.options import time_of
    from stromboli.cli.owner_groups import OwnerGroups
    from stromboli.study.eta import Forecaster, scene_of
    from stromboli.study.learning import learned
    from stromboli.study.submitting import fitting, submitted, withheld

    learner, moment = learned(record, full_registry(plugins), time_of(until, "--at") if until else float("inf"))
    planning, jobs = submitted(moment, full_registry(plugins), file, OwnerGroups())
    scene = scene_of(planning.state, moment.cut.now, learner.began, learner.rules)
    planning.run()
    forecaster = Forecaster(learner.runtimes, learner.calibration)
    waiting = [uid for uid, _, _ in scene.waiting] if file is None else jobs
    at_once = {uid: found for uid in waiting if (found := fitting(planning, uid)) is not None}
    asked = [uid for uid in waiting if uid not in at_once][:MOST]
    later = [withheld(planning, one) for one in forecaster.etas(scene, asked)]
    return [*at_once.values(), *later], planning


def show(found: Sequence[Eta], planning: Planning) -> None:
    """Print answers, and what the jobs wait for."""
    from stromboli.sim.explanation.explain import explain

    view = table("JOB", "QUEUE", ">BEFORE IT", ">P50", ">P80", ">P95", "BASIS")
    for one in found:
        view.add_row(one.job, one.queue, str(one.position), *map(_span, one.quantiles), one.basis or one.why)
    if found:
        print_table(console(), view)
    for one in found if len(found) == 1 else ():
        if not one.basis or one.quantiles[0]:
            console().print(f"{one.job}: {explain(planning, one.job).verdict}", highlight=False)


def _span(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02d}m" if hours else f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"
