"""``stromboli topology``: the tree of network domains of a cluster, and what is free in each."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from stromboli.cli.exits import BAD_INPUT, EPILOG
from stromboli.cli.terminal import console, counted, dump, progress, say, say_some

if TYPE_CHECKING:
    from rich.console import Console

    from stromboli.sim.domains import TopologyView


class Form(StrEnum):
    """How the topology is printed."""

    table = "table"
    json = "json"
    svg = "svg"


TOPOLOGY_HELP = (
    """\
Examples:

stromboli topology examples/topology/cluster.yaml

kubectl get nodes,pods,hypernodes -A -o yaml | stromboli topology - -o svg > topology.svg

"""
    + EPILOG
)


def topology(
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILES", help="Manifests: files, directories, or - for standard input."),
    ] = None,
    output: Annotated[
        Form, typer.Option("--output", "-o", help="svg is a heat map: a cell for each node, darker the fuller it is.")
    ] = Form.table,
) -> None:
    """Show the tree of HyperNodes that manifests describe: nodes, those without a pod, and free amounts by domain."""
    from msgspec import to_builtins

    from stromboli.cluster.state import ClusterState
    from stromboli.sim.domains import topology_view
    from stromboli.sim.loading import Loading

    if not files and sys.stdin.isatty():
        raise typer.BadParameter("name files with manifests, or - for standard input", param_hint="FILES")
    state = ClusterState()
    loading = Loading(state)
    with progress() as told:
        loading.take(files or ["-"], told)
    loading.complete()
    say_some("error", [str(problem) for problem in loading.problems])
    view = topology_view(state.snapshot())
    if output is Form.json:
        dump(to_builtins(view), "json")
    elif output is Form.svg:
        from stromboli.cli.hypernodes.heat_map import heat_map

        typer.echo(heat_map(view))
    else:
        _show(console(), view)
    if loading.problems or view.problems:
        say_some("error", view.problems)
        raise typer.Exit(BAD_INPUT)


def _show(where: Console, view: TopologyView) -> None:
    """The tree as a table, a domain a line."""
    from rich.text import Text

    from stromboli.cli.terminal import print_table, table
    from stromboli.cli.usage_view import bar

    if not view.domains:
        say(f"{counted(len(view.nodes), 'node')}, and no HyperNode: docs/hypernodes.md tells how to have them made")
        return
    names = sorted({name for domain in view.domains for name in domain.room}, key=_order)
    rows = table("DOMAIN", ">TIER", ">NODES", ">EMPTY", *(f">{name.upper()} FREE" for name in names), "IN USE")
    for domain in view.domains:
        amounts = [f"{room.free} / {room.total}" if (room := domain.room.get(name)) else "" for name in names]
        fullest = max((room.used for room in domain.room.values()), default=0.0)
        numbers = (str(domain.tier), str(domain.nodes), str(domain.empty_nodes))
        rows.add_row(Text("  " * domain.depth + domain.name), *numbers, *amounts, bar(fullest))
    print_table(where, rows)


def _order(name: str) -> tuple[int, str]:
    return (("cpu", "memory").index(name) if name in ("cpu", "memory") else 2, name)
