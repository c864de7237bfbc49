"""The Standard Workload Format of the Parallel Workloads Archive: a line of eighteen numbers a job.

Defined in S. Chapin et al., "Benchmarks and Standards for the Evaluation of Parallel Job Schedulers", JSSPP 1999.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from stromboli.errors import ManifestError

NUMBER, SUBMIT, RUNTIME, ALLOCATED, REQUESTED, STATUS, USER, QUEUE, FIELDS = 0, 1, 3, 4, 7, 10, 11, 14, 18
PARTS: Final = (2, 3, 4)
"""Status of lines about a part of a job, between two checkpoints, which follow the line about the whole job."""
LONGEST_LINE: Final = 4096


def opened(path: Path) -> IO[str]:
    """A text file to read, compressed with gzip or not."""
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def rows(path: Path) -> Iterator[list[float]]:
    """The jobs of an SWF file as numbers, in the file's order; -1 is what the log does not know.

    Jobs without a size, a runtime or a time of submission are left out, as logs hold jobs that never ran, and so are
    lines about parts of a job.  Raises ManifestError, naming file and line, at a line that does not hold
    eighteen numbers, or whose job stands in an earlier line.
    """
    seen: dict[float, int] = {}
    for number, found in _lines(path):
        if _ran(found):
            first = seen.setdefault(found[NUMBER], number)
            if first == number:
                yield found
            elif found[STATUS] not in PARTS:
                raise _twice(path.name, number, found[NUMBER], first)


def _lines(path: Path) -> Iterator[tuple[int, list[float]]]:
    """The lines that are no comments, with their numbers in the file."""
    try:
        with opened(path) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip() and not line.lstrip().startswith(";"):
                    yield number, _numbers(path.name, number, line[:LONGEST_LINE])
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ManifestError(f"cannot be read: {error}", file=str(path)) from error


def cores(row: list[float]) -> int:
    """The processors that a job had, else those that it asked for; below 1 where the log does not know."""
    return int(row[ALLOCATED] if row[ALLOCATED] > 0 else row[REQUESTED])


def _ran(row: list[float]) -> bool:
    return cores(row) > 0 and row[RUNTIME] >= 0 and row[SUBMIT] >= 0


def _twice(file: str, number: int, job: float, first: int) -> ManifestError:
    problem = f"job {job:.15g} stands in line {first}, too; give each job a number of its own"
    return ManifestError(problem, file=file, object=f"line {number}")


def _numbers(file: str, number: int, line: str) -> list[float]:
    try:
        found = [float(word) for word in line.split()]
    except ValueError as error:
        raise ManifestError(str(error), file=file, object=f"line {number}") from None
    if len(found) != FIELDS:
        raise ManifestError(f"{len(found)} fields; a job has {FIELDS}", file=file, object=f"line {number}")
    return found
