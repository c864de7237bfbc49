"""``stromboli controllers``: run the controllers in a process of their own, told by the same flags as Volcano's."""

from __future__ import annotations

from typing import Annotated

import typer


def controllers(flags: Annotated[list[str] | None, typer.Argument(metavar="FLAGS", show_default=False)] = None) -> None:
    """Make pods of jobs, PodGroups of pods, and keep queues; ``--help`` lists the flags, which are Volcano's."""
    from stromboli.live.process.control_process import CONTROL_FLAGS, control
    from stromboli.live.process.flags import help_text, parse

    given = flags or []
    if {"-h", "--help"} & set(given):
        typer.echo(help_text("controllers", CONTROL_FLAGS))
        return
    values = parse(given, CONTROL_FLAGS)
    if values["version"]:
        from importlib.metadata import version

        typer.echo(f"stromboli {version('stromboli')}")
        return
    raise typer.Exit(control(values))
