"""The commands that run until they are stopped, told by Volcano's flags: serve, controllers, webhooks."""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Annotated, Any, Final, NamedTuple

import typer

SETTINGS: Final[dict[str, Any]] = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
"""The flags are read here and not by typer, because switches may be written ``--name=false``."""

Flags = Annotated[list[str] | None, typer.Argument(metavar="FLAGS", show_default=False)]


class Program(NamedTuple):
    """A command: what it is for, and where its flags and what it runs are defined; neither is loaded before its use."""

    name: str
    about: str
    flags: str
    run: str

    @property
    def command(self) -> Callable[..., None]:
        """What typer calls."""

        def call(flags: Flags = None) -> None:
            self._call(flags or [])

        call.__doc__ = f"{self.about}; ``--help`` lists the flags, which are Volcano's."
        return call

    def _call(self, given: list[str]) -> None:
        from stromboli.live.process.flags import help_text, parse

        flags = resolve_name(self.flags)
        if {"-h", "--help"} & set(given):
            typer.echo(help_text(self.name, flags))
            return
        values = parse(given, flags)
        if values["version"]:
            from importlib.metadata import version

            typer.echo(f"stromboli {version('stromboli')}")
            return
        raise typer.Exit(resolve_name(self.run)(values))


PROGRAMS: Final = (
    Program(
        "serve",
        "Schedule a live cluster in Volcano's place",
        "stromboli.live.process.flags:FLAGS",
        "stromboli.live.process.process:serve",
    ),
    Program(
        "controllers",
        "Make pods of jobs, PodGroups of pods, and keep queues",
        "stromboli.live.process.control_flags:CONTROL_FLAGS",
        "stromboli.live.process.control_process:control",
    ),
    Program(
        "webhooks",
        "Fill in and check jobs, queues, PodGroups and others",
        "stromboli.live.webhooks.flags:WEBHOOK_FLAGS",
        "stromboli.live.webhooks.process:serve_webhooks",
    ),
)
