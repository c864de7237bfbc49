"""The OpenAPI document of version 2 in protobuf: the one form in which kubectl before 1.27 reads what it validates by.

The form is the message `openapi.v2.Document` of gnostic.  A table says which field of the document has which number
there; words that it lacks are left out, as no client reads them.  Writing takes so little that a library for it, which
wants every message declared and each object in a shape of its own first, would be more to read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from stromboli.cluster.body import encode

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_FORM: Final = """
Document: swagger 1 string, info 2 Info, paths 8 Paths, definitions 9 Definitions
Info: title 1 string, version 2 string
Paths: . 2 map PathItem
PathItem: get 2 Operation, put 3 Operation, post 4 Operation, delete 5 Operation, patch 8 Operation
PathItem: parameters 9 repeated ParametersItem
Operation: operationId 5 string, produces 6 repeated string, consumes 7 repeated string
Operation: parameters 8 repeated ParametersItem, responses 9 Responses, x- 13 map Any
ParametersItem: . 1 Parameter
Parameter: in=body 1 BodyParameter, in=query 2 NonBodyParameter, in=path 2 NonBodyParameter
BodyParameter: name 2 string, in 3 string, required 4 bool, schema 5 Schema
NonBodyParameter: in=query 3 QueryParameter, in=path 4 PathParameter
QueryParameter: required 1 bool, in 2 string, name 4 string, type 6 string
PathParameter: required 1 bool, in 2 string, name 4 string, type 5 string
Responses: . 1 map ResponseValue
ResponseValue: . 1 Response
Response: description 1 string, schema 2 SchemaItem
SchemaItem: . 1 Schema
Definitions: . 1 map Schema
Schema: $ref 1 string, format 2 string, title 3 string, description 4 string, default 5 Any, multipleOf 6 double
Schema: maximum 7 double, exclusiveMaximum 8 bool, minimum 9 double, exclusiveMinimum 10 bool
Schema: maxLength 11 int64, minLength 12 int64, pattern 13 string, maxItems 14 int64, minItems 15 int64
Schema: uniqueItems 16 bool, maxProperties 17 int64, minProperties 18 int64, required 19 repeated string
Schema: enum 20 repeated Any, additionalProperties 21 Inner, type 22 TypeItem, items 23 Inner, properties 25 Definitions
Schema: example 30 Any, x- 31 map Any
Inner: . 1 Schema
TypeItem: . 1 string
"""
"""Messages and their fields: the name in JSON, the number, the type.  The name ``.`` is the value itself, ``x-`` all
that begin so, ``a=b`` the value itself where its ``a`` is ``b``."""


class _Field(NamedTuple):
    name: str
    number: int
    label: str
    type: str


def _read(form: str) -> dict[str, list[_Field]]:
    messages: dict[str, list[_Field]] = {}
    for line in form.strip().splitlines():
        message, _, fields = line.partition(": ")
        for field in fields.split(", "):
            name, number, *label, kind = field.split()
            messages.setdefault(message, []).append(_Field(name, int(number), "".join(label), kind))
    return messages


_MESSAGES: Final = _read(_FORM)


def to_protobuf(document: Any, message: str = "Document") -> bytes:
    """A document of version 2, or a part of it that is ``message``, in protobuf."""
    return b"".join(
        _one(field.number, field.type, value) for field in _MESSAGES[message] for value in _values(field, document)
    )


def _values(field: _Field, raw: Any) -> Iterator[Any]:
    """What a field holds: a value, several, or, where it is a map, its entries."""
    value = _part(raw, field.name)
    if value is None:
        return
    if field.label == "map":
        yield from (_Entry(name, inner) for name, inner in value.items())
    elif field.label == "repeated":
        yield from value
    else:
        yield value


class _Entry(NamedTuple):
    """An entry of a map: protobuf knows it as a message of a name, 1, and a value, 2."""

    name: str
    value: Any


def _part(raw: Any, name: str) -> Any:
    if name == ".":
        return raw
    if name == "x-":
        return {key: value for key, value in raw.items() if key.startswith(name)}
    key, chooses, wanted = name.partition("=")
    if chooses:
        return raw if raw.get(key) == wanted else None
    return raw.get(name)


def _one(number: int, kind: str, value: Any) -> bytes:
    if isinstance(value, _Entry):
        return _bytes(number, _one(1, "string", value.name) + _one(2, kind, value.value))
    match kind:
        case "bool" | "int64":
            return _varint(number << 3 | _VARINT) + _varint(int(value))
        case "double":
            return _varint(number << 3 | _FIXED64) + struct.pack("<d", value)
        case "string":
            return _bytes(number, value.encode())
        case "Any":  # as YAML, of which JSON is a part
            return _bytes(number, _bytes(2, encode(value)))
    return _bytes(number, to_protobuf(value, kind))


def _bytes(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the eighth says that more follow."""
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])
