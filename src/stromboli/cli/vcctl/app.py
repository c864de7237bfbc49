"""The program ``vcctl``: jobs, queues and pods, under the name that Volcano's users know."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer

from stromboli.cli.running import run
from stromboli.cli.vcctl import flow, job, pod, queue

FAILED = 255
"""Exit code of Volcano's program for a command that failed."""

app = typer.Typer(
    name="vcctl",
    help="Jobs, flows, queues and pods of a cluster.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(job.app)
app.add_typer(queue.app)
app.add_typer(pod.app)
app.add_typer(flow.flows)
app.add_typer(flow.templates)


@app.command()
def version() -> None:
    """Show the version."""
    from importlib.metadata import version as installed

    print(f"Version: {installed('stromboli')}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (``sys.argv`` unless ``arguments`` are given) and return the exit code."""
    return FAILED if run(app, "vcctl", arguments) else 0


if __name__ == "__main__":
    sys.exit(main())
