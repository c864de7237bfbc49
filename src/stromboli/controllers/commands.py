"""Commands: somebody asks, once, for something to be done to a job or a queue."""

from __future__ import annotations

from typing import NamedTuple

from stromboli.controllers.changes import Delete
from stromboli.controllers.jobs.requests import COMMAND_ISSUED, Request
from stromboli.controllers.world import Key
from stromboli.crds.bus import Command
from stromboli.crds.kinds import COMMANDS


class Order(NamedTuple):
    """What a command asks for: the kind and key of its target, the action, and the words of the event about it."""

    kind: str
    key: Key
    uid: str
    action: str
    message: str

    @property
    def request(self) -> Request:
        """The request to a job."""
        return Request(COMMAND_ISSUED, self.action, self.uid)


def order_of(command: Command) -> Order | None:
    """What a command asks for; None when it names no target."""
    target = command.target
    if target is None or not command.action:
        return None
    namespace = command.metadata.namespace if target.kind == "Job" else ""
    message = f"Start to execute command {command.action}, and clean it up to make sure executed not more than once."
    return Order(target.kind, (namespace, target.name), target.uid, command.action, message)


def taken(command: Command) -> Delete:
    """The deletion that must succeed before a command is carried out, so that it is so at most once."""
    meta = command.metadata
    return Delete(COMMANDS, meta.namespace, meta.name, meta.uid)
