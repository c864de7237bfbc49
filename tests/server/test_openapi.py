"""The OpenAPI document of version 2 says what version 3 says, in its own form, and clients can use it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stromboli.server.http.openapi_v2 import schema_of
from tests.server.browser import Browser, definition

JSON = "application/json"
PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
FOREIGN = {"nullable", "oneOf", "anyOf", "not", "allOf", "requestBody", "content", "components"}
"""Words of version 3 alone, or that Kubernetes' documents of version 2 do without."""


@pytest.fixture(scope="module")
def browser():
    found = Browser()
    with found.runner:
        found.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
        yield found


@pytest.fixture(scope="module")
def document(browser):
    return browser.get("/openapi/v2").body


def schemas_in(raw):
    """A schema and all in it."""
    yield raw
    inner = [*raw.get("properties", {}).values(), raw.get("items"), raw.get("additionalProperties")]
    for one in inner:
        if isinstance(one, dict):
            yield from schemas_in(one)


def test_every_schema_is_there_in_the_words_of_version_2(browser, document):
    names = set()
    for path, where in browser.get("/openapi/v3").body["paths"].items():
        third = browser.get(where["serverRelativeURL"]).body
        names |= third["components"]["schemas"].keys()
        assert third["paths"].keys() <= document["paths"].keys(), path
        for name, schema in third["components"]["schemas"].items():
            assert schema.get("properties", {}).keys() == document["definitions"][name].get("properties", {}).keys()
    assert document["definitions"].keys() == names
    assert {"io.k8s.api.core.v1.Pod", "sh.volcano.batch.v1alpha1.Job", "com.example.v1.Widget"} <= names
    for whole in document["definitions"].values():
        for schema in schemas_in(whole):
            assert FOREIGN.isdisjoint(schema)
            target = schema.get("$ref", "#/definitions/io.k8s.api.core.v1.Pod")
            assert target.removeprefix("#/definitions/") in names


TYPES = {"string": str, "integer": int, "boolean": bool, "object": dict, "array": list}


def complaints(schema: Any, value: Any, definitions: Any, where: str = "") -> Iterator[str]:
    """What a tool that reads the document has to say of a value."""
    if "$ref" in schema:
        yield from complaints(definitions[schema["$ref"].removeprefix("#/definitions/")], value, definitions, where)
        return
    if "type" in schema and not isinstance(value, TYPES[schema["type"]]):
        yield f"{where} is no {schema['type']}"
        return
    if isinstance(value, dict):
        yield from (f"{where}.{name} is missing" for name in schema.get("required", ()) if name not in value)
        for name, inner in value.items():
            found = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if found is None:
                yield f"{where}.{name} is unknown"
            else:
                yield from complaints(found, inner, definitions, f"{where}.{name}")
    if isinstance(value, list):
        for number, one in enumerate(value):
            yield from complaints(schema["items"], one, definitions, f"{where}[{number}]")


def container(**more):
    return {"name": "c", "image": "i", "ports": [{"containerPort": 80}], **more}


def pod(*containers, **more):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [*containers]}, **more}


@pytest.mark.parametrize(
    ("name", "body", "wrong"),
    [
        ("io.k8s.api.core.v1.Pod", pod(container(resources={"requests": {"cpu": "500m"}})), ""),
        ("io.k8s.api.core.v1.Pod", pod(container(livenessProbe={"httpGet": {"port": "web"}})), ""),
        (
            "io.k8s.api.core.v1.Pod",
            pod(container(ports=[{"containerPort": "80"}])),
            ".spec.containers[0].ports[0].containerPort is no integer",
        ),
        ("io.k8s.api.core.v1.Pod", pod({"image": "i"}), ".spec.containers[0].name is missing"),
        ("io.k8s.api.core.v1.Pod", pod(container(), metadata={"labels": {"a": 1}}), ".metadata.labels.a is no string"),
        ("sh.volcano.scheduling.v1beta1.Queue", {"spec": {"weight": 3, "reclaimable": True}}, ""),
        ("sh.volcano.scheduling.v1beta1.Queue", {"spec": {"weight": "heavy"}}, ".spec.weight is no integer"),
        ("io.k8s.api.core.v1.Pod", pod(container(command="sh")), ".spec.containers[0].command is no array"),
        ("io.k8s.api.core.v1.Pod", pod(container(), spc={}), ".spc is unknown"),
        ("com.example.v1.Widget", {"spec": {"size": 3}}, ""),
        ("com.example.v1.Widget", {"spec": {"size": "three"}}, ".spec.size is no integer"),
    ],
)
def test_objects_are_checked_by_it_as_tools_do(document, name, body, wrong):
    definitions = document["definitions"]
    assert list(complaints(definitions[name], body, definitions)) == ([wrong] if wrong else [])


def test_operations_bear_their_bodies_and_paths_as_parameters(document):
    pods = document["paths"]["/api/v1/namespaces/{namespace}/pods/{name}"]
    assert [(one["name"], one["in"], one["required"]) for one in pods["parameters"]] == [
        ("namespace", "path", True), ("name", "path", True),
    ]  # fmt: skip
    reference = {"$ref": "#/definitions/io.k8s.api.core.v1.Pod"}
    assert [one for one in pods["put"]["parameters"] if one["in"] == "body"] == [
        {"name": "body", "in": "body", "required": True, "schema": reference}
    ]
    assert pods["get"]["responses"]["200"]["schema"] == reference
    assert "application/strategic-merge-patch+json" in pods["patch"]["consumes"]
    assert pods["get"]["x-kubernetes-group-version-kind"] == {"group": "", "version": "v1", "kind": "Pod"}


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        (JSON, JSON),
        (f"{JSON}, */*", JSON),
        ("*/*", JSON),
        ("application/*;q=0.5", JSON),
        (PROTOBUF, PROTOBUF),
        (PROTOBUF.replace("v2.v1", "v2@v1"), PROTOBUF),
        (f"text/html, {PROTOBUF},*/*", PROTOBUF),
        (f"{JSON}, {PROTOBUF}", JSON),
    ],
)
def test_the_first_form_that_is_known_is_served(browser, accept, media):
    answer = browser.get("/openapi/v2", accept=accept)
    assert (answer.code, dict(answer.headers)["content-type"]) == (200, media)


def test_a_request_that_accepts_only_other_types_gets_406_with_those_served(browser):
    answer = browser.get("/openapi/v2", accept="text/html")
    assert (answer.code, answer.text) == (406, f"only the following media types are accepted: {JSON}, {PROTOBUF}")


def test_the_document_follows_the_definitions():
    found = Browser()
    with found.runner:
        url = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

        def known():
            return "com.example.v1.Widget" in found.get("/openapi/v2").body["definitions"]

        seen = [known()]
        found.post(url, definition())
        seen.append(known())
        found.delete(f"{url}/widgets.example.com")
        assert [*seen, known()] == [False, True, False]


def test_what_version_2_has_no_words_for_is_left_open():
    assert schema_of({"type": "string", "nullable": True, "description": "d"}) == {"description": "d"}
    assert schema_of({"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}) == {
        "x-kubernetes-int-or-string": True
    }
    beside = {"description": "d", "allOf": [{"$ref": "#/components/schemas/x"}]}
    assert schema_of(beside) == {"description": "d", "$ref": "#/definitions/x"}
    assert schema_of({"properties": {"nullable": {"type": "string"}}}) == {
        "properties": {"nullable": {"type": "string"}}
    }
