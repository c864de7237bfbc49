"""Bars that commands of their own measure: each runs as a process, and what it prints in the end is what was found."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from benchmarks.records.bars import Line
from benchmarks.tables import row

MISSED: Final = "MISSED"


class Other(NamedTuple):
    """A bar, what is asked, the arguments of ``python -m`` that measure it, and a pattern of the lines that answer.

    ``{traces}`` in an argument is the folder of traces, ``{into}`` one for what is written.
    """

    title: str
    asked: str
    command: str
    answer: str = r".+"

    def found(self, traces: Path, into: Path) -> str:
        """Run the command; its lines that answer, and MISSED if it ends with an error."""
        words = [word.format(traces=traces, into=into) for word in self.command.split()]
        done = subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)
        lines = [found[0] for line in done.stdout.splitlines() if (found := re.search(self.answer, line))]
        said = "; ".join(" ".join(line.replace("|", " ").split()) for line in lines)
        return said if done.returncode == 0 else f"{MISSED}: {said or ' '.join(done.stderr[-200:].split())}"


OTHERS: Final = (
    Other(
        "fragmentation of FGD's traces", "93.08 and 87.47 within 1.0 point, 95.39 or more",
        "benchmarks.fragmentation {traces}/openb_node_list_all_node.csv {traces}/openb_pod_list_default.csv --seeds 2",
        r"^\| (gradient|best-fit|random) \| [\d.]+",
    ),
    Other("a cycle without news on 1,500 nodes", "2 ms", "benchmarks --repeat 5 running-gangs-1k5", r"^\| running.*"),
    Other("a million jobs", "2 GiB", "benchmarks.records.million"),
    Other("seek to a cycle on 1,000 nodes", "2 s", "benchmarks.records.reading seek --into {into}/seek"),
    Other("diff of a tenth of a day of 50,000 jobs", "60 s", "benchmarks.records.reading diff --into {into}/diff"),
    Other("explanation of 4 h", "10 s", "benchmarks.records.reading explain --into {into}/four"),
    Other(
        "explanations of waiting jobs", "100 % as the oracle says",
        "benchmarks.records.explained {into}/four --jobs 300", r".*oracle.*",
    ),
    Other("damaged records", "no traceback in 1,000", "benchmarks.records.damage --files 1000", r".*commands broke"),
    Other("recorder's share of serve", "3 % CPU, 100 B an event", "benchmarks.records.cost {into}/cost"),
    Other(
        "sweeps", "1.8 x one on 2 workers, nothing lost or twice in 20 kills",
        "benchmarks.sweeping {traces}/lublin_256.swf.gz --kills 20 --speed", r"^\| (killed|\d+ points).*",
    ),
    Other("notebook", "60 s", "pytest -q -n 0 --durations=1 tests/study/test_notebook.py", r"[\d.]+s call"),
)  # fmt: skip
"""In the order in which they run: the explanations read the record that the one before has made."""


def others(traces: Path, *, run: bool) -> Iterator[Line]:
    """All of them, or without ``run`` only what there is to run."""
    with tempfile.TemporaryDirectory(prefix="stromboli-bench-") as name:
        for other in OTHERS:
            title = f"{other.title} (python -m {other.command.split()[0]})"
            yield title, other.asked, other.found(traces, Path(name)) if run else "not measured here"


def show(traces: Path, *, run: bool) -> bool:
    """Print their lines of the table as they come; whether none was missed."""
    good = True
    for line in others(traces, run=run):
        print(row(line), flush=True)
        good &= not line[-1].startswith(MISSED)
    return good
