"""Custom resource definitions: what they serve, and how their objects look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from stromboli.cluster.body import Body, meta, part
from stromboli.server.schema.expression_rules import not_evaluated as unevaluated_rules
from stromboli.server.schema.resources import CUSTOM_VERBS, Resource
from stromboli.server.schema.schema import CUSTOM, META, Schema

_MOST_TOLD: Final = 16
"""Most rules that one answer names."""
COLLECTION: Final = ("apiextensions.k8s.io", "customresourcedefinitions")
_HEAD: Final[Mapping[str, Any]] = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {"$ref": META},
}
_ANYTHING: Final[Mapping[str, Any]] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def collection_of(definition: Body) -> tuple[str, str]:
    """The collection of the objects that a definition defines."""
    return part(definition, "spec", "group"), part(definition, "spec", "names", "plural")


def resources_of(definition: Body) -> Iterator[Resource]:
    """The kinds that a definition serves, a version each; the stored version first."""
    spec = definition.get("spec") or {}
    versions = sorted(spec.get("versions") or (), key=lambda version: not version.get("storage"))
    for version in versions:
        if version.get("served", True):
            yield _resource(spec, version)


def not_evaluated(resource: Resource, body: Body) -> Iterator[str]:
    """The first rules in the schemas of a definition that are stored and not evaluated; other kinds have none."""
    defined = resources_of(body) if resource.collection == COLLECTION else iter(())
    rules = (text[:256] for one in defined for text in unevaluated_rules(one.schema, one.version))
    yield from islice(rules, _MOST_TOLD)


def _resource(spec: Body, version: Body) -> Resource:
    names = spec["names"]
    return Resource(
        spec["group"],
        version["name"],
        names["plural"],
        names["kind"],
        spec.get("scope") == "Namespaced",
        tuple(names.get("shortNames") or ()),
        tuple(name for name in ("status", "scale") if name in (version.get("subresources") or {})),
        _schema(part(version, "schema", "openAPIV3Schema") or _ANYTHING),
        names.get("singular", ""),
        names.get("listKind", ""),
        tuple(names.get("categories") or ()),
        columns=tuple(
            version.get("additionalPrinterColumns")
            or ({"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},)
        ),
        verbs=CUSTOM_VERBS,
        custom=True,
    )


def _schema(raw: Mapping[str, Any]) -> Schema:
    return CUSTOM.open({**raw, "properties": {**raw.get("properties", {}), **_HEAD}})


def established(definition: Body) -> Body:
    """The status of a definition that is served."""
    since = meta(definition).get("creationTimestamp")
    conditions = [
        _condition("NamesAccepted", "NoConflicts", "no conflicts found", since),
        _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", since),
    ]
    stored = [
        version.get("name", "") for version in part(definition, "spec", "versions") or () if version.get("storage")
    ]
    return {"acceptedNames": part(definition, "spec", "names"), "conditions": conditions, "storedVersions": stored}


def _condition(kind: str, reason: str, message: str, since: str | None) -> Body:
    return {"lastTransitionTime": since, "message": message, "reason": reason, "status": "True", "type": kind}
