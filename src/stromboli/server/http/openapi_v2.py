"""One OpenAPI v2 document of everything, made of those of version 3: for clients that know no other.

Terraform's provider, kustomize and older tools read it as JSON, Kubernetes' own clients of before 1.27 in protobuf.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from stromboli.cluster.body import Body

_FROM: Final = "#/components/schemas/"
_TO: Final = "#/definitions/"
_CHOICES: Final = frozenset({"oneOf", "anyOf", "not"})
"""Words that version 2 lacks."""
_JSON: Final = "application/json"
_IN_PATH: Final = re.compile(r"{(\w+)}")


def merged(documents: Iterable[Body]) -> Body:
    """One document of version 2 that says what ``documents`` of version 3 say."""
    found: Body = {"swagger": "2.0", "info": {}, "paths": {}, "definitions": {}}
    for document in documents:
        found["info"] = document["info"]
        found["definitions"] |= {name: schema_of(raw) for name, raw in document["components"]["schemas"].items()}
        found["paths"] |= {path: dict(_path(path, verbs)) for path, verbs in document["paths"].items()}
    return found


def schema_of(raw: Any) -> Any:
    """A schema in the words of version 2.

    A value of several types is a text where Kubernetes says so (quantities, ports), and else of no stated type, as is
    one that may be null.
    """
    if isinstance(raw, list):
        return [schema_of(one) for one in raw]
    if not isinstance(raw, Mapping):
        return raw
    found = dict(_words(raw))
    if "oneOf" in raw and "type" not in raw:
        found["type"] = "string"
    if raw.get("nullable"):
        found.pop("type", None)
    return found


def _words(raw: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in raw.items():
        if key == "$ref":
            yield key, value.replace(_FROM, _TO)
        elif key == "allOf" and len(value) == 1:  # keys next to a reference are allowed here
            yield from schema_of(value[0]).items()
        elif key in ("properties", "patternProperties"):
            yield key, {name: schema_of(field) for name, field in value.items()}
        elif key not in _CHOICES and key != "nullable":
            yield key, value if key in ("default", "enum", "example") else schema_of(value)


def _path(path: str, verbs: Mapping[str, Body]) -> Iterator[tuple[str, Any]]:
    parts = _IN_PATH.findall(path)
    if parts:
        yield "parameters", [{"name": name, "in": "path", "type": "string", "required": True} for name in parts]
    for verb, operation in verbs.items():
        yield verb, _operation(operation)


def _operation(operation: Body) -> Body:
    """An operation: its body is one of its parameters, and media types stand apart from schemas."""
    found = {key: value for key, value in operation.items() if key not in ("requestBody", "responses", "parameters")}
    parameters = [{"name": one["name"], "in": "query", "type": "string"} for one in operation.get("parameters", ())]
    if "requestBody" in operation:
        content = operation["requestBody"]["content"]
        schema = schema_of(next(iter(content.values()))["schema"])
        parameters.append({"name": "body", "in": "body", "required": True, "schema": schema})
        found["consumes"] = [*content]
    responses = {code: _response(response) for code, response in operation["responses"].items()}
    if parameters:
        found["parameters"] = parameters
    return {**found, "produces": [_JSON], "responses": responses}


def _response(response: Body) -> Body:
    return {"description": response["description"], "schema": schema_of(response["content"][_JSON]["schema"])}
