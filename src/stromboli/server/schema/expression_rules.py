"""Rules in CEL that the schema of a custom kind states about values: ``x-kubernetes-validations``.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from sys import float_info
from typing import Any, Final

from stromboli.cel import CelError, message, mistake, program, unsupported
from stromboli.server.schema.schema import RULES, Schema
from stromboli.server.status_errors import Cause, required, shown, wrong

_KNOWN: Final = frozenset({"self", "oldSelf"})
_SIGNS: Final = {"_": "underscores", ".": "dot", "-": "dash", "/": "slash"}
_RESERVED: Final = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return",
})  # fmt: skip
"""Words of CEL, and those that it keeps."""
_LARGEST: Final = int(float_info.max)
"""Numbers beyond are infinite as floats, and stay as they are."""
_KINDS: Final = {"FieldValueInvalid": "Invalid value", "FieldValueForbidden": "Forbidden",
                 "FieldValueRequired": "Required value", "FieldValueDuplicate": "Duplicate value"}  # fmt: skip


def wrong_by_rules(schema: Schema, value: Any, old: Any, path: str = "") -> Iterator[Cause]:
    """What the rules of a schema, and of its parts, have against a value that was ``old``; None for a new one.

    As in Kubernetes, what a change leaves as it was is judged again by rules about changes alone.
    """
    if not schema.is_ruled or value is None:
        return
    if rules := [*_judging(schema, value, old)]:
        given = {"self": typed(schema, value), "oldSelf": typed(schema, old)}
        for rule in rules:
            yield from _broken(rule, value, given, path)
    for part, one, before, where in _parts(schema, value, old):
        yield from wrong_by_rules(part, one, before, f"{path}{where}".lstrip("."))


def _parts(schema: Schema, value: Any, old: Any) -> Iterator[tuple[Schema, Any, Any, str]]:
    """Fields or entries of a value: how each looks, what it is, what it was, and its place."""
    if isinstance(value, Mapping):
        was = old if isinstance(old, Mapping) else {}
        fields = ((schema.field(name), name) for name in value)
        yield from ((part, value[name], was.get(name), f".{name}") for part, name in fields if part is not None)
    elif isinstance(value, list) and (items := schema.items) is not None:
        known = _by_key(schema, old)
        for number, one in enumerate(value):
            yield items, one, known.get(_key(schema, one)), f"[{number}]"


def mistaken(raw: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """What of the rules that a schema itself states is no CEL."""
    for number, rule in enumerate(raw.get(RULES) or ()):
        where = f"{path}.{RULES}[{number}]"
        if not rule.get("rule"):
            yield required(f"{where}.rule", "rule is not specified")
        for name in ("rule", "messageExpression"):
            text = rule.get(name) or ""
            if text and (told := mistake(text)):
                yield wrong(f"{where}.{name}", text[:256], f"compilation failed: {told}")


def not_evaluated(schema: Schema, path: str = "") -> Iterator[str]:
    """Rules of a schema that cannot be compiled here, and are passed over."""
    if not schema.is_ruled:
        return
    for number, rule in enumerate(schema.raw.get(RULES) or ()):
        if problem := _unusable(rule.get("rule", "")):
            yield f"{path or 'the object'}: {RULES}[{number}] is not evaluated: {problem}"
    parts = {**{f".{name}": one for name, one in schema.properties.items()}, "[*]": schema.items, ".*": schema.values}
    for name, one in parts.items():
        if one is not None:
            yield from not_evaluated(one, f"{path}{name}".lstrip("."))


def _unusable(text: str) -> str:
    return program(text).problem or unsupported(text, _KNOWN)


def _judging(schema: Schema, value: Any, old: Any) -> Iterator[Mapping[str, Any]]:
    """The rules that a schema itself states about such a change: those about changes need an old value."""
    for rule in schema.raw.get(RULES) or ():
        if not _unusable(rule["rule"]) and (old is not None if _is_of_changes(rule) else value != old):
            yield rule


def _is_of_changes(rule: Mapping[str, Any]) -> bool:
    """Whether a rule, one that can be used, compares with what was before."""
    return "oldSelf" in program(rule["rule"]).names


def _broken(rule: Mapping[str, Any], value: Any, given: Mapping[str, Any], path: str) -> Iterator[Cause]:
    text = rule["rule"]
    try:
        if program(text).bounded(given) is True:
            return
        told = _told(rule, given)
    except CelError as error:
        told = f"rule {text} cannot be evaluated: {error}"
    reason = rule.get("reason") or "FieldValueInvalid"
    where = f"{path}{rule.get('fieldPath', '')}".lstrip(".")
    kind = _KINDS.get(reason, "Invalid value")
    yield Cause(
        where or "<nil>", reason, f"{kind}: {shown(value)}: {told}" if kind != "Forbidden" else f"{kind}: {told}"
    )


def _told(rule: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    stated = rule.get("message") or f"failed rule: {' '.join(rule['rule'].split())}"
    return message(rule.get("messageExpression") or "", given, stated)


def _by_key(schema: Schema, old: object) -> Mapping[Sequence[object], object]:
    """The entries of a list before the change, by the keys that a list of type ``map`` has."""
    if not isinstance(old, list) or schema.list_type != "map":
        return {}
    return {_key(schema, one): one for one in old}


def _key(schema: Schema, one: object) -> Sequence[object]:
    return tuple(str(one.get(name)) for name in schema.map_keys) if isinstance(one, Mapping) else ()


def typed(schema: Schema, value: Any) -> Any:
    """A value as expressions see it: numbers, times and bytes by type and format, fields by names that CEL takes.

    Keys of maps, and fields that the schema does not name, stay as they are.
    """
    match value:
        case Mapping():
            return dict(_typed_field(schema, name, one) for name, one in value.items())
        case list() if schema.items is not None:
            return [typed(schema.items, one) for one in value]
        case int() if schema.type == "number" and abs(value) <= _LARGEST:
            return float(value)
        case str():
            return _read(schema.raw.get("format", ""), value)
    return value


def _typed_field(schema: Schema, name: str, value: Any) -> tuple[str, Any]:
    part = schema.field(name)
    return _escaped_name(name) if name in schema.properties else name, value if part is None else typed(part, value)


def _read(form: str, text: str) -> Any:
    """A text of a format that CEL has a type for; one that is not of the format stays a text."""
    with suppress(CelError, ValueError):
        return _READERS[form](text) if form in _READERS else text
    return text


def _by_cel(expression: str) -> Callable[[str], Any]:
    return lambda text: program(expression).value({"self": text})


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "byte": partial(b64decode, validate=True),
    "date": _by_cel("timestamp(self + 'T00:00:00Z')"),
    "date-time": _by_cel("timestamp(self)"),
    "duration": _by_cel("duration(self)"),
}
"""What reads a text of a format that CEL has a type for."""


@lru_cache(maxsize=4096)
def _escaped_name(name: str) -> str:
    """The name of a field in an expression, ``self.a__dash__b`` for ``a-b``."""
    if name in _RESERVED:
        return f"__{name}__"
    name = name.replace("__", "__underscores__")
    return "".join(f"__{_SIGNS[sign]}__" if sign in "./-" else sign for sign in name)
