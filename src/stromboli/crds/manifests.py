"""CustomResourceDefinitions of our kinds, as they are applied to a cluster."""

from __future__ import annotations

from typing import Final

from stromboli.api.kinds import ALL, Column, Kind
from stromboli.crds.schema import Schema, schema_of

API_VERSION: Final = "apiextensions.k8s.io/v1"
KIND: Final = "CustomResourceDefinition"
KEEP: Final = {"helm.sh/resource-policy": "keep"}
"""Taking the installation away leaves definitions, and so the objects, where they are."""


def definition(kind: Kind) -> Schema:
    """The CustomResourceDefinition of one kind."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": kind.resource, "annotations": dict(KEEP)},
        "spec": {
            "group": kind.group,
            "names": _names(kind),
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [_version(kind)],
        },
    }


def definitions() -> list[Schema]:
    """The CustomResourceDefinitions of all our kinds."""
    return [definition(kind) for kind in ALL]


def _names(kind: Kind) -> Schema:
    names: Schema = {
        "kind": kind.kind,
        "listKind": f"{kind.kind}List",
        "plural": kind.plural,
        "singular": kind.kind.lower(),
    }
    return {**names, "shortNames": list(kind.short_names)} if kind.short_names else names


def _version(kind: Kind) -> Schema:
    version: Schema = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema_of(kind)},
    }
    if kind.columns:
        version["additionalPrinterColumns"] = [_column(column) for column in kind.columns]
    return {**version, "subresources": {"status": {}}} if kind.status else version


def _column(column: Column) -> Schema:
    shown: Schema = {"name": column.name, "jsonPath": column.json_path, "type": column.type}
    return {**shown, "priority": column.priority} if column.priority else shown
