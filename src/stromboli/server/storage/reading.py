"""Lists of objects, in pages that belong to one moment."""

from __future__ import annotations

import base64
import secrets
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from stromboli.cluster.body import Body, decode, encode
from stromboli.server.schema.resources import Resource
from stromboli.server.status_errors import bad_request, expired
from stromboli.server.storage.selection import Test, selection
from stromboli.server.storage.store import Entry, Store

_REMEMBERED: Final = 64
"""Lists whose next pages can still be asked for."""
_TOO_OLD: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list. This might be ok for your use case."
)


@dataclass(frozen=True)
class Page:
    """Part of a list: its objects, and the metadata that says where the list goes on."""

    entries: list[Entry]
    meta: Body


@dataclass(frozen=True)
class _Rest:
    version: int
    entries: list[Entry]


@dataclass
class Reader:
    """Lists from the store.  Entries never change, so the rest of a list is kept as it was when the list began."""

    store: Store
    _rests: OrderedDict[str, _Rest] = field(default_factory=OrderedDict)

    def page(self, resource: Resource, namespace: str, query: Mapping[str, str]) -> Page:
        """The objects that a request asks for."""
        limit, token = _number(query, "limit"), query.get("continue", "")
        if token:
            rest = self._resumed(token)
        else:
            rest = _Rest(self.store.version, self._chosen(resource, namespace, query))
        return self._cut(rest, limit)

    def _chosen(self, resource: Resource, namespace: str, query: Mapping[str, str]) -> list[Entry]:
        test = test_of(resource, query)
        entries = self.store.of(resource.collection).sorted(namespace)
        return entries if test is None else [entry for entry in entries if test(entry.body)]

    def _resumed(self, token: str) -> _Rest:
        try:
            known = self._rests.get(decode(base64.urlsafe_b64decode(token + "=="))["list"])
        except (ValueError, msgspec.DecodeError, KeyError, TypeError) as error:
            raise bad_request("continue key is not valid") from error
        if known is None:
            raise expired(_TOO_OLD)
        return known

    def _cut(self, rest: _Rest, limit: int) -> Page:
        meta: Body = {"resourceVersion": str(rest.version)}
        if not limit or limit >= len(rest.entries):
            return Page(rest.entries, meta)
        name = secrets.token_hex(8)
        left = rest.entries[limit:]
        self._rests[name] = _Rest(rest.version, left)
        while len(self._rests) > _REMEMBERED:
            self._rests.popitem(last=False)
        token = base64.urlsafe_b64encode(encode({"v": "meta.k8s.io/v1", "list": name})).decode().rstrip("=")
        return Page(rest.entries[:limit], {**meta, "continue": token, "remainingItemCount": len(left)})


def test_of(resource: Resource, query: Mapping[str, str]) -> Test | None:
    """The selectors of a request as one test."""
    return selection(resource, query.get("labelSelector", ""), query.get("fieldSelector", ""))


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "")
    try:
        return int(text) if text else 0
    except ValueError as error:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from error


def served(resource: Resource, entry: Entry) -> bytes:
    """The bytes of an object in the version that was asked for."""
    if entry.encoded and entry.body.get("apiVersion") == resource.group_version:
        return entry.encoded
    return encode(in_version(resource, entry.body))


def in_version(resource: Resource, body: Body) -> Body:
    """The object in the version that was asked for; versions of a kind differ in nothing else."""
    return body if body.get("apiVersion") == resource.group_version else {**body, "apiVersion": resource.group_version}


def encoded_list(resource: Resource, entries: Iterable[Entry], meta: Mapping[str, Any]) -> bytes:
    """A list object, of the bytes of its items."""
    head = encode({"kind": resource.many, "apiVersion": resource.group_version, "metadata": dict(meta), "items": []})
    return head[:-2] + b",".join(served(resource, entry) for entry in entries) + b"]}"
