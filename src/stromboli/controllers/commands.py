"""Commands: one-time requests for something to be done to a job or a queue."""

from __future__ import annotations

from typing import NamedTuple

from stromboli.api.batch import COMMAND_ISSUED
from stromboli.api.bus import Command
from stromboli.api.kinds import COMMANDS
from stromboli.controllers.changes import Delete, Outcome
from stromboli.controllers.jobs.requests import Request
from stromboli.controllers.world import Key, Shelf


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


class Commands(Shelf[Command]):
    """The commands that are there; ``taking`` are those whose deletion is under way, gone or not."""

    def __init__(self) -> None:
        super().__init__()
        self.taking: dict[Key, Command] = {}

    def take(self, key: Key, now: float) -> Outcome:
        """The deletion of a command, which must succeed before it is carried out, so that it is so at most once."""
        command = self.taking.get(key) or self.get(*key)
        if command is None:
            return Outcome()
        self.taking[key] = command
        meta = command.metadata
        return Outcome().then(Delete(COMMANDS, meta.namespace, meta.name, meta.uid))

    def taken(self, key: Key) -> Order | None:
        """What the command asks for that we have just deleted, None when that is nothing."""
        self.drop(key)
        command = self.taking.pop(key, None)
        return None if command is None else order_of(command)

    def lost(self, key: Key) -> None:
        """Another controller has taken a command."""
        self.drop(key)
        self.taking.pop(key, None)
