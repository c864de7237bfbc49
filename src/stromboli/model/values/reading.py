"""Plain values made typed, and in words what is wrong with input that cannot be read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeVar

import msgspec

from stromboli.errors import ManifestError
from stromboli.model.names import LONGEST_NAME

_Type = TypeVar("_Type")

_AT: Final = re.compile(r"(?s)(key` in `)?\$\.?(.*)`")
_STEP: Final = re.compile(r"\[(\d+|\.\.\.)\]|([^.\[\]]+)")
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


def convert(value: object, wanted: type[_Type]) -> _Type:
    """``value`` as a ``wanted``; raises :class:`~stromboli.errors.ManifestError` that names the field."""
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        raise explained(error, value) from error


def explained(error: msgspec.ValidationError, value: object) -> ManifestError:
    """What msgspec has against ``value``, in plain words and with the path of the field."""
    told, _, place = str(error).rpartition(" - at `")
    match = _AT.fullmatch(place) if told else None
    problem, in_key, path = (told, match[1], match[2]) if match else (str(error), None, "")
    got = problem.rpartition("got `")[2].rstrip("`")
    plain = re.sub(r"`([a-z| ]+)`", lambda found: _in_words(found[1]), problem)
    if in_key:
        plain = f"the keys of a mapping must be texts: {plain}"
    elif plain.startswith("Expected a text, got") and got in ("int", "float", "bool"):
        plain += "; put it in quotes"
    return ManifestError(plain[:1].lower() + plain[1:], path=_full_path(path, value, got))


def unreadable(error: Exception) -> str:
    """What is wrong with a text that could not be read at all, in words."""
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    if isinstance(error, UnicodeDecodeError):
        return f"is not UTF-8 text: byte {error.start} is {error.object[error.start]:#04x}"
    return f"is not JSON: {str(error).removeprefix('JSON is malformed: ')}"


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
