"""Objects as they are on the wire: plain JSON values, never changed in place once they are stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

import msgspec

from stromboli.model.values.times import stamp as stamp

Body: TypeAlias = dict[str, Any]
"""A Kubernetes object, or a part of one, decoded from JSON."""
Key: TypeAlias = tuple[str, str]
"""Namespace (empty for what has none) and name of an object within its collection."""

NOTHING: Final[Mapping[str, Any]] = {}
_LONGEST_BASE: Final = 58
"""Characters of a generateName that count, so that the name with its end is a label."""
_END, _LETTERS = 5, "bcdfghjklmnpqrstvwxz2456789"
"""How long the end of a generated name is, and of which characters."""

encode: Final = msgspec.json.Encoder().encode
decode: Final = msgspec.json.Decoder().decode


def part(body: Mapping[str, Any], *path: str) -> Any:
    """The value at ``path``, or None where the way ends early."""
    value: Any = body
    for step in path:
        if type(value) is not dict and not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def meta(body: Mapping[str, Any]) -> Body:
    """The metadata of an object, empty if it has none."""
    found = body.get("metadata")
    return found if isinstance(found, dict) else {}


def generated_name(base: str, choose: Callable[[str], str]) -> str:
    """A name that begins with ``base``, a generateName; ``choose`` takes a character of a text."""
    return base[:_LONGEST_BASE] + "".join(choose(_LETTERS) for _ in range(_END))


def changed(body: Mapping[str, Any], **parts: Any) -> Body:
    """A copy with other top-level parts; a part that is None goes."""
    found = {**body, **parts}
    return {key: value for key, value in found.items() if value is not None} if None in found.values() else found


def with_meta(body: Mapping[str, Any], **fields: Any) -> Body:
    """A copy with other metadata; a field that is None goes."""
    return {**body, "metadata": changed(meta(body), **fields)}


def key_of(body: Mapping[str, Any]) -> Key:
    """Where the object stands in its collection."""
    found = meta(body)
    return found.get("namespace", ""), found.get("name", "")


def newer(version: str, known: str) -> bool:
    """Whether an object at ``version`` was written after the one at ``known``.

    Versions of one kind are numbers that grow; other texts can only be told apart.
    """
    if version.isdecimal() and known.isdecimal():
        return int(version) > int(known)
    return version != known or not version


def seconds_of(text: str | None) -> float | None:
    """The time of an RFC 3339 text in seconds since 1970; None if there is none."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


def merge_patched(value: Any, patch: Any) -> Any:
    """The value after a merge patch (RFC 7386)."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(value) if isinstance(value, Mapping) else {}
    for key, inner in patch.items():
        if inner is None:
            result.pop(key, None)
        elif isinstance(inner, str):  # as most are
            result[key] = inner
        else:
            result[key] = merge_patched(result.get(key), inner)
    return result
