"""Options that several commands share, and what they mean."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from stromboli.sim.planning import Settings


class CompatMode(StrEnum):
    """Whose ways to follow where Stromboli's differ."""

    volcano = "volcano"


Compatibility = Annotated[
    CompatMode | None,
    typer.Option("--compat", help="Do as Volcano does wherever Stromboli decides otherwise (docs/compatibility.md)."),
]
ConfigFile = Annotated[
    str | None,
    typer.Option("--config", "-c", metavar="FILE", help="A volcano-scheduler.conf. Default: the built-in one."),
]
LenientConfig = Annotated[
    bool,
    typer.Option(
        "--lenient-config",
        help="Skip unknown plugins, switches and keys of the configuration with a warning. Actions must be known.",
    ),
]
PluginsDirectory = Annotated[
    str | None, typer.Option("--plugins-dir", metavar="DIR", help="Load plugins from the Python files of DIR.")
]


class Sharding(StrEnum):
    """How NodeShards count: not at all, nodes of the own one only, or these first."""

    none = "none"
    hard = "hard"
    soft = "soft"


ShardingMode = Annotated[
    Sharding, typer.Option(help="How NodeShards count: not, the scheduler's own nodes only, or these first.")
]
ShardName = Annotated[str, typer.Option(metavar="NAME", help="The scheduler's NodeShard.")]
FeatureGates = Annotated[
    list[str] | None,
    typer.Option(
        "--feature-gates", metavar="NAME=BOOL,...", help="Switch feature gates on or off, as for Volcano's scheduler."
    ),
]


def gates_of(stated: list[str] | None) -> str:
    """The gates of all occurrences of the option together; those that decide nothing here are named as warnings."""
    from stromboli.cli.terminal import say_some
    from stromboli.framework.config.gates import DECIDING, parse_gates

    text = ",".join(stated or ())
    idle = sorted(parse_gates(text).keys() - DECIDING)
    say_some("warning", [f"feature gate {name} makes no difference to what is decided" for name in idle])
    return text


def settings_of(
    config: str | None,
    compat: CompatMode | None,
    lenient: bool,
    plugins: str | None,
    seed: int | None = None,
    gates: str = "",
) -> Settings:
    """The settings that options spell."""
    from stromboli.sim.planning import Settings

    return Settings(config or "", compat is not None, lenient, plugins or "", seed, gates)


def time_of(text: str | None, option: str) -> float:
    """Seconds since 1970: of an RFC 3339 time, of a number, or the present; a mistake is told of ``option``."""
    from stromboli.model.values.times import moment

    if text is None:
        return time.time()
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return moment(text)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is no time; write e.g. 2026-03-01T08:00:00Z or 1772352000", param_hint=option
        ) from None
