"""A stand-in for kube-proxy: the cluster addresses of Services are this machine's, and lead to pods that are ready."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from e2e.image.netns import joined

Json = dict[str, Any]
Reach = Callable[[], socket.socket]
"""Opens a connection to a pod."""
Find = Callable[[Mapping[str, str], str], Sequence[Reach]]
"""The pods with those labels that are ready, each by its port of that name."""

_RANGE: Final = "/32"
_LASTING: Final = ("valid_lft", "3600", "preferred_lft", "3600")
"""After an hour the system lets addresses go by itself, as where a run was killed."""


class Services:
    """Serves what :meth:`tend` is given, until it is closed.  Takes root, as addresses are added to loopback."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self._addresses: set[str] = set()
        self._listening: dict[tuple[str, int], socket.socket] = {}
        self._turn = 0

    def tend(self, service: Json) -> None:
        """Serve each port of a Service that has an address."""
        address = service["spec"].get("clusterIP") or "None"
        for port in service["spec"]["ports"] if address != "None" else ():
            if (address, port["port"]) not in self._listening:
                self._serve(address, port, service["spec"]["selector"])

    def _serve(self, address: str, port: Json, selector: Mapping[str, str]) -> None:
        if address not in self._addresses:
            subprocess.run(["ip", "address", "replace", address + _RANGE, "dev", "lo", *_LASTING], check=True)
            self._addresses.add(address)
        listening = socket.create_server((address, port["port"]), backlog=128)
        self._listening[address, port["port"]] = listening
        threading.Thread(target=self._accept, args=(listening, selector, port["targetPort"]), daemon=True).start()

    def _accept(self, listening: socket.socket, selector: Mapping[str, str], name: str) -> None:
        with suppress(OSError):
            while True:
                near, _ = listening.accept()
                threading.Thread(target=self._pass, args=(near, selector, name), daemon=True).start()

    def _pass(self, near: socket.socket, selector: Mapping[str, str], name: str) -> None:
        for reach in self._in_turn(self._find(selector, name)):
            with suppress(OSError):
                joined(near, reach())
                return
        near.close()

    def _in_turn(self, found: Sequence[Reach]) -> Sequence[Reach]:
        self._turn += 1
        first = self._turn % max(len(found), 1)
        return [*found[first:], *found[:first]]

    def close(self) -> None:
        """Let addresses go."""
        for listening in self._listening.values():
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            listening.close()
        for address in self._addresses:
            subprocess.run(["ip", "address", "delete", address + _RANGE, "dev", "lo"], check=False)
