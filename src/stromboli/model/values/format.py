"""Records as bytes: MessagePack with a name and a version in front."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import msgspec

from stromboli.errors import SnapshotError

T = TypeVar("T")


class _Header(NamedTuple):
    kind: str
    version: int
    body: msgspec.Raw


class Format(Generic[T]):
    """One kind of record: its name (``snapshot``), the version that is written and read, and the type of its body."""

    __slots__ = ("_decoder", "kind", "version")

    def __init__(self, kind: str, version: int, body: type[T]) -> None:
        self.kind, self.version = kind, version
        self._decoder = msgspec.msgpack.Decoder(body)

    def pack(self, body: T) -> bytes:
        """``body`` as bytes.  Raises :class:`~stromboli.errors.SnapshotError` for what cannot be written."""
        try:
            return msgspec.msgpack.encode((f"stromboli {self.kind}", self.version, body))
        except (OverflowError, TypeError) as error:
            raise SnapshotError(f"this {self.kind} cannot be written: {error}") from error

    def unpack(self, data: bytes) -> T:
        """The body that :meth:`pack` wrote.  Raises :class:`~stromboli.errors.SnapshotError` for anything else."""
        header = self._header(data)
        if header.kind != f"stromboli {self.kind}":
            raise SnapshotError(f"this is {header.kind!r:.60}, not a Stromboli {self.kind}")
        if header.version != self.version:
            raise SnapshotError(
                f"this {self.kind} has version {header.version}, but version {self.version} is read here;"
                " record it again, or use the release that wrote it"
            )
        try:
            return self._decoder.decode(header.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SnapshotError(f"this {self.kind} is damaged: {error}") from error

    def _header(self, data: bytes) -> _Header:
        try:
            return msgspec.msgpack.decode(data, type=_Header)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise SnapshotError(f"these bytes are no Stromboli {self.kind}: {error}") from error
