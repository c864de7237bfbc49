"""``stromboli webhooks``: answer API servers about what may be stored, told by the same flags as Volcano's."""

from __future__ import annotations

from typing import Annotated

import typer


def webhooks(flags: Annotated[list[str] | None, typer.Argument(metavar="FLAGS", show_default=False)] = None) -> None:
    """Fill in and check jobs, queues, PodGroups and others; ``--help`` lists the flags, which are Volcano's."""
    from stromboli.live.process.flags import help_text, parse
    from stromboli.live.webhooks.process import WEBHOOK_FLAGS, serve_webhooks

    given = flags or []
    if {"-h", "--help"} & set(given):
        typer.echo(help_text("webhooks", WEBHOOK_FLAGS))
        return
    values = parse(given, WEBHOOK_FLAGS)
    if values["version"]:
        from importlib.metadata import version

        typer.echo(f"stromboli {version('stromboli')}")
        return
    raise typer.Exit(serve_webhooks(values))
