"""Running a program of ours: the one place where errors become messages and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from copy import copy
from functools import lru_cache

import typer

from stromboli.cli.exits import BAD_INPUT, BROKEN, INTERRUPTED, OK
from stromboli.errors import StromboliError, innermost

TRACEBACK = "STROMBOLI_TRACEBACK"
"""Environment variable: when set, an unexpected error shows its traceback."""


def run(app: typer.Typer, program: str, arguments: Sequence[str] | None = None) -> int:
    """Run a command line (``sys.argv`` unless ``arguments`` are given) and return the exit code; never raises."""
    try:
        code = _run(app, program, arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        return _reader_gone()
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _run(app: typer.Typer, program: str, arguments: Sequence[str] | None) -> int:
    try:
        word = next(iter(sys.argv[1:] if arguments is None else arguments), "")
        command_of(app, word)(args=arguments, prog_name=program)
    except SystemExit as done:
        return _code(done, program)
    except Exception as error:
        found = innermost(error)
        if isinstance(found, BrokenPipeError):
            raise found from None
        told = _told(found)
        if told is not None:
            return _say(program, told, BAD_INPUT)
        if os.environ.get(TRACEBACK):
            raise
        hint = f"this is a fault of Stromboli; {TRACEBACK}=1 shows where"
        return _say(program, f"{type(found).__name__}: {found} ({hint})", BROKEN)
    return OK


@lru_cache(maxsize=64)
def command_of(app: typer.Typer, word: str) -> Callable[..., object]:
    """What runs an app whose first argument is ``word``.

    If a command is called so, only this one is built: building all of them takes longer than most run.
    """
    part = copy(app)
    part.registered_commands = [one for one in app.registered_commands if one.name == word]
    part.registered_groups = [
        one for one in app.registered_groups if one.typer_instance and one.typer_instance.info.name == word
    ]
    found = part.registered_commands or part.registered_groups
    return typer.main.get_command(part if found and app.registered_callback else app)


def _told(error: BaseException) -> str | None:
    """The message of an error that a user can mend; None for a bug."""
    if isinstance(error, StromboliError):
        return str(error)
    return f"{error.filename or 'input'}: {error.strerror or error}" if isinstance(error, OSError) else None


def _code(done: SystemExit, program: str) -> int:
    if isinstance(done.__context__, BrokenPipeError):
        raise done.__context__
    if done.code is None or isinstance(done.code, int):
        return done.code or OK
    return _say(program, str(done.code), BAD_INPUT)


def _say(program: str, message: str, code: int) -> int:
    sys.stdout.flush()
    print(f"{program}: {message}", file=sys.stderr)
    return code


def _reader_gone() -> int:
    """The reader of a pipe has seen enough; give what is left in the buffer somewhere to go."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OK
