"""All objects, their versions, and what changed lately.

One number, the resource version, counts the writes to the whole store.  An object is encoded once, when it is stored;
lists and watchers share those bytes.  Stored bodies are never changed in place.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import msgspec

from stromboli.cluster.body import Body, Key, encode, key_of, meta, with_meta
from stromboli.server.status_errors import too_large_to_keep
from stromboli.server.storage.aside import Aside

_LOG: Final = logging.getLogger(__name__)
CollectionName: TypeAlias = tuple[str, str]
HISTORY: Final = 10_000
"""Changes that a collection remembers; a watcher that lags further behind has to list again."""
HEAVIEST_HISTORY: Final = 16 << 20
"""Bytes of the encoded changes that all collections together remember, however few these are then.

Decoded, and with what an index costs, they take some four times that: a change of a pod 4 KiB.
"""
LARGEST: Final = 3 << 19
"""Bytes of an object: 1.5 MiB, etcd's --max-request-bytes."""


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

    @property
    def line(self) -> bytes:
        """The event as a watcher of the whole object reads it."""
        return event_line(self.type, self.entry.encoded)


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

    def aside(self) -> Iterable[Row]:
        """All objects that :meth:`set_aside` has kept."""

    def write(self, row: Row) -> None:
        """Keep an object."""

    def remove(self, collection: CollectionName, key: Key, version: int) -> None:
        """Forget an object."""

    def set_aside(self, row: Row, why: str) -> str:
        """Keep an object that cannot be used where :meth:`load` does not find it; answers where that is."""


def _restored(row: Row) -> Entry:
    """The object of a row.  Raises ValueError for one whose metadata cannot be looked at."""
    try:
        body = msgspec.json.decode(row.encoded, type=dict[str, Any])
        msgspec.convert(body.get("metadata"), _Meta)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error
    if key_of(body) != row.key:
        raise ValueError(f"it says that it is {'/'.join(key_of(body))}")
    return Entry(body, row.encoded, row.version)


class _Owner(msgspec.Struct):
    uid: str = ""


class _Meta(msgspec.Struct):
    """What is looked at in metadata without asking whether it is there."""

    name: str
    uid: str = ""
    namespace: str = ""
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    ownerReferences: list[_Owner] | None = None  # noqa: N815 - as on the wire
    creationTimestamp: str | None = None  # noqa: N815
    deletionTimestamp: str | None = None  # noqa: N815


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
    weight: int = 0
    """Bytes of the objects of all changes that are remembered."""
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
        """Remember a change and wake the waiters."""
        self.changes.append(change)
        self.weight += len(change.entry.encoded)
        if len(self.changes) > 2 * HISTORY:
            self._forget(HISTORY)
        self.wake()

    def forget_half(self) -> None:
        """Forget the older half of the changes, or the only one."""
        self._forget((len(self.changes) + 1) // 2)

    def forget_until(self, version: int) -> None:
        """Forget the changes up to ``version``, if there are any."""
        if number := bisect_right(self.changes, version, key=lambda change: change.version):
            self._forget(number)

    def _forget(self, number: int) -> None:
        self.floor = self.changes[number - 1].version
        self.weight -= sum(len(change.entry.encoded) for change in self.changes[:number])
        del self.changes[:number]

    def wake(self) -> None:
        """Wake those that wait for news."""
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
        """The objects that name an owner of this uid."""
        self.places: dict[str, tuple[CollectionName, Key]] = {}
        """Where the object of this uid stands."""
        self.aside = Aside()
        self._weight = 0
        """Bytes of the changes that all collections remember."""
        if journal is not None:
            self._restore(journal)

    def _restore(self, journal: Journal) -> None:
        self.version, rows = journal.load()
        for row in journal.aside():
            self.aside.add(row.collection, row.key, row.encoded)
        for row in rows:
            try:
                entry = _restored(row)
            except ValueError as error:
                self._put_aside(row, str(error))
            else:
                self.of(row.collection).entries[row.key] = entry
                self._index(row.collection, entry)
                self.aside.replace(row.collection, row.key)
        for collection in self._collections.values():
            collection.floor = self.version

    def set_aside(self, name: CollectionName, entry: Entry, why: str) -> None:
        """Take out what cannot be used, reporting it only to the log; the journal keeps it where no start reads it."""
        self.of(name).entries.pop(entry.key, None)
        self._unindex(name, entry)
        self._put_aside(Row(name, entry.key, entry.version, entry.encoded), why)

    def _put_aside(self, row: Row, why: str) -> None:
        self.aside.add(row.collection, row.key, row.encoded)
        kept = self._journal.set_aside(row, why) if self._journal is not None else "nowhere"
        what = "%s %s of the journal cannot be used and was set aside (kept in %s): %s"
        _LOG.error(what, ".".join(filter(None, reversed(row.collection))), "/".join(filter(None, row.key)), kept, why)

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
        """Store an object under its own name, with the next resource version; refuses one that is too large."""
        body = with_meta(body, resourceVersion=str(self.version + 1))
        entry = Entry(body, encode(body), self.version + 1)
        if len(entry.encoded) > LARGEST:
            raise too_large_to_keep()
        self.version += 1
        if self._journal is not None:
            self._journal.write(Row(name, entry.key, entry.version, entry.encoded))
        collection = self.of(name)
        before = collection.entries.get(entry.key)
        collection.entries[entry.key] = entry
        self._index(name, entry, before)
        self.aside.replace(name, entry.key)
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
        change, collection = Change(entry.version, kind, entry, before), self.of(name)
        self._weight -= collection.weight
        collection.note(change)
        self._weight += collection.weight
        while self._weight > HEAVIEST_HISTORY:
            self._lighten()
        for listener in self.listeners:
            listener(name, change)

    def compact(self, version: int) -> None:
        """Forget what changed up to ``version``, in all collections."""
        for collection in self._collections.values():
            collection.forget_until(version)
        self._weight = sum(collection.weight for collection in self._collections.values())

    def _lighten(self) -> None:
        """Let the collection whose changes weigh most forget half of them."""
        heaviest = max(self._collections.values(), key=lambda collection: collection.weight)
        self._weight -= heaviest.weight
        heaviest.forget_half()
        self._weight += heaviest.weight

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
