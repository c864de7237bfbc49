"""Owners of pods as they were last read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stromboli.cluster.kinds import OwnerReference
from stromboli.cluster.owners.gangs import Owner, owner_of
from stromboli.cluster.owners.kinds import OWNER_KINDS
from stromboli.controllers.changes import Read
from stromboli.errors import ManifestError

FRESH: Final = 10.0
"""Seconds for which what was read of an owner counts."""
ANSWERED: Final = 2.0
"""Seconds within which an answer comes, or is asked for once more."""
REMEMBERED: Final = 4096
"""Owners that are remembered, the newest."""
GONE: Final = "another object bears the name by now"

_Key = tuple[str, str, str, str]


class Readings:
    """What was read of owners lately; a text is why one could not be read."""

    def __init__(self) -> None:
        self._found: dict[_Key, tuple[float, Owner | str]] = {}
        self._asked: dict[_Key, float] = {}

    def claim(self, read: Read, now: float) -> bool:
        """Whether to ask for an owner now: another look may just be doing that."""
        if 0 <= now - self._asked.get(_key(read), -ANSWERED) < ANSWERED:
            return False
        self._asked[_key(read)] = now
        return True

    def note(self, read: Read, body: Mapping[str, Any] | None, why: str, now: float) -> None:
        """Keep what the API server has answered: an object, or None and why."""
        key = _key(read)
        self._found.pop(key, None)
        self._asked.pop(key, None)
        row = OWNER_KINDS.get((read.api_version.rpartition("/")[0], read.kind))
        try:
            self._found[key] = now, why if body is None else owner_of(row, body)
        except ManifestError as error:
            self._found[key] = now, str(error)
        if len(self._found) > REMEMBERED:
            del self._found[next(iter(self._found))]

    def of(self, reference: OwnerReference, namespace: str, now: float) -> Owner | str | None:
        """The owner, why there is none, or None where it has to be read."""
        at, found = self._found.get((reference.api_version, reference.kind, namespace, reference.name), (0.0, None))
        if found is None or not 0 <= now - at < FRESH:
            return None
        return GONE if isinstance(found, Owner) and found.uid != reference.uid else found


def _key(read: Read) -> _Key:
    return read.api_version, read.kind, read.namespace, read.name
