"""``stromboli serve``: schedule a live cluster in Volcano's place, told by the same flags."""

from __future__ import annotations

from typing import Annotated

import typer

SETTINGS = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
"""The flags are read here and not by typer, because switches may be written ``--name=false``."""


def serve(flags: Annotated[list[str] | None, typer.Argument(metavar="FLAGS", show_default=False)] = None) -> None:
    """Schedule a live cluster in Volcano's place; ``--help`` lists the flags, which are Volcano's."""
    from stromboli.live.process.flags import help_text, parse

    given = flags or []
    if {"-h", "--help"} & set(given):
        typer.echo(help_text())
        return
    values = parse(given)
    if values["version"]:
        from importlib.metadata import version

        typer.echo(f"stromboli {version('stromboli')}")
        return
    from stromboli.live.process.process import serve as run

    raise typer.Exit(run(values))
