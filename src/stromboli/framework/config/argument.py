"""Arguments that plugins and actions declare, and what is wrong with those that a configuration gives them.

A mistake in an argument never stops a scheduler by itself: the default is kept and a :class:`Complaint` says so.  Only
arguments declared ``fatal`` raise.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Generic, Literal, TypeVar, cast

from stromboli.errors import DurationError, PluginError
from stromboli.model.values import duration
from stromboli.model.values.redaction import shown

T = TypeVar("T")

_SHARED = "pods alike share their answers node by node, and each is renewed where something has changed"
_DEVICES = "devices are the plugin deviceshare's"
_CLAIMS = "the search for devices is bounded in steps, so that it does not depend on the clock"
_NEVER_WRITTEN = "descriptions name it, and the reference has nothing behind it either"

TOLERATED: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "predicates": {
            **dict.fromkeys(
                ("predicate.GPUSharingEnable", "predicate.GPUNumberEnable", "predicate.VGPUEnable"), _DEVICES
            ),
            "dynamicresources.filterTimeoutSeconds": _CLAIMS,
        },
        "rescheduling": {"queueSelector": _NEVER_WRITTEN, "labelSelector": _NEVER_WRITTEN},
        "allocate": {"predicateErrorCacheEnable": _SHARED},
        "backfill": {"predicateErrorCacheEnable": _SHARED},
        "reclaim": {"predicateErrorCacheEnable": _SHARED},
        "preempt": {
            "predicateErrorCacheEnable": _SHARED,
            "topologyAwarePreemptWorkerNum": "nodes are tried in order, and more workers would find the same",
        },
    }
)
"""By plugin or action: arguments of the reference and of descriptions that change nothing here, and why."""

_GO_BOOLS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}

_GO_TYPES: Mapping[type, str] = {int: "int", float: "float64", bool: "bool", str: "string", list: "list", dict: "map"}


@dataclass(frozen=True, slots=True)
class Complaint:
    """Something in a configuration that is not as it should be, yet does not stop it.

    ``kind`` is ``type`` (wrong type, default kept), ``range`` (refused by the argument's check, default kept),
    ``unknown`` (an unknown name, ignored), ``tolerated`` (known from elsewhere, without effect here), ``refused``
    (no process starts with it; the rest is still checked).  Strict checks refuse all but ``tolerated``.
    ``plugin`` is the plugin or action, ``key`` the name in question, ``line`` its place in the file (0 = unknown),
    ``nearest`` the known name that was probably meant.
    """

    kind: Literal["type", "range", "unknown", "tolerated", "refused"]
    text: str
    plugin: str = ""
    key: str = ""
    line: int = 0
    nearest: str = ""

    @property
    def told(self) -> str:
        """The text with the name that was probably meant."""
        unsaid = self.nearest and "did you mean" not in self.text
        return f"{self.text}; did you mean {self.nearest!r}?" if unsaid else self.text


@dataclass(frozen=True, slots=True)
class Argument(Generic[T]):
    """A declared argument: the configuration's key (may hold one ``*``), type, default, check of a value.

    ``check`` returns an empty text for a good value, else the sentence for the log.  ``fatal`` turns a wrong type or
    value into a PluginError.  ``doubts`` says what of a value that is taken will be ignored, in texts or as complaints;
    ``parts`` are the arguments inside a section.
    """

    key: str
    kind: type[T]
    default: T
    check: Callable[[T], str] | None = None
    fatal: bool = False
    doubts: Callable[[T], Iterable[str | Complaint]] | None = None
    parts: Mapping[str, Argument[Any]] = field(default_factory=dict)

    @property
    def is_pattern(self) -> bool:
        """Whether the argument collects all keys that match."""
        return "*" in self.key

    def gap(self, key: str) -> str:
        """What stands for the ``*`` in ``key``; empty if the key does not match the pattern."""
        head, _, tail = self.key.partition("*")
        matches = key.startswith(head) and key.endswith(tail) and len(key) > len(head) + len(tail)
        return key[len(head) : len(key) - len(tail)] if matches else ""

    def parse(self, key: str, value: object, plugin: str) -> tuple[T, list[Complaint]]:
        """The value, or the default, and what is wrong.  Raises PluginError for a bad value of a fatal argument."""
        parsed = convert(value, self.kind)
        if parsed is None:
            written, kind = go_text(shown(key, value)), _GO_TYPES.get(self.kind, "value")
            text = f"Could not parse argument: {written} for key {key} to {kind}"
            return self._refuse(Complaint("type", text, plugin, key))
        if self.check is not None and (text := self.check(parsed)):
            return self._refuse(Complaint("range", text, plugin, key))
        if self.parts:
            inner, found = parse_arguments(self.parts, cast("dict[str, object]", parsed), plugin)
            return cast(T, inner), [replace(complaint, key=f"{key}.{complaint.key}") for complaint in found]
        doubts = self.doubts(parsed) if self.doubts else ()
        return parsed, [_as_complaint(doubt, plugin, key) for doubt in doubts]

    def _refuse(self, complaint: Complaint) -> tuple[T, list[Complaint]]:
        if self.fatal:
            raise PluginError(complaint.plugin, f"argument {complaint.key}: {complaint.text}")
        return self.default, [complaint]


def _as_complaint(doubt: str | Complaint, plugin: str, key: str) -> Complaint:
    return (
        Complaint("unknown", doubt, plugin, key) if isinstance(doubt, str) else replace(doubt, plugin=plugin, key=key)
    )


def arg(
    key: str,
    kind: type[T],
    default: T,
    check: Callable[[T], str] | None = None,
    *,
    fatal: bool = False,
    doubts: Callable[[T], Iterable[str | Complaint]] | None = None,
) -> T:
    """Declare an argument as a class attribute; instances hold the parsed value under the attribute's name.

    ``weight = arg("binpack.weight", int, 1)``.  ``kind`` is int, float, bool, str, list or dict; ``object`` takes any
    value as it is.  See :class:`Argument` for ``check``, ``fatal`` and ``doubts``.
    """
    return cast(T, Argument(key, kind, default, check, fatal, doubts))


def arg_section(key: str, *parts: object) -> dict[str, Any]:
    """Declare a mapping with arguments of its own; instances hold {inner key: value}, defaults filled in.

    ``thresholds = arg_section("thresholds", arg("cpu", int, 80), arg("mem", int, 80))``.
    """
    inner = {part.key: part for part in parts if isinstance(part, Argument)}
    return cast("dict[str, Any]", Argument(key, dict, {k: part.default for k, part in inner.items()}, parts=inner))


def arg_pattern(
    key: str,
    kind: type[T],
    default: T,
    check: Callable[[T], str] | None = None,
    *,
    fatal: bool = False,
    doubts: Callable[[T], Iterable[str | Complaint]] | None = None,
) -> dict[str, T]:
    """Declare a family of arguments, ``*`` standing for any text; instances hold {that text: value}.

    ``weights = arg_pattern("binpack.resources.*", float, 1.0)``.  A value of the wrong type counts as ``default``.
    """
    return cast("dict[str, T]", Argument(key, kind, default, check, fatal, doubts))


def is_duration(text: str) -> str:
    """A check: refuse what is no duration as Go writes them (``1h30m``)."""
    try:
        duration.parse(text)
    except DurationError as error:
        return str(error)
    return ""


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
        parsed, found = declared[name].parse(key, value, plugin)
        complaints += found
        if declared[name].is_pattern:
            values[name][declared[name].gap(key)] = parsed
        else:
            values[name] = parsed
    return values, complaints


def _pattern_for(key: str, declared: Mapping[str, Argument[Any]]) -> str | None:
    matching = [(len(spec.key), name) for name, spec in declared.items() if spec.is_pattern and spec.gap(key)]
    return max(matching)[1] if matching else None


def _undeclared(plugin: str, key: str, declared: Iterable[Argument[Any]]) -> Complaint:
    if why := tolerated(plugin, key):
        text = f"argument {key} of {plugin} is accepted, but has no effect here: {why}"
        return Complaint("tolerated", text, plugin, key)
    close = nearest(key, [spec.key for spec in declared])
    hint = f"; did you mean {close!r}?" if close else ""
    return Complaint("unknown", f"unknown argument {key} of {plugin} is ignored{hint}", plugin, key, nearest=close)


def tolerated(owner: str, key: str) -> str:
    """Why the argument ``key`` of a plugin or action is accepted and changes nothing; empty for any other."""
    return TOLERATED.get(owner, {}).get(key, "")


def nearest(name: str, known: Collection[str]) -> str:
    """The known name that was probably meant, or an empty text; upper and lower case don't matter."""
    by_folded = {candidate.casefold(): candidate for candidate in sorted(known)}
    close = difflib.get_close_matches(name.casefold(), by_folded)
    return by_folded[close[0]] if close else ""
