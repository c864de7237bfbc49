"""``stromboli up``: a complete small cluster on this machine, for kubectl and for trying things out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stromboli.cli.exits import EPILOG, TROUBLED
from stromboli.cli.terminal import console, counted

if TYPE_CHECKING:
    from rich.table import Table

    from stromboli.live.up.up import Row, Setup, Up

UP_HELP = (
    "What goes wrong in scheduler and controllers is told on standard error; after errors the exit code is 1.\n\n"
    "Example: stromboli up --nodes 3x8cpu,32Gi --nodes 2x16cpu,64Gi,nvidia.com/gpu=4 --examples examples/cluster\n\n"
    + EPILOG
)


class Pods(StrEnum):
    """What becomes of pods that are placed."""

    simulated = "simulated"
    real = "real"


NODES = ["3x8cpu,32Gi"]
NEXT = """\
All jobs are over. To try next, in a terminal:
  {0} up               the cluster stays until Ctrl-C; in another terminal, with the KUBECONFIG that it prints:
  kubectl apply -f examples/cluster/queues.yaml, and when the queues are open, -f examples/cluster/jobs.yaml
  {0} top, job list    what runs, and why the rest waits
  {0} plan examples/quickstart -c examples/quickstart/volcano-scheduler.conf
                                one decision on manifests, without a cluster; --explain JOB says why it waits"""


def up(
    nodes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SHAPE",
            help="Nodes: 3x8cpu,32Gi,nvidia.com/gpu=4,label:zone=a, or a manifest. Repeatable. "
            "Default: the nodes that --data-dir holds, else 3x8cpu,32Gi.",
        ),
    ] = None,
    examples: Annotated[
        list[Path] | None, typer.Option(metavar="PATH", help="Manifests to create at the start. Repeatable.")
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Keep the cluster here, for the next time. Default: it goes with the command."
        ),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the API server; 0: any free one.")] = 0,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the kubeconfig here. Default: in the cluster's directory."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The scheduler's configuration. Default: that of the cluster's ConfigMap, at first the built-in one.",
        ),
    ] = None,
    scheduler: Annotated[bool, typer.Option(help="Run the scheduler.")] = True,
    controllers: Annotated[bool, typer.Option(help="Run the controllers of jobs, queues and PodGroups.")] = True,
    pods: Annotated[
        Pods,
        typer.Option(help="simulated, or real: run their commands as processes of this machine (trusted ones only)."),
    ] = Pods.simulated,
    record: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Record the scheduler in this folder, for stromboli replay."),
    ] = None,
    until_done: Annotated[
        bool | None,
        typer.Option(help="End when all jobs are over. Default: only without a terminal, and with --examples."),
    ] = None,
) -> None:
    """Run a Kubernetes API server, simulated nodes, controllers and scheduler on this machine until Ctrl-C.

    It listens on 127.0.0.1 alone.  Pods run as long as `sleep` in their command, or annotations, say.
    """
    try:
        from stromboli.live.scheduler.configuration import Source
        from stromboli.live.up.up import Setup, objects_in
        from stromboli.server.kubelet.shapes import nodes_of
    except ImportError as error:
        missing = error.name or str(error)
        raise typer.BadParameter(f"{missing} is not installed: pip install 'stromboli[server]'") from error
    if until_done is None:
        until_done = bool(examples) and not sys.stdout.isatty()
    setup = Setup(
        nodes=nodes_of(nodes or NODES),
        keep_nodes=not nodes,
        data=data_dir,
        port=port,
        scheduler=scheduler,
        controllers=controllers,
        source=Source(str(config) if config else ""),
        examples=objects_in(examples or ()),
        until_done=until_done,
        real_pods=pods is Pods.real,
        record=record,
    )
    _run(setup, kubeconfig)


def _run(setup: Setup, kubeconfig: Path | None) -> None:
    from stromboli.live.process.loops import run_in_fastest_loop
    from stromboli.live.process.stopping import until_signal
    from stromboli.live.up.up import Errors
    from stromboli.metrics.logs import LogObserver
    from stromboli.narration.observe import Several

    errors = Errors()
    setup = replace(setup, observer=Several([LogObserver(_Present()), errors]))
    run_in_fastest_loop(until_signal(_up(setup, kubeconfig)))
    if errors.count:
        typer.echo(f"{counted(errors.count, 'error')}, see above", err=True)
        raise typer.Exit(TROUBLED)


class _Present:
    """Standard error as it is when something is written: a live view puts itself in its place meanwhile."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


async def _up(setup: Setup, kubeconfig: Path | None) -> None:
    from stromboli.live.up.up import hold, up

    async with up(setup) as cluster:
        _greet(cluster, kubeconfig)
        if not sys.stdout.isatty():
            await hold(cluster, _lines())
            typer.echo(NEXT.format(sys.argv[0]))
            return
        from rich.live import Live

        with Live(_table([]), console=console(), refresh_per_second=8) as live:
            await hold(cluster, lambda rows: live.update(_table(rows)))


def _greet(cluster: Up, kubeconfig: Path | None) -> None:
    """The two lines that let one talk to the cluster."""
    access = cluster.serving.access
    where = access.kubeconfig if kubeconfig is None else access.write_kubeconfig(cluster.serving.url, kubeconfig)
    nodes = counted(len(cluster.setup.nodes), "node")
    typer.echo(f"Cluster at {cluster.serving.url}, {nodes}. Talk to it from another terminal:")
    typer.echo(f"  export KUBECONFIG={where.resolve()}")
    typer.echo("  kubectl get nodes,queues,jobs.batch.volcano.sh,pods")
    sys.stdout.flush()


def _lines() -> Callable[[list[Row]], None]:
    """A view for pipes: a line for each job that changed."""
    told: dict[str, str] = {}

    def show(rows: list[Row]) -> None:
        for row in rows:
            line = _line(row)
            if told.get(row.name) != line:
                told[row.name] = line
                typer.echo(line)
        sys.stdout.flush()

    return show


def _line(row: Row) -> str:
    counts = f"{row.pending} pending, {row.running} running, {row.succeeded} succeeded, {row.failed} failed"
    why = f"; waits: {row.why}" if row.why and row.phase == "Pending" else ""
    return f"{row.name}: {row.phase}, {counts} of {row.wanted} pods{why}"


def _table(rows: list[Row]) -> Table:
    from rich.table import Table

    table = Table(box=None)
    for name in ("JOB", "QUEUE", "PHASE", "PODS", "PENDING", "RUNNING", "DONE", "FAILED"):
        table.add_column(name, no_wrap=True)
    table.add_column("WHY IT WAITS")
    for row in rows:
        counts = (row.wanted, row.pending, row.running, row.succeeded, row.failed)
        table.add_row(row.name, row.queue, row.phase, *(str(count) for count in counts), row.why)
    return table
