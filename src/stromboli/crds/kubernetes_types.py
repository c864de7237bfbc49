"""Kubernetes' own types, from a table that ``tools.kubernetes_schemas`` writes, and as parts of our definitions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from stromboli.api.fields import QUANTITY

Schema = dict[str, object]

_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_TEXTS: Final[Schema] = {"type": "object", "additionalProperties": {"type": "string"}}
_EITHER: Final[Schema] = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_SPECIAL: Final[Mapping[str, Schema]] = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": _EITHER,
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {**_EITHER, "pattern": QUANTITY},
    _META: {
        "type": "object",
        "properties": {"annotations": _TEXTS, "labels": _TEXTS},
        "x-kubernetes-preserve-unknown-fields": True,
    },
}
"""Types that a definition says in another way; of the metadata of templates it says what jobs use."""
_KEPT: Final = ("type", "format", "required")
"""What a definition takes over.

Values that are only limited by name, or by which items of a list are told apart, are left to the API server that gets
the pods: it may be newer than the table.
"""


@cache
def types() -> dict[str, dict[str, Any]]:
    """All types by name; do not change what it answers."""
    table = files("stromboli.crds").joinpath("kubernetes_types.json").read_bytes()
    return msgspec.json.decode(table, type=dict[str, dict[str, Any]])


@cache
def structural(name: str) -> Schema:
    """A type as a structural schema, with all that it consists of; do not change what it answers."""
    return _SPECIAL.get(name) or _structural(types()[name])


def _structural(raw: Mapping[str, Any]) -> Schema:
    if reference := raw.get("$ref"):
        return structural(reference)
    schema: Schema = {key: raw[key] for key in _KEPT if key in raw}
    if "properties" in raw:
        schema["properties"] = {name: _structural(inner) for name, inner in raw["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(raw.get(key), Mapping):
            schema[key] = _structural(raw[key])
    return schema
