"""Other names for everything in a record that somebody has named; orders and equalities stay.

What is kept is what Kubernetes, Volcano and we have named: fields, kinds, phases, operators, keys of their domains,
resources, quantities and times.  All other texts get pseudonyms, numbers at their ends aside, in the same order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, Final

import msgspec

from stromboli.cluster.kinds import KINDS
from stromboli.cluster.nodes import natural
from stromboli.journal.scrubbing import KEPT
from stromboli.model import names
from stromboli.model.status import TaskStatus

WORDS: Final = frozenset((
    "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "NoSchedule", "PreferNoSchedule", "NoExecute",
    "TCP", "UDP", "SCTP", "Honor", "Ignore", "True", "False", "Unknown", "DoNotSchedule", "ScheduleAnyway", "Never",
    "Always", "OnFailure", "PreemptLowerPriority", "Open", "Closed", "Closing", "hard", "soft", "fifo", "traverse",
    "Pending", "Inqueue", "Running", "Succeeded", "Failed", "Completed", "Unschedulable", "Scheduled", "root",
    "default", "kube-system", "kube-public", "kube-node-lease", "volcano", "default-scheduler", "volcano-system",
    "system-cluster-critical", "system-node-critical", "cpu", "memory", "pods", "ephemeral-storage", "Immediate",
    "WaitForFirstConsumer", "ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod", "Bound",
    "Available", "Released", "Lost", "Filesystem", "Block", "All", "ExactCount",
))  # fmt: skip
PLAIN: Final = re.compile(
    r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?([numkMGTPE]|[KMGTPE]i|[a-z]{1,2})?|[0-9-]{8,10}T[0-9:.]+(Z|[+-][0-9:]+)|"
)
"""Quantities, durations, times and nothing: what tells no name."""
NUMBERED: Final = re.compile(r"(.*?)((?:-[0-9]+)*)", re.DOTALL)
LONGEST: Final = 253
"""Characters of a name; a longer text is one that somebody has written, and is left out."""


class Pseudonyms:
    """The other names.  Everything is to be :meth:`seen` once before anything is :meth:`told`."""

    def __init__(self) -> None:
        self._known = WORDS | frozenset(_vocabulary())
        self._seen: set[str] = set()
        self._nodes: set[str] = set()
        self._names: dict[str, str] = {}

    def seen(self, value: Any, nodes: Iterable[str] = ()) -> None:
        """Take in all texts of a plain value; ``nodes`` are names of nodes, which have an order of their own."""
        self._nodes.update(_base(name) for name in nodes)
        for text in _texts(value):
            for part in self._parts(text):
                self._seen.add(_base(part))

    def settle(self) -> None:
        """Give names to what was seen."""
        others = sorted(self._seen - self._nodes)
        for kind, found in (("n", sorted(self._nodes, key=natural)), ("x", others)):
            for number, base in enumerate(found):
                self._names[base] = f"{kind}{number:06d}"

    def told(self, value: Any) -> Any:
        """A plain value with other names."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {self.told(key): self.told(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.told(one) for one in value]
        return value

    def _is_kept(self, text: str) -> bool:
        domain, slash, _ = text.partition("/")
        ours = bool(slash) and any(domain == one or domain.endswith(f".{one}") for one in KEPT)
        return text in self._known or ours or PLAIN.fullmatch(text) is not None

    def _parts(self, text: str) -> list[str]:
        """The names of which a text consists, ``namespace/name`` of two; none where it is left as it is."""
        if self._is_kept(text) or _is_prose(text):
            return []
        return [part for part in text.split("/") if not self._is_kept(part)]

    def _text(self, text: str) -> str:
        if self._is_kept(text):
            return text
        if _is_prose(text):
            return ""
        return "/".join(part if self._is_kept(part) else self._name(part) for part in text.split("/"))

    def _name(self, part: str) -> str:
        base = _base(part)
        return self._names[base] + part[len(base) :]


def _is_prose(text: str) -> bool:
    return len(text) > LONGEST or any(sign.isspace() for sign in text)


def _base(name: str) -> str:
    """A name without the numbers at its end, which tell the places of pods and nodes."""
    found = NUMBERED.fullmatch(name)
    return found[1] if found else name


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _texts(key)
            yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)


def _vocabulary() -> Iterator[str]:
    """Fields of all structs, kinds, and what has a name in our tables."""
    waiting: list[type] = [msgspec.Struct]
    while waiting:
        found = waiting.pop()
        waiting += found.__subclasses__()
        yield from getattr(found, "__struct_encode_fields__", ())
        yield found.__name__
    yield from KINDS
    yield from (row.wire for row in KINDS.values() if row.wire)
    yield from (version for row in KINDS.values() for version in row.api_versions)
    yield from (one.name for one in TaskStatus)
    for value in vars(names).values():
        if isinstance(value, str) and not isinstance(value, Enum):
            yield value
