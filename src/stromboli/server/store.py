"""All objects, their versions, and what changed lately.

One number, the resource version, counts the writes to the whole store.  An object is encoded once, when it is stored;
lists and watchers share those bytes.  Stored bodies are never changed in place.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, TypeAlias

from stromboli.cluster.body import Body, Key, decode, encode, key_of, meta, with_meta

CollectionName: TypeAlias = tuple[str, str]
HISTORY: Final = 10_000
"""Changes that a collection remembers; a watcher that lags further behind has to list anew."""


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A stored object, its bytes, and the resource version of its last write."""

    body: Body
    encoded: bytes
    version: int

    @property
    def key(self) -> Key:
        """Where it stands."""
        return key_of(self.body)


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """One write: ADDED, MODIFIED or DELETED; ``before`` is what stood there until then."""

    version: int
    type: str
    entry: Entry
    before: Entry | None
    line: bytes
    """The event as a watcher of the whole object reads it."""


class Row(NamedTuple):
    """An object as a journal keeps it."""

    collection: CollectionName
    key: Key
    version: int
    encoded: bytes


class Journal(Protocol):
    """Where writes go to last; each method returns when the write would survive the end of this process."""

    def load(self) -> tuple[int, Iterable[Row]]:
        """The last resource version, and all objects."""

    def write(self, row: Row) -> None:
        """Keep an object."""

    def remove(self, collection: CollectionName, key: Key, version: int) -> None:
        """Forget an object."""


def event_line(kind: str, encoded: bytes) -> bytes:
    """A watch event around an encoded object."""
    return b'{"type":"' + kind.encode() + b'","object":' + encoded + b"}\n"


@dataclass(eq=False)
class Collection:
    """The objects of one kind, and their changes in order."""

    entries: dict[Key, Entry] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    floor: int = 0
    """Changes up to this version are forgotten."""
    news: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced by another, when something changes."""

    def since(self, version: int) -> list[Change]:
        """Changes after ``version``, oldest first; ``version`` must not lie before the floor."""
        return self.changes[bisect_right(self.changes, version, key=lambda change: change.version) :]

    def sorted(self, namespace: str = "") -> list[Entry]:
        """All objects, or those of a namespace, by namespace and name."""
        keys = sorted(key for key in self.entries if not namespace or key[0] == namespace)
        return [self.entries[key] for key in keys]

    def note(self, change: Change) -> None:
        """Remember a change and wake who waits."""
        self.changes.append(change)
        if len(self.changes) > 2 * HISTORY:
            self.floor = self.changes[HISTORY - 1].version
            del self.changes[:HISTORY]
        self.wake()

    def wake(self) -> None:
        """Wake who waits for news."""
        news, self.news = self.news, asyncio.Event()
        news.set()


Listener = Callable[[CollectionName, Change], None]


class Store:
    """All collections; belongs to one event loop."""

    def __init__(self, journal: Journal | None = None) -> None:
        self.version = 1
        self._journal = journal
        self._collections: dict[CollectionName, Collection] = {}
        self.listeners: list[Listener] = []
        """Told of every change, at once; they must not raise."""
        self.dependents: dict[str, set[tuple[CollectionName, Key]]] = {}
        """Who names an owner of this uid."""
        self.places: dict[str, tuple[CollectionName, Key]] = {}
        """Where the object of this uid stands."""
        if journal is not None:
            self._restore(journal)

    def _restore(self, journal: Journal) -> None:
        self.version, rows = journal.load()
        for row in rows:
            entry = Entry(decode(row.encoded), row.encoded, row.version)
            self.of(row.collection).entries[row.key] = entry
            self._index(row.collection, entry)
        for collection in self._collections.values():
            collection.floor = self.version

    def of(self, name: CollectionName) -> Collection:
        """The collection of this name."""
        found = self._collections.get(name)
        if found is None:
            found = self._collections[name] = Collection(floor=self.version)
        return found

    def names(self) -> Iterator[CollectionName]:
        """Collections that were used."""
        yield from list(self._collections)

    def get(self, name: CollectionName, key: Key) -> Entry | None:
        """The object that stands there."""
        return self.of(name).entries.get(key)

    def put(self, name: CollectionName, body: Body) -> Entry:
        """Store an object under its own name, with the next resource version."""
        self.version += 1
        body = with_meta(body, resourceVersion=str(self.version))
        entry = Entry(body, encode(body), self.version)
        if self._journal is not None:
            self._journal.write(Row(name, entry.key, entry.version, entry.encoded))
        collection = self.of(name)
        before = collection.entries.get(entry.key)
        collection.entries[entry.key] = entry
        self._index(name, entry, before)
        self._tell(name, "MODIFIED" if before else "ADDED", entry, before)
        return entry

    def drop(self, name: CollectionName, key: Key) -> Entry | None:
        """Remove an object; what is told of it bears the version of the removal."""
        collection = self.of(name)
        before = collection.entries.get(key)
        if before is None:
            return None
        self.version += 1
        if self._journal is not None:
            self._journal.remove(name, key, self.version)
        del collection.entries[key]
        body = with_meta(before.body, resourceVersion=str(self.version))
        entry = Entry(body, encode(body), self.version)
        self._unindex(name, before)
        self._tell(name, "DELETED", entry, before)
        return entry

    def _tell(self, name: CollectionName, kind: str, entry: Entry, before: Entry | None) -> None:
        change = Change(entry.version, kind, entry, before, event_line(kind, entry.encoded))
        self.of(name).note(change)
        for listener in self.listeners:
            listener(name, change)

    def _index(self, name: CollectionName, entry: Entry, before: Entry | None = None) -> None:
        owners = meta(entry.body).get("ownerReferences")
        if before is not None and owners != meta(before.body).get("ownerReferences"):
            self._unindex(name, before)
        self.places[meta(entry.body).get("uid", "")] = name, entry.key
        for owner in owners or ():
            self.dependents.setdefault(owner.get("uid", ""), set()).add((name, entry.key))

    def _unindex(self, name: CollectionName, entry: Entry) -> None:
        self.places.pop(meta(entry.body).get("uid", ""), None)
        for owner in meta(entry.body).get("ownerReferences") or ():
            known = self.dependents.get(owner.get("uid", ""), set())
            known.discard((name, entry.key))
            if not known:
                self.dependents.pop(owner.get("uid", ""), None)
