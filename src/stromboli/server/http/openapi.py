"""OpenAPI documents, from which kubectl validates, explains and merges."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from stromboli.cluster.body import Body, decode, encode
from stromboli.server.http.discovery import VERSION
from stromboli.server.http.openapi_protobuf import to_protobuf
from stromboli.server.http.openapi_v2 import merged
from stromboli.server.schema.resources import Catalogue, Resource, type_name
from stromboli.server.schema.schema import BOOK
from stromboli.server.verbs.patching import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH

_PREFIX: Final = "#/components/schemas/"
_QUERY: Final = ("dryRun", "fieldManager", "fieldValidation")
_PATCHES: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)


class Documents:
    """The documents of all groups, made when they are asked for and kept while nothing is added or removed."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._revision = -1
        self._made: dict[str, bytes] = {}

    def index(self) -> Body:
        """Where the documents are; the address changes with what is in them."""
        paths = dict.fromkeys(_path(resource) for resource in self._catalogue)
        return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={self._hash(path)}"} for path in paths}}

    def _hash(self, path: str) -> str:
        return hashlib.sha256(self.document(path) or b"").hexdigest().upper()

    def document(self, path: str) -> bytes | None:
        """The document of a group and version, e.g. of ``apis/apps/v1``; None if there is none."""
        made = self._still_right()
        if path not in made:
            resources = [resource for resource in self._catalogue if _path(resource) == path]
            if not resources:
                return None
            made[path] = encode(_document(resources))
        return made[path]

    def whole(self) -> bytes:
        """The document of everything in version 2."""
        made = self._still_right()
        if "" not in made:
            paths = dict.fromkeys(_path(resource) for resource in self._catalogue)
            made[""] = encode(merged(decode(self.document(path) or b"{}") for path in paths))
        return made[""]

    def whole_in_protobuf(self) -> bytes:
        """The same in protobuf."""
        made = self._still_right()
        if "protobuf" not in made:
            made["protobuf"] = to_protobuf(decode(self.whole()))
        return made["protobuf"]

    def _still_right(self) -> dict[str, bytes]:
        """What has been made since something was added or removed."""
        if self._revision != self._catalogue.revision:
            self._made.clear()
            self._revision = self._catalogue.revision
        return self._made


def _path(resource: Resource) -> str:
    return f"apis/{resource.group_version}" if resource.group else f"api/{resource.version}"


def _document(resources: list[Resource]) -> Body:
    schemas: dict[str, Any] = {}
    paths: dict[str, Any] = {}
    for resource in resources:
        name = schema_name(resource)
        schemas[name] = _linked(_described(resource))
        _add_used(resource.schema.raw, schemas)
        paths |= dict(_paths(resource, name))
    info = {"title": "Kubernetes", "version": VERSION["gitVersion"]}
    return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": schemas}}


def schema_name(resource: Resource) -> str:
    """Name of a kind's schema: groups of custom resources are turned round, as Kubernetes does it."""
    if not resource.custom:
        return type_name(resource.group, resource.kind, resource.version)
    return ".".join([*reversed(resource.group.split(".")), resource.version, resource.kind])


def _described(resource: Resource) -> Body:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    return {**resource.schema.raw, "x-kubernetes-group-version-kind": [kind]}


def _add_used(raw: Any, schemas: dict[str, Any]) -> None:
    for name in _references(raw):
        if name not in schemas:
            schemas[name] = {}  # types may hold themselves
            schemas[name] = _linked(BOOK.types[name])
            _add_used(BOOK.types[name], schemas)


def _references(raw: Any) -> Iterator[str]:
    if isinstance(raw, Mapping):
        for key, value in raw.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
    elif isinstance(raw, list):
        for one in raw:
            yield from _references(one)


def _linked(raw: Any) -> Any:
    """The schema with references as OpenAPI writes them; keys next to a reference need allOf."""
    if isinstance(raw, list):
        return [_linked(one) for one in raw]
    if not isinstance(raw, Mapping):
        return raw
    linked = {key: _linked(value) for key, value in raw.items()}
    target = raw.get("$ref")
    if not isinstance(target, str):
        return linked
    del linked["$ref"]
    return {**linked, "allOf": [{"$ref": _PREFIX + target}]} if linked else {"$ref": _PREFIX + target}


def _paths(resource: Resource, name: str) -> Iterator[tuple[str, Body]]:
    base = f"/{_path(resource)}/" + ("namespaces/{namespace}/" if resource.namespaced else "") + resource.plural
    yield base, {"get": _operation(resource, "list", name), "post": _operation(resource, "post", name)}
    if "get" in resource.verbs:
        one = {"get": "get", "put": "put", "patch": "patch", "delete": "delete"}
        yield base + "/{name}", {verb: _operation(resource, action, name) for verb, action in one.items()}


def _operation(resource: Resource, action: str, name: str) -> Body:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    content = {"application/json": {"schema": {"$ref": _PREFIX + name}}}
    anything = {"schema": {"type": "object"}}
    operation: Body = {
        "operationId": f"{action}{resource.group_version.title().replace('/', '').replace('.', '')}{resource.kind}",
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": kind,
        "responses": {"200": {"description": "OK", "content": content}},
    }
    if action in ("post", "put", "patch"):
        operation["parameters"] = [{"name": one, "in": "query", "schema": {"type": "string"}} for one in _QUERY]
        operation["requestBody"] = {
            "content": content if action != "patch" else dict.fromkeys(_patches(resource), anything)
        }
    return operation


def _patches(resource: Resource) -> Iterator[str]:
    """The kinds of patches that objects of a kind take; kubectl merges strategically wherever this is offered."""
    return (form for form in _PATCHES if form != STRATEGIC_PATCH or not resource.custom)
