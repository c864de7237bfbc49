"""Arguments that plugins and actions declare, and what is wrong with those that a configuration gives them.

A mistake in an argument never stops a scheduler by itself: the default is kept and a :class:`Complaint` says so.  Only
arguments declared ``fatal`` raise.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, Literal, TypeVar, cast

from stromboli.errors import PluginError

T = TypeVar("T")

TOLERATED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "predicates": ("predicate.GPUSharingEnable", "predicate.GPUNumberEnable"),
    }
)
"""By plugin: arguments of older releases and descriptions, accepted without effect."""

_GO_BOOLS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}

_GO_TYPES: Mapping[type, str] = {int: "int", float: "float64", bool: "bool", str: "string", list: "list", dict: "map"}


@dataclass(frozen=True, slots=True)
class Complaint:
    """Something in a configuration that is not as it should be, yet does not stop it.

    ``kind`` is ``type`` (wrong type, default kept), ``range`` (refused by the argument's check, default kept),
    ``unknown`` (a name nobody knows, ignored), ``tolerated`` (known from older releases, without effect).  Strict
    checks refuse all but ``tolerated``.  ``plugin`` is the plugin or action, ``key`` the name in question, ``line``
    its place in the file (0 = unknown), ``nearest`` the known name that was probably meant.
    """

    kind: Literal["type", "range", "unknown", "tolerated"]
    text: str
    plugin: str = ""
    key: str = ""
    line: int = 0
    nearest: str = ""


@dataclass(frozen=True, slots=True)
class Argument(Generic[T]):
    """A declared argument: the configuration's key (may hold one ``*``), type, default, check of a value.

    ``check`` returns an empty text for a good value, else the sentence for the log.  ``fatal`` turns a wrong type or
    value into a PluginError.
    """

    key: str
    kind: type[T]
    default: T
    check: Callable[[T], str] | None = None
    fatal: bool = False

    @property
    def is_pattern(self) -> bool:
        """Whether the argument collects all keys that match."""
        return "*" in self.key

    def gap(self, key: str) -> str:
        """What stands for the ``*`` in ``key``; empty if the key does not match the pattern."""
        head, _, tail = self.key.partition("*")
        matches = key.startswith(head) and key.endswith(tail) and len(key) > len(head) + len(tail)
        return key[len(head) : len(key) - len(tail)] if matches else ""

    def parse(self, key: str, value: object, plugin: str) -> tuple[T, Complaint | None]:
        """The value, or the default and what is wrong.  Raises PluginError for a bad value of a fatal argument."""
        parsed = convert(value, self.kind)
        if parsed is None:
            text = f"Could not parse argument: {go_text(value)} for key {key} to {_GO_TYPES.get(self.kind, 'value')}"
            return self._refuse(Complaint("type", text, plugin, key))
        if self.check is not None and (text := self.check(parsed)):
            return self._refuse(Complaint("range", text, plugin, key))
        return parsed, None

    def _refuse(self, complaint: Complaint) -> tuple[T, Complaint]:
        if self.fatal:
            raise PluginError(complaint.plugin, f"argument {complaint.key}: {complaint.text}")
        return self.default, complaint


def arg(key: str, kind: type[T], default: T, check: Callable[[T], str] | None = None, *, fatal: bool = False) -> T:
    """Declare an argument as a class attribute; instances hold the parsed value under the attribute's name.

    ``weight = arg("binpack.weight", int, 1)``.  ``kind`` is int, float, bool, str, list or dict; ``object`` takes any
    value as it is.  See :class:`Argument` for ``check`` and ``fatal``.
    """
    return cast(T, Argument(key, kind, default, check, fatal))


def arg_pattern(
    key: str, kind: type[T], default: T, check: Callable[[T], str] | None = None, *, fatal: bool = False
) -> dict[str, T]:
    """Declare a family of arguments, ``*`` standing for any text; instances hold {that text: value}.

    ``weights = arg_pattern("binpack.resources.*", float, 1.0)``.  A value of the wrong type counts as ``default``.
    """
    return cast("dict[str, T]", Argument(key, kind, default, check, fatal))


def convert(value: object, kind: type[T]) -> T | None:
    """``value`` as the reference reads it for that type, or None.

    int takes whole YAML numbers only; float takes both kinds of finite number; bool takes the texts that Go knows.
    """
    return cast("T | None", _CONVERT.get(cast("type[object]", kind), _as_it_is)(value))


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _float(value: object) -> float | None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(cast(float, value)) if number and abs(cast(float, value)) <= 1e308 else None


def _bool(value: object) -> bool | None:
    return value if isinstance(value, bool) else _GO_BOOLS.get(value) if isinstance(value, str) else None


def _as_it_is(value: object) -> object:
    return value


def _exactly(kind: type) -> Callable[[object], object]:
    return lambda value: value if isinstance(value, kind) else None


_CONVERT: Mapping[type[object], Callable[[object], object]] = {
    int: _int,
    float: _float,
    bool: _bool,
    str: _exactly(str),
    list: _exactly(list),
    dict: _exactly(dict),
}


def go_text(value: object) -> str:
    """A value as Go prints it with %v, for texts that users search their logs for."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_text(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    if isinstance(value, bool):
        return str(value).lower()
    return "<nil>" if value is None else str(value)


def parse_arguments(
    declared: Mapping[str, Argument[Any]], given: Mapping[str, object], plugin: str
) -> tuple[dict[str, Any], list[Complaint]]:
    """Values by attribute name for everything declared, and what was wrong with the given arguments.

    Raises PluginError for a bad value of a fatal argument.
    """
    values: dict[str, Any] = {name: {} if spec.is_pattern else spec.default for name, spec in declared.items()}
    exact = {spec.key: name for name, spec in declared.items() if not spec.is_pattern}
    complaints: list[Complaint] = []
    for key, value in given.items():
        name = exact.get(key) or _pattern_for(key, declared)
        if name is None:
            complaints.append(_undeclared(plugin, key, declared.values()))
            continue
        parsed, complaint = declared[name].parse(key, value, plugin)
        complaints += [complaint] if complaint else []
        if declared[name].is_pattern:
            values[name][declared[name].gap(key)] = parsed
        else:
            values[name] = parsed
    return values, complaints


def _pattern_for(key: str, declared: Mapping[str, Argument[Any]]) -> str | None:
    matching = [(len(spec.key), name) for name, spec in declared.items() if spec.is_pattern and spec.gap(key)]
    return max(matching)[1] if matching else None


def _undeclared(plugin: str, key: str, declared: Iterable[Argument[Any]]) -> Complaint:
    if key in TOLERATED.get(plugin, ()):
        return Complaint("tolerated", f"argument {key} of {plugin} is accepted, but has no effect here", plugin, key)
    close = nearest(key, [spec.key for spec in declared])
    hint = f"; did you mean {close!r}?" if close else ""
    return Complaint("unknown", f"unknown argument {key} of {plugin} is ignored{hint}", plugin, key, nearest=close)


def nearest(name: str, known: Collection[str]) -> str:
    """The known name that was probably meant, or an empty text; upper and lower case don't matter."""
    by_folded = {candidate.casefold(): candidate for candidate in sorted(known)}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else ""
