"""What comes in, held against its schema: unknown fields go, defaults come, wrong values are named.

Kubernetes' own types and custom resources differ in two things: empty lists and maps of the former vanish, and a value
of the wrong type is a request that cannot be read there, an invalid object here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from stromboli.cluster.body import Body
from stromboli.errors import ApiFailure, PatternError, QuantityError
from stromboli.model.values import patterns
from stromboli.server.amounts import canonical
from stromboli.server.schema import formats
from stromboli.server.schema.resources import Resource
from stromboli.server.schema.schema import META, Schema
from stromboli.server.schema.type_rules import of_type
from stromboli.server.status_errors import Cause, bad_request, required, shown, unsupported, wrong

TYPE_INVALID: Final = "FieldValueTypeInvalid"
"""The reason of a cause that tells of a value of the wrong type."""
_GO_TYPES: Final = {"string": "string", "boolean": "bool", "number": "float64"}
_JSON_NAMES: Final = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}
_INDEX: Final = re.compile(r"\[\d+\]")
_SCHEMA_NAMES: Final = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


@dataclass
class Findings:
    """What was found.

    ``unknown`` are fields, each as ``unknown field "spec.foo"``; ``causes`` refuse the object; ``unreadable`` says
    which values are of a wrong type; ``mistyped`` is whether there are any;
    ``holder`` is the type whose fields are looked at.
    """

    custom: bool
    unknown: list[str] = field(default_factory=list)
    causes: list[Cause] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    holder: str = ""
    mistyped: bool = False

    @property
    def typed(self) -> bool:
        """Whether all values can be read as what their types say."""
        return not (self.mistyped or self.unreadable)


def shaped(resource: Resource, body: Body) -> tuple[Body, Findings]:
    """The object as it would be stored, and what is to be said about it."""
    found = Findings(resource.custom)
    value = _object(resource.schema, body, "", found)
    return value, found


def wrong_values(schema: Schema, value: Any, path: str) -> Iterable[Cause]:
    """What is wrong with a value of a custom resource that this schema describes."""
    found = Findings(custom=True)
    _value(schema, deepcopy(value), path, found)
    return found.causes


def refuse_unreadable(resource: Resource, found: Findings) -> None:
    """Raise if a value of one of Kubernetes' own types is of the wrong type."""
    if found.unreadable:
        raise _unreadable(resource, found.unreadable[0])


def refuse_unknown(resource: Resource, found: Findings) -> None:
    """Raise if there are fields that the type does not have: the strict validation that kubectl asks for."""
    if found.unknown:
        raise _unreadable(resource, "strict decoding error: " + ", ".join(sorted(found.unknown)))


def _unreadable(resource: Resource, why: str) -> ApiFailure:
    kind = resource.kind
    return bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {why}')


def _value(schema: Schema, value: Any, path: str, found: Findings) -> Any:
    if schema.is_amount:
        return _amount(schema, value, path, found)
    match schema.type:
        case "object":
            return (
                _object(schema, value, path, found)
                if isinstance(value, dict)
                else _mistyped(schema, value, path, found)
            )
        case "array":
            return (
                _list(schema, value, path, found) if isinstance(value, list) else _mistyped(schema, value, path, found)
            )
        case "":
            itself = schema.schema_itself
            return _object(itself, value, path, found) if itself and isinstance(value, dict) else value
    if not _fits(schema.type, value):
        return _mistyped(schema, value, path, found)
    if not found.custom:
        _refuse_format(schema, value, path, found)
    if schema.limited:
        _limits(schema, value, path, found)
    return value


def _fits(kind: str, value: Any) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refuse_format(schema: Schema, value: Any, path: str, found: Findings) -> None:
    """What Go could not read into its own types is a request that cannot be read."""
    if schema.type == "integer" and not formats.in_range(schema, value):
        where, wanted = f"{found.holder}.{_INDEX.sub('', path)}", formats.go_type(schema)
        found.unreadable.append(f"json: cannot unmarshal number {value} into Go struct field {where} of type {wanted}")
    elif isinstance(value, str) and (why := formats.unreadable(schema, value)):
        found.unreadable.append(why)


def _object(schema: Schema, value: Body, path: str, found: Findings) -> Body:
    if schema.name == META and not path.endswith("metadata"):
        path = f"{path}metadata"
    result: Body = {}
    for name, inner in value.items():
        _field(schema, name, inner, _below(path, name), found, result)
    for name, default in schema.defaults.items():
        if name not in result:  # a default may bring an object whose own fields have defaults
            result[name] = _value(schema.properties[name], deepcopy(default), _below(path, name), found)
    _required(schema, result, path, found)
    if found.typed:
        found.causes.extend(of_type(schema.name, result, path))
    return result


def _field(schema: Schema, name: str, value: Any, path: str, found: Findings, result: Body) -> None:
    """Read one field into ``result``, unless it is left out."""
    part = schema.properties.get(name) or schema.values
    if part is None:
        _unknown(schema, name, value, path, found, result)
    elif value is not None:
        found.holder = schema.name.rsplit(".", 1)[-1] or found.holder
        kept = _value(part, value, path, found)
        if kept or found.custom or not _omitted(part, kept):
            result[name] = kept
    elif part.nullable:
        result[name] = None


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _omitted(schema: Schema, value: Any) -> bool:
    """Empty lists and free maps are not there, as Go leaves them out."""
    return schema.type == "array" or (
        schema.type == "object" and isinstance(value, dict) and not schema.properties and schema.values is not None
    )


def _unknown(schema: Schema, name: str, value: Any, path: str, found: Findings, result: Body) -> None:
    free = not schema.properties and schema.type == "object" and "properties" not in schema.raw
    typed_freely = schema.name != "" or not found.custom
    if (
        schema.keeps_unknown
        or (schema.is_object and name in ("apiVersion", "kind", "metadata"))
        or (free and typed_freely)
    ):
        result[name] = value
    else:
        found.unknown.append(f'unknown field "{path}"')


def _required(schema: Schema, value: Body, path: str, found: Findings) -> None:
    for name in schema.required:
        if name not in value and found.custom:
            found.causes.append(required(_below(path, name)))


def _list(schema: Schema, value: list[Any], path: str, found: Findings) -> list[Any]:
    items = schema.items
    if items is not None:
        value = [_value(items, inner, f"{path}[{index}]", found) for index, inner in enumerate(value)]
    if schema.limited:
        _limits(schema, value, path, found)
    return value


def _amount(schema: Schema, value: Any, path: str, found: Findings) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return _mistyped(schema, value, path, found)
    if not schema.is_quantity:
        return _int_or_string(schema, value, path, found)
    try:
        return canonical(value)
    except QuantityError:
        found.unreadable.append(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
        return value


def _int_or_string(schema: Schema, value: Any, path: str, found: Findings) -> Any:
    if isinstance(value, float):
        return _mistyped(schema, value, path, found)
    if isinstance(value, int) and not found.custom and not -(1 << 31) <= value < 1 << 31:
        return _mistyped(schema, value, path, found)
    _limits(schema, value, path, found)
    return value


def _mistyped(schema: Schema, value: Any, path: str, found: Findings) -> Any:
    found.mistyped = True
    if found.custom:
        wanted = "integer,string" if schema.is_amount else schema.type
        if not (value is None and schema.nullable):
            given = _SCHEMA_NAMES.get(type(value), "null")
            told = f'{path} in body must be of type {wanted}: "{given}"'
            found.causes.append(Cause(path, TYPE_INVALID, f'Invalid value: "{given}": {told}'))
    else:
        wanted = _go_type(schema)
        where = f"{found.holder}.{_INDEX.sub('', path)}"
        given = _JSON_NAMES.get(type(value), "null")
        found.unreadable.append(f"json: cannot unmarshal {given} into Go struct field {where} of type {wanted}")
    return value


def _go_type(schema: Schema) -> str:
    if schema.is_amount and not schema.is_quantity:
        return "int32"
    if schema.type == "integer":
        return formats.go_type(schema)
    return _GO_TYPES.get(schema.type, schema.name.rsplit(".", 1)[-1] or "object")


def _limits(schema: Schema, value: Any, path: str, found: Findings) -> None:
    raw = schema.raw
    if "enum" in raw and value not in raw["enum"]:
        found.causes.append(unsupported(path, value, raw["enum"]))
    for check in (_number, _text, _length):
        cause = check(schema, value, path)
        if cause is not None:
            found.causes.append(cause)


def _number(schema: Schema, value: Any, path: str) -> Cause | None:
    raw = schema.raw
    if not isinstance(value, int | float):
        return None
    if value < raw.get("minimum", value):
        return wrong(path, value, f"{path} in body should be greater than or equal to {shown(raw['minimum'])}")
    if value > raw.get("maximum", value):
        return wrong(path, value, f"{path} in body should be less than or equal to {shown(raw['maximum'])}")
    return None


def _text(schema: Schema, value: Any, path: str) -> Cause | None:
    raw = schema.raw
    if not isinstance(value, str):
        return None
    if len(value) < raw.get("minLength", 0):
        return wrong(path, value, f"{path} in body should be at least {raw['minLength']} chars long")
    if len(value) > raw.get("maxLength", len(value)):
        told = f"Too long: may not be more than {_counted(raw['maxLength'], 'byte')}"
        return Cause(path, "FieldValueTooLong", told)
    return _mismatch(raw["pattern"], value, path) if "pattern" in raw else None


def _mismatch(text: str, value: str, path: str) -> Cause | None:
    """What is wrong with a value that has to contain a match of the pattern ``text``."""
    try:
        if patterns.pattern(text).found_in(value):
            return None
    except PatternError as error:
        # The definition was stored before it was looked at so, or to look at the value would take too long.
        return wrong(path, value, f"{path} in body should match '{text}, but pattern is invalid: {error}'")
    return wrong(path, value, f"{path} in body should match '{text}'")


def _length(schema: Schema, value: Any, path: str) -> Cause | None:
    raw = schema.raw
    if not isinstance(value, list):
        return None
    if len(value) < raw.get("minItems", 0):
        return wrong(path, len(value), f"{path} in body should have at least {raw['minItems']} items")
    if len(value) > raw.get("maxItems", len(value)):
        told = f"Too many: {len(value)}: must have at most {_counted(raw['maxItems'], 'item')}"
        return Cause(path, "FieldValueTooMany", told)
    return None


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
