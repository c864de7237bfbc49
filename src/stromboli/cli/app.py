"""The command ``stromboli``: its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from stromboli.cli import (
    conf,
    imports,
    kubelets,
    lint,
    manifests,
    plan,
    scenario,
    services,
    up,
)
from stromboli.cli.exits import EPILOG
from stromboli.cli.hypernodes import topology
from stromboli.cli.insight import eta, record, simulate, sweep
from stromboli.cli.migrating import app as migrating
from stromboli.cli.vcctl import flow, job, pod, queue, top

HELP = (
    "A batch scheduler for Kubernetes in Volcano's place: schedule a live cluster (serve, controllers, webhooks), run"
    " an embedded one (up), or plan, explain and check manifests."
)
app = typer.Typer(
    name="stromboli",
    help=HELP,
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("plan", epilog=plan.PLAN_HELP)(plan.plan)
app.command("lint", epilog=lint.LINT_HELP)(lint.lint)
app.command("topology", epilog=topology.TOPOLOGY_HELP)(topology.topology)
for program in services.PROGRAMS:
    app.command(program.name, context_settings=services.SETTINGS)(program.command)
app.command("kubelets", epilog=kubelets.KUBELETS_HELP)(kubelets.kubelets)
app.command("manifests")(manifests.manifests)
app.command("replay", epilog=record.REPLAY_HELP)(record.replay)
app.command("diff", epilog=record.DIFF_HELP)(record.diff)
app.command("eta", epilog=eta.ETA_HELP)(eta.eta)
app.command("simulate", epilog=simulate.SIMULATE_HELP)(simulate.simulate)
app.command("sweep", epilog=sweep.SWEEP_HELP)(sweep.sweep)
app.command("report", epilog=sweep.REPORT_HELP)(sweep.report)
app.command("up", epilog=up.UP_HELP)(up.up)
app.command("top")(top.top)
app.add_typer(job.app)
app.add_typer(queue.app)
app.add_typer(pod.app)
app.add_typer(flow.flows)
app.add_typer(flow.templates)
app.add_typer(conf.app)
app.add_typer(imports.app)
app.add_typer(scenario.app)
app.add_typer(record.app)
app.add_typer(migrating.app)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"stromboli {version('stromboli')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Everything begins here."""
