"""Rules in CEL that the schema of a custom kind states about values: ``x-kubernetes-validations``.

Source: https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#validation-rules
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from stromboli.cel import CelError, message, program, unsupported
from stromboli.server.schema.schema import RULES, Schema
from stromboli.server.status_errors import Cause, shown

_OLD: Final = re.compile(r"\boldSelf\b")
_ESCAPED: Final = re.compile(r"__(\w+?)__")
_KNOWN: Final = frozenset({"self", "oldSelf"})
_SIGNS: Final = {"_": "underscores", ".": "dot", "-": "dash", "/": "slash"}
_RESERVED: Final = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return",
})  # fmt: skip
"""Words of CEL, and those that it keeps."""
_KINDS: Final = {"FieldValueInvalid": "Invalid value", "FieldValueForbidden": "Forbidden",
                 "FieldValueRequired": "Required value", "FieldValueDuplicate": "Duplicate value"}  # fmt: skip


def wrong_by_rules(schema: Schema, value: Any, old: Any, path: str = "") -> Iterator[Cause]:
    """What the rules of a schema, and of its parts, have against a value that was ``old``; None for a new one.

    As in Kubernetes, what a change leaves as it was is not judged again.
    """
    if not schema.is_ruled or value is None or value == old:
        return
    for rule in schema.raw.get(RULES) or ():
        yield from _broken(rule, value, old, path)
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


def _broken(rule: Mapping[str, Any], value: Any, old: Any, path: str) -> Iterator[Cause]:
    """A rule about a change holds for what is new, unless it says that it takes an optional old value."""
    text = rule.get("rule", "")
    if (_OLD.search(text) and old is None) or _unusable(text):
        return
    given = {"self": _escaped(text, value), "oldSelf": _escaped(text, old)}
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


def _escaped(text: str, value: Any) -> Any:
    """A value with the names of its fields as expressions write them, where the expression writes any so."""
    if not _ESCAPED.search(text):
        return value
    if isinstance(value, Mapping):
        return {_escaped_name(name): _escaped(text, one) for name, one in value.items()}
    return [_escaped(text, one) for one in value] if isinstance(value, list) else value


def _escaped_name(name: str) -> str:
    """The name of a field in an expression, ``self.a__dash__b`` for ``a-b``."""
    if name in _RESERVED:
        return f"__{name}__"
    name = name.replace("__", "__underscores__")
    return "".join(f"__{_SIGNS[sign]}__" if sign in "./-" else sign for sign in name)
