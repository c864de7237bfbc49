"""Broken files through ``plan``, ``lint``, ``conf show`` and ``import``: a message and an exit code, nothing else."""

from __future__ import annotations

import contextlib
import faulthandler
import io
import os
import resource
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from benchmarks.chaos.documents import command
from benchmarks.chaos.outcomes import SLOW, Effort, Outcome
from stromboli.cli.app import app
from stromboli.cli.exits import BROKEN
from stromboli.cli.running import TRACEBACK
from stromboli.cli.running import run as run_program

_HOPELESS: Final = 300
"""Seconds after which the whole process ends with a traceback: what hangs so does not even hear the alarm, or waits."""
_MOST_MEMORY: Final = 8 << 30
"""Bytes of address space; what wants more gets a MemoryError."""


class _Hangs(BaseException):
    """A command takes too much CPU: so much time passes anyway on a machine that has other work."""


def run(effort: Effort) -> Outcome:
    """Run commands over broken files, all in this process."""
    outcome = Outcome("files", effort.seed)
    os.environ[TRACEBACK] = "1"
    signal.signal(signal.SIGPROF, _hangs)
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    with tempfile.TemporaryDirectory() as name:
        for number, dice in effort.trials():
            folder = Path(name) / "trial"
            folder.mkdir()
            arguments = command(dice, folder)
            wrong = _wrong(arguments, outcome)
            outcome.tried += 1
            if wrong:
                kept = _kept(folder, number)
                outcome.violated(number, f"{' '.join(arguments).replace(str(folder), str(kept))}\n{wrong}")
            shutil.rmtree(folder)
    return outcome


def _kept(folder: Path, number: int) -> Path:
    """The files of a trial that went wrong, where they can be looked at."""
    kept = Path(tempfile.gettempdir()) / f"chaos-{number}"
    shutil.copytree(folder, kept, dirs_exist_ok=True)
    return kept


def _wrong(arguments: Sequence[str], outcome: Outcome) -> str:
    """What went wrong; empty if nothing did."""
    out, began = io.StringIO(), time.process_time()
    try:
        with _watched(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = run_program(app, "stromboli", arguments)
    except _Hangs:
        return f"hangs: {traceback.format_exc(limit=-4)}"
    except BaseException:  # noqa: BLE001 - whatever it is, it should have been a message
        return traceback.format_exc(limit=-6)
    outcome.ends[f"{arguments[0]} {code}"] += 1
    if code == BROKEN or "Traceback" in out.getvalue():
        return f"ended with {code}: {out.getvalue()[-1500:]}"
    seconds = time.process_time() - began
    return f"took {seconds:.1f} CPU s" if seconds > SLOW else ""


@contextlib.contextmanager
def _watched() -> Iterator[None]:
    faulthandler.dump_traceback_later(_HOPELESS, exit=True)
    signal.setitimer(signal.ITIMER_PROF, SLOW)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.cancel_dump_traceback_later()


def _hangs(number: int, frame: object) -> None:
    raise _Hangs
