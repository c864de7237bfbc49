"""What is refused of custom resource definitions; texts are Kubernetes' own.

A definition that passes can be served: nothing that it says makes the server fail later, or cost it without bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from stromboli.cluster.body import Body, meta, part
from stromboli.server.schema.decoding import wrong_values
from stromboli.server.schema.expression_rules import mistaken
from stromboli.server.schema.names import no_dns_1035, no_subdomain
from stromboli.server.schema.schema import CUSTOM
from stromboli.server.schema.structural_rules import wrong_list, wrong_root, wrong_structure
from stromboli.server.status_errors import Cause, closed, required, unsupported, wrong

_SCOPES: Final = ("Cluster", "Namespaced")
_STRATEGIES: Final = ("None", "Webhook")
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_LIST_TYPES: Final = ("atomic", "map", "set")
_MAP_TYPES: Final = ("atomic", "granular")
_NOT_SUPPORTED: Final = (
    "$ref", "$schema", "additionalItems", "definitions", "dependencies", "id", "patternProperties",
)  # fmt: skip
_BOUNDS: Final = ("maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties")
_APPROVED: Final = "api-approved.kubernetes.io"
_PROTECTED: Final = ("k8s.io", "kubernetes.io")
_MOST_VERSIONS: Final = 100
_SCALE_PATHS: Final = {
    "specReplicasPath": (".spec",),
    "statusReplicasPath": (".status",),
    "labelSelectorPath": (".spec", ".status"),
}
_UNIQUE: Final = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"


def wrong_definition(body: Body) -> Iterator[Cause]:
    """What is wrong with a CustomResourceDefinition."""
    spec, names = body.get("spec") or {}, part(body, "spec", "names") or {}
    wanted = f"{names.get('plural', '')}.{spec.get('group', '')}"
    if meta(body).get("name") != wanted:
        yield wrong("metadata.name", meta(body).get("name", ""), 'must be spec.names.plural+"."+spec.group')
    yield from _group(body, spec.get("group", ""))
    yield from _one_of("spec.scope", spec.get("scope"), _SCOPES)
    yield from _names(names, "spec.names")
    yield from _versions(spec.get("versions") or (), "spec.versions")
    if spec.get("preserveUnknownFields"):
        yield wrong("spec.preserveUnknownFields", True, "must be false")
    if spec.get("conversion") is not None:
        yield from _conversion(spec["conversion"], "spec.conversion")


def _conversion(conversion: Body, path: str) -> Iterator[Cause]:
    yield from _one_of(f"{path}.strategy", conversion.get("strategy"), _STRATEGIES)
    webhook = conversion.get("webhook")
    if conversion.get("strategy") != "Webhook":
        if webhook is not None:
            yield closed(f"{path}.webhook", "should not be set when strategy is not set to Webhook")
        return
    config, where = (webhook or {}).get("clientConfig"), f"{path}.webhookClientConfig"
    if config is None:
        yield required(where, "required when strategy is set to Webhook")
    elif (config.get("url") is None) == (config.get("service") is None):
        yield required(where, "exactly one of url or service is required")
    if not (webhook or {}).get("conversionReviewVersions"):
        yield required(f"{path}.conversionReviewVersions")


def _one_of(path: str, value: Any, known: Sequence[str]) -> Iterator[Cause]:
    if not value:
        yield required(path)
    elif value not in known:
        yield unsupported(path, value, known)


def _group(body: Body, group: str) -> Iterator[Cause]:
    path = "spec.group"
    if not group:
        yield required(path)
    elif told := no_subdomain(group):
        yield wrong(path, group, told)
    elif "." not in group:
        yield wrong(path, group, "should be a domain with at least one dot")
    protected = any(group == one or group.endswith(f".{one}") for one in _PROTECTED)
    if protected and not (meta(body).get("annotations") or {}).get(_APPROVED):
        told = "protected groups must have approval annotation"
        yield required(f"metadata.annotations[{_APPROVED}]", f'{told} "{_APPROVED}"')


def _names(names: Mapping[str, Any], path: str) -> Iterator[Cause]:
    for name in ("plural", "singular", "kind", "listKind"):
        given = names.get(name, "")
        mixed = name in ("kind", "listKind")
        if not given:
            yield required(f"{path}.{name}")
        elif told := no_dns_1035(given.lower() if mixed else given):
            told = f"may have mixed case, but should otherwise match: {told}" if mixed else told
            yield wrong(f"{path}.{name}", given, told)
    for name in ("shortNames", "categories"):
        for index, given in enumerate(names.get(name) or ()):
            if told := no_dns_1035(given):
                yield wrong(f"{path}.{name}[{index}]", given, told)
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        yield wrong(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same")


def _versions(versions: Sequence[Body], path: str) -> Iterator[Cause]:
    if not versions:
        yield required(path)
    if len(versions) > _MOST_VERSIONS:
        yield wrong(path, len(versions), f"must have at most {_MOST_VERSIONS} versions")
        return
    if sum(1 for one in versions if one.get("storage")) != 1:
        yield wrong(path, versions, "must have exactly one version marked as storage version")
    names = [one.get("name", "") for one in versions]
    if len(set(names)) < len(names):
        yield wrong(path, versions, "must contain unique version names")
    for index, version in enumerate(versions):
        yield from _version(version, f"{path}[{index}]")


def _version(version: Body, path: str) -> Iterator[Cause]:
    if told := no_dns_1035(version.get("name", "")):
        yield wrong(f"{path}.name", version.get("name", ""), told)
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        yield from _column(column, f"{path}.additionalPrinterColumns[{index}]")
    scale = part(version, "subresources", "scale")
    if scale is not None:
        yield from _scale(scale, f"{path}.subresources.scale")
    schema, where = part(version, "schema", "openAPIV3Schema"), f"{path}.schema.openAPIV3Schema"
    if schema is None:
        yield required(where, "schemas are required")
        return
    causes = [*wrong_root(schema, where), *_schema(schema, where)]
    yield from causes or _defaults(schema, where)


def _scale(scale: Body, path: str) -> Iterator[Cause]:
    for name, parents in _SCALE_PATHS.items():
        given = scale.get(name)
        if not given and name != "labelSelectorPath":
            yield required(f"{path}.{name}")
        elif given and not given.startswith("."):
            yield wrong(f"{path}.{name}", given, "must be a simple json path starting with .")
        elif given and not given.startswith(tuple(f"{parent}." for parent in parents)):
            either = "either " * (len(parents) > 1) + " or ".join(parents)
            yield wrong(f"{path}.{name}", given, f"should be a json path under {either}")


def _defaults(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with the defaults of a schema that is sound, and of all below it."""
    if schema.get("default") is not None:
        yield from wrong_values(CUSTOM.open(schema), schema["default"], f"{path}.default")
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), Mapping):
            yield from _defaults(schema[name], f"{path}.{name}")
    for name, inner in (schema.get("properties") or {}).items():
        yield from _defaults(inner, f"{path}.properties[{name}]")


def _column(column: Body, path: str) -> Iterator[Cause]:
    if not column.get("name"):
        yield required(f"{path}.name")
    yield from _one_of(f"{path}.type", column.get("type"), _COLUMN_TYPES)
    if not column.get("jsonPath"):
        yield required(f"{path}.jsonPath")


def _schema(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    """What is wrong with a schema and all below it; how deep it goes was bounded when it was read."""
    for name in _NOT_SUPPORTED:
        if name in schema:
            yield closed(f"{path}.{name}", f"{name} is not supported")
    if schema.get("type"):
        yield from _one_of(f"{path}.type", schema["type"], _TYPES)
    if schema.get("uniqueItems"):
        yield closed(f"{path}.uniqueItems", _UNIQUE)
    for name in _BOUNDS:
        if schema.get(name, 0) < 0:
            yield wrong(f"{path}.{name}", schema[name], "must be greater than or equal to 0")
    yield from wrong_structure(schema, path)
    yield from mistaken(schema, path)
    yield from _list_type(schema, path)
    if schema.get("x-kubernetes-map-type") is not None:
        yield from _one_of(f"{path}.x-kubernetes-map-type", schema["x-kubernetes-map-type"], _MAP_TYPES)
    yield from _below(schema, path)


def _list_type(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    kind = schema.get("x-kubernetes-list-type")
    if kind is not None:
        yield from _one_of(f"{path}.x-kubernetes-list-type", kind, _LIST_TYPES)
        if schema.get("type") != "array":
            told = "must be array if x-kubernetes-list-type is specified"
            yield wrong(f"{path}.type", schema.get("type", ""), told)
    yield from wrong_list(schema, path)


def _below(schema: Mapping[str, Any], path: str) -> Iterator[Cause]:
    items, values = schema.get("items"), schema.get("additionalProperties")
    if schema.get("type") == "array" and items is None:
        yield required(f"{path}.items", "must be specified")
    if items is not None and not isinstance(items, Mapping):
        yield closed(f"{path}.items", "items must be a schema object and not an array")
    elif items is not None:
        yield from _typed(items, f"{path}.items", "array items")
    if values is False:
        yield closed(f"{path}.additionalProperties", "additionalProperties cannot be set to false")
    if values is not None and schema.get("properties"):
        told = "additionalProperties and properties are mutual exclusive"
        yield closed(f"{path}.additionalProperties", told)
    if isinstance(values, Mapping):
        yield from _typed(values, f"{path}.additionalProperties", "object fields")
    for name, inner in (schema.get("properties") or {}).items():
        yield from _typed(inner, f"{path}.properties[{name}]", "object fields")


def _typed(schema: Mapping[str, Any], path: str, what: str) -> Iterator[Cause]:
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if not schema.get("type") and not free and "$ref" not in schema:
        yield required(f"{path}.type", f"must not be empty for specified {what}")
    yield from _schema(schema, path)
