"""Command-line flags as Go's package ``flag`` reads them, which arguments of job plugins are written for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

Value = bool | int | str

LONGEST_SHOWN: Final = 100
"""Characters of an argument that a message repeats."""
_TRUTH: Final = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}
_INTEGER: Final = re.compile(
    r"[+-]?(?:0[xX](?P<hex>(?:_?[0-9a-fA-F])+)|0[bB](?P<binary>(?:_?[01])+)|0[oO]?(?P<octal>(?:_?[0-7])+)"
    r"|(?P<decimal>0|[1-9](?:_?[0-9])*))"
)
_BASES: Final = {"hex": 16, "binary": 2, "octal": 8, "decimal": 10}
_LONGEST_NUMBER: Final = 128
_ESCAPES: Final = {letter: f"\\{name}" for letter, name in zip('\a\b\f\n\r\t\v\\"', 'abfnrtv\\"', strict=True)}
_INT64: Final = range(-(2**63), 2**63)


class Parsed(NamedTuple):
    """The value of each flag, and what was wrong with the first argument that could not be read, empty if nothing."""

    values: dict[str, Value]
    problem: str


class _Wrong(Exception):
    """An argument that cannot be read."""


def parse_flags(arguments: Sequence[str], defaults: Mapping[str, Value]) -> Parsed:
    """Read ``arguments``; the types of the ``defaults`` are those of the flags.

    ``-name=v``, ``--name=v``, ``--name`` and ``v`` as two arguments, a switch alone.  ``--`` and the first argument
    that is no flag end the reading.  Flags before a faulty one count, the others keep their defaults.
    """
    values, rest = dict(defaults), list(reversed(arguments))
    try:
        while rest and _is_flag(rest[-1]):
            name, has_value, text = _split(rest.pop())
            values[name] = _value(name, has_value, text, rest, defaults)
    except _Wrong as error:
        return Parsed(values, str(error))
    return Parsed(values, "")


def _is_flag(argument: str) -> bool:
    return len(argument) > 1 and argument[0] == "-" and argument != "--"


def _split(argument: str) -> tuple[str, bool, str]:
    body = argument[2:] if argument.startswith("--") else argument[1:]
    if not body or body[0] in "-=":
        raise _Wrong(f"bad flag syntax: {argument[:LONGEST_SHOWN]}")
    name, equals, text = body.partition("=")
    return name, bool(equals), text


def _value(name: str, has_value: bool, text: str, rest: list[str], defaults: Mapping[str, Value]) -> Value:
    default = defaults.get(name)
    if default is None:
        raise _Wrong(
            "flag: help requested"
            if name in ("h", "help")
            else f"flag provided but not defined: -{name[:LONGEST_SHOWN]}"
        )
    if isinstance(default, bool):
        return _truth(name, text) if has_value else True
    if not has_value:
        if not rest:
            raise _Wrong(f"flag needs an argument: -{name}")
        text = rest.pop()
    return _integer(name, text) if isinstance(default, int) else text


def _truth(name: str, text: str) -> bool:
    if text not in _TRUTH:
        raise _Wrong(f"invalid boolean value {_quoted(text)} for -{name}: parse error")
    return _TRUTH[text]


def _integer(name: str, text: str) -> int:
    found = _INTEGER.fullmatch(text) if len(text) <= _LONGEST_NUMBER else None
    if found is None:
        raise _Wrong(f"invalid value {_quoted(text)} for flag -{name}: parse error")
    kind = found.lastgroup or "decimal"
    number = int(found[kind].replace("_", ""), _BASES[kind]) * (-1 if text[0] == "-" else 1)
    if number not in _INT64:
        raise _Wrong(f"invalid value {_quoted(text)} for flag -{name}: value out of range")
    return number


def _quoted(text: str) -> str:
    """As Go's ``strconv.Quote`` writes it."""
    return '"' + "".join(map(_shown, text[:LONGEST_SHOWN])) + '"'


def _shown(letter: str) -> str:
    number = ord(letter)
    if letter in _ESCAPES or letter.isprintable():
        return _ESCAPES.get(letter, letter)
    return f"\\x{number:02x}" if number < 0x80 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
