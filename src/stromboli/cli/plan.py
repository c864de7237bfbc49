"""``stromboli plan``: what the scheduler would do with a cluster that files describe, and why the rest waits."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from stromboli.cli.exits import BAD_INPUT, EPILOG, OK, WAITING
from stromboli.cli.options import (
    Compatibility,
    ConfigFile,
    FeatureGates,
    LenientConfig,
    PluginsDirectory,
    Sharding,
    ShardingMode,
    ShardName,
    gates_of,
    settings_of,
)
from stromboli.cli.terminal import console, counted, dump, progress, say, say_some
from stromboli.model.names import SCHEDULER_NAME

if TYPE_CHECKING:
    from stromboli.narration.observe import Observer
    from stromboli.sim.explanation.reasons import Reason
    from stromboli.sim.planning import Planning


class Form(StrEnum):
    """How the plan is printed."""

    table = "table"
    wide = "wide"
    json = "json"
    yaml = "yaml"


class LogForm(StrEnum):
    """How log lines look."""

    text = "text"
    json = "json"


EXAMPLES = """\
Examples:

stromboli plan examples/quickstart --config examples/quickstart/volcano-scheduler.conf

stromboli plan cluster.yaml --explain ml/big-training

kubectl get nodes,pods,podgroups,queues -A -o yaml | stromboli plan - -o json

"""
PLAN_HELP = EXAMPLES + EPILOG


def plan(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILES", help="Manifests: files, directories, or - for standard input."),
    ] = None,
    config: ConfigFile = None,
    output: Annotated[Form, typer.Option("--output", "-o", help="wide lists all jobs, pods and nodes.")] = Form.table,
    explain: Annotated[
        str | None, typer.Option(metavar="JOB", help="Say step by step why JOB (namespace/name, or name) waits.")
    ] = None,
    cycles: Annotated[int, typer.Option(min=1, help="Cycles to run; between them what was decided comes true.")] = 1,
    compat: Compatibility = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first mistake in an object or in the configuration.")
    ] = False,
    lenient_config: LenientConfig = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="End with 1 when something waits.")] = False,
    verbosity: Annotated[
        int,
        typer.Option("-v", metavar="N", min=0, max=5, help="Log up to level N to standard error.", show_default=False),
    ] = 0,
    log_format: Annotated[LogForm, typer.Option(help="Form of log lines.")] = LogForm.text,
    plugins_dir: PluginsDirectory = None,
    feature_gates: FeatureGates = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Draw among equally good nodes with this seed, not the first.")
    ] = None,
    now: Annotated[
        str | None,
        typer.Option(metavar="T", help="The time to plan for: RFC 3339, or seconds since 1970. Default: now."),
    ] = None,
    usage: Annotated[
        str | None, typer.Option(metavar="FILE", help="Loads of nodes: {n1: {cpu: 81.5, memory: 40}}, in percent.")
    ] = None,
    scheduler_sharding_mode: ShardingMode = Sharding.none,
    scheduler_sharding_name: ShardName = SCHEDULER_NAME,
) -> None:
    """Plan a cluster that manifests describe: which pods are bound where, and why the rest waits.

    Queues root and default, PodGroups of plain pods, by their owners, and the pods of Volcano Jobs are added where they
    are missing, as the controllers of a live cluster would.  Objects that cannot be used are named on standard error,
    and the plan is made without them; the exit code is 2 then.
    """
    from stromboli.builtin import full_registry
    from stromboli.cli.options import time_of
    from stromboli.cli.owner_groups import OwnerGroups
    from stromboli.sim.planning import Planning, config_of, refuse_arguments

    settings = settings_of(config, compat, lenient_config, plugins_dir, seed, gates_of(feature_gates))
    registry = full_registry(settings.plugins)
    loaded = config_of(settings, registry)
    if strict:
        refuse_arguments(loaded, registry)
    say_some("warning", [f"{loaded.source}:{c.line}: {c.told}" for c in loaded.complaints])
    observer, moment = observer_of(verbosity, log_format), time_of(now, "--now")
    planning = Planning(
        loaded, registry, now=moment, seed=seed or 0, strict=strict, observer=observer, grouping=OwnerGroups()
    )
    with progress() as told:
        planning.load(_files(files), told)
    planning.shard(scheduler_sharding_mode.value, scheduler_sharding_name)
    if usage:
        planning.measure(usage)
    _tell_loading(planning, every=output is Form.wide)
    if planning.loading.manifests is None or not planning.loading.manifests.count:
        say("there is nothing to plan: no object could be used")
        raise typer.Exit(BAD_INPUT)
    planning.run(cycles)
    say_some("warning", planning.ignored())
    say_some("error", [text for plan in planning.plans for text in plan.inconsistencies])
    reasons = planning.reasons()
    if explain is None:
        _show(planning, reasons, output)
    else:
        _explain(planning, explain, output)
    raise typer.Exit(_code(planning, reasons, exit_code))


def _files(files: list[str] | None) -> list[str]:
    if files:
        return files
    if sys.stdin.isatty():
        raise typer.BadParameter(
            "name files or directories with manifests, or - for standard input", param_hint="FILES"
        )
    return ["-"]


def observer_of(verbosity: int, form: LogForm, clock: Callable[[], float] = time.time) -> Observer:
    """What logs cycles to standard error up to level ``verbosity``, at the times of ``clock``; 0 is silent."""
    from stromboli.narration.observe import SILENT

    if not verbosity:
        return SILENT
    from stromboli.metrics.logs import LogObserver

    return LogObserver(sys.stderr, verbosity, form.value, clock)


def _tell_loading(planning: Planning, *, every: bool) -> None:
    """What could not be used, what is odd, and what was added, in sum or ``every`` object."""
    loading = planning.loading
    say_some("error", [str(error) for error in loading.problems], 50)
    say_some("warning", [str(error) for error in loading.remarks])
    say_some("note", loading.kinds_ignored())
    if every:
        say_some("note", loading.added, len(loading.added))
    elif loading.added:
        words = {"added": "added", "changed": "completed"}
        done = "; ".join(f"{words[what]} {_listed(counts)}" for what, counts in loading.counts.items() if counts)
        say(f"note: {done} (-o wide lists them)")


def _listed(counts: Mapping[str, int]) -> str:
    """``2 Queues, 3 PodGroups``."""
    return ", ".join(counted(count, kind) for kind, count in counts.items())


def _show(planning: Planning, reasons: dict[str, Reason], form: Form) -> None:
    if form in (Form.table, Form.wide):
        from stromboli.cli.plan_view import show_plan

        show_plan(console(), planning, reasons, wide=form is Form.wide)
    else:
        dump(planning.answer(reasons), form.value)


def _explain(planning: Planning, name: str, form: Form) -> None:
    from stromboli.sim.explanation.explain import explain, find_job

    found = explain(planning, find_job(planning, name))
    if form in (Form.table, Form.wide):
        from stromboli.cli.explain_view import show_explanation

        show_explanation(console(), found)
    else:
        import msgspec

        dump(msgspec.to_builtins(found), form.value)


def _code(planning: Planning, reasons: dict[str, Reason], wanted: bool) -> int:
    if planning.loading.problems:
        return BAD_INPUT
    return WAITING if wanted and reasons else OK
