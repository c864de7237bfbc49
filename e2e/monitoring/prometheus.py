"""Prometheus and its tool promtool: those of this machine, or Debian's package unpacked into ``build/``."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

from e2e.programs.go_build import alone

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "build" / "e2e" / "prometheus"
BINARIES: Final = FOLDER / "usr" / "bin"
TOOLS: Final = ("prometheus", "promtool")


NO_NETWORK: Final = (
    "Temporary failure resolving", "Could not resolve", "Could not connect", "Cannot initiate the connection",
    "Network is unreachable", "Connection timed out", "Connection refused", "has not ended in",
)  # fmt: skip
"""What apt-get says of a network that is not there."""


class NoPrometheus(Exception):
    """The package has been fetched, and cannot be used."""


@cache
def missing() -> str:
    """Why Prometheus cannot be had on this machine, after one attempt to fetch it; empty when it is there.

    Raises NoPrometheus for a package that cannot be unpacked.
    """
    if _there():
        return ""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        return "Prometheus is not on this machine, and apt-get is not there to fetch it"
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    with alone(FOLDER.with_name("prometheus.lock")), tempfile.TemporaryDirectory() as folder:
        if _there():
            return ""
        if problem := _downloaded(folder):
            return told(problem)
        _unpack(Path(folder))
    return ""


def told(problem: str) -> str:
    """Why apt-get has not fetched the package: no network; whatever else it says fails the test that is not skipped."""
    without = "for want of a network" if any(sign in problem for sign in NO_NETWORK) else "all the same"
    return f"Prometheus is not on this machine, and apt-get cannot fetch it {without}: {' '.join(problem.split())}"


def tool(name: str) -> str:
    """The path of ``prometheus`` or ``promtool``, which are there where nothing is :func:`missing`."""
    return shutil.which(name) or str(BINARIES / name)


def _there() -> bool:
    return all(shutil.which(name) for name in TOOLS) or all((BINARIES / name).exists() for name in TOOLS)


def _downloaded(folder: str) -> str:
    """Download Debian's package; why that is impossible, if it is."""
    if _run("apt-get", "download", "prometheus", cwd=folder):
        updated = _run("apt-get", "-o", "APT::Update::Error-Mode=any", "update")
        missed = _run("apt-get", "download", "prometheus", cwd=folder)
        return missed and f"{missed} {updated}"  # without lists of packages it knows of none
    return ""


def _unpack(folder: Path) -> None:
    """Nothing is installed, and the package's dependencies are pages of the browser alone."""
    FOLDER.parent.mkdir(parents=True, exist_ok=True)
    (package,) = folder.glob("prometheus_*.deb")
    if problem := _run("dpkg-deb", "--extract", str(package), str(FOLDER)):
        raise NoPrometheus(problem)


def _run(*command: str, cwd: str | None = None) -> str:
    """Run a command; what it said where it failed, empty where it did not."""
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=300)
    except subprocess.TimeoutExpired:  # as where packets vanish
        return f"{command} has not ended in 300 s"
    return done.stderr[-2000:] or f"{command} failed" if done.returncode else ""
