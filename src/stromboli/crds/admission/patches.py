"""What makes one JSON value of another: a patch (RFC 6902) that names only what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Operation = dict[str, Any]


def patch_between(before: Mapping[str, object], after: Mapping[str, object]) -> list[Operation]:
    """The operations that make ``after`` of ``before``; none where they are equal.

    Lists are compared place by place: what one has more is added at its end, or removed from there.
    """
    return list(_mappings(before, after, ""))


def _mappings(before: Mapping[str, object], after: Mapping[str, object], path: str) -> Iterator[Operation]:
    for key, value in after.items():
        place = f"{path}/{_escaped(key)}"
        if key in before:
            yield from _values(before[key], value, place)
        else:
            yield {"op": "add", "path": place, "value": value}
    for key in before:
        if key not in after:
            yield {"op": "remove", "path": f"{path}/{_escaped(key)}"}


def _values(before: object, after: object, path: str) -> Iterator[Operation]:
    if before is after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _mappings(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _lists(before, after, path)
    elif before != after or type(before) is not type(after):
        yield {"op": "replace", "path": path, "value": after}


def _lists(before: list[object], after: list[object], path: str) -> Iterator[Operation]:
    for number, (old, new) in enumerate(zip(before, after, strict=False)):
        yield from _values(old, new, f"{path}/{number}")
    for value in after[len(before) :]:
        yield {"op": "add", "path": f"{path}/-", "value": value}
    for number in range(len(before) - 1, len(after) - 1, -1):
        yield {"op": "remove", "path": f"{path}/{number}"}


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")
