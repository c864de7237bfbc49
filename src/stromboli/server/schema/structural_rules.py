"""What the schema of a custom kind must be to be structural; texts are Kubernetes' own.

A structural schema says once of every value which type it has; what ``allOf``, ``anyOf``, ``oneOf`` and ``not`` add
may narrow values, not describe them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from stromboli.cluster.body import part
from stromboli.model.values import patterns
from stromboli.server.status_errors import Cause, closed, required, wrong

Raw = Mapping[str, Any]

_EMPTY, _UNDEFINED, _FALSE = (f"must be {what} to be structural" for what in ("empty", "undefined", "false"))
_DESCRIBING: Final = {
    "type": _EMPTY, "additionalProperties": _UNDEFINED, "default": _UNDEFINED, "title": _EMPTY, "description": _EMPTY,
    "nullable": _FALSE, "externalDocs": _UNDEFINED, "x-kubernetes-preserve-unknown-fields": _FALSE,
    "x-kubernetes-embedded-resource": _FALSE, "x-kubernetes-int-or-string": _FALSE,
    "x-kubernetes-list-map-keys": _EMPTY, "x-kubernetes-list-type": _UNDEFINED, "x-kubernetes-map-type": _UNDEFINED,
    "x-kubernetes-validations": _EMPTY,
}  # fmt: skip
"""What may not stand in a schema that narrows another, and what is said of it."""
_CHOICES: Final = ("anyOf", "allOf", "oneOf")
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_OF_TYPES: Final = ("kind", "apiVersion")
_NAMES: Final = frozenset({"name", "generateName"})


def wrong_root(schema: Raw, path: str) -> Iterator[Cause]:
    """What is wrong with the schema of a whole object, besides what is wrong with any."""
    if not schema.get("type"):
        yield required(f"{path}.type", "must not be empty at the root")
    elif schema["type"] != "object":
        yield wrong(f"{path}.type", schema["type"], "must be object at the root")
    if schema.get("additionalProperties") is not None:
        yield closed(f"{path}.additionalProperties", "must not be used at the root")
    if schema.get("nullable"):
        yield closed(f"{path}.nullable", "nullable cannot be true at the root")
    yield from _head(schema, path)
    if set(part(schema, "properties", "metadata", "properties") or ()) - _NAMES:
        told = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield closed(f"{path}.properties[metadata]", told)


def _head(schema: Raw, path: str) -> Iterator[Cause]:
    properties = schema.get("properties") or {}
    for name, kind in (*((name, "string") for name in _OF_TYPES), ("metadata", "object")):
        if name in properties and properties[name].get("type") != kind:
            yield wrong(f"{path}.properties[{name}].type", properties[name].get("type", ""), f"must be {kind}")


def wrong_structure(schema: Raw, path: str) -> Iterator[Cause]:
    """What is wrong with one schema, apart from those of its properties and items."""
    yield from wrong_pattern(schema, path)
    yield from _embedded(schema, path)
    yield from _extensions(schema, path)
    yield from _choices(schema, path)


def wrong_pattern(schema: Raw, path: str) -> Iterator[Cause]:
    """What is wrong with the pattern of a schema."""
    given = schema.get("pattern", "")
    if told := patterns.problem(given):
        yield wrong(f"{path}.pattern", given, f"must be a valid regular expression, but isn't: {told}")


def _embedded(schema: Raw, path: str) -> Iterator[Cause]:
    if not schema.get("x-kubernetes-embedded-resource"):
        return
    told = "must be object if x-kubernetes-embedded-resource is true"
    if not schema.get("type"):
        yield required(f"{path}.type", told)
    elif schema["type"] != "object":
        yield wrong(f"{path}.type", schema["type"], told)
    if schema.get("additionalProperties") is not None:
        yield closed(f"{path}.additionalProperties", "must not be used if x-kubernetes-embedded-resource is set")
    if not schema.get("properties") and not schema.get("x-kubernetes-preserve-unknown-fields"):
        told = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        yield required(f"{path}.properties", told)
    yield from _head(schema, path)


def _extensions(schema: Raw, path: str) -> Iterator[Cause]:
    keeps = schema.get("x-kubernetes-preserve-unknown-fields")
    if keeps is False:
        yield wrong(f"{path}.x-kubernetes-preserve-unknown-fields", keeps, "must be true or undefined")
    if schema.get("x-kubernetes-int-or-string"):
        for name in ("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"):
            if schema.get(name):
                yield wrong(f"{path}.{name}", True, "must be false if x-kubernetes-int-or-string is true")
    if schema.get("x-kubernetes-map-type") is not None and schema.get("type") != "object":
        told = "must be object if x-kubernetes-map-type is specified"
        yield wrong(f"{path}.type", schema["type"], told) if schema.get("type") else required(f"{path}.type", told)


def wrong_list(schema: Raw, path: str) -> Iterator[Cause]:
    """What is wrong with how the items of a list are told apart."""
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    if keys and kind != "map":
        told, where = "must be map if x-kubernetes-list-map-keys is non-empty", f"{path}.x-kubernetes-list-type"
        yield required(where, told) if kind is None else wrong(where, kind, told)
    if kind in ("map", "set") and part(schema, "items", "nullable"):
        yield closed(f"{path}.items.nullable", f"cannot be nullable when x-kubernetes-list-type is {kind}")
    if kind == "set":
        yield from _atomic(schema, f"{path}.items")
    elif kind == "map":
        yield from _keys(schema, keys, path)


def _atomic(schema: Raw, path: str) -> Iterator[Cause]:
    items = schema.get("items")
    if not isinstance(items, Mapping):
        return
    told = "must be atomic as item of a list with x-kubernetes-list-type=set"
    if items.get("type") == "array" and items.get("x-kubernetes-list-type") not in (None, "atomic"):
        yield wrong(f"{path}.x-kubernetes-list-type", items["x-kubernetes-list-type"], told)
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        yield wrong(f"{path}.x-kubernetes-map-type", items.get("x-kubernetes-map-type", ""), told)


def _keys(schema: Raw, keys: Sequence[str], path: str) -> Iterator[Cause]:
    where = f"{path}.x-kubernetes-list-map-keys"
    if not keys:
        yield required(where, "must not be empty if x-kubernetes-list-type is map")
    items = schema.get("items")
    if not isinstance(items, Mapping) or items.get("type") != "object":
        told = "must be object if parent array's x-kubernetes-list-type is map"
        yield wrong(f"{path}.items.type", part(schema, "items", "type") or "", told)
        return
    properties = items.get("properties") or {}
    if len(set(keys)) < len(keys):
        yield wrong(where, list(keys), "must not contain duplicate entries")
    for key in keys:
        if key in properties:
            yield from _key(items, properties[key], key, f"{path}.items.properties[{key}]")
        else:
            yield wrong(where, list(keys), "entries must all be names of item properties")


def _key(items: Raw, schema: Raw, key: str, path: str) -> Iterator[Cause]:
    told = "this property is in x-kubernetes-list-map-keys, so it"
    if schema.get("type") in ("array", "object"):
        yield wrong(
            f"{path}.type", schema["type"], "must be a scalar type if parent array's x-kubernetes-list-type is map"
        )
    if key not in (items.get("required") or ()) and schema.get("default") is None:
        yield required(f"{path}.default", f"{told} must have a default or be a required property")
    if schema.get("nullable"):
        yield closed(f"{path}.nullable", f"{told} cannot be nullable")


# ----------------------------------------------------------------------------------------------- schemas that narrow


def _choices(schema: Raw, path: str) -> Iterator[Cause]:
    for one, where in _narrowed_by(schema, path):
        yield from _narrowing(one, where)
        yield from _undescribed(one, where, schema, path)


def _narrowed_by(schema: Raw, path: str) -> Iterator[tuple[Raw, str]]:
    """The schemas by which a schema narrows its values, with their paths."""
    for name in _CHOICES:
        for index, one in enumerate(schema.get(name) or ()):
            if not (name == "anyOf" and schema[name] == _INT_OR_STRING):
                yield one, f"{path}.{name}[{index}]"
    if schema.get("not") is not None:
        yield schema["not"], f"{path}.not"


def _undescribed(schema: Raw, path: str, described: Raw | None, where: str) -> Iterator[Cause]:
    """Parts of a narrowing ``schema`` that the schema ``described`` at ``where``, which it narrows, does not have."""
    if not isinstance(described, Mapping):
        yield required(where, f"because it is defined in {path}")
        return
    for one, at in _narrowed_by(schema, path):
        yield from _undescribed(one, at, described, where)
    if isinstance(schema.get("items"), Mapping):
        yield from _undescribed(schema["items"], f"{path}.items", described.get("items"), f"{where}.items")
    known = described.get("properties") or {}
    for name, inner in (schema.get("properties") or {}).items():
        at = f"properties[{name}]"
        yield from _undescribed(inner, f"{path}.{at}", known.get(name), f"{where}.{at}")


def _narrowing(schema: Raw, path: str) -> Iterator[Cause]:
    for name, told in _DESCRIBING.items():
        if schema.get(name) not in (None, "", False, []):
            yield closed(f"{path}.{name}", told)
    yield from wrong_pattern(schema, path)
    yield from _choices(schema, path)
    properties = schema.get("properties") or {}
    if "metadata" in properties:
        yield closed(f"{path}.properties[metadata]", "must not be specified in a nested context")
    for name, inner in properties.items():
        yield from _narrowing(inner, f"{path}.properties[{name}]")
    if isinstance(schema.get("items"), Mapping):
        yield from _narrowing(schema["items"], f"{path}.items")
