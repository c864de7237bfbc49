"""Objects as tables: what kubectl asks for to print its columns."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from stromboli.cluster.body import Body, meta
from stromboli.server.print.columns import AGE, COLUMNS, NAME, Cell, Column
from stromboli.server.print.durations import age
from stromboli.server.print.group_columns import GROUP_COLUMNS
from stromboli.server.schema.resources import Resource

_STEP: Final = re.compile(
    r"""\.?([^.\[\]]+)|\[\s*['"]([^'"]+)['"]\s*\]|\[(\d{1,9}|\*)\]|\[\?\(@\.([^=\[]++)==\s*+["']?([^"')\[]*+)["']?\)\]"""
)


@lru_cache(maxsize=256)
def columns_of(resource: Resource) -> tuple[Column, ...]:
    """The columns of a kind."""
    if not resource.custom:
        found = GROUP_COLUMNS.get(resource.collection) or COLUMNS.get(resource.collection, (NAME, AGE))
        return tuple(found)
    return (NAME, *(_custom(column) for column in resource.columns or ())) if resource.columns else (NAME, AGE)


def _custom(column: Body) -> Column:
    path, kind = column.get("jsonPath", ""), column.get("type", "string")
    cell: Cell = _date_cell(path) if kind == "date" else lambda body, now: _shown(path_value(body, path), kind)
    described = column.get("description", "")
    return Column(column["name"], cell, column.get("priority", 0), kind, column.get("format", ""), described)


def _date_cell(path: str) -> Cell:
    def cell(body: Body, now: float) -> Any:
        value = path_value(body, path)
        return age(value, now) if isinstance(value, str) else None

    return cell


def _shown(value: Any, kind: str) -> Any:
    return value if value is None or kind != "string" or isinstance(value, str) else str(value)


def path_value(body: Any, path: str) -> Any:
    """The first value that a JSON path, as CustomResourceDefinitions use them, finds; None if there is none."""
    values = [body]
    for step in _STEP.finditer(path):
        values = [inner for value in values for inner in _follow(value, step)]
    return values[0] if values else None


def _follow(value: Any, step: re.Match[str]) -> Iterable[Any]:
    name, quoted, index, key, wanted = step.groups()
    if isinstance(value, list):
        if key is not None:
            return [item for item in value if isinstance(item, dict) and str(item.get(key.strip())) == wanted]
        if index is not None:
            return value if index == "*" else value[int(index) : int(index) + 1]
        return []
    found = value.get((name or quoted or "").replace("\\.", ".")) if isinstance(value, dict) else None
    return [] if found is None else [found]


def definitions(resource: Resource) -> list[Body]:
    """The heads of the columns."""
    return [
        {
            "name": column.name,
            "type": column.type,
            "format": column.format,
            "description": column.description,
            "priority": column.priority,
        }
        for column in columns_of(resource)
    ]


def row(resource: Resource, body: Body, now: float, include: str = "Metadata") -> Body:
    """One object's row; ``include`` says what of the object it brings along: Metadata, Object or None."""
    cells = [column.cell(body, now) for column in columns_of(resource)]
    return {"cells": cells, **_object(body, include)}


def _object(body: Body, include: str) -> Body:
    if include == "None":
        return {}
    if include == "Object":
        return {"object": body}
    return {"object": metadata_only(body)}


def metadata_only(body: Body) -> Body:
    """The object's metadata as an object of its own."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": meta(body)}


def table(
    resource: Resource, bodies: Iterable[Body], list_meta: Mapping[str, Any], now: float, include: str = "Metadata"
) -> Body:
    """A table of objects."""
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": dict(list_meta),
        "columnDefinitions": definitions(resource),
        "rows": [row(resource, body, now, include) for body in bodies],
    }
