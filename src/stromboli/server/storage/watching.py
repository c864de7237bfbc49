"""Watches: changes as they come, in the form and choice that was asked for."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NamedTuple

from stromboli.cluster.body import Body, encode, with_meta
from stromboli.server.schema.resources import Resource
from stromboli.server.status_errors import bad_request, expired
from stromboli.server.storage.reading import in_version, test_of
from stromboli.server.storage.selection import Test
from stromboli.server.storage.store import Change, Collection, Entry, Store, event_line

BOOKMARK_EVERY: Final = 10.0
"""Seconds between two bookmarks of a watch that asks for them, at most one a time without news."""
_LONGEST: Final = (1800, 3600)
"""A watch without a limit of its own ends after so many seconds, drawn between the two."""
_SECONDS: Final = re.compile(r"[0-9]{1,9}")
_VERSION: Final = re.compile(r"[0-9]{1,20}")
_INITIAL_END: Final = "k8s.io/initial-events-end"

Form = Callable[[str, Body, Resource], Body]
"""The object of an event in the form that was asked for, given the type of the event."""


class Wish(NamedTuple):
    """What a watch is to bring: changes after ``since``, or everything that is there first if that is None."""

    namespace: str
    since: int | None
    test: Test | None
    bookmarks: bool
    until_end: float
    mark_initial: bool


def wish_of(resource: Resource, namespace: str, name: str, query: Mapping[str, str]) -> Wish:
    """What the query of a request asks for."""
    test = test_of(resource, query)
    if name:
        named, chosen = _named(name), test
        test = named if chosen is None else lambda body: named(body) and chosen(body)
    since = _version(query.get("resourceVersion", ""))
    initial = query.get("sendInitialEvents") == "true"
    limit = query.get("timeoutSeconds", "")
    seconds = float(limit) if _SECONDS.fullmatch(limit) and int(limit) else random.uniform(*_LONGEST)
    marks = query.get("allowWatchBookmarks") in ("true", "1")
    return Wish(namespace, None if initial else since, test, marks, seconds, initial)


def _named(name: str) -> Test:
    return lambda body: body["metadata"]["name"] == name


def _version(text: str) -> int | None:
    if text in ("", "0"):
        return None
    if not _VERSION.fullmatch(text):
        raise bad_request(f'Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax')
    return int(text)


@dataclass
class Watcher:
    """The server's side of watches: ``closing`` ends them all."""

    store: Store
    closing: bool = False

    def close(self) -> None:
        """End all watches."""
        self.closing = True
        for name in self.store.names():
            self.store.of(name).wake()

    async def stream(self, resource: Resource, wish: Wish, form: Form | None) -> AsyncIterator[bytes]:
        """Lines of events until the time is over; the last may be an error, as of a watch that lags too far behind."""
        collection, view = self.store.of(resource.collection), _View(resource, wish, form)
        at = wish.since
        if at is None:
            at = self.store.version
            yield b"".join(view.initial(collection.sorted(wish.namespace)))
        if wish.mark_initial:
            yield view.bookmark(at, {_INITIAL_END: "true"})
        loop = asyncio.get_running_loop()
        end = loop.time() + wish.until_end
        while not self.closing:
            if at < collection.floor:
                yield event_line(
                    "ERROR", encode(expired(f"too old resource version: {at} ({collection.floor})").status)
                )
                return
            news, changes = collection.news, collection.since(at)
            at = changes[-1].version if changes else at
            lines = b"".join(view.lines(changes))
            if lines:
                yield lines
            if loop.time() >= end:
                return
            until = min(loop.time() + BOOKMARK_EVERY, end)
            if not await _arrives(news, until):
                # Everything up to now was told, so the watcher may go on from here.
                at = max(at, self._told(collection))
                if wish.bookmarks:
                    yield view.bookmark(at)
                if until == end:
                    return

    def _told(self, collection: Collection) -> int:
        return self.store.version if not collection.changes else max(self.store.version, collection.changes[-1].version)


async def _arrives(news: asyncio.Event, until: float) -> bool:
    """Whether news come in time: those of the very moment at which the time is over do."""
    with suppress(TimeoutError):
        async with asyncio.timeout_at(until):
            await news.wait()
    return news.is_set()


@dataclass
class _View:
    """Changes as one watcher sees them."""

    resource: Resource
    wish: Wish
    form: Form | None

    def initial(self, entries: Iterable[Entry]) -> Iterable[bytes]:
        test = self.wish.test
        return (self._line("ADDED", entry.body, entry.encoded) for entry in entries if test is None or test(entry.body))

    def lines(self, changes: Iterable[Change]) -> Iterable[bytes]:
        namespace = self.wish.namespace
        seen = (change for change in changes if not namespace or change.entry.key[0] == namespace)
        return (line for change in seen if (line := self._seen(change)))

    def _seen(self, change: Change) -> bytes:
        test, entry = self.wish.test, change.entry
        if test is None:
            plain = self.form is None and entry.body.get("apiVersion") == self.resource.group_version
            return change.line if plain else self._line(change.type, entry.body, entry.encoded)
        now = change.type != "DELETED" and test(entry.body)
        before = change.before is not None and test(change.before.body)
        if now:
            return self._line("MODIFIED" if before else "ADDED", entry.body, entry.encoded)
        if before and change.before is not None:
            gone = with_meta(change.before.body, resourceVersion=str(change.version))
            return self._line("DELETED", gone, b"")
        return b""

    def _line(self, kind: str, body: Body, encoded: bytes) -> bytes:
        if self.form is None and encoded and body.get("apiVersion") == self.resource.group_version:
            return event_line(kind, encoded)
        body = in_version(self.resource, body)
        return event_line(kind, encode(body if self.form is None else self.form(kind, body, self.resource)))

    def bookmark(self, version: int, annotations: Mapping[str, str] | None = None) -> bytes:
        found: Body = {"resourceVersion": str(version), "creationTimestamp": None}
        if annotations:
            found["annotations"] = dict(annotations)
        body = {"kind": self.resource.kind, "apiVersion": self.resource.group_version, "metadata": found}
        return event_line("BOOKMARK", encode(body if self.form is None else self.form("BOOKMARK", body, self.resource)))
