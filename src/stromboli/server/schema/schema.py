"""Structural schemas: those of Kubernetes' own types, from a table, and those of custom resources."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from stromboli.cluster.body import Body
from stromboli.crds.kubernetes_types import types

META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_QUANTITY: Final = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING: Final = "int-or-string"
_PROPS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_OR_SCHEMA: Final = frozenset(f"{_PROPS}{other}" for other in ("OrArray", "OrBool", "OrStringArray"))
"""Types of which a value that is an object is a schema; the table of types says nothing of them."""
RULES: Final = "x-kubernetes-validations"
"""Rules in CEL about a value."""
_LIMITS: Final = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern", "enum")


class Schema:
    """How a value looks.  Parts are opened when they are asked for, as types may hold themselves."""

    def __init__(self, raw: Mapping[str, Any], book: Book, name: str = "") -> None:
        self.raw = raw
        self.book = book
        self.name = name
        self.type: str = raw.get("type", "")
        self.required: tuple[str, ...] = tuple(raw.get("required", ()))
        self.list_type: str = raw.get("x-kubernetes-list-type", "atomic")
        self.map_keys: tuple[str, ...] = tuple(raw.get("x-kubernetes-list-map-keys", ()))
        self.merge_key: str | None = raw.get("x-kubernetes-patch-merge-key")
        self.strategy: str = raw.get("x-kubernetes-patch-strategy", "")
        self.nullable = bool(raw.get("nullable"))
        self.keeps_unknown = bool(raw.get("x-kubernetes-preserve-unknown-fields"))
        self.is_object = bool(raw.get("x-kubernetes-embedded-resource"))
        self.is_quantity = name == _QUANTITY
        int_or_string = bool(raw.get("x-kubernetes-int-or-string")) or raw.get("format") == _INT_OR_STRING
        self.is_amount = self.is_quantity or int_or_string
        self.atomic = raw.get("x-kubernetes-map-type") == "atomic"
        self.default = raw.get("default")
        self.limited = any(limit in raw for limit in _LIMITS)

    @cached_property
    def properties(self) -> dict[str, Schema]:
        """Fields of an object by name."""
        return {name: self.book.open(raw) for name, raw in self.raw.get("properties", {}).items()}

    @cached_property
    def items(self) -> Schema | None:
        """What a list holds."""
        raw = self.raw.get("items")
        return self.book.open(raw) if isinstance(raw, Mapping) else None

    @cached_property
    def values(self) -> Schema | None:
        """What a map from free keys holds."""
        raw = self.raw.get("additionalProperties")
        return self.book.open(raw) if isinstance(raw, Mapping) else None

    @cached_property
    def defaults(self) -> dict[str, Any]:
        """Values that missing fields take; Go's zero values of required fields are none."""
        found = {name: schema.default for name, schema in self.properties.items()}
        known = {name: value for name, value in found.items() if value is not None}
        return known if self.book.custom else {name: value for name, value in known.items() if value}

    @cached_property
    def is_ruled(self) -> bool:
        """Whether this or a part of it states rules in CEL; Kubernetes' own types state none."""
        if self.name:
            return False
        parts = (*self.properties.values(), self.items, self.values)
        return bool(self.raw.get(RULES)) or any(one.is_ruled for one in parts if one is not None)

    @cached_property
    def schema_itself(self) -> Schema | None:
        """How an object looks that stands here in place of another form of value; None if nothing is known of it."""
        return self.book.named(_PROPS) if self.name in _OR_SCHEMA else None

    def field(self, name: str) -> Schema | None:
        """The schema of a field of an object, or of a value of a map."""
        return self.properties.get(name) or self.values


class Book:
    """Types by name, and the schemas that refer to them.

    ``custom``: those of custom resources, whose defaults all count.
    """

    def __init__(self, types: Mapping[str, Body], *, custom: bool = False) -> None:
        self.types = types
        self.custom = custom
        self._open: dict[str, Schema] = {}

    def named(self, name: str) -> Schema:
        """The schema of a type of the table."""
        if name not in self._open:
            self._open[name] = Schema(self.types[name], self, name)
        return self._open[name]

    def open(self, raw: Mapping[str, Any]) -> Schema:
        """The schema that ``raw`` describes, possibly by name."""
        name = raw.get("$ref")
        if name is None:
            return Schema(raw, self)
        if len(raw) == 1:
            return self.named(name)
        siblings = {key: value for key, value in raw.items() if key != "$ref"}
        return Schema({**self.types[name], **siblings}, self, name)


BOOK: Final = Book(types())
"""Kubernetes' own types."""
CUSTOM: Final = Book(types(), custom=True)
"""For schemas of custom resources, which have Kubernetes' metadata."""
