"""``stromboli kubelets``: simulated nodes on any API server, for trying out a scheduler without machines."""

from __future__ import annotations

from typing import Annotated

import typer

from stromboli.cli.exits import EPILOG

KUBELETS_HELP = (
    "Example: stromboli kubelets --nodes 100x32cpu,256Gi,nvidia.com/gpu=8 --kubeconfig test.kubeconfig\n\n" + EPILOG
)


def kubelets(
    nodes: Annotated[
        list[str],
        typer.Option(metavar="SHAPE", help="Nodes: 3x8cpu,32Gi,nvidia.com/gpu=4,label:zone=a, or a manifest."),
    ],
    kubeconfig: Annotated[
        str, typer.Option(metavar="FILE", help="How to reach the API server. Default: as kubectl does.")
    ] = "",
    beat: Annotated[
        float, typer.Option("--heartbeat", metavar="SECONDS", help="How often each node renews its Lease.")
    ] = 10.0,
    qps: Annotated[float, typer.Option("--kube-api-qps", help="Requests a second; 0: as many as it takes.")] = 0.0,
) -> None:
    """Register nodes that do not exist and let their pods run as `sleep` in their command, or annotations, say.

    They stay registered when the command ends; for test clusters only.
    """
    from stromboli.kube.access import find_access
    from stromboli.kube.client import Client
    from stromboli.live.process.loops import run_in_fastest_loop
    from stromboli.live.up.kubelets import simulate
    from stromboli.server.kubelet.shapes import nodes_of

    async def run() -> None:
        async with Client.reaching(find_access(kubeconfig), qps=qps, burst=0, agent="stromboli-kubelets") as client:
            await simulate(client, nodes_of(nodes), beat)

    run_in_fastest_loop(run())
