"""Programs in Go that tests build once and use from then on; of several processes one builds and the others wait."""

from __future__ import annotations

import fcntl
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class BuildFailed(Exception):
    """Go could not build the program; the text is what it wrote."""


def built(binary: Path, source: Path, flags: str, packages: Sequence[str]) -> Path:
    """``binary``, made of ``packages`` where it is missing or older than what lies in ``source``.

    ``flags`` are the linker's.  Raises BuildFailed.
    """
    binary.parent.mkdir(parents=True, exist_ok=True)
    with alone(binary.with_name(f"{binary.name}.lock")):
        if binary.exists() and binary.stat().st_mtime >= max(path.stat().st_mtime for path in source.iterdir()):
            return binary
        command = ["go", "build", "-ldflags", flags, "-o", str(binary), *packages]
        made = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    if made.returncode:
        raise BuildFailed(f"go build ended with {made.returncode}:\n{made.stderr[-4000:]}")
    return binary


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """No other process is in such a block with the same file meanwhile."""
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
