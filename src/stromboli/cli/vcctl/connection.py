"""Reaching the cluster that a command is about, and saying in one line why it could not be done."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from stromboli.cli.exits import BAD_INPUT
from stromboli.errors import StromboliError

if TYPE_CHECKING:
    from stromboli.kube.client import Client

T = TypeVar("T")
Kubeconfig = Annotated[str, typer.Option("--kubeconfig", "-k", help="Kubeconfig file; default $KUBECONFIG.")]
Master = Annotated[str, typer.Option("--master", "-s", help="Address of the API server.")]
Namespace = Annotated[str, typer.Option("--namespace", "-n", help="Namespace.")]
AllNamespaces = Annotated[bool, typer.Option("--all-namespaces", help="All namespaces.")]


def open_client(kubeconfig: str, master: str) -> Client:
    """A client of the cluster that flags, or else the surroundings, name.  Raises AccessError."""
    from stromboli.kube.access import find_access
    from stromboli.kube.client import Client

    return Client.reaching(find_access(kubeconfig, "", master))


def talk(what: str, kubeconfig: str, master: str, story: Callable[[Client], Awaitable[T]]) -> T:
    """Run ``story`` with a client; ends the program with ``Failed to <what>: ...`` when that fails."""

    async def told() -> T:
        async with open_client(kubeconfig, master) as client:
            return await story(client)

    try:
        return asyncio.run(told())
    except StromboliError as error:
        raise failed(what, str(error)) from error


def failed(what: str, why: str) -> typer.Exit:
    """Say on standard error that something failed; raise what this answers."""
    sys.stdout.flush()
    print(f"Failed to {what}: {why}", file=sys.stderr)
    return typer.Exit(BAD_INPUT)
