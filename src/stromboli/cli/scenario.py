"""``stromboli scenario run``: recorded scenarios in, answers out, one JSON line each."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from typing import TYPE_CHECKING

import typer

from stromboli.cli.exits import EPILOG
from stromboli.cli.options import Compatibility, FeatureGates, gates_of

if TYPE_CHECKING:
    from stromboli.sim.outcome import Json


app = typer.Typer(name="scenario", help="Run recorded scenarios.", no_args_is_help=True, epilog=EPILOG)


@app.callback()
def group() -> None:
    """Run recorded scenarios."""


@app.command(
    epilog="Example: stromboli scenario run --compat volcano < scenarios.jsonl > answers.jsonl\n\n" + EPILOG,
)
def run(compat: Compatibility = None, feature_gates: FeatureGates = None) -> None:
    """Answer scenarios: JSON lines on standard input, one answer a line on standard output, in the same order.

    A scenario holds Kubernetes objects by kind, the text of volcano-scheduler.conf under conf, and the number of
    cycles.  Nothing is added to its objects.  One that cannot be run is answered with an error, and the next goes on.
    """
    out, gates = sys.stdout.buffer, gates_of(feature_gates)
    with redirect_stdout(sys.stderr):  # whatever a plugin prints must not stand between the answers
        for line in answers(sys.stdin.buffer, compat=compat is not None, gates=gates):
            out.write(line)
            out.flush()


def answers(lines: Iterable[bytes], *, compat: bool, gates: str = "") -> Iterator[bytes]:
    """The answer to each scenario as a line of JSON; empty lines are passed over."""
    from msgspec.json import Encoder

    encode = Encoder().encode
    for line in lines:
        if line.strip():
            yield encode(answer(line, compat=compat, gates=gates)) + b"\n"


def answer(line: bytes, *, compat: bool, gates: str = "") -> Json:
    """The answer to one scenario: name, outcome and timing, or name and error where it cannot be run."""
    from stromboli.errors import StromboliError
    from stromboli.sim.runner import run_scenario

    try:
        return run_scenario(line, compat=compat, gates=gates)
    except StromboliError as error:
        return {"name": _name(line), "error": str(error)}
    except Exception as error:  # noqa: BLE001 - one scenario's trouble must not leave the others unanswered
        return {"name": _name(line), "error": f"{type(error).__name__}: {error}"}


def _name(line: bytes) -> str:
    """The scenario's name if it can be found at all."""
    import msgspec

    try:
        found = msgspec.json.decode(line)
        while isinstance(found, dict) and "scenario" in found:
            found = found["scenario"]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ""
    name = found.get("name") if isinstance(found, dict) else None
    return name if isinstance(name, str) else ""
