"""Structural OpenAPI schemas, as definitions of custom resources need them, made of the types."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from inspect import getdoc
from typing import Final

from msgspec import inspect

from stromboli.api.batch import JobSpec
from stromboli.api.fields import FIELDS_OF, KUBERNETES, REQUIRED, Metadata, Resource
from stromboli.api.kinds import Kind
from stromboli.crds.kubernetes_types import structural

Schema = dict[str, object]

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_ANY_OF: Final = "anyOf"
_OURS: Final = (REQUIRED, KUBERNETES, FIELDS_OF)
"""Keys of rules that are no part of a schema."""
_IN_PART: Final = {cls.__name__: cls for cls in (JobSpec,)}
"""Classes of which a field may hold some fields, by name."""
_PLAIN: Final[Mapping[type[inspect.Type], Schema]] = {
    inspect.StrType: {"type": "string"},
    inspect.IntType: {"type": "integer"},
    inspect.BoolType: {"type": "boolean"},
    inspect.FloatType: {"type": "number"},
    inspect.CustomType: {_PRESERVE: True},
}
_NAMING: Final[Mapping[str, str]] = {
    "apiVersion": "The version of the API that the object is written in.",
    "kind": "The kind of the object.",
}


def schema_of(kind: Kind) -> Schema:
    """The whole ``openAPIV3Schema`` of a kind; do not change what it answers."""
    return _of_class(kind.type)


@cache
def _of_class(cls: type[Resource]) -> Schema:
    return _of(inspect.type_info(cls))


def _of(found: inspect.Type) -> Schema:
    match found:
        case inspect.Metadata():
            return _with_rules(_of(found.type), found.extra_json_schema or {})
        case inspect.StructType():
            return {"type": "object"} if found.cls is Metadata else _of_struct(found)
        case inspect.DictType():
            return {"type": "object", "additionalProperties": _of(found.value_type)}
        case inspect.VarTupleType():
            return {"type": "array", "items": _of(found.item_type)}
        case inspect.UnionType():
            stated = [kind for kind in found.types if not isinstance(kind, inspect.NoneType)]
            return _of(stated[0])
    return dict(_PLAIN[type(found)])


def _of_struct(found: inspect.StructType) -> Schema:
    schema: Schema = {"description": _summary(found.cls), "type": "object"}
    needed = sorted(field.encode_name for field in found.fields if _needed(field))
    if needed:
        schema["required"] = needed
    schema["properties"] = {field.encode_name: _of_field(field) for field in found.fields}
    return schema


def _of_field(field: inspect.Field) -> Schema:
    schema = _of(field.type)
    naming = _NAMING.get(field.encode_name)
    return {"description": naming, **schema} if naming and "description" not in schema else schema


def _needed(field: inspect.Field) -> bool:
    return isinstance(field.type, inspect.Metadata) and REQUIRED in (field.type.extra_json_schema or {})


def _with_rules(schema: Schema, rules: Mapping[str, object]) -> Schema:
    if isinstance(name := rules.get(KUBERNETES), str):
        schema = structural(name)
    elif isinstance(name := rules.get(FIELDS_OF), str):
        schema = _without_defaults(_of(inspect.type_info(_IN_PART[name])))
    merged = {**schema, **{key: value for key, value in rules.items() if key not in _OURS}}
    if _PRESERVE in rules:
        merged.pop("additionalProperties", None)
    if _ANY_OF in rules:  # a quantity: a number or a text
        merged.pop("type", None)
    return merged


def _without_defaults(schema: Schema) -> Schema:
    """The schema of a part without defaults, so that an absent field does not count as stated."""
    found = {key: value for key, value in schema.items() if key != "default"}
    if isinstance(fields := schema.get("properties"), dict):
        found["properties"] = {name: _without_defaults(inner) for name, inner in fields.items()}
    for key in ("items", "additionalProperties"):
        if isinstance(inner := schema.get(key), dict):
            found[key] = _without_defaults(inner)
    return found


def _summary(cls: type) -> str:
    return (getdoc(cls) or "").partition("\n")[0]
