"""``stromboli migrate check``: read a cluster that runs the reference, or its files, and say what will differ."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stromboli.cli.exits import EPILOG, FOUND, OK
from stromboli.cli.lint import Form, counts, of_configs, of_files, show
from stromboli.cli.options import PluginsDirectory
from stromboli.cli.vcctl.connection import Kubeconfig, Master, talk

if TYPE_CHECKING:
    from stromboli.cli.linting.findings import Finding
    from stromboli.cli.linting.setup import Setup

OWN_KINDS = ("Deployment ", "ConfigMap ", "DaemonSet ")
"""Kinds of the reference's installation, of which lint says that they do not matter to scheduling."""

app = typer.Typer(name="migrate", help="Take the place of Volcano.", no_args_is_help=True, epilog=EPILOG)

CHECK_HELP = (
    "Examples:\n\nstromboli migrate check\n\nstromboli migrate check cluster/ volcano.yaml --output json\n\n"
    "Errors must be mended before the change: something would not start, or would be lost. Warnings are decided or done"
    " otherwise. Notes say what is read and does the same, or differs by a row of docs/compatibility.md. Ends with 1"
    " when there are errors; with --strict warnings count too; notes never do.\n\n" + EPILOG
)


@app.callback()
def group() -> None:
    """Take the place of Volcano."""


@app.command(epilog=CHECK_HELP)
def check(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILES", help="Manifests instead of a cluster: files, directories, or -."),
    ] = None,
    output: Annotated[Form, typer.Option("--output", "-o", help="Form of the findings.")] = Form.table,
    strict: Annotated[bool, typer.Option("--strict", help="Let warnings fail, too.")] = False,
    kubeconfig: Kubeconfig = "",
    master: Master = "",
    plugins_dir: PluginsDirectory = None,
) -> None:
    """Say line by line what will differ once Stromboli schedules a cluster that runs Volcano.

    Reads Deployments with their flags, ConfigMaps, queues, jobs, pods and the other kinds; writes nothing.
    """
    if files:
        found = findings(files, plugins_dir)
    else:
        from stromboli.cli.migrating.cluster_reading import read_into

        with tempfile.TemporaryDirectory() as folder:
            talk("read the cluster", kubeconfig, master, lambda client: read_into(client, Path(folder)))
            found = findings([folder], plugins_dir)
    if output is Form.json:
        import msgspec

        from stromboli.cli.terminal import dump

        dump({"findings": msgspec.to_builtins(found), "counts": counts(found)}, "json")
    else:
        show(found)
    grave = ("error", "warning") if strict else ("error",)
    raise typer.Exit(FOUND if any(one.severity in grave for one in found) else OK)


def findings(paths: list[str], plugins: str | None) -> list[Finding]:
    """Everything that differs, of the objects and configurations in files and directories, the gravest first."""
    from stromboli.cli.linting.findings import broken, gravest_first
    from stromboli.cli.migrating.bodies import bodies_in
    from stromboli.cli.migrating.deployments import DEPLOYMENT_RULES, Installed
    from stromboli.cli.migrating.features import FEATURE_RULES

    bodies = list(bodies_in(paths))
    setup, found = of_configs(None, paths, plugins)
    objects = of_files(paths, setup) if bodies else []
    rules = [*broken(DEPLOYMENT_RULES, Installed.of(bodies)), *broken(FEATURE_RULES, bodies)]
    return gravest_first(list(_to_the_point([*found, *rules, *objects, *_differing(setup, paths)])))


def _differing(setup: Setup | None, paths: list[str]) -> Iterator[Finding]:
    """What a configuration decides otherwise, at its lines in the file."""
    from msgspec.structs import replace

    from stromboli.cli.linting.config_maps import held_in
    from stromboli.cli.linting.findings import broken
    from stromboli.cli.migrating.conf_differences import CONF_DIFFERENCES

    if setup is None:
        return
    before = next((held.before for held in held_in(paths) if held.file == setup.source), 0)
    for one in broken(CONF_DIFFERENCES, setup, setup.source):
        yield replace(one, line=one.line + before)


def _to_the_point(found: Iterable[Finding]) -> Iterator[Finding]:
    """Without what lint says of the reference's own objects; of a cluster's objects, no file is named."""
    from msgspec.structs import replace

    from stromboli.cli.migrating.cluster_reading import ENDING

    for one in found:
        if one.rule != "asked-in-vain" or not one.object.startswith(OWN_KINDS):
            yield replace(one, file="", line=0) if one.file.endswith(ENDING) and one.object else one
