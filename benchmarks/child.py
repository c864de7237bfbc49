"""The process that is measured: answers the scenario on standard input, the answer on standard output.

``python -m benchmarks.child [--silent] [--log-level N] [--spans] [--profile] < scenario > answer``: metrics are on and
the log goes to standard error, unless it is to be silent; ``--spans`` and ``--profile`` say where the last cycle's
time went, under the keys ``spans`` and ``profile`` of the answer.
"""

from __future__ import annotations

import argparse
import cProfile
import io
import pstats
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from stromboli.metrics.logs import LogObserver
from stromboli.metrics.prometheus import MetricsObserver, new_registry
from stromboli.narration.observe import Observer, Several
from stromboli.sim.runner import run_scenario


class _Watcher:
    """Wants to hear of spans alone."""

    def wants(self, key: str) -> bool:
        return False

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        """Not heard."""


class Spans(_Watcher):
    """CPU seconds of the last cycle's spans by ``kind name``, in the order in which they ended."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._begun: dict[str, float] = {}

    def started(self, kind: str, name: str) -> None:
        """Look at the clock; a new cycle forgets the one before it."""
        if kind == "cycle":
            self.seconds.clear()
        self._begun[f"{kind} {name}"] = time.process_time()

    def ended(self, kind: str, name: str) -> None:
        """Add what has passed: a plugin or action may come more than once."""
        span = f"{kind} {name}"
        self.seconds[span] = self.seconds.get(span, 0.0) + time.process_time() - self._begun[span]


class Profile(_Watcher):
    """Where the last cycle's time goes, function by function."""

    def __init__(self) -> None:
        self._profile = cProfile.Profile()

    def started(self, kind: str, name: str) -> None:
        """Start again with each cycle."""
        if kind == "cycle":
            self._profile = cProfile.Profile()
            self._profile.enable()

    def ended(self, kind: str, name: str) -> None:
        """Stop with the cycle."""
        if kind == "cycle":
            self._profile.disable()

    def text(self) -> str:
        """The 25 functions in which most time passes, by the time within, then by their own."""
        page = io.StringIO()
        stats = pstats.Stats(self._profile, stream=page).strip_dirs()
        for order in ("cumulative", "tottime"):
            stats.sort_stats(order).print_stats(25)
        return page.getvalue()


def everyday(level: int) -> list[Observer]:
    """The observers of a scheduler in service: metrics, and the log up to ``level`` on standard error."""
    return [MetricsObserver(new_registry()), LogObserver(sys.stderr, level)]


def peak_mib() -> float | None:
    """The most memory that this program has held, in MiB; None where the system does not tell.

    What the system counts for the process also contains that of the program which started it.
    """
    known = Path("/proc/self/status")
    lines = known.read_text().split("\n") if known.exists() else []
    found = [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
    return round(found[0] / 1024, 1) if found else None


def main() -> None:
    """Answer the scenario on standard input."""
    options = _options()
    spans, profile = Spans(), Profile()
    observers = [] if options.silent else everyday(options.log_level)
    watchers: list[Observer] = [*([spans] if options.spans else []), *([profile] if options.profile else [])]
    answer = run_scenario(sys.stdin.buffer.read(), observer=Several([*observers, *watchers]))
    answer["timing"]["peak_rss_mib"] = peak_mib() or answer["timing"]["peak_rss_mib"]
    if options.spans:
        answer["spans"] = spans.seconds
    if options.profile:
        answer["profile"] = profile.text()
    sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.child", description="The process that is measured.")
    parser.add_argument("--silent", action="store_true", help="no metrics and no log")
    parser.add_argument("--log-level", type=int, default=0, help="how much the log says")
    parser.add_argument("--spans", action="store_true", help="CPU seconds by part of the cycle")
    parser.add_argument("--profile", action="store_true", help="CPU seconds by function")
    return parser.parse_args()


if __name__ == "__main__":
    main()
