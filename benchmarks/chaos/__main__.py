"""Tries what breaks things: ``python -m benchmarks.chaos [PARTS...]``; ends with 1 if something was not survived."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Final

from benchmarks.chaos import files, requests, schedules, soak
from benchmarks.chaos.outcomes import Effort, Outcome

PARTS: Final[dict[str, Callable[[Effort], Outcome]]] = {"files": files.run, "requests": requests.run}
"""What is tried unless parts are named, by name."""
LIVE: Final[dict[str, Callable[[Effort], Outcome]]] = {"schedules": schedules.run, "soak": soak.run}
"""What is tried with real processes, which takes kubectl, and only when it is named."""


def main() -> int:
    """Try the parts that are asked for, and print what came of each."""
    options = _options()
    effort = Effort(options.seed, options.number, options.minutes, options.first, options.server)
    fine = True
    for name in options.parts or PARTS:
        outcome = {**PARTS, **LIVE}[name](effort)
        print(outcome, flush=True)
        fine &= not outcome.violations
    return 0 if fine else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.chaos", description="Break things, and count.")
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS, *LIVE], help="default: files, requests")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int, default=20_000, help="trials of each part (20000)")
    parser.add_argument("--minutes", type=float, default=20.0, help="how long a part may take (20)")
    parser.add_argument("--first", type=int, default=0, help="the first trial's number (0)")
    parser.add_argument("--server", choices=["embedded", "real"], default="embedded", help="of schedules and soak")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
