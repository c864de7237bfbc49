"""Pseudonyms for all names in a record that users have chosen; equalities stay.

What is kept is what Kubernetes, Volcano and we have named: fields, kinds, phases, operators, keys one by one,
resources, plugins, quantities, times and what MindCluster reports of chips.  All other texts get pseudonyms, numbers
at their ends aside.

Nodes keep their order, which decides between equal ones.  Other names mostly do, but not where one of two is kept, or
is the beginning of the other: what is decided by such an order alone may be decided otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, Final

import msgspec

from stromboli.builtin import PLUGINS
from stromboli.cluster.decoding.chip_reports import KEYS, PREFIXES, bare
from stromboli.cluster.kinds import KINDS
from stromboli.cluster.nodes import natural
from stromboli.errors import SnapshotError
from stromboli.journal.known_keys import KNOWN_DOMAINS, KNOWN_KEYS, KNOWN_VALUES
from stromboli.model import names
from stromboli.model.codec import SUMS
from stromboli.model.status import TaskStatus
from stromboli.plugins.deviceshare.mind_cluster import PIECES
from stromboli.reservations import memory

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
    r"hugepages-[0-9]{1,6}[KMG]i|"
)
"""Quantities, durations, times, sizes of pages and nothing: what tells no name."""
NUMBERED: Final = re.compile(r"(.*?)((?:-[0-9]+)*)", re.DOTALL)
WHITE: Final = re.compile(r"\s")
LONGEST: Final = 253
"""Characters of a name; a longer text is prose, and is left out."""


class Pseudonyms:
    """The other names.  Everything is to be :meth:`seen` once before anything is :meth:`told`."""

    def __init__(self) -> None:
        self._known = WORDS | frozenset(_vocabulary())
        self._seen: set[str] = set()
        self._nodes: set[str] = set()
        self._names: dict[str, str] = {}
        self._of_nodes: dict[str, str] = {}

    def seen(self, value: Any, nodes: Iterable[str] = ()) -> None:
        """Take in all texts of a plain value; ``nodes`` are names of nodes, which have an order of their own.

        Raises :class:`~stromboli.errors.SnapshotError` where bytes in it cannot be read.
        """
        self._nodes.update(name for name in nodes if not self._is_kept(name))
        for text in _texts(value):
            for part in self._parts(text):
                self._seen.add(_base(part))

    def settle(self) -> None:
        """Give names to what was seen: to nodes as a whole and in their order, to others without the numbers at their
        ends.
        """
        for number, base in enumerate(sorted(self._seen)):
            self._names[base] = f"x{number:06d}"
        for number, name in enumerate(sorted(self._nodes, key=natural)):
            self._of_nodes[name] = f"n{number:06d}"

    def told(self, value: Any) -> Any:
        """A plain value with other names; bytes in it are plain values as MessagePack."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {self._key(key): self._entry(key, one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.told(one) for one in value]
        if isinstance(value, bytes):
            return msgspec.msgpack.encode(self.told(_unpacked(value)))
        return value

    def _entry(self, key: Any, value: Any) -> Any:
        """What is under a key: of a report that is a text of its own, what is read of it."""
        return bare(key, value) if key in KEYS and isinstance(value, str) else self.told(value)

    def _key(self, key: Any) -> Any:
        """A key with other names; one of several words, such as those of a plugin's memory, word by word."""
        return " ".join(map(self._text, key.split(" "))) if isinstance(key, str) else key

    def _is_kept(self, text: str) -> bool:
        return text in self._known or any(form.fullmatch(text) for form in (PLAIN, PIECES))

    def _parts(self, text: str) -> list[str]:
        """The names of which a text consists, ``namespace/name`` of two; none where it is left as it is."""
        if self._is_kept(text) or _is_prose(text):
            return []
        return [_begun(part)[1] for part in text.split("/") if not self._is_kept(part)]

    def _text(self, text: str) -> str:
        if self._is_kept(text):
            return text
        if _is_prose(text):
            return ""
        return "/".join(part if self._is_kept(part) else self._name(part) for part in text.split("/"))

    def _name(self, part: str) -> str:
        begins, part = _begun(part)
        return begins + (part if self._is_kept(part) else self._other(part))

    def _other(self, part: str) -> str:
        if part in self._of_nodes:
            return self._of_nodes[part]
        base = _base(part)
        return self._names[base] + part[len(base) :]


def _is_prose(text: str) -> bool:
    return len(text) > LONGEST or WHITE.search(text) is not None


def _begun(name: str) -> tuple[str, str]:
    """What the name of a report's ConfigMap begins with, empty for other names, and the rest, which is its node's."""
    begins = next((one for one in PREFIXES if name.startswith(one)), "")
    return begins, name.removeprefix(begins)


def _base(name: str) -> str:
    """A name without the numbers at its end, which tell the places of pods and nodes."""
    found = NUMBERED.fullmatch(name)
    return found[1] if found else name


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from key.split(" ") if isinstance(key, str) else ()
            yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, bytes):
        yield from _texts(_unpacked(value))


def _unpacked(packed: bytes) -> Any:
    try:
        return msgspec.msgpack.decode(packed)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SnapshotError(f"bytes in it are no MessagePack: {error}") from error


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
    yield from (*KNOWN_KEYS, *KNOWN_DOMAINS, *PLUGINS, *memory.KINDS, memory.MEMORY, *SUMS)
    yield from KNOWN_VALUES
    for value in vars(names).values():
        if isinstance(value, str) and not isinstance(value, Enum):
            yield value
