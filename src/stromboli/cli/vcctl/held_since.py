"""Since when pods state the reservations that they hold, read from the managed fields that the API server keeps."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import msgspec

from stromboli.cluster.body import part
from stromboli.cluster.kinds import Object, Pod
from stromboli.errors import ManifestError
from stromboli.kube.resources import Raw
from stromboli.model.names import PIPELINED_NODE
from stromboli.model.reservation import read
from stromboli.model.values.times import seconds
from stromboli.reservations.memory import Memory, PodOnNode, encode

_FIELD: Final = ("f:metadata", "f:annotations", f"f:{PIPELINED_NODE}")


class _Manager(msgspec.Struct):
    """An entry of ``managedFields``; of what a manager has written in several steps it tells the time of the last."""

    time: str = ""
    fields: dict[str, Any] = msgspec.field(default_factory=dict, name="fieldsV1")


class _Metadata(msgspec.Struct):
    managers: list[_Manager] = msgspec.field(default_factory=list, name="managedFields")


class _Written(msgspec.Struct):
    metadata: _Metadata


_decode: Final = msgspec.json.Decoder(_Written).decode


def held_since(found: Object, raw: Raw) -> dict[str, float]:
    """What a session may remember of the reservation of ``found``, which ``raw`` spells; empty where nothing is known.

    It is there to be told: a scheduler that starts again begins its clocks again, whatever the API server has noted.
    """
    held = read(found.metadata.annotations) if isinstance(found, Pod) else None
    when = _last_written(raw) if held is not None else 0
    if held is None or not when:
        return {}
    return encode(Memory(stated={PodOnNode(found.metadata.uid, held.node): when}))


def _last_written(raw: Raw) -> int:
    """When a field manager that owns the annotation of the node last wrote it; 0 if ``managedFields`` does not tell."""
    with suppress(msgspec.ValidationError, ManifestError):
        owners = [one for one in _decode(raw).metadata.managers if part(one.fields, *_FIELD) is not None]
        return max((seconds(one.time, "metadata.managedFields.time") for one in owners), default=0)
    return 0
