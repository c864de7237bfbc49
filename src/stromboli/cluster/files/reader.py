"""Manifest files and directories to events, one object after the other, as a watch would tell them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

from stromboli.cluster.body import meta
from stromboli.cluster.decoding.decode import located
from stromboli.cluster.events import Added, Event, Modified
from stromboli.cluster.files import documents
from stromboli.cluster.kinds import title
from stromboli.cluster.owners.workload_pods import Whose
from stromboli.errors import ManifestError

SUFFIXES: Final = (".yaml", ".yml", ".json")
"""Names of the files that are read from a directory end so."""
STDIN: Final = "-"
MOST_IGNORED: Final = 1000
"""Fields without effect that are kept."""

Progress = Callable[[str, int], None]
"""Told the file that is being read and how many objects came out so far: at its start and every thousand objects."""
_STEP: Final = 1000


class Origin(NamedTuple):
    """Where something was read: the file (``-`` for standard input) and the document in it, counted from 1."""

    file: str
    document: int

    def __str__(self) -> str:
        return f"{self.file}, document {self.document}"


class Read(NamedTuple):
    """One object, as the event of its coming: Modified when it takes the place of one read before."""

    origin: Origin
    event: Event


class Manifests:
    """The objects of some files and directories; iterating reads them.

    What cannot be used comes as the error that says where and why; with ``strict`` the first one is raised.  Of two
    objects of one name the later one counts, and an error says so.  ``skipped`` counts the objects of kinds that
    scheduling does not read, by ``apiVersion kind``; ``owners`` holds those of them that may own pods; ``ignored`` are
    fields that their kinds do not have; ``count`` is the number of objects that came out.
    """

    def __init__(self, paths: Iterable[str | Path], *, strict: bool = False, progress: Progress | None = None) -> None:
        self.skipped: dict[str, int] = {}
        self.owners: dict[Whose, Mapping[str, Any]] = {}
        self.ignored: list[ManifestError] = []
        self.count = 0
        self._paths = [str(path) for path in paths]
        self._strict = strict
        self._progress = progress
        self._seen: dict[tuple[str, str, str], Origin] = {}
        self._places = count()

    def __iter__(self) -> Iterator[Read | ManifestError]:
        self.skipped, self.ignored, self.count, self._seen, self._places = {}, [], 0, {}, count()
        self.owners = {}
        for found in self._found():
            if self._strict and isinstance(found, ManifestError):
                raise found
            yield found

    def _found(self) -> Iterator[Read | ManifestError]:
        for path in self._paths:
            try:
                for file in _files(path):
                    yield from self._file(file)
            except OSError as error:
                yield ManifestError(f"cannot be read: {error.strerror or error}", file=str(error.filename or path))

    def _file(self, file: str) -> Iterator[Read | ManifestError]:
        self._tell(file)
        origin = Origin(file, 0)
        for number, document in enumerate(documents.split(_bytes_of(file)), start=1):
            origin = Origin(file, number)
            for found in documents.parse(document, self._places):
                yield from self._taken(found, origin)
        if origin.document == 0:
            yield ManifestError("holds no object", file=file)

    def _taken(self, found: documents.Found, origin: Origin) -> Iterator[Read | ManifestError]:
        if isinstance(found, ManifestError):
            yield located(found, file=origin.file, document=origin.document)
        elif isinstance(found, documents.Ignored):
            if len(self.ignored) < MOST_IGNORED:
                self.ignored.append(located(found.error, file=origin.file, document=origin.document))
        elif isinstance(found, documents.Skipped):
            self.skipped[found.kind] = self.skipped.get(found.kind, 0) + 1
            if found.owner is not None:
                self.owners[_whose(found.kind, meta(found.owner))] = found.owner
        else:
            yield from self._object(found, origin)

    def _object(self, found: Added, origin: Origin) -> Iterator[Read | ManifestError]:
        metadata = found.object.metadata
        key = (found.kind, metadata.namespace, metadata.name)
        earlier = self._seen.get(key)
        self._seen[key] = origin
        self.count += 1
        if self.count % _STEP == 0:
            self._tell(origin.file)
        if earlier is None:
            yield Read(origin, found)
            return
        problem = f"stood already in {earlier}; the later one is used"
        name = title(found.kind, metadata)
        yield ManifestError(problem, file=origin.file, document=origin.document, object=name, path="metadata.name")
        yield Read(origin, Modified(found.kind, found.object))

    def _tell(self, file: str) -> None:
        if self._progress is not None:
            self._progress(file, self.count)


def read(paths: Iterable[str | Path], *, strict: bool = False, progress: Progress | None = None) -> Manifests:
    """The objects of files and directories (``-`` is standard input); see :class:`Manifests`."""
    return Manifests(paths, strict=strict, progress=progress)


def load(found: Iterable[Read | Event | ManifestError], apply: Callable[[Event], None]) -> Iterator[ManifestError]:
    """Hand every event to ``apply``, and give what went wrong on the way.

    That is the errors among ``found``, and the :class:`~stromboli.errors.ManifestError` that ``apply`` raises for an
    object, which then counts as not there.
    """
    for each in found:
        if isinstance(each, ManifestError):
            yield each
            continue
        origin, event = each if isinstance(each, Read) else (Origin("", 0), each)
        try:
            apply(event)
        except ManifestError as error:
            yield located(
                error, file=origin.file, document=origin.document, title=title(event.kind, event.object.metadata)
            )


def _whose(kind: str, metadata: Mapping[str, Any]) -> Whose:
    """What references to an object of ``kind``, given as ``apiVersion kind``, say."""
    version, _, name = kind.partition(" ")
    return version, name, str(metadata.get("namespace") or "default"), str(metadata.get("name") or "")


def files_of(path: str) -> list[str]:
    """``path`` itself, or for a directory the manifest files in it and below, by name."""
    if path == STDIN or not Path(path).is_dir():
        return [path]
    return [str(file) for file in sorted(Path(path).rglob("*")) if file.suffix in SUFFIXES and file.is_file()]


def _files(path: str) -> list[str]:
    found = files_of(path)
    if not found:
        raise FileNotFoundError(0, f"there is no {', '.join(SUFFIXES)} file in it", path)
    return found


def _bytes_of(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == STDIN else Path(file).read_bytes()
