"""``stromboli import``: published cluster traces as manifests that ``plan`` reads."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from stromboli.cli.exits import EPILOG
from stromboli.cli.terminal import counted

app = typer.Typer(
    name="import", help="Turn published cluster traces into manifests.", no_args_is_help=True, epilog=EPILOG
)

Directory = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Where the manifests go; made if it is not there.")
]
NodesCsv = Annotated[Path, typer.Argument(metavar="NODES.csv", help="The trace's list of nodes.")]


@app.callback()
def group() -> None:
    """Turn published cluster traces into manifests: nodes, queues, priority classes, PodGroups and pods."""


@app.command(
    epilog="Example: stromboli import openb openb_node_list_all_node.csv openb_pod_list_default.csv -o openb\n\n"
    + EPILOG
)
def openb(
    nodes: NodesCsv,
    pods: Annotated[Path, typer.Argument(metavar="PODS.csv", help="The trace's list of pods.")],
    output: Directory,
) -> None:
    """Import the trace of a GPU cluster that its authors call openb."""
    from stromboli.sim.traces.traces import import_openb, write_manifests

    _tell(write_manifests(import_openb(nodes, pods), output), output)
    typer.echo("GPUs are shared: plan with the plugin deviceshare and deviceshare.VGPUEnable: true (docs/devices.md).")


@app.command(
    epilog="Example: stromboli import dlrm disaggregated_DLRM_trace.csv spot_gpu_2026_nodes.csv -o dlrm\n\n" + EPILOG
)
def dlrm(
    trace: Annotated[Path, typer.Argument(metavar="TRACE.csv", help="The trace's list of instances.")],
    nodes: NodesCsv,
    output: Directory,
    memory_gib_per_cpu: Annotated[
        float | None, typer.Option(metavar="GIB", help="Memory of a node for each of its cores. Default: 8.")
    ] = None,
    at: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Only instances alive so long after the start. Default: all of the trace."
        ),
    ] = None,
) -> None:
    """Import the trace of recommendation services: an application is a gang of its instances."""
    from stromboli.sim.traces.traces import MEMORY_GIB_PER_CPU, import_dlrm, write_manifests

    memory = MEMORY_GIB_PER_CPU if memory_gib_per_cpu is None else memory_gib_per_cpu
    _tell(write_manifests(import_dlrm(trace, nodes, memory, at), output), output)


def _tell(counts: dict[str, int], output: Path) -> None:
    """What was written where."""
    found = ", ".join(counted(count, kind) for kind, count in counts.items() if count)
    typer.echo(f"{output}: {found}")
