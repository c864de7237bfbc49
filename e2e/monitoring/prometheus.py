"""Prometheus and its tool promtool: those of this machine, or Debian's package unpacked into ``build/``."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "build" / "e2e" / "prometheus"
BINARIES: Final = FOLDER / "usr" / "bin"
TOOLS: Final = ("prometheus", "promtool")


class NoPrometheus(Exception):
    """The package could not be had."""


def missing() -> str:
    """Why Prometheus cannot be had on this machine; empty when it can."""
    if _there() or (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return ""
    return "Prometheus is not on this machine, and apt-get is not there to fetch it"


def tool(name: str) -> str:
    """The path of ``prometheus`` or ``promtool``; fetches the package where neither is there.  Raises NoPrometheus."""
    if found := shutil.which(name):
        return found
    if not _there():
        _fetch()
    return str(BINARIES / name)


def _there() -> bool:
    return all(shutil.which(name) for name in TOOLS) or all((BINARIES / name).exists() for name in TOOLS)


def _fetch() -> None:
    """Unpack Debian's package; nothing is installed, and its dependencies are pages of the browser alone."""
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        if _run("apt-get", "download", "prometheus", cwd=folder):
            _run("apt-get", "update")
            if problem := _run("apt-get", "download", "prometheus", cwd=folder):
                raise NoPrometheus(problem)
        (package,) = Path(folder).glob("prometheus_*.deb")
        if problem := _run("dpkg-deb", "--extract", str(package), str(FOLDER)):
            raise NoPrometheus(problem)


def _run(*command: str, cwd: str | None = None) -> str:
    """Run a command; what it said where it failed, empty where it did not."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300)
    return done.stderr[-2000:] or f"{command} failed" if done.returncode else ""
