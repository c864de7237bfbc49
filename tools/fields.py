"""The page docs/fields.md: every field of our kinds, and which test shows that it is acted on.

The fields come from the types; :mod:`tests.crds.field_uses` says which test executes what a field means, or why nothing
acts on it.  That all are accepted, stored and shown is held by one test for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stromboli.api.fields import CLAIM, POD_TEMPLATE
from stromboli.api.kinds import KINDS, Kind
from stromboli.crds.kubernetes_types import structural
from stromboli.crds.schema import Schema, schema_of
from tests.crds.field_uses import ELSEWHERE, USES

PAGED = ("Job", "PodGroup", "Queue", "HyperNode", "Command")
"""Kinds that the page has."""
STORED = "tests/server/test_fields.py"
_HEAD = ("| field | type | meaning | acted on |", "|---|---|---|---|")
_KUBERNETES = tuple(structural(name)["properties"] for name in (POD_TEMPLATE, CLAIM))
_TOP = ("apiVersion", "kind", "metadata")


@dataclass(frozen=True)
class Field:
    """A field: its path in the object, its type in words, and what it means."""

    path: str
    type: str
    meaning: str


def fields_of(kind: Kind) -> list[Field]:
    """All fields of a kind, in the order of its types; those of Kubernetes' own objects are left out."""
    return list(_fields(schema_of(kind), ""))


def _fields(schema: Schema, above: str) -> Iterator[Field]:
    properties = schema.get("properties")
    for name, found in properties.items() if isinstance(properties, dict) else ():
        if not above and name in _TOP:
            continue
        path = f"{above}.{name}".lstrip(".")
        words, inner = _described(found)
        yield Field(path, words, str(found.get("description", "")))
        if inner.get("properties") not in _KUBERNETES:
            yield from _fields(inner, path)


def _described(schema: Schema) -> tuple[str, Schema]:
    """The type in words, and what is inside of lists and maps."""
    entries, fields = schema.get("items"), schema.get("additionalProperties")
    for word, inside in (("list of", entries), ("map of", fields)):
        if isinstance(inside, dict):
            words, inner = _described(inside)
            return f"{word} {words}", inner
    if schema.get("x-kubernetes-int-or-string"):
        return "quantity", schema
    return str(schema.get("format") or schema["type"]), schema


def use_of(kind: str, path: str) -> tuple[str, str]:
    """(test, reason) for a field: its own, or that of the nearest field around it."""
    while path:
        if path in USES[kind]:
            return USES[kind][path], ""
        if path in ELSEWHERE[kind]:
            return "", ELSEWHERE[kind][path]
        path = path.rpartition(".")[0]
    return "", ""


def page() -> str:
    """The whole page."""
    lines = [*_INTRODUCTION]
    for name in PAGED:
        kind = KINDS[name]
        lines += [
            "",
            f"## {name}",
            "",
            f"`{kind.api_version}`",
            "",
            "| field | type | meaning | acted on |",
            "|---|---|---|---|",
        ]
        lines += [_row(name, field) for field in fields_of(kind)]
    return "\n".join(lines) + "\n"


def _row(kind: str, field: Field) -> str:
    test, reason = use_of(kind, field.path)
    file, _, function = test.partition("::")
    acted = f"`{function}` in {file}" if test else reason
    return f"| `{field.path}` | {field.type} | {field.meaning} | {acted} |"


_INTRODUCTION = f"""\
# Fields

Generated from the types in `stromboli.api` and the tests that use them. Every field below is accepted, stored, given
back as it was written and explained (`kubectl explain`); {STORED} holds the embedded server to that, field by
field. The last column names the test that executes what the field means, or says why nothing acts on it.
""".splitlines()
