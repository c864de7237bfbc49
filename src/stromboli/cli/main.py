"""Where the command ``stromboli`` begins, before anything is loaded that takes its time."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

QUESTIONS: Final = (signal.SIGUSR1, signal.SIGUSR2)
"""Signals that ask a scheduler for its state; they must not end one that does not listen yet."""

HYPERNODE_CONTROLLER: Final = (
    "controllers",
    "--controllers=hyperNode-controller",
    "--leader-elect-resource-name=vc-hypernode-controller-manager",
)
"""The command and the flags that ``vc-hypernode-controller-manager`` stands for."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (``sys.argv`` unless ``arguments`` are given) and return the exit code; never raises."""
    with suppress(ValueError):  # only a process's first thread may say so
        for number in QUESTIONS:
            signal.signal(number, signal.SIG_IGN)
    from stromboli.cli.app import app
    from stromboli.cli.running import run

    return run(app, "stromboli", arguments)


def scheduler(arguments: Sequence[str] | None = None) -> int:
    """Run the scheduler under the name of Volcano's program, ``vc-scheduler``; see :func:`main`."""
    return main(["serve", *(sys.argv[1:] if arguments is None else arguments)])


def controller_manager(arguments: Sequence[str] | None = None) -> int:
    """Run the controllers under the name of Volcano's program, ``vc-controller-manager``; see :func:`main`."""
    return main(["controllers", *(sys.argv[1:] if arguments is None else arguments)])


def hypernode_controller(arguments: Sequence[str] | None = None) -> int:
    """Run the HyperNode controller by itself, under the name of Volcano's program; see :func:`main`."""
    return main([*HYPERNODE_CONTROLLER, *(sys.argv[1:] if arguments is None else arguments)])


def webhook_manager(arguments: Sequence[str] | None = None) -> int:
    """Run the webhook server under the name of Volcano's program; see :func:`main`."""
    return main(["webhooks", *(sys.argv[1:] if arguments is None else arguments)])


if __name__ == "__main__":
    sys.exit(main())
