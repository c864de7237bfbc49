"""Expressions in the objects of an installation, with two readings: a value here, or text of a template of Helm.

An object is a tree of mappings, lists and scalars in which any value may be an :class:`Expression`.  ``value`` answers
what it is for given settings, ``go`` the same in the language of Go's templates.  Tests hold the two together by Helm
itself.  A :data:`Scope` has what Helm's has: ``Values``, ``Release``, ``Chart`` and ``Files``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, TypeAlias

from stromboli.model.values.patterns import pattern

Scope: TypeAlias = Mapping[str, Any]
Node: TypeAlias = Any
"""A tree: None, bool, int, float, str, an :class:`Expression`, or a mapping or list of such."""


class Expression:
    """Something that is known only when the settings are."""

    def value(self, scope: Scope) -> Any:
        """What it is in ``scope``."""
        raise NotImplementedError

    def go(self) -> str:
        """The same for Go's templates, as an operand."""
        raise NotImplementedError


def value_of(node: Node, scope: Scope) -> Any:
    """What an operand is: an expression, or a mapping or list with such, or itself."""
    if isinstance(node, Expression):
        return node.value(scope)
    if isinstance(node, Mapping):
        return {key: value_of(one, scope) for key, one in node.items()}
    return [value_of(one, scope) for one in node] if isinstance(node, list | tuple) else node


def go_of(node: Node) -> str:
    """An operand in the language of Go's templates."""
    if isinstance(node, Expression):
        return node.go()
    if isinstance(node, Mapping):
        pairs = (word for key, one in node.items() for word in (json.dumps(key), go_of(one)))
        return f"({' '.join(('dict', *pairs))})"
    if isinstance(node, list | tuple):
        return f"({' '.join(('list', *map(go_of, node)))})"
    return "nil" if node is None else json.dumps(node, ensure_ascii=False)


def text_of(value: object) -> str:
    """A value as part of a text."""
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


@dataclass(frozen=True)
class Value(Expression):
    """One of the scope's values by its path, such as ``Release.Name``; numbers are read as whole ones if ``whole``."""

    path: str
    whole: bool = False

    def value(self, scope: Scope) -> Any:
        """The value, None where it is missing."""
        found: Any = scope
        for name in self.path.split("."):
            found = found.get(name) if isinstance(found, Mapping) else None
        return int(found) if self.whole and found is not None else found

    def go(self) -> str:
        """``.Values.custom.x``, or its whole number: Helm reads all numbers as floating ones."""
        return f"(int64 .{self.path})" if self.whole else f".{self.path}"


@dataclass(frozen=True)
class File(Expression):
    """The text of a file of the chart; empty if there is none."""

    name: Node

    def value(self, scope: Scope) -> str:
        """The text."""
        return str(scope["Files"].get(value_of(self.name, scope), ""))

    def go(self) -> str:
        """By Helm's ``.Files.Get``."""
        return f"(.Files.Get {go_of(self.name)})"


@dataclass(frozen=True)
class Call(Expression):
    """A function of operands; :data:`FUNCTIONS` has its two forms."""

    name: str
    operands: Sequence[Node]

    def value(self, scope: Scope) -> Any:
        """What the function answers."""
        return FUNCTIONS[self.name][1](*(value_of(one, scope) for one in self.operands))

    def go(self) -> str:
        """The call in parentheses."""
        return FUNCTIONS[self.name][0].format(*map(go_of, self.operands), all=" ".join(map(go_of, self.operands)))


def _merged(*maps: Mapping[str, Any] | None) -> dict[str, Any]:
    return {key: value for one in maps for key, value in (one or {}).items()}


FUNCTIONS: Mapping[str, tuple[str, Any]] = {
    "first": ("(coalesce {all})", lambda *found: next((one for one in found if one), None)),
    "any": ("(or {all})", lambda *found: any(found)),
    "all": ("(and {all})", lambda *found: all(found)),
    "no": ("(not {0})", lambda one: not one),
    "is_set": ('(not (kindIs "invalid" {0}))', lambda one: one is not None),
    "same": ("(eq (toString {0}) (toString {1}))", lambda one, other: text_of(one) == text_of(other)),
    "more": ("(gt (int64 {0}) (int64 {1}))", lambda one, other: int(one or 0) > int(other)),
    "contains": ("(contains {1} (toString {0}))", lambda text, part: part in text_of(text)),
    "matches": (
        "(regexMatch {1} (toString {0}))",
        lambda text, wanted: pattern(wanted).found_in(text_of(text)),  # RE2, as in Helm
    ),
    "begins": ("(hasPrefix {1} (toString {0}))", lambda text, start: text_of(text).startswith(start)),
    "either": ("(ternary {1} {2} (not (not {0})))", lambda is_so, one, other: one if is_so else other),
    "merged": ("(mergeOverwrite (dict) {all})", _merged),
    "filled": ("(default (dict) {0})", lambda one: one or {}),
    "base": ("(base {0})", lambda path: PurePosixPath(path).name),
    "entry": ("(dict {0} {1})", lambda key, value: {key: value}),
    "extended": ("(concat {0} (default (list) {1}))", lambda one, more: [*one, *(more or ())]),
}
"""Each function in Go's templates (with the functions that Helm adds) and here."""


def first(*found: Node) -> Call:
    """The first that is neither empty nor zero nor missing."""
    return Call("first", found)


def either(is_so: Node, one: Node, other: Node) -> Call:
    """``one`` if ``is_so``, else ``other``."""
    return Call("either", (is_so, one, other))


def either_is(*found: Node) -> Call:
    """Whether any is neither empty nor zero nor missing."""
    return Call("any", found)


def both(*found: Node) -> Call:
    """Whether all are neither empty nor zero nor missing."""
    return Call("all", found)


def no(one: Node) -> Call:
    """Whether ``one`` is empty, zero or missing."""
    return Call("no", (one,))


def is_set(one: Node) -> Call:
    """Whether there is such a value, even an empty one."""
    return Call("is_set", (one,))


def same(one: Node, other: Node) -> Call:
    """Whether both are written alike."""
    return Call("same", (one, other))


def more(one: Node, other: Node) -> Call:
    """Whether the first is the larger number."""
    return Call("more", (one, other))


def matches(one: Node, wanted: str) -> Call:
    """Whether a part of the text matches a regular expression."""
    return Call("matches", (one, wanted))


def merged(*maps: Node) -> Call:
    """The mappings as one; later ones win."""
    return Call("merged", [Call("filled", (one,)) if isinstance(one, Expression) else one for one in maps])


@dataclass(frozen=True)
class Text(Expression):
    """A text of several parts."""

    parts: Sequence[Node]

    def value(self, scope: Scope) -> str:
        """The parts in a row."""
        return "".join(text_of(value_of(one, scope)) for one in self.parts)

    def go(self) -> str:
        """By ``printf``, which writes whole numbers and switches as they are."""
        form = "".join(one.replace("%", "%%") if isinstance(one, str) else "%v" for one in self.parts)
        operands = (go_of(one) for one in self.parts if not isinstance(one, str))
        return f"(printf {json.dumps(form, ensure_ascii=False)} {' '.join(operands)})"


def text(*parts: Node) -> Text:
    """A text of several parts, each a text or an expression."""
    return Text(parts)


@dataclass(frozen=True)
class When:
    """A value of a mapping, an item of a list, or an object that is there only under a condition."""

    condition: Node
    then: Node


@dataclass(frozen=True)
class Refusal:
    """An installation that is refused under a condition, and why."""

    condition: Node
    message: str
