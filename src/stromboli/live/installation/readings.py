"""The two readings of a tree: the object that it is for given settings, and its template for Helm."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml

from stromboli.errors import ConfigError
from stromboli.live.installation.expressions import Expression, Node, Refusal, Scope, When, go_of, value_of


def evaluated(nodes: Iterable[Node], scope: Scope) -> list[Any]:
    """The objects that are there in ``scope``.  Raises ConfigError where the settings are refused."""
    found = []
    for node in nodes:
        if isinstance(node, Refusal):
            if value_of(node.condition, scope):
                raise ConfigError(node.message)
        elif (there := _there(node, scope)) is not None:
            found.append(_object(there, scope))
    return found


def _there(node: Node, scope: Scope) -> Node:
    """What stands behind conditions, None if one does not hold."""
    while isinstance(node, When):
        node = node.then if value_of(node.condition, scope) else None
    return node


def _object(node: Node, scope: Scope) -> Any:
    if isinstance(node, Mapping):
        pairs = ((key, _there(one, scope) if isinstance(one, When) else one, one) for key, one in node.items())
        return {key: _object(one, scope) for key, one, was in pairs if one is not None or not isinstance(was, When)}
    if isinstance(node, list | tuple):
        return [_object(one, scope) for one in (_there(one, scope) for one in node) if one is not None]
    return value_of(node, scope)


# -------------------------------------------------------------------------------------------------- templates


def template(nodes: Iterable[Node]) -> str:
    """The template that makes the objects, a YAML document each."""
    return "".join(line + "\n" for node in nodes for line in _document(node))


def _document(node: Node) -> Iterator[str]:
    if isinstance(node, Refusal):
        yield f"{{{{- if {go_of(node.condition)} }}}}"
        yield f"{{{{- fail {json.dumps(node.message, ensure_ascii=False)} }}}}"
        yield "{{- end }}"
    elif isinstance(node, When):
        yield f"{{{{- if {go_of(node.condition)} }}}}"
        yield from _document(node.then)
        yield "{{- end }}"
    else:
        yield "---"
        yield from _lines(node)


def _lines(node: Node) -> Iterator[str]:
    """A mapping or list that is not empty, as lines of YAML."""
    entries = node.items() if isinstance(node, Mapping) else ((None, one) for one in node)
    for key, one in entries:
        yield from _entry(key, one)


def _entry(key: str | None, node: Node) -> Iterator[str]:
    """A key of a mapping with its value, or an item of a list if ``key`` is None."""
    if isinstance(node, When):
        yield f"{{{{- if {go_of(node.condition)} }}}}"
        yield from _entry(key, node.then)
        yield "{{- end }}"
        return
    head = "-" if key is None else f"{_scalar(key)}:"
    if not isinstance(node, Expression) and isinstance(node, Mapping | list | tuple) and node:
        yield from _nested(head, key is None, _lines(node), isinstance(node, Mapping))
    elif isinstance(node, str) and "\n" in node:
        yield f"{head} |{'' if node.endswith(chr(10)) else '-'}"
        yield from (f"  {line}".rstrip() for line in _escaped(node).rstrip("\n").split("\n"))
    else:
        yield f"{head} {_inline(node)}"


def _nested(head: str, is_item: bool, lines: Iterator[str], is_mapping: bool) -> Iterator[str]:
    """Lines below ``head``; a mapping in a list begins on the line of its dash, unless a condition begins it."""
    indent = "" if not is_item and not is_mapping else "  "
    begun = False
    if not is_item:
        yield head
        begun = True
    for line in lines:
        is_action = line.startswith("{{-")
        if not begun and not is_action:
            yield f"{head} {line}"
        elif not begun:
            yield head
            yield line
        else:
            yield line if is_action or not line else indent + line
        begun = True


def _inline(node: Node) -> str:
    """A scalar, an empty collection, or an expression whose value is written as JSON, which is YAML, too."""
    if isinstance(node, Expression):
        return f"{{{{ toJson {node.go()} }}}}"
    return json.dumps(node) if isinstance(node, Mapping | list | tuple) else _scalar(node)


def _scalar(value: object) -> str:
    return _escaped(yaml.safe_dump(value, width=10**6, allow_unicode=True).removesuffix("\n...\n").strip())


def _escaped(text: str) -> str:
    """A text that Helm leaves as it is."""
    return text.replace("{{", '{{ "{{" }}')
