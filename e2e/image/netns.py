"""A network of a pod's own, whose only way out is a port of its loopback that leads to the API server."""

from __future__ import annotations

import ctypes
import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

T = TypeVar("T")
_NEW_NETWORK: Final = 0x40000000
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


def missing() -> str:
    """Why no pod can have a network of its own here; empty where it can."""
    able = shutil.which("unshare") and shutil.which("ip")
    if able and subprocess.run(["unshare", "--net", "true"], capture_output=True, check=False).returncode == 0:
        return ""
    return "networks of pods' own take ip, unshare and the right to use them"


class Network:
    """A network namespace with loopback up; it is gone when it is closed."""

    def __init__(self) -> None:
        hold = "ip link set lo up && echo up && exec cat > /dev/null"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._holder = subprocess.Popen(["unshare", "--net", "sh", "-c", hold], **pipes)  # type: ignore[call-overload]
        self._holder.stdout.readline()
        self.path = f"/proc/{self._holder.pid}/ns/net"
        self._sockets: list[socket.socket] = []

    def inside(self, work: Callable[[], T]) -> T:
        """What ``work`` answers in this network; a thread of its own goes there, so that no other does."""
        answers: list[T] = []
        errors: list[Exception] = []

        def go() -> None:
            file = os.open(self.path, os.O_RDONLY)
            try:
                if _LIBC.setns(file, _NEW_NETWORK):
                    raise OSError(ctypes.get_errno(), "setns")
                answers.append(work())
            except Exception as error:  # noqa: BLE001  # it is raised where it is waited for
                errors.append(error)
            finally:
                os.close(file)

        thread = threading.Thread(target=go)
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        return answers[0]

    def lead(self, port: int) -> None:
        """Let connections to ``port`` of its loopback go to the same port of this machine's."""
        listening = self.inside(lambda: socket.create_server(("127.0.0.1", port), backlog=128))
        self._sockets.append(listening)
        threading.Thread(target=self._accept, args=(listening, port), daemon=True).start()

    def _accept(self, listening: socket.socket, port: int) -> None:
        with suppress(OSError):
            while True:
                near, _ = listening.accept()
                try:
                    far = socket.create_connection(("127.0.0.1", port))
                except OSError:
                    near.close()
                    continue
                self._sockets += [near, far]
                joined(near, far)

    def connect(self, port: int) -> socket.socket:
        """A connection to a port inside."""
        return self.inside(lambda: socket.create_connection(("127.0.0.1", port), timeout=2.0))

    def close(self) -> None:
        """Take it away."""
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        self._holder.communicate()


def joined(near: socket.socket, far: socket.socket) -> None:
    """Let each of two connections say what the other hears, in threads, and close them when both have ended."""
    for one in (near, far):
        one.settimeout(None)
    threading.Thread(target=_exchange, args=(near, far), daemon=True).start()


def _exchange(near: socket.socket, far: socket.socket) -> None:
    back = threading.Thread(target=_copy, args=(far, near), daemon=True)
    back.start()
    _copy(near, far)
    back.join()
    near.close()
    far.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
