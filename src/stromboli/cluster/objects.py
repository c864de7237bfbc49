"""One object out of JSON text or plain values, typed; what is wrong with it is said by object and field.

Nulls count as absent wherever they stand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from stromboli.cluster.kinds import KINDS, LONGEST_NAME, Metadata, Object, title
from stromboli.errors import ManifestError

_Type = TypeVar("_Type")

_DECODERS: Final = {kind: msgspec.json.Decoder(row.type) for kind, row in KINDS.items()}
_AT: Final = re.compile(r"(?s)(.*?)(?: - at (`key` in )?`\$\.?(.*)`)?")
_STEP: Final = re.compile(r"\[(\d+|\.\.\.)\]|([^.\[\]]+)")
_MANY_DIGITS: Final = re.compile(rb"[0-9]{19}")
_LONG_NUMBER: Final = re.compile(rb"[:,\[]\s*-?[0-9]{19}")
_BAD_NAME: Final = re.compile(r"[/\s\x00-\x1f\x7f]")
_WIRE_NAMES: Final = {str: "str", bool: "bool", int: "int", float: "float", list: "array", dict: "object"}
_WORDS: Final = {
    "str": "a text",
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
}


def from_json(kind: str, raw: bytes | msgspec.Raw) -> Object:
    """The object of ``kind`` that ``raw`` spells in JSON.

    Raises :class:`~stromboli.errors.ManifestError`.
    """
    if _MANY_DIGITS.search(raw) and _LONG_NUMBER.search(raw):  # perhaps more than 64 bits: the slow way tells
        return from_value(kind, json_value(raw))
    try:
        found: Object = _DECODERS[kind].decode(raw)
    except msgspec.ValidationError:  # a null, or a field of the wrong type: the slow way tells which
        return from_value(kind, json_value(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestError(unreadable(error), object=kind) from error
    return _named(kind, found)


def from_value(kind: str, value: object) -> Object:
    """The object of ``kind`` that plain values (mappings, lists, texts, numbers) spell.

    Raises :class:`~stromboli.errors.ManifestError`.
    """
    try:
        clean = without_nulls(value)
        _refuse_huge(clean, "")
        return _named(kind, convert(clean, KINDS[kind].type))
    except ManifestError as error:
        raise ManifestError(error.problem, object=error.object or title_of(kind, value), path=error.path) from error
    except RecursionError as error:
        raise ManifestError(unreadable(error), object=title_of(kind, value)) from error


def convert(value: object, wanted: type[_Type]) -> _Type:
    """``value`` as a ``wanted``; raises :class:`~stromboli.errors.ManifestError` that names the field."""
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        raise explained(error, value) from error


def explained(error: msgspec.ValidationError, value: object) -> ManifestError:
    """What msgspec has against ``value``, in plain words and with the path of the field."""
    match = _AT.fullmatch(str(error))
    problem, in_key, path = (match[1], match[2], match[3] or "") if match else (str(error), None, "")
    got = problem.rpartition("got `")[2].rstrip("`")
    plain = re.sub(r"`([a-z| ]+)`", lambda found: _in_words(found[1]), problem)
    if in_key:
        plain = f"the keys of a mapping must be texts: {plain}"
    elif plain.startswith("Expected a text, got") and got in ("int", "float", "bool"):
        plain += "; put it in quotes"
    return ManifestError(plain[:1].lower() + plain[1:], path=_full_path(path, value, got))


def json_value(raw: bytes | msgspec.Raw) -> object:
    """The plain value that ``raw`` spells in JSON; raises :class:`~stromboli.errors.ManifestError`."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ManifestError(unreadable(error)) from error


def unreadable(error: Exception) -> str:
    """What is wrong with a text that could not be read at all, in words."""
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return f"is not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}"
    return f"is not JSON: {str(error).removeprefix('JSON is malformed: ')}"


def without_nulls(value: object) -> object:
    """A copy of ``value`` without the entries that are null."""
    if isinstance(value, dict):
        return {key: without_nulls(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [without_nulls(entry) for entry in value if entry is not None]
    return value


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


def _in_words(names: str) -> str:
    words = [_WORDS.get(name, name) for name in names.split(" | ") if name != "null" or names == "null"]
    return " or ".join(words)


def _full_path(path: str, value: object, got: str) -> str:
    """``path`` with the key in place of ``[...]`` at its end: the first whose value is of the type that was got."""
    if not path.endswith("[...]"):
        return path
    parent = path.removesuffix("[...]")
    for index, name in _STEP.findall(parent):
        if isinstance(value, Mapping):
            value = value.get(name)
        elif isinstance(value, list):
            value = value[int(index)]
    entries = value.items() if isinstance(value, Mapping) else ()
    return next(
        (f"{parent}.{key:.{LONGEST_NAME}}" for key, entry in entries if _WIRE_NAMES.get(type(entry)) == got), parent
    )
