"""How long a simulated pod runs and how it ends: what its annotations and commands say, as pure functions.

========================================  ==============================================================
annotation                                meaning
========================================  ==============================================================
``simulation.stromboli.dev/run-for``      how long the containers run, e.g. ``20s``; ``forever``
``simulation.stromboli.dev/exit-code``    what they exit with; 0 if not said
``simulation.stromboli.dev/start-after``  how long the pod takes to start; at once if not said
``simulation.stromboli.dev/stop-after``   how long it takes to stop once it is told to; at once if not said
``simulation.stromboli.dev/overstay``     how long it stays when its grace period is over, as on a node that hangs
========================================  ==============================================================

Without the first the command counts: ``sleep 20``, ``exit 3``, ``true``, ``false`` and ``echo``, also joined with ``;``
or ``&&`` in a shell.  Anything else runs until it is stopped.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from stromboli.cluster.body import Body, meta, part
from stromboli.errors import DurationError
from stromboli.model.values import duration

_PREFIX: Final = "simulation.stromboli.dev/"
RUN_FOR: Final = _PREFIX + "run-for"
EXIT_CODE: Final = _PREFIX + "exit-code"
START_AFTER: Final = _PREFIX + "start-after"
STOP_AFTER: Final = _PREFIX + "stop-after"
OVERSTAY: Final = _PREFIX + "overstay"
_FOREVER: Final = "forever"
_SHELLS: Final = frozenset({"sh", "bash", "ash", "dash"})
_UNITS: Final = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_SLEEP: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)([smhd]?)")
_NUMBER: Final = re.compile(r"[0-9]{1,12}(?:\.[0-9]{1,12})?")
_WHOLE: Final = re.compile(r"[0-9]{1,12}")
_JOINED: Final = re.compile(r";|&&|\n")
_QUIET: Final = frozenset({"echo", "true", ":", "date", "hostname", "env", "printf", "set", "export"})
"""Commands that take no time and end well."""


@dataclass(frozen=True)
class Run:
    """One run of a container: seconds until it ends, None for never, and what it exits with."""

    seconds: float | None
    exit_code: int = 0


FOREVER: Final = Run(None)


@dataclass(frozen=True)
class Life:
    """A pod's life on a node: seconds until its containers start, how each runs, seconds until they stop when told.

    A pod with an ``overstay`` stops only so many seconds after its grace period.
    """

    start_after: float
    runs: tuple[Run, ...]
    stop_after: float
    overstay: float = 0.0

    def stops_within(self, grace: float) -> float:
        """Seconds until the pod is gone once it is told to go, with ``grace`` seconds to do so."""
        return grace + self.overstay if self.overstay else min(self.stop_after, grace)

    @property
    def run(self) -> Run:
        """The run of the pod: it ends with its last container, badly if any does."""
        seconds = [run.seconds for run in self.runs]
        longest = None if None in seconds else max((one for one in seconds if one is not None), default=0.0)
        return Run(longest, max((run.exit_code for run in self.runs), default=0))


def life_of(pod: Body) -> Life:
    """The life that a pod asks for."""
    told = meta(pod).get("annotations") or {}
    runs = tuple(_run_of(one, told) for one in part(pod, "spec", "containers") or ())
    start, stop, over = (_seconds(told.get(key)) or 0.0 for key in (START_AFTER, STOP_AFTER, OVERSTAY))
    return Life(start, runs, stop, over)


def _run_of(container: Body, told: Body) -> Run:
    code = _exit_code(told.get(EXIT_CODE))
    if RUN_FOR in told:
        return Run(_seconds(told[RUN_FOR]), code or 0)
    run = commanded([*(container.get("command") or ()), *(container.get("args") or ())])
    return run if code is None else Run(run.seconds, code)


def _exit_code(text: str | None) -> int | None:
    return int(text) % 256 if text and _WHOLE.fullmatch(text) else None


def _seconds(text: str | None) -> float | None:
    if not text or text == _FOREVER:
        return None
    try:
        return float(text) if _NUMBER.fullmatch(text) else max(0.0, duration.seconds(text))
    except DurationError:
        return None


def commanded(words: Sequence[str]) -> Run:
    """How a command runs."""
    if not words:
        return FOREVER
    if words[0].rsplit("/", 1)[-1] in _SHELLS and len(words) >= 3 and words[1].endswith("c"):
        return _script(words[2])
    return _all_of([list(words)])


def _script(text: str) -> Run:
    try:
        return _all_of(words for line in _JOINED.split(text) if (words := shlex.split(line)))
    except ValueError:
        return FOREVER


def _all_of(commands: Iterable[Sequence[str]]) -> Run:
    seconds = 0.0
    code = 0
    for command in commands:
        run = _simple(command)
        if run is None:
            return FOREVER
        seconds, code = seconds + (run.seconds or 0.0), run.exit_code
        if command[0] == "exit":
            break
    return Run(seconds, code)


def _simple(command: Sequence[str]) -> Run | None:
    name, *words = (command[0].rsplit("/", 1)[-1], *command[1:])
    if name in _QUIET:
        return Run(0.0)
    if name == "false":
        return Run(0.0, 1)
    if name == "exit":
        return Run(0.0, _exit_code(words[0] if words else None) or 0)
    found = _SLEEP.fullmatch(words[0]) if name == "sleep" and words else None
    return Run(float(found[1]) * _UNITS[found[2]]) if found else None
