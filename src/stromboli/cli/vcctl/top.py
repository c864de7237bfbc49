"""``stromboli top``: a live view of queues, jobs and nodes."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Annotated

import typer

from stromboli.cli.vcctl.connection import Kubeconfig, Master, talk

if TYPE_CHECKING:
    from rich.console import Console

    from stromboli.cluster.state import ClusterState
    from stromboli.kube.client import Client


def top(
    interval: Annotated[float, typer.Option("--interval", min=0.1, help="Seconds between two views.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Show one view and end.")] = False,
    kubeconfig: Kubeconfig = "",
    master: Master = "",
) -> None:
    """Show queues, jobs and nodes, what has happened lately, and why the first job of each queue waits.

    Ctrl-C ends it; without a terminal one view is printed.
    """
    from stromboli.cli.terminal import console

    where = console()
    try:
        talk("top", kubeconfig, master, lambda client: _shown(client, where, interval, once or not where.is_terminal))
    except KeyboardInterrupt:
        return


async def _shown(client: Client, where: Console, interval: float, once: bool) -> None:
    from stromboli.cluster.mirror import Mirror
    from stromboli.cluster.state import ClusterState
    from stromboli.live.process.events import Telling
    from stromboli.live.scheduler.feed import FOLLOWED, Feed
    from stromboli.narration.observe import SILENT

    state = ClusterState()
    kinds = ("NpuReport", *FOLLOWED)  # devices are shown of every kind, whatever a scheduler is configured for
    informers = Feed(Mirror(state), Telling(SILENT)).informers(client, kinds)
    following = asyncio.create_task(informers.run())
    try:
        await asyncio.wait([following, asyncio.create_task(informers.synced())], return_when=asyncio.FIRST_COMPLETED)
        await _drawn(state, where, interval, once)
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def _drawn(state: ClusterState, where: Console, interval: float, once: bool) -> None:
    from rich.live import Live

    from stromboli.cli.terminal import print_table
    from stromboli.cli.vcctl.top_picture import Changes, picture_of
    from stromboli.cli.vcctl.top_view import drawn

    changes = Changes()
    if once:
        print_table(where, drawn(picture_of(state, changes.look(state, time.monotonic()))))
        return
    with Live(console=where, screen=True, auto_refresh=False) as live:
        while True:
            live.update(drawn(picture_of(state, changes.look(state, time.monotonic()))), refresh=True)
            await asyncio.sleep(interval)
