"""Sets of fields, as managers of an object own them.

A field is a path of steps in the spelling of ``managedFields``: ``f:name`` into an object, ``k:{…}`` to the item of
a list with these keys, ``v:…`` to this value in a set, ``.`` for a map, list or item itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from stromboli.cluster.body import Body, decode, encode
from stromboli.server.schema.schema import Schema
from stromboli.server.status_errors import too_large_to_keep

Path: TypeAlias = tuple[str, ...]
Fields: TypeAlias = frozenset[Path]


MOST_STEPS: Final = 2_000_000
"""Steps of all paths of an object together; deep objects with many fields would grow beyond all bounds as paths."""


def leaves(schema: Schema | None, value: Any) -> dict[Path, Any]:
    """All fields of a value, with what stands in them; what is atomic is one field."""
    found: dict[Path, Any] = {}
    _collect(schema, value, (), found)
    return found


def _collect(schema: Schema | None, value: Any, path: Path, found: dict[Path, Any]) -> None:
    if isinstance(value, dict) and not _is_atomic(schema):
        _collect_object(schema, value, path, found)
    elif isinstance(value, list) and schema is not None and schema.list_type in ("map", "set"):
        if not value:
            found[*path, "."] = None
        for item in value:
            _collect_item(schema, item, path, found)
    else:
        found[path] = value
        if len(found) * len(path) > MOST_STEPS:
            raise too_large_to_keep()


def _is_atomic(schema: Schema | None) -> bool:
    return schema is not None and schema.atomic


def _collect_object(schema: Schema | None, value: Body, path: Path, found: dict[Path, Any]) -> None:
    if path and not value:
        found[*path, "."] = None
    for name, inner in value.items():
        _collect(None if schema is None else schema.field(name), inner, (*path, f"f:{name}"), found)


def _collect_item(schema: Schema, item: Any, path: Path, found: dict[Path, Any]) -> None:
    step = step_of(schema, item)
    if schema.list_type == "set":
        found[*path, step] = None
        return
    found[*path, step, "."] = None
    _collect(schema.items, item, (*path, step), found)


def step_of(schema: Schema, item: Any) -> str:
    """The step to an item of a list that is no atomic one."""
    if schema.list_type == "set":
        return "v:" + encode(item).decode()
    keys = {key: _key_value(schema, item, key) for key in sorted(schema.map_keys)}
    return "k:" + encode({key: value for key, value in keys.items() if value is not None}).decode()


def _key_value(schema: Schema, item: Body, key: str) -> Any:
    part = schema.items.field(key) if schema.items is not None else None
    return item.get(key, part.default if part is not None else None)


def to_tree(fields: Iterable[Path]) -> Body:
    """Fields as ``fieldsV1`` nests them."""
    tree: Body = {}
    for path in sorted(fields):
        node = tree
        for step in path:
            node = node.setdefault(step, {})
    return tree


def of_tree(tree: Mapping[str, Any]) -> Fields:
    """Fields from the nesting of ``fieldsV1``."""
    found: set[Path] = set()
    _walk(tree, (), found)
    return frozenset(found)


def is_tree(tree: Any) -> bool:
    """Whether a value is such a nesting: users may write it themselves."""
    open_ones, steps = [(tree, 0)], 0
    while open_ones:
        node, depth = open_ones.pop()
        if not isinstance(node, dict) or not all(map(_is_step, node)):
            return False
        steps += depth * len(node)
        if steps > MOST_STEPS:
            return False
        open_ones += [(inner, depth + 1) for inner in node.values()]
    return True


def _is_step(step: str) -> bool:
    kind, _, name = step.partition(":")
    if kind not in ("k", "v"):
        return step == "." or kind in ("f", "i")
    try:
        value = decode(name.encode())
    except msgspec.DecodeError:
        return False
    return kind == "v" or isinstance(value, dict)


def _walk(tree: Mapping[str, Any], path: Path, found: set[Path]) -> None:
    for step, inner in tree.items():
        if inner:
            _walk(inner, (*path, step), found)
        else:
            found.add((*path, step))


def shown(path: Path) -> str:
    """A field as messages spell it: ``.spec.containers[name="main"].image``."""
    return "".join(_shown_step(step) for step in path if step != ".")


def _shown_step(step: str) -> str:
    kind, _, name = step.partition(":")
    if kind == "k":
        return "[" + ",".join(f"{key}={encode(value).decode()}" for key, value in decode(name.encode()).items()) + "]"
    return f"[={name}]" if kind == "v" else f".{name}"


def without(schema: Schema | None, value: Any, fields: Iterable[Path]) -> Any:
    """The value without some fields; maps, lists and items that are left empty and were named themselves go too."""
    return _without(schema, value, to_tree(fields))


def _without(schema: Schema | None, value: Any, tree: Mapping[str, Any]) -> Any:
    if isinstance(value, list) and schema is not None:
        return _without_items(schema, value, tree)
    if not isinstance(value, dict):
        return value
    result: Body = {}
    for name, inner in value.items():
        named = tree.get(f"f:{name}")
        left = inner if named is None else _without(None if schema is None else schema.field(name), inner, named)
        if named is None or (named and (left or "." not in named)):
            result[name] = left
    return result


def _without_items(schema: Schema, items: Sequence[Any], tree: Mapping[str, Any]) -> list[Any]:
    return [kept for item in items if (kept := _kept_item(schema, item, tree)) is not None]


def _kept_item(schema: Schema, item: Any, tree: Mapping[str, Any]) -> Any:
    named = tree.get(step_of(schema, item))
    if named is None:
        return item
    left = None if "." in named else _without(schema.items, item, named)
    if not left:
        return None  # what no manager set in it, defaults for instance, goes with it
    return {**{key: item[key] for key in schema.map_keys if key in item}, **left}


def merged(schema: Schema | None, value: Any, applied: Any) -> Any:
    """The value with what is applied over it: objects field by field, lists with keys item by item."""
    if isinstance(value, dict) and isinstance(applied, dict) and not _is_atomic(schema):
        result = dict(value)
        for name, inner in applied.items():
            part = None if schema is None else schema.field(name)
            result[name] = merged(part, value.get(name), inner)
        return result
    if isinstance(value, list) and isinstance(applied, list) and schema is not None and schema.list_type != "atomic":
        return _merged_list(schema, value, applied)
    return applied


def _merged_list(schema: Schema, value: list[Any], applied: list[Any]) -> list[Any]:
    given = {step_of(schema, item): item for item in applied}
    result = []
    for item in value:
        step = step_of(schema, item)
        result.append(merged(schema.items, item, given.pop(step)) if step in given else item)
    return result + list(given.values())
