"""Show how recorded scenes are decided, or record them anew: `python -m tests.recorded --show SCENE`, or `--write`.

`--show` prints everything of which the record keeps a digest.  With `--against REVISION` it prints how that differs
from what the package of another commit comes to, HEAD for example.  `--write` decides all scenes and writes what is
kept of them; `git diff` then says which decisions a change of the package has changed.
"""

from __future__ import annotations

import argparse
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from difflib import unified_diff
from pathlib import Path

from tests.recorded.deciding import decided
from tests.recorded.families import NAMES, scene
from tests.recorded.keeping import record

PROJECT = Path(__file__).parents[2]


def shown(name: str) -> str:
    """Everything that each cycle of a scene comes to."""
    lines = []
    for number, parts in enumerate(decided(scene(name)), 1):
        for part, text in parts.items():
            if text:
                lines += [f"{name}, cycle {number}, {part}:", *(f"  {line}" for line in text.splitlines())]
    return "\n".join(lines)


def shown_by(revision: str, name: str) -> str:
    """The same, of the package of another commit."""
    packed = subprocess.run(["git", "archive", revision, "src"], cwd=PROJECT, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(packed)) as found:
        found.extractall(folder, filter="data")
        paths = os.pathsep.join((f"{folder}/src", str(PROJECT)))
        command = [sys.executable, "-m", "tests.recorded", "--show", name]
        run = subprocess.run(command, cwd=PROJECT, env={**os.environ, "PYTHONPATH": paths}, check=True,
                             capture_output=True, text=True)  # fmt: skip
    return run.stdout.rstrip("\n")


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(prog="python -m tests.recorded")
    parser.add_argument("--show", metavar="SCENE", choices=NAMES, help="print all that a scene comes to")
    parser.add_argument("--against", metavar="REVISION", help="print how it differs from that of another commit")
    parser.add_argument("--write", action="store_true", help="record all scenes anew")
    given = parser.parse_args()
    if not (given.write or given.show) or (given.against and not given.show):
        parser.error("name a scene to --show, or --write")
    if given.write:
        record()
    if given.show:
        now = shown(given.show)
        if given.against:
            before = shown_by(given.against, given.show).splitlines()
            now = (
                "\n".join(unified_diff(before, now.splitlines(), given.against, "now", lineterm="", n=2))
                or "no difference"
            )
        print(now)  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
