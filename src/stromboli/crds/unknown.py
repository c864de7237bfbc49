"""Fields that our kinds do not have: what is written there is ignored, and was meant to do something."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from stromboli.api.kinds import Kind
from stromboli.crds.schema import schema_of
from stromboli.framework.config.argument import nearest

MOST: Final = 20
"""Fields that are named of one object."""
_LEFT_OUT: Final = ("apiVersion", "kind", "metadata", "status")
"""Parts of every object that are not looked at: the status is written by controllers, perhaps of another release."""


class Unknown(NamedTuple):
    """A field, as ``spec.tasks[0].replica``, and the known one that was probably meant, if any."""

    path: str
    meant: str


def unknown_fields(kind: Kind, value: Mapping[str, object]) -> list[Unknown]:
    """The fields of an object that its kind does not have, the first :data:`MOST` of them."""
    seen = {name: part for name, part in value.items() if name not in _LEFT_OUT}
    return [found for found, _ in zip(_of_object(schema_of(kind), seen, ""), range(MOST), strict=False)]


def _of(schema: object, value: object, path: str) -> Iterator[Unknown]:
    if not isinstance(schema, Mapping):
        return
    if isinstance(value, Mapping):
        yield from _of_object(schema, value, path)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _of(schema.get("items"), item, f"{path}[{number}]")


def _of_object(schema: Mapping[str, object], value: Mapping[str, object], path: str) -> Iterator[Unknown]:
    known, free = schema.get("properties"), schema.get("additionalProperties")
    for name, part in value.items():
        here = f"{path}.{name}" if path else str(name)
        if isinstance(known, Mapping) and name not in known:
            yield Unknown(here, nearest(str(name)[:100], known.keys()))
        elif isinstance(known, Mapping):
            yield from _of(known[name], part, here)
        else:
            yield from _of(free, part, here)
