"""The Standard Workload Format of the Parallel Workloads Archive: a line of eighteen numbers a job.

Defined in S. Chapin et al., "Benchmarks and Standards for the Evaluation of Parallel Job Schedulers", JSSPP 1999.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from stromboli.errors import ManifestError

NUMBER, SUBMIT, RUNTIME, ALLOCATED, REQUESTED, USER, QUEUE, FIELDS = 0, 1, 3, 4, 7, 11, 14, 18
LONGEST_LINE: Final = 4096


def opened(path: Path) -> IO[str]:
    """A text file to read, compressed with gzip or not."""
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def rows(path: Path) -> Iterator[list[float]]:
    """The jobs of an SWF file as numbers, in the file's order; -1 is what the log does not know.

    Raises ManifestError, naming file and line, at a line that does not hold eighteen numbers.
    """
    try:
        with opened(path) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip() and not line.lstrip().startswith(";"):
                    yield _numbers(path.name, number, line[:LONGEST_LINE])
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise ManifestError(f"cannot be read: {error}", file=str(path)) from error


def _numbers(file: str, number: int, line: str) -> list[float]:
    try:
        found = [float(word) for word in line.split()]
    except ValueError as error:
        raise ManifestError(str(error), file=file, object=f"line {number}") from None
    if len(found) != FIELDS:
        raise ManifestError(f"{len(found)} fields; a job has {FIELDS}", file=file, object=f"line {number}")
    return found
