"""``stromboli lint``: what is wrong with a configuration and with queue objects, before they are applied."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stromboli.cli.exits import EPILOG, FOUND, OK
from stromboli.cli.options import PluginsDirectory

if TYPE_CHECKING:
    from stromboli.cli.linting.config_maps import Held
    from stromboli.cli.linting.findings import Finding
    from stromboli.cli.linting.setup import Setup


class Form(StrEnum):
    """How findings are printed."""

    table = "table"
    json = "json"


EXAMPLES = """\
Examples:

stromboli lint --config volcano-scheduler.conf

stromboli lint queues.yaml cluster/ --config volcano-scheduler.conf --strict

"""
LINT_HELP = (
    EXAMPLES + "Ends with 1 when there are errors; with --strict, warnings count too; notes never do.\n\n" + EPILOG
)


def lint(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILES", help="Manifests with queues, PodGroups, nodes ...: files, directories, or -."),
    ] = None,
    config: Annotated[
        str | None, typer.Option("--config", "-c", metavar="FILE", help="The volcano-scheduler.conf to check.")
    ] = None,
    output: Annotated[Form, typer.Option("--output", "-o", help="Form of the findings.")] = Form.table,
    strict: Annotated[bool, typer.Option("--strict", help="Let warnings fail, too.")] = False,
    plugins_dir: PluginsDirectory = None,
) -> None:
    """Check a configuration and queue objects: names, switches, combinations that defeat each other, sums of queues."""
    if not files and config is None:
        raise typer.BadParameter("name manifests, or a configuration with --config", param_hint="FILES")
    from stromboli.cli.linting.findings import broken, gravest_first
    from stromboli.cli.linting.refusals import REFUSED

    setup, findings = of_configs(config, files or [], plugins_dir)
    findings = gravest_first([*findings, *broken(REFUSED, files or []), *of_files(files or [], setup)])
    if output is Form.json:
        import msgspec

        from stromboli.cli.terminal import dump

        dump({"findings": msgspec.to_builtins(findings), "counts": counts(findings)}, "json")
    else:
        show(findings)
    grave = ("error", "warning") if strict else ("error",)
    raise typer.Exit(FOUND if any(finding.severity in grave for finding in findings) else OK)


def of_configs(config: str | None, files: list[str], plugins: str | None) -> tuple[Setup | None, list[Finding]]:
    """What is wrong with the configuration, be it in a ConfigMap, and with those in ConfigMaps among ``files``.

    The first that can be read is what the objects are held against.
    """
    from stromboli.cli.linting.config_maps import Held, held_in
    from stromboli.framework.config.document import read_text

    named = [] if config is None else held_in([config]) or [Held(config, read_text(config), 0)]
    setups: list[Setup] = []
    findings: list[Finding] = []
    for held in (*named, *held_in(files)):
        setup, found = _of_config(held, plugins)
        setups += [setup] if setup else []
        findings += found
    return setups[0] if setups else None, findings


def _of_config(held: Held, plugins: str | None) -> tuple[Setup | None, list[Finding]]:
    """The configuration, unless it cannot be read at all, and what is wrong with it."""
    from msgspec.structs import replace

    from stromboli.builtin import full_registry
    from stromboli.cli.linting.conf_rules import CONF_RULES, CORRECT, NOT_STARTED
    from stromboli.cli.linting.findings import Finding, broken
    from stromboli.cli.linting.setup import Setup
    from stromboli.errors import ConfigError

    registry = full_registry(plugins or "")
    try:
        setup = Setup.read(held.text, held.file, registry)
        registry.add_paths(setup.config.plugins(), Path(held.file).parent)
    except ConfigError as error:
        hint = f"; did you mean {error.nearest!r}?" if error.nearest else ""
        line = error.line and error.line + held.before
        return None, [Finding("refused", "error", f"{error.problem}{hint}", NOT_STARTED, CORRECT, error.file, line)]
    found = broken(CONF_RULES, setup, held.file)
    return setup, [replace(one, line=one.line and one.line + held.before) for one in found]


def of_files(files: list[str], setup: Setup | None) -> list[Finding]:
    """What is wrong with the objects of manifests, those included that a cluster has taken already."""
    if not files:
        return []
    from stromboli.cli.linting.cluster_rules import CLUSTER_RULES, Cluster
    from stromboli.cli.linting.findings import broken
    from stromboli.cli.linting.ignored_rules import IGNORED_RULES
    from stromboli.cli.linting.job_rules import JOB_RULES
    from stromboli.cli.linting.refusals import NAMES
    from stromboli.cli.owner_groups import OwnerGroups
    from stromboli.cli.terminal import progress
    from stromboli.cluster.state import ClusterState
    from stromboli.sim.ignored import NOTHING_HEEDED
    from stromboli.sim.loading import Loading

    loading = Loading(ClusterState(), grouping=OwnerGroups())
    with progress() as told:
        loading.take(files, told)
    loading.complete()
    cluster = Cluster(loading, setup.config if setup else None, setup.heeded() if setup else NOTHING_HEEDED)
    return broken((*CLUSTER_RULES, *JOB_RULES, *NAMES, *IGNORED_RULES), cluster)


def counts(findings: Sequence[Finding]) -> dict[str, int]:
    """How many findings there are of each severity."""
    severities = [finding.severity for finding in findings]
    return {severity: severities.count(severity) for severity in ("error", "warning", "note")}


def show(findings: Sequence[Finding]) -> None:
    """Print findings, each with its reason and what helps."""
    from rich.text import Text

    from stromboli.cli.terminal import console, counted, indented

    screen = console()
    styles = {"error": "bold red", "warning": "yellow", "note": "dim"}
    for finding in findings:
        head = Text.assemble(
            (finding.severity, styles[finding.severity]),
            f" {finding.where}: {finding.text} ",
            (f"[{finding.rule}]", "dim"),
        )
        indented(screen, head, 0)
        indented(screen, Text.assemble(("why: ", "dim"), finding.why), 2)
        indented(screen, Text.assemble(("fix: ", "dim"), finding.fix), 2)
    numbers = ", ".join(counted(number, severity) for severity, number in counts(findings).items())
    screen.print(Text(numbers if findings else "nothing found", style="bold"))
