"""Objects in Kubernetes' protobuf form, which newer kubectls send for Kubernetes' own kinds, to plain JSON values.

The form tells numbers of fields and raw values; names come from a table, types from the schemas.  Fields that Go writes
although they are unset, zeros that are no pointers, are left out again.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, Final

from stromboli.cluster.body import Body, decode
from stromboli.errors import ApiFailure
from stromboli.server.schema.schema import BOOK, Schema
from stromboli.server.status_errors import bad_request

MAGIC: Final = b"k8s\x00"
"""What an object in this form begins with."""

_WIRE: Final[dict[str, dict[str, str]]] = decode(
    files("stromboli.server").joinpath("kubernetes_wire.json").read_bytes()
)
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_TIMES: Final = ("io.k8s.apimachinery.pkg.apis.meta.v1.Time", "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime")
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING: Final = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_RAW: Final = (
    "io.k8s.apimachinery.pkg.runtime.RawExtension", "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
)  # fmt: skip
_UNSET: Final = (None, "", 0, False)


def from_protobuf(content: bytes) -> Body:
    """The object that the bytes hold, with its kind and version; bytes that hold none are a bad request."""
    try:
        return _object(content)
    except (IndexError, KeyError, ValueError, OverflowError, OSError, struct.error) as error:
        raise bad_request(f"error decoding the body of the request: {error}") from error


def _object(content: bytes) -> Body:
    if not content.startswith(MAGIC):
        raise ValueError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    envelope = dict(_fields(content[len(MAGIC) :]))
    head = {number: _bytes(raw).decode() for number, raw in _fields(envelope[1])}
    api_version, kind = head.get(1, ""), head.get(2, "")
    schema = _schema_of(api_version, kind)
    return {"apiVersion": api_version, "kind": kind, **_message(schema, schema.name, envelope.get(2, b""))}


def _schema_of(api_version: str, kind: str) -> Schema:
    group, _, version = api_version.rpartition("/")
    wanted = {"group": group, "kind": kind, "version": version}
    for name, raw in BOOK.types.items():
        if wanted in raw.get("x-kubernetes-group-version-kind", ()) and name.endswith(f".{kind}"):
            return BOOK.named(name)
    raise _unknown(api_version, kind)


def _unknown(api_version: str, kind: str) -> ApiFailure:
    return bad_request(f'no kind "{kind}" is registered for version "{api_version}" in scheme')


def _bytes(raw: Any) -> bytes:
    match raw:
        case bytes():
            return raw
    raise ValueError("proto: wrong wireType: bytes are wanted")


def _number(raw: Any) -> int:
    match raw:
        case int():
            return raw
    raise ValueError("proto: wrong wireType: a number is wanted")


def _fields(raw: Any) -> Iterator[tuple[int, Any]]:
    """Numbers of fields of a message and their raw values: integers, or bytes."""
    content, at = _bytes(raw), 0
    while at < len(content):
        tag, at = _varint(content, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(content, at)
            yield number, value
            continue
        if wire == _BYTES:
            length, at = _varint(content, at)
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError(f"proto: illegal wireType {wire}")
        if at + length > len(content):
            raise ValueError("unexpected EOF")
        yield number, content[at : at + length]
        at += length


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("proto: integer overflow")


def _message(schema: Schema, name: str, content: bytes) -> Body:
    """The fields of a message of type ``name``, which stand in an object of ``schema``."""
    result: Body = {}
    names = _WIRE.get(name, {})
    for number, raw in _fields(content):
        entry = names.get(str(number))
        if entry is None:
            continue
        if entry.startswith("+"):
            result |= _message(schema, entry[1:], raw)
        else:
            _set(schema, result, entry, raw)
    return result


def _set(schema: Schema, result: Body, entry: str, raw: Any) -> None:
    name, optional = entry.rstrip("*"), entry.endswith("*")
    part = schema.properties.get(name)
    if part is None:
        return
    if part.type == "array" and part.items is not None:
        result.setdefault(name, []).append(_value(part.items, raw))
    elif part.values is not None:
        pair = dict(_fields(raw))
        result.setdefault(name, {})[_bytes(pair.get(1, b"")).decode()] = _value(part.values, pair.get(2, b""))
    else:
        value = _value(part, raw)
        if value is not None and (optional or not (value in _UNSET or value == {})):
            result[name] = value


def _value(schema: Schema, raw: Any) -> Any:
    special = _special(schema, raw)
    if special is not NotImplemented:
        return special
    match schema.type:
        case "boolean":
            return bool(raw)
        case "integer":
            return _signed(_number(raw))
        case "number":
            return struct.unpack("<d", _bytes(raw))[0]
        case "string":
            return (
                base64.b64encode(_bytes(raw)).decode() if schema.raw.get("format") == "byte" else _bytes(raw).decode()
            )
    return _message(schema, schema.name, raw)


def _signed(number: int) -> int:
    """A number that Go wrote as an int64: below zero it fills all 64 bits."""
    return number - (1 << 64) if number >= 1 << 63 else number


def _special(schema: Schema, raw: Any) -> Any:
    """Types that are no objects in JSON though they are messages here; NotImplemented for all others."""
    if schema.name in _TIMES:
        return _time(dict(_fields(raw)), micro=schema.name.endswith("MicroTime"))
    if schema.name == _QUANTITY:
        return _bytes(dict(_fields(raw)).get(1, b"0")).decode() or "0"
    if schema.name == _INT_OR_STRING:
        found = dict(_fields(raw))
        return _bytes(found.get(3, b"")).decode() if found.get(1) else _signed(_number(found.get(2, 0)))
    if schema.name in _RAW:
        inner = _bytes(dict(_fields(raw)).get(1, b""))
        return decode(inner) if inner else None
    return NotImplemented


def _time(found: dict[int, Any], *, micro: bool) -> str | None:
    if 1 not in found or _number(found[1]) >= 1 << 63:
        return None
    seconds = _number(found[1])
    moment = datetime.fromtimestamp(seconds, UTC)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{_number(found.get(2, 0)) // 1000 % 1_000_000:06}Z" if micro else f"{text}Z"
