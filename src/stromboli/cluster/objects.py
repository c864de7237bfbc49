"""One object out of JSON text or plain values, typed; what is wrong with it is said by object and field.

Nulls count as absent wherever they stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from stromboli.cluster.kinds import KINDS, Metadata, NamespacedMetadata, Object, title
from stromboli.errors import ManifestError
from stromboli.model.names import LONGEST_NAME
from stromboli.model.spec import without_nulls
from stromboli.model.values.reading import convert, unreadable

_DECODERS: Final = {kind: msgspec.json.Decoder(row.type) for kind, row in KINDS.items()}
_encode: Final = msgspec.msgpack.Encoder().encode
_NIL: Final = b"\xc0"
_MANY_DIGITS: Final = b"0" * 19
_DIGITS_AS_ZEROS: Final = bytes(ord("0") if chr(byte).isdigit() and byte < 128 else ord(" ") for byte in range(256))
_LONG_NUMBER: Final = re.compile(rb"[:,\[]\s*-?[0-9]{19}")
_BAD_NAME: Final = re.compile(r"[/\s\x00-\x1f\x7f]")


def from_json(kind: str, raw: bytes | msgspec.Raw) -> Object:
    """The object of ``kind`` that ``raw`` spells in JSON.

    Raises :class:`~stromboli.errors.ManifestError`.
    """
    if _has_many_digits(raw) and _LONG_NUMBER.search(raw):  # perhaps more than 64 bits: the slow way tells
        return from_value(kind, json_value(raw))
    try:
        found: Object = _DECODERS[kind].decode(raw)
    except msgspec.ValidationError:  # a null, or a field of the wrong type: the slow way tells which
        return from_value(kind, json_value(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestError(unreadable(error), object=kind) from error
    return _named(kind, found)


def _has_many_digits(raw: bytes | msgspec.Raw) -> bool:
    """Whether so many digits stand in a row that they may be a number of more than 64 bits.

    It is asked of every object that comes; this way takes a tenth of what a regular expression does.
    """
    return _MANY_DIGITS in bytes(raw).translate(_DIGITS_AS_ZEROS)


def from_value(kind: str, value: object) -> Object:
    """The object of ``kind`` that plain values (mappings, lists, texts, numbers) spell.

    Raises :class:`~stromboli.errors.ManifestError`.
    """
    try:
        found = _plainly(kind, value)
        if found is None:
            clean = without_nulls(value)
            _refuse_huge(clean, "")
            found = convert(clean, KINDS[kind].type)
        return _named(kind, found)
    except ManifestError as error:
        raise ManifestError(error.problem, object=error.object or title_of(kind, value), path=error.path) from error
    except RecursionError as error:
        raise ManifestError(unreadable(error), object=title_of(kind, value)) from error


def _plainly(kind: str, value: object) -> Object | None:
    """The object, where ``value`` has no nulls, no number of more than 64 bits, and every field is of its type.

    msgpack's byte for null stands nowhere in UTF-8, and only now and then in a number.
    """
    try:
        if _NIL in _encode(value):
            return None
        found: Object = msgspec.convert(value, KINDS[kind].type)
    except (msgspec.ValidationError, OverflowError, TypeError, ValueError, RecursionError):
        return None  # the slow way tells what is wrong
    return found


def json_value(raw: bytes | msgspec.Raw) -> object:
    """The plain value that ``raw`` spells in JSON; raises :class:`~stromboli.errors.ManifestError`."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestError(unreadable(error)) from error


def _refuse_huge(value: object, path: str) -> None:
    """Raise for the first whole number that does not fit in 64 bits."""
    if isinstance(value, dict):
        for key, entry in value.items():
            _refuse_huge(entry, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for number, entry in enumerate(value):
            _refuse_huge(entry, f"{path}[{number}]")
    elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise ManifestError("the number is too large", path=path)


def absent(kind: str, key: tuple[str, str], uid: str) -> Object:
    """As much of an object as is known of one that is gone."""
    namespace, name = key
    made = KINDS[kind].type
    if KINDS[kind].namespaced:
        metadata: Metadata = NamespacedMetadata(name=name, namespace=namespace, uid=uid)
    else:
        metadata = Metadata(name=name, uid=uid)
    return made(metadata=metadata)


def title_of(kind: str, value: object) -> str:
    """How messages name the object that ``value`` spells, as far as it tells."""
    metadata = value.get("metadata") if isinstance(value, Mapping) else None
    if not isinstance(metadata, Mapping):
        return title(kind, Metadata())
    name, namespace = metadata.get("name"), metadata.get("namespace")
    absent = "default" if kind in KINDS and KINDS[kind].namespaced else ""
    scope = namespace if isinstance(namespace, str) else absent
    return title(kind, Metadata(name=name if isinstance(name, str) else "", namespace=scope))


def _named(kind: str, found: Object) -> Object:
    metadata = found.metadata
    if not metadata.name:
        raise ManifestError("is missing", object=title(kind, metadata), path="metadata.name")
    for field, text in (("name", metadata.name), ("namespace", metadata.namespace)):
        if len(text) > LONGEST_NAME or _BAD_NAME.search(text):
            raise ManifestError(f"{text[:40]!r} is not a name", object=title(kind, metadata), path=f"metadata.{field}")
    if not metadata.namespace and KINDS[kind].namespaced:
        return msgspec.structs.replace(found, metadata=msgspec.structs.replace(metadata, namespace="default"))
    return found
