"""The entries of a record, as MessagePack: what changed the state, by which configuration, and what was planned."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Final

import msgspec

from stromboli.cluster import rim
from stromboli.cluster.kinds import KINDS
from stromboli.cluster.rim import Change
from stromboli.errors import SnapshotError
from stromboli.framework.books.plan import Answer, Bind, Eviction, Plan


class Configured(Change, frozen=True):
    """The configuration of the cycles from here on: its text, and what the process was told besides."""

    text: str
    compat: bool
    lenient: bool
    features: list[str]
    sampling: tuple[int, int, int] | None


class Planned(Change, frozen=True):
    """What the last :class:`~stromboli.cluster.rim.Cut` has led to.

    ``digest`` is the BLAKE2b of the whole plan, ``parts`` the count and the digest of each of its fields.
    ``answers`` are those of extenders, with which the cycle is repeated.
    """

    digest: bytes
    binds: list[Bind]
    evictions: list[Eviction]
    parts: dict[str, tuple[int, bytes]]
    replayable: bool
    answers: list[Answer] = []

    @staticmethod
    def of(plan: Plan) -> Planned:
        """The entry of ``plan``."""
        fields = {field: getattr(plan, field) for field in plan.__struct_fields__}
        parts = {field: (_size(value), _digest(value, 8)) for field, value in fields.items() if value}
        return Planned(_digest(plan, 16), plan.binds, plan.evictions, parts, plan.replayable, plan.answers)


def _size(value: object) -> int:
    return len(value) if isinstance(value, (list, dict)) else 1


def _digest(value: object, size: int) -> bytes:
    return blake2b(msgspec.msgpack.encode(value), digest_size=size).digest()


class _AppliedRow(Change, frozen=True, tag="Applied"):
    kind: str
    stays: bool
    object: msgspec.Raw


MOST: Final = 100_000
"""Entries of one frame that are read; the recorder writes a hundredth of that."""
LATEST: Final = 253402300800.0
"""Seconds from 1970 to the year 10000: no calendar tells later times, and none before the year 1."""
EARLIEST: Final = -62135596800.0
DAY: Final = 86_400
_ROWS: Final = msgspec.msgpack.Decoder(list[
    _AppliedRow | rim.Gone | rim.Decided | rim.Reserved | rim.StatusSet | rim.BudgetSet | rim.Learned | rim.Measured
    | rim.GatesSet | rim.VolumesSet | rim.VolumesGiven | rim.ClaimsGiven | rim.Emptied | rim.ShardingSet | rim.Cut
    | Configured | Planned
])  # fmt: skip
_ENCODER: Final = msgspec.msgpack.Encoder()
_HEAD: Final = struct.Struct(">BI")
"""How MessagePack begins an array: its kind, and how many elements it has."""
_ARRAY: Final = 0xDD
_OBJECTS: Final = {kind: msgspec.msgpack.Decoder(row.type) for kind, row in KINDS.items()}


class Batch:
    """Entries as bytes, each encoded when it comes: what it holds has just been read, and is quickly at hand."""

    __slots__ = ("_content", "count")

    def __init__(self, entries: Iterable[Change] = ()) -> None:
        self._content, self.count = bytearray(_HEAD.size), 0
        for entry in entries:
            self.add(entry)

    def add(self, entry: Change) -> int:
        """Add an entry; how many bytes there are now.  Raises what the encoder does; the batch is of no use then."""
        _ENCODER.encode_into(entry, self._content, -1)
        self.count += 1
        return len(self._content)

    def content(self) -> bytearray:
        """All entries, as :func:`decode` reads them."""
        _HEAD.pack_into(self._content, 0, _ARRAY, self.count)
        return self._content


def decode(data: bytes | bytearray) -> list[Change]:
    """The entries of a :class:`Batch`.  Raises :class:`~stromboli.errors.SnapshotError`."""
    if _stated(data) > MOST:
        raise SnapshotError(f"it states {_stated(data)} entries; {MOST} are read of one frame")
    try:
        return [_whole(row) for row in _ROWS.decode(data)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError) as error:
        raise SnapshotError(f"its entries cannot be read: {error}") from error


def _stated(data: bytes | bytearray) -> int:
    """How many elements a MessagePack array states, before any of them is made; 0 for what is no long array."""
    sizes = {0xDC: 2, 0xDD: 4}
    return int.from_bytes(data[1 : 1 + sizes[data[0]]], "big") if data and data[0] in sizes else 0


def _whole(row: Any) -> Change:
    if isinstance(row, _AppliedRow):
        return rim.Applied(row.kind, row.stays, _OBJECTS[row.kind].decode(row.object))
    if isinstance(row, rim.Cut) and not (EARLIEST <= row.now < LATEST and abs(row.utc_offset) <= DAY):
        raise SnapshotError(f"a cycle begins at {row.now}, {row.utc_offset} s ahead of UTC, which is no time")
    found: Change = row
    return found
