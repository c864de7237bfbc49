"""``stromboli conf show``: what a configuration amounts to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from stromboli.cli.exits import EPILOG
from stromboli.cli.options import Compatibility, ConfigFile, LenientConfig, PluginsDirectory, settings_of
from stromboli.model.values.redaction import shown

if TYPE_CHECKING:
    from stromboli.framework.config.config import Config
    from stromboli.framework.config.effective import Row

app = typer.Typer(name="conf", help="Look at scheduler configurations.", no_args_is_help=True, epilog=EPILOG)


MOST_ROWS: Final = 1_000
"""Rows of a table that are printed: a short file may repeat its tiers thousands of times."""


LONGEST_CELL: Final = 500
"""Characters of a value that a table prints."""


class Form(StrEnum):
    """How the configuration is printed."""

    table = "table"
    json = "json"
    yaml = "yaml"


@app.callback()
def group() -> None:
    """Look at scheduler configurations."""


@app.command(
    epilog="Examples:\n\nstromboli conf show\n\nstromboli conf show --config volcano-scheduler.conf -o json\n\n"
    + EPILOG
)
def show(
    config: ConfigFile = None,
    output: Annotated[Form, typer.Option("--output", "-o", help="Form of the output.")] = Form.table,
    compat: Compatibility = None,
    lenient_config: LenientConfig = False,
    plugins_dir: PluginsDirectory = None,
) -> None:
    """Show every switch and argument in effect, and where its value comes from: a line of the file, or the default."""
    from stromboli.builtin import full_registry
    from stromboli.cli.terminal import dump, say_some
    from stromboli.framework.config.effective import describe
    from stromboli.sim.planning import config_of

    settings = settings_of(config, compat, lenient_config, plugins_dir)
    registry = full_registry(settings.plugins)
    loaded = config_of(settings, registry)
    say_some("warning", [f"{loaded.source}:{c.line}: {c.text}" for c in loaded.complaints])
    rows = describe(loaded, registry)
    if output is Form.table:
        _show(loaded, rows)
    else:
        dump(as_data(loaded, rows), output.value)


def as_data(config: Config, rows: Sequence[Row]) -> dict[str, object]:
    """The configuration as JSON: what is not set plugin by plugin, and the settings; secrets are hidden."""
    return {**_general(config), "settings": [{**asdict(row), "value": _shown(row)} for row in rows]}


def _shown(row: Row) -> object:
    return shown(row.name, plain(row.value))


def _general(config: Config) -> dict[str, object]:
    return {
        "source": config.source,
        "actions": list(config.actions),
        "tiers": [[option.name for option in tier] for tier in config.tiers],
        "compat": config.compat,
        "tie-break": config.tie_break,
        "metrics": {key: shown(key, value) for key, value in config.metrics.items()},
    }


def plain(value: object) -> object:
    """A value of an argument as JSON holds it."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value if value is None or isinstance(value, (bool, int, float)) else str(value)


def _show(config: Config, rows: Sequence[Row]) -> None:
    from rich.text import Text

    from stromboli.cli.terminal import console, print_table, table

    screen = console()
    for name, value in _general(config).items():
        if name not in ("tiers", "metrics") or (name == "metrics" and value):
            screen.print(Text.assemble((f"{name}: ", "dim"), _words(value)))
    screen.print()
    view = table("WHERE", "PLUGIN/ACTION", "SETTING", "VALUE", "FROM")
    for row in rows[:MOST_ROWS]:
        style = "dim" if row.origin == "default" else ""
        cells = (row.section, row.owner, row.name, _words(_shown(row)), row.origin)
        view.add_row(*[Text(_shortened(cell), style=style) for cell in cells])
    print_table(screen, view)
    if len(rows) > MOST_ROWS:
        screen.print(f"... and {len(rows) - MOST_ROWS} more rows: -o json shows all")


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}..."


def _words(value: object) -> str:
    """A value as the file would write it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(_words(one) for one in value) or "none"
    return "none" if value is None else str(value)
