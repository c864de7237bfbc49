"""Server-side apply: an object brought to what one manager wishes, without taking from others what they set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any, Final, Protocol

import msgspec

from stromboli.cluster.body import Body, decode, meta, stamp, with_meta
from stromboli.errors import ApiFailure
from stromboli.server import status_errors
from stromboli.server.addresses import Address
from stromboli.server.schema.decoding import TYPE_INVALID, refuse_unreadable, shaped
from stromboli.server.schema.resources import Resource
from stromboli.server.storage.store import Entry, Store
from stromboli.server.verbs.fieldsets import Fields, Path, leaves, merged, shown, without
from stromboli.server.verbs.ownership import (
    LAST_APPLIED,
    Manager,
    differing,
    first_owner,
    followed,
    managers_of,
    with_managers,
    without_fields,
)
from stromboli.server.verbs.writing import Options, Writer

_KUBECTL: Final = "kubectl"


class Applies(Protocol):
    """What applying needs of the server."""

    @property
    def store(self) -> Store:
        """All objects."""

    @property
    def writer(self) -> Writer:
        """All writes."""

    def clock(self) -> float:
        """The time in seconds since 1970."""


def applied(api: Applies, resource: Resource, address: Address, wish: Body, options: Options) -> tuple[Entry, int]:
    """The object after the apply, and 201 if it is new, else 200."""
    if "managedFields" in meta(wish):
        raise status_errors.bad_request("metadata.managedFields must be nil")
    wish = _plain(wish)
    _refuse_untyped(resource, wish)
    old = api.store.get(resource.collection, address.key)
    mine = _manager(resource, wish, address.subresource, options, stamp(api.clock()))
    if old is not None:
        return _applied_to(api.writer, resource, old, wish, mine, options), 200
    if address.subresource:
        raise status_errors.not_found(resource, address.name)
    named = with_meta(wish, name=meta(wish).get("name") or address.name)
    entry = api.writer.create(resource, address.namespace, named, options)
    return api.writer.keep(resource, with_managers(entry.body, [mine]), options), 201


def _refuse_untyped(resource: Resource, wish: Body) -> None:
    """Fields are followed by their types: a wish that has others is refused before anything is compared."""
    found = shaped(resource, wish)[1]
    refuse_unreadable(resource, found)
    causes = [cause for cause in found.causes if cause.reason == TYPE_INVALID]
    if causes:
        raise status_errors.invalid(resource, meta(wish).get("name", ""), causes)


def _manager(resource: Resource, wish: Body, subresource: str, options: Options, now: str) -> Manager:
    fields = frozenset(leaves(resource.schema, followed(resource, wish, subresource)))
    return Manager(options.manager, "Apply", resource.group_version, fields, subresource, now)


def _applied_to(writer: Writer, resource: Resource, old: Entry, wish: Body, mine: Manager, options: Options) -> Entry:
    known = managers_of(old.body) or [first_owner(resource, old.body)]
    before = next((one.fields for one in known if one.identity == mine.identity), frozenset())
    others = [one for one in known if one.identity != mine.identity]
    given = followed(resource, wish, mine.subresource)
    body: Body = merged(resource.schema, old.body, given)
    changes, _ = differing(
        resource.schema, followed(resource, old.body, mine.subresource), followed(resource, body, mine.subresource)
    )
    taken = mine.fields & changes
    _refuse_conflicts(others, taken - _last_applied(resource, old.body, options), options)
    dropped = before - mine.fields - frozenset().union(*(one.fields for one in others))
    body = without(resource.schema, body, dropped)
    others = without_fields(others, frozenset(), taken)
    body = with_managers(body, [*others, mine if taken or dropped else _unless_unchanged(known, mine)])
    body = _with_last_applied(body, wish, options)
    if meta(wish).get("resourceVersion"):
        body = with_meta(body, resourceVersion=meta(wish)["resourceVersion"])
    return writer.patch(resource, old.key, lambda _: body, mine.subresource, replace(options, owned=True))


def _last_applied(resource: Resource, body: Body, options: Options) -> Fields:
    """What kubectl applied last from the client's side and still stands: it may be taken over without force."""
    text = (meta(body).get("annotations") or {}).get(LAST_APPLIED)
    if options.manager != _KUBECTL or not text:
        return frozenset()
    try:
        last = decode(text.encode())
    except (msgspec.DecodeError, RecursionError):
        return frozenset()
    if not isinstance(last, dict) or not _is_typed(resource, last):
        return frozenset()
    live = leaves(resource.schema, followed(resource, body))
    found = leaves(resource.schema, followed(resource, last))
    return frozenset(path for path, value in found.items() if live.get(path) == value)


def _is_typed(resource: Resource, body: Body) -> bool:
    try:
        _refuse_untyped(resource, body)
    except ApiFailure:
        return False
    return True


def _with_last_applied(body: Body, wish: Body, options: Options) -> Body:
    """The object with kubectl's annotation renewed, if it has one, so that client-side applies may follow."""
    annotations = meta(body).get("annotations") or {}
    if options.manager != _KUBECTL or LAST_APPLIED not in annotations:
        return body
    text = msgspec.json.encode(wish, order="sorted").decode() + "\n"
    return with_meta(body, annotations={**annotations, LAST_APPLIED: text})


def _unless_unchanged(known: list[Manager], mine: Manager) -> Manager:
    """The manager with the time of its last change."""
    for one in known:
        if one.identity == mine.identity and one.fields == mine.fields:
            return replace(mine, time=one.time)
    return mine


def _refuse_conflicts(others: list[Manager], taken: Fields, options: Options) -> None:
    found = [(one, path) for one in others for path in sorted(one.fields & taken) if path[-1] != "."]
    if not found or options.force:
        return
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {one}", "field": shown(path)}
        for one, path in found
    ]
    raise ApiFailure(409, "Conflict", _conflict_text(found), {"causes": causes})


def _conflict_text(found: list[tuple[Manager, Path]]) -> str:
    if len(found) == 1:
        return f"Apply failed with 1 conflict: conflict with {found[0][0]}: {shown(found[0][1])}"
    lines = []
    for manager, fields in groupby(found, key=lambda pair: str(pair[0])):
        lines += [f"conflicts with {manager}:", *(f"- {shown(path)}" for _, path in fields)]
    return f"Apply failed with {len(found)} conflicts: " + "\n".join(lines)


def _plain(value: Any) -> Any:
    """The applied object without nulls: applying null for a field wishes nothing."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items() if inner is not None}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value
