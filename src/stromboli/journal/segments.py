"""The files of a record: frames with checksums, the first of each file a checkpoint.

A frame is a header of :data:`HEADER` and its content as zlib packs it, or ISA-L where it is installed (extra
``record``), which takes a sixth of the time for the same format.  Entries are numbered from 0 in each segment; a
frame says which is its first, so that none can be missing or stand elsewhere.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from stromboli.errors import RecordError

try:
    from isal.isal_zlib import compress
except ImportError:
    from zlib import compress

HEADER: Final = struct.Struct("<4scIIQdI")
"""Magic, kind, length of the content, length in the file, first entry, seconds since 1970, CRC-32 of all the rest."""

MAGIC: Final = b"SJR1"
SUFFIX: Final = ".stj"
STAMP: Final = 14
"""Digits of the milliseconds since 1970 in a segment's name."""
FRAME: Final = 1000
"""Entries of one frame, at most."""
LARGEST: Final = 1 << 30
"""Bytes of the largest content that is read."""
SMALL: Final = 1 << 24
RATIO: Final = 200
"""Contents of more than :data:`SMALL` bytes may be so many times as long as in the file: states are about 20 times."""

ABOUT, CHECKPOINT, ENTRIES, END = b"A", b"C", b"E", b"Z"
"""Kinds of frames: versions, the state, entries, and that the segment was closed in order."""


class Frame(NamedTuple):
    """One frame: ``at`` is its place in the file, ``first`` the number of its first entry."""

    at: int
    kind: bytes
    first: int
    time: float
    content: bytes


def write(file: BinaryIO, kind: bytes, first: int, time: float, content: bytes | bytearray) -> int:
    """Write a frame; returns how many bytes it took.  Raises OSError."""
    packed = compress(content, 1)
    fields = (MAGIC, kind, len(content), len(packed), first, time)
    crc = zlib.crc32(packed, zlib.crc32(HEADER.pack(*fields, 0)))
    file.write(HEADER.pack(*fields, crc) + packed)
    return HEADER.size + len(packed)


class Segment:
    """A file of a record.  ``cut_off`` says, once it has been read, that it ends in the middle of a frame."""

    def __init__(self, path: Path) -> None:
        self.path, self.cut_off, self.closed = path, False, False

    def frames(self) -> Iterator[Frame]:
        """All whole frames in order.  Raises RecordError at the first that is damaged, and OSError."""
        self.cut_off = self.closed = False
        with self.path.open("rb") as file:
            while head := file.read(HEADER.size):
                if len(head) < HEADER.size:
                    self.cut_off = True
                    return
                found = self._frame(file, file.tell() - HEADER.size, head)
                if found is None:
                    self.cut_off = True
                    return
                self.closed = found.kind == END
                yield found

    def _frame(self, file: BinaryIO, at: int, head: bytes) -> Frame | None:
        magic, kind, length, packed_length, first, time, crc = HEADER.unpack(head)
        if magic != MAGIC or self.closed:
            raise RecordError(self.path, at, "no frame begins here")
        left = self.path.stat().st_size - at - HEADER.size
        fields = (magic, kind, length, packed_length, first, time)
        packed = file.read(min(packed_length, left))
        if zlib.crc32(packed, zlib.crc32(HEADER.pack(*fields, 0))) != crc:
            if packed_length > left:
                return None
            raise RecordError(self.path, at, "the checksum of the frame is wrong")
        return Frame(at, kind, first, time, self._unpacked(at, packed, length))

    def _unpacked(self, at: int, packed: bytes, length: int) -> bytes:
        if length > max(SMALL, RATIO * len(packed)) or length > LARGEST:
            raise RecordError(self.path, at, f"the frame states {length} bytes, which its {len(packed)} cannot hold")
        work = zlib.decompressobj()
        try:
            content = work.decompress(packed, length + 1)
        except zlib.error as error:
            raise RecordError(self.path, at, f"the frame cannot be unpacked: {error}") from error
        if len(content) != length or not work.eof:
            raise RecordError(self.path, at, "the frame has not the length that it states")
        return content


def segments(folder: Path, since: float = 0.0) -> Sequence[Segment]:
    """The segments in ``folder``, or the one file that it is, in order of time.

    Those that end before ``since`` (seconds since 1970), as the next one had begun by then, are left out: each begins
    with a whole state, so none needs those before.  Raises RecordError without any.
    """
    found = [folder] if folder.is_file() else sorted(folder.glob(f"rec-*{SUFFIX}"))
    if not found:
        raise RecordError(folder, 0, f"there is no record here: no file rec-*{SUFFIX}")
    before = sum(begun(path) <= since for path in found)
    return [Segment(path) for path in found[max(before - 1, 0) :]]


def begun(path: Path) -> float:
    """When a segment began, as its name says, in seconds since 1970; 0 where it does not."""
    stamp = path.name.removeprefix("rec-").partition("-")[0]
    return int(stamp) / 1000 if stamp.isdecimal() and len(stamp) == STAMP else 0.0


def surplus(files: Sequence[tuple[Path, int, float]], most: int, oldest: float) -> list[Path]:
    """Which of ``files`` (path, bytes, last change), in order of time, exceed ``most`` bytes or are too old.

    The last one, which is being written, always stays.
    """
    gone = []
    total = sum(size for _, size, _ in files)
    for path, size, changed in files[:-1]:
        if total <= most and changed >= oldest:
            break
        gone.append(path)
        total -= size
    return gone
