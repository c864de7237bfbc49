"""The command ``stromboli``: its commands, and the one place where errors become messages and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from stromboli.cli import conf, imports, lint, plan, scenario
from stromboli.cli.exits import BAD_INPUT, BROKEN, EPILOG, OK
from stromboli.errors import StromboliError

TRACEBACK = "STROMBOLI_TRACEBACK"
"""Environment variable: when set, an error that nobody foresaw shows its traceback."""

app = typer.Typer(
    name="stromboli",
    help="A batch scheduler for Kubernetes: plan, explain and check what would be scheduled, without a cluster.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("plan", epilog=plan.PLAN_HELP)(plan.plan)
app.command("lint", epilog=lint.LINT_HELP)(lint.lint)
app.add_typer(conf.app)
app.add_typer(imports.app)
app.add_typer(scenario.app)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"stromboli {version('stromboli')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """A batch scheduler for Kubernetes: plan, explain and check what would be scheduled, without a cluster."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (``sys.argv`` unless ``arguments`` are given) and return the exit code; never raises."""
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        return _reader_gone()
    return code


def _run(arguments: Sequence[str] | None) -> int:
    try:
        app(args=arguments, prog_name="stromboli")
    except SystemExit as done:
        return _code(done)
    except StromboliError as error:
        return _say(str(error), BAD_INPUT)
    except BrokenPipeError:
        raise
    except OSError as error:
        return _say(f"{error.filename or 'input'}: {error.strerror or error}", BAD_INPUT)
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        hint = f"this is a fault of Stromboli; {TRACEBACK}=1 shows where"
        return _say(f"{type(error).__name__}: {error} ({hint})", BROKEN)
    return OK


def _code(done: SystemExit) -> int:
    if isinstance(done.__context__, BrokenPipeError):
        raise done.__context__
    if done.code is None or isinstance(done.code, int):
        return done.code or OK
    return _say(str(done.code), BAD_INPUT)


def _say(message: str, code: int) -> int:
    sys.stdout.flush()
    print(f"stromboli: {message}", file=sys.stderr)
    return code


def _reader_gone() -> int:
    """The reader of a pipe has seen enough; give what is left in the buffer somewhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OK


if __name__ == "__main__":
    sys.exit(main())
