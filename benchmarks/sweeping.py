"""The bars of sweeps: ``python -m benchmarks.sweeping LOG.swf.gz --kills 20`` and ``--speed``.

``--kills N`` kills a sweep after a random time, N times, and then lets it end: no point may be lost, and none that was
done run again.  ``--speed`` runs 60 points on one worker and on two.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from benchmarks.tables import head, machine, row

POINTS = 60
SPAN = 3 * 86_400
"""Seconds of the log in each point: a second of simulation or so, beside which starting processes counts little."""


def command(log: Path, into: Path, workers: int) -> list[str]:
    """A sweep of 60 points: two loads, thirty seeds."""
    return [
        sys.executable, "-m", "stromboli.cli.main", "sweep", str(log), "--nodes", "1x256cpu", "--for", str(SPAN),
        "--seeds", str(POINTS // 2), "--loads", "0.8,1.2", "--workers", str(workers), "--into", str(into),
    ]  # fmt: skip


def done(into: Path) -> dict[str, tuple[int, int]]:
    """The points that are done, and which file each is, since when."""
    files = (into / "points").glob("*.parquet")
    return {file.name: (file.stat().st_ino, file.stat().st_mtime_ns) for file in files}


def killed(log: Path, kills: int, longest: float, seed: int) -> tuple[int, int, int]:
    """How many kills hit, and how many points are done at the end, and how many of them were run again."""
    dice, hit, again = Random(seed), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder)
        before: dict[str, tuple[int, int]] = {}
        for _ in range(kills):
            running = subprocess.Popen(command(log, into, 2), stdout=subprocess.DEVNULL)
            try:
                running.wait(dice.uniform(0.0, longest))
            except subprocess.TimeoutExpired:
                running.send_signal(signal.SIGKILL)
                hit += 1
            running.wait()
            now = done(into)
            again += sum(now.get(name) != file for name, file in before.items())
            before = now
        subprocess.run(command(log, into, 2), check=True, stdout=subprocess.DEVNULL)
        now = done(into)
        again += sum(now.get(name) != file for name, file in before.items())
        return hit, len(now), again


def seconds(log: Path, workers: int) -> float:
    """How long the sweep takes on so many workers."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        subprocess.run(command(log, Path(folder), workers), check=True, stdout=subprocess.DEVNULL)
        return time.monotonic() - began


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sweeping", description=__doc__)
    parser.add_argument("log", type=Path)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--longest", type=float, default=20.0, help="seconds until a kill, at most (20)")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    print(f"{machine()}\n\n{head(('Bar', 'Asked', 'Found'))}")
    good = True
    if options.kills:
        hit, whole, again = killed(options.log, options.kills, options.longest, options.seed)
        good = (whole, again) == (POINTS, 0)
        print(row((f"killed {hit} times: points done, run again", f"{POINTS}, 0", f"{whole}, {again}")), flush=True)
    if options.speed:
        one, two = seconds(options.log, 1), seconds(options.log, 2)
        print(row((f"{POINTS} points on two workers", "1.8 x one", f"{one / two:.2f} x ({one:.0f} s, {two:.0f} s)")))
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
