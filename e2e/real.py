"""A real kube-apiserver with its etcd, built from Go modules and started on loopback."""

from __future__ import annotations

import random
import shutil
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Final

from e2e.programs.go_build import built

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = Path(__file__).parent / "kube_apiserver"
BINARY: Final = ROOT / "build" / "e2e" / "kapi"

VERSION: Final = "v1.36.1"
"""The version that the server says it has: that of its modules, which alone do not tell it."""

UNREACHABLE: Final = (OSError, HTTPException)
"""What a request raises while its server is away; the latter if it went in the middle of its answer."""

_READY_SECONDS: Final = 120.0
_GIVEN_TO_CLIENTS: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


class ServerFailed(Exception):
    """The API server did not become ready."""


def missing() -> str:
    """Why a real API server cannot be had on this machine; empty when it can."""
    if BINARY.exists() or shutil.which("go"):
        return ""
    return "Go is not on this machine, and it takes Go to build a real kube-apiserver"


def build() -> Path:
    """The server's binary, made where it is missing or older than its source.  Raises BuildFailed."""
    package = "k8s.io/component-base/version"
    major, minor, _ = VERSION.removeprefix("v").split(".")
    values = {"gitVersion": VERSION, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    flags = " ".join(["-s -w", *(f"-X {package}.{key}={value}" for key, value in values.items())])
    return built(BINARY, SOURCE, f"{flags} -X {package}.buildDate=1970-01-01T00:00:00Z", ["."])


def free_port() -> int:
    """One that no client is ever given for its own end, as may happen to any other before a server has it."""
    lowest = int(_GIVEN_TO_CLIENTS.read_text().split()[0]) if _GIVEN_TO_CLIENTS.exists() else 32768
    ports = list(range(max(lowest - 10_000, 1024), lowest))
    random.shuffle(ports)
    for port in ports:
        with socket.socket() as found, suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port
    raise ServerFailed("no port is free")


@dataclass(frozen=True)
class RealServer:
    """A running kube-apiserver; its folder holds ``kubeconfig``, the certificate and the log."""

    folder: Path
    url: str
    token: str
    process: subprocess.Popen[bytes]

    @property
    def kubeconfig(self) -> Path:
        """For kubectl and every client: an administrator's."""
        return self.folder / "kubeconfig"

    def get(self, path: str, seconds: float = 5.0) -> bytes:
        """The body of a GET; raises OSError as urllib does."""
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {self.token}"})
        trust = ssl.create_default_context(cafile=str(self.folder / "apiserver.crt"))
        with urllib.request.urlopen(request, timeout=seconds, context=trust) as answer:
            body: bytes = answer.read()
        return body


@contextmanager
def real_server(folder: Path, flags: Sequence[str] = ()) -> Iterator[RealServer]:
    """A kube-apiserver whose data lie in ``folder``: a folder used before brings its data along."""
    process = launched(folder, [f"--kapi-port={free_port()}", *flags])
    try:
        yield ready(folder, process)
    finally:
        ended(process)


def launched(folder: Path, flags: Sequence[str] = ()) -> subprocess.Popen[bytes]:
    """The process of a server in ``folder`` that is about to start."""
    binary = build()
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "kapi.log").open("ab") as log:
        return subprocess.Popen([str(binary), f"--kapi-data-dir={folder}", *flags], stdout=log, stderr=log)


def ended(process: subprocess.Popen[bytes]) -> None:
    """End a process in order, and by force where that takes too long."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def ready(folder: Path, process: subprocess.Popen[bytes]) -> RealServer:
    """The server once it answers.  Raises ServerFailed."""
    end = time.monotonic() + _READY_SECONDS
    while time.monotonic() < end:
        if process.poll() is not None:
            break
        if (server := _answering(folder, process)) is not None:
            return server
        time.sleep(0.1)
    raise ServerFailed(f"not ready; its log ends with:\n{(folder / 'kapi.log').read_text()[-4000:]}")


def _answering(folder: Path, process: subprocess.Popen[bytes]) -> RealServer | None:
    try:
        url = next(line.split('"')[1] for line in (folder / "kubeconfig").read_text().splitlines() if "server:" in line)
        server = RealServer(folder, url, (folder / "token").read_text(), process)
        return server if server.get("/readyz") == b"ok" else None
    except (*UNREACHABLE, StopIteration):
        return None
