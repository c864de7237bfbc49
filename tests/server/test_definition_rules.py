"""Which definitions of custom kinds are refused, with Kubernetes' own texts; and that refused ones leave nothing."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from tests.server.browser import Browser, definition

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
def browser():
    found = Browser()
    with found.runner:
        yield found


def _spec(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    body = deepcopy(definition())
    change(body["spec"])
    return body


def _root(change: dict[str, Any]) -> dict[str, Any]:
    return definition(schema={"openAPIV3Schema": {"type": "object", **change}})


def _field(raw: Any) -> dict[str, Any]:
    return _root({"properties": {"spec": raw}})


def _list(kind: str | None, keys: list[str] | None, key: Any = None, **items: Any) -> dict[str, Any]:
    raw = {"type": "object", "properties": {"a": key or {"type": "string"}}, **items}
    told = {"x-kubernetes-list-type": kind, "x-kubernetes-list-map-keys": keys}
    return _field({"type": "array", "items": raw, **{name: value for name, value in told.items() if value}})


SCHEMA = "spec.versions[0].schema.openAPIV3Schema"
SCALE = {"specReplicasPath": ".spec.a", "statusReplicasPath": ".status.b"}
WRONG: list[tuple[dict[str, Any], str]] = [
    (_spec(lambda spec: spec["names"].pop("kind")), "spec.names.kind: Required value"),
    (_spec(lambda spec: spec.pop("names")), "spec.names.plural: Required value"),
    (_spec(lambda spec: spec["names"].update(kind="My Kind")), "may have mixed case, but should otherwise match"),
    (_spec(lambda spec: spec["names"].update(listKind="Widget")), "kind and listKind may not be the same"),
    (_spec(lambda spec: spec["names"].update(shortNames=["W w"])), "spec.names.shortNames[0]: Invalid value"),
    (_spec(lambda spec: spec.pop("group")), "spec.group: Required value"),
    (_spec(lambda spec: spec.pop("scope")), "spec.scope: Required value"),
    (
        _spec(lambda spec: spec.update(scope="World")),
        'spec.scope: Unsupported value: "World": supported values: "Cluster", "Namespaced"',
    ),
    (_spec(lambda spec: spec.update(versions=[])), "spec.versions: Required value"),
    (
        _spec(lambda spec: spec["versions"].append(spec["versions"][0])),
        "must have exactly one version marked as storage version",
    ),
    (_spec(lambda spec: spec["versions"][0].update(name="")), "spec.versions[0].name: Invalid value"),
    (definition(schema={}), f"{SCHEMA}: Required value: schemas are required"),
    (definition(schema={"openAPIV3Schema": {}}), f"{SCHEMA}.type: Required value: must not be empty at the root"),
    (definition(schema={"openAPIV3Schema": {"type": "string"}}), "must be object at the root"),
    (_field({}), f"{SCHEMA}.properties[spec].type: Required value: must not be empty for specified object fields"),
    (_field({"type": "text"}), f'{SCHEMA}.properties[spec].type: Unsupported value: "text"'),
    (_field({"type": "array"}), f"{SCHEMA}.properties[spec].items: Required value: must be specified"),
    (_field({"type": "array", "items": [{"type": "string"}]}), "items must be a schema object and not an array"),
    (_field({"$ref": "nothing"}), f"{SCHEMA}.properties[spec].$ref: Forbidden: $ref is not supported"),
    (_field({"type": "string", "pattern": "("}), "must be a valid regular expression, but isn't"),
    (_field({"type": "object", "additionalProperties": {"$ref": "x"}}), "$ref is not supported"),
    (_field({"type": "object", "additionalProperties": False}), "additionalProperties cannot be set to false"),
    (_field({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "bag"}), "Unsupported value"),
    (
        _field({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}),
        "must not be empty if x-kubernetes-list-type is map",
    ),
    (_field({"type": "string", "minLength": -1}), "must be greater than or equal to 0"),
    (
        _root({"additionalProperties": {"type": "string"}}),
        "additionalProperties: Forbidden: must not be used at the root",
    ),
    (_root({"nullable": True}), "nullable cannot be true at the root"),
    (_root({"properties": {"kind": {"type": "integer"}}}), f"{SCHEMA}.properties[kind].type: Invalid value"),
    (
        _root({"properties": {"metadata": {"type": "object", "properties": {"uid": {"type": "string"}}}}}),
        "must not specify anything other than name and generateName",
    ),
    (_field({"type": "object", "x-kubernetes-preserve-unknown-fields": False}), "must be true or undefined"),
    (
        _field({"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True}),
        "must be false if x-kubernetes-int-or-string is true",
    ),
    (
        _field({"type": "string", "x-kubernetes-map-type": "atomic"}),
        "must be object if x-kubernetes-map-type is specified",
    ),
    (
        _field({"type": "array", "items": {"type": "string"}, "x-kubernetes-embedded-resource": True}),
        "must be object if x-kubernetes-embedded-resource is true",
    ),
    (
        _field({"type": "object", "x-kubernetes-embedded-resource": True}),
        f"{SCHEMA}.properties[spec].properties: Required",
    ),
    (_list(None, ["a"]), "must be map if x-kubernetes-list-map-keys is non-empty"),
    (_list("map", ["b"]), "entries must all be names of item properties"),
    (_list("map", ["a", "a"], required=["a"]), "must not contain duplicate entries"),
    (_list("map", ["a"]), "so it must have a default or be a required property"),
    (_list("map", ["a"], {"type": "object"}), "must be a scalar type if parent array's x-kubernetes-list-type is map"),
    (_list("map", ["a"], required=["a"], nullable=True), "cannot be nullable when x-kubernetes-list-type is map"),
    (_list("set", None), "must be atomic as item of a list with x-kubernetes-list-type=set"),
    (
        _field({"type": "string", "anyOf": [{"type": "string"}]}),
        "anyOf[0].type: Forbidden: must be empty to be structural",
    ),
    (_field({"type": "string", "not": {"default": "x"}}), "not.default: Forbidden: must be undefined to be structural"),
    (_field({"type": "string", "allOf": [{"oneOf": [{"pattern": "("}]}]}), "allOf[0].oneOf[0].pattern: Invalid value"),
    (
        _field({"type": "object", "anyOf": [{"properties": {"metadata": {}}}]}),
        "must not be specified in a nested context",
    ),
    (
        _field({"type": "object", "anyOf": [{"properties": {"a": {"minimum": 1}}}]}),
        "openAPIV3Schema.properties[spec].properties[a]: Required value: because it is defined in spec.versions[0]",
    ),
    (
        _field({"type": "array", "items": {"type": "object"}, "not": {"items": {"properties": {"b": {}}}}}),
        f"{SCHEMA}.properties[spec].items.properties[b]: Required value: because it is defined in",
    ),
    (
        _field({"type": "object", "allOf": [{"oneOf": [{"items": {"minimum": 1}}]}]}),
        f"{SCHEMA}.properties[spec].items: Required value: because it is defined in",
    ),
    (_field({"type": "integer", "default": "x"}), f'{SCHEMA}.properties[spec].default: Invalid value: "string"'),
    (
        _field({"type": "string", "enum": ["a"], "default": "b"}),
        f"{SCHEMA}.properties[spec].default: Unsupported value",
    ),
    (
        _field({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}, "default": [1]}}}),
        f"{SCHEMA}.properties[spec].properties[a].default[0]: Invalid value",
    ),
    (definition(subresources={"scale": {}}), "subresources.scale.specReplicasPath: Required value"),
    (
        definition(subresources={"scale": {"specReplicasPath": ".status.a", "statusReplicasPath": ".status.b"}}),
        "should be a json path under .spec",
    ),
    (
        definition(subresources={"scale": {**SCALE, "labelSelectorPath": ".metadata.labels"}}),
        "should be a json path under either .spec or .status",
    ),
    (_spec(lambda spec: spec.update(preserveUnknownFields=True)), "spec.preserveUnknownFields: Invalid value: true"),
    (_spec(lambda spec: spec.update(conversion={"strategy": "Webhook"})), "required when strategy is set to Webhook"),
    (definition(additionalPrinterColumns=[{"name": "A", "type": "word", "jsonPath": ".a"}]), "Unsupported value"),
]


@pytest.mark.parametrize(("body", "text"), WRONG)
def test_a_definition_that_cannot_be_served_is_refused_and_not_kept(browser, body, text):
    answer = browser.post(DEFINITIONS, body)
    assert answer.code == 422, answer.content
    assert text in answer.text
    assert browser.get(f"{DEFINITIONS}/widgets.example.com").code == 404


SOUND: list[dict[str, Any]] = [
    _field({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}], "default": 5}),
    _field({"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}]}),
    _field({"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}], "not": {"required": ["c"]}}),
    _field({"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}),
    _field({"type": "object", "properties": {"a": {"type": "integer", "default": 3}}, "default": {}}),
    _root({"properties": {"metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 9}}}}}),
    _field({"type": "object", "properties": {"a": {"type": "integer"}}, "not": {"properties": {"a": {"minimum": 1}}}}),
    _list("map", ["a"], required=["a"]),
    _list("map", ["a"], {"type": "string", "default": "x"}),
    _field({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
    definition(subresources={"scale": SCALE}),
    definition(subresources={"scale": {**SCALE, "labelSelectorPath": ".spec.selector"}}),
    definition(subresources={"scale": {**SCALE, "labelSelectorPath": ".status.selector"}}),
    definition(served=False),
]


@pytest.mark.parametrize("body", SOUND)
def test_a_sound_definition_is_kept(browser, body):
    answer = browser.post(DEFINITIONS, body)
    assert answer.code == 201, answer.content


UNREADABLE: list[tuple[dict[str, Any], str]] = [
    (_field({"type": 5}), "cannot unmarshal number into Go struct field"),
    (_field({"type": "array", "items": {"properties": []}}), "cannot unmarshal array into Go struct field"),
    (_spec(lambda spec: spec.update(versions=[1])), "cannot unmarshal number into Go struct field"),
]


@pytest.mark.parametrize(("body", "text"), UNREADABLE)
def test_a_definition_that_is_none_cannot_be_read(browser, body, text):
    answer = browser.post(DEFINITIONS, body)
    assert (answer.code, text in answer.text) == (400, True), answer.content


def test_a_group_of_kubernetes_wants_the_word_of_its_community(browser):
    body = _spec(lambda spec: spec.update(group="example.k8s.io"))
    body["metadata"]["name"] = "widgets.example.k8s.io"
    assert "api-approved.kubernetes.io" in browser.post(DEFINITIONS, body).text
    body["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, for a test"}
    assert browser.post(DEFINITIONS, body).code == 201


def test_what_a_definition_defines_stays_its_own(browser):
    browser.post(DEFINITIONS, definition())
    url = f"{DEFINITIONS}/widgets.example.com"
    for change in ({"scope": "Cluster"}, {"names": {"kind": "Gadget"}}):
        assert "field is immutable" in browser.patch(url, {"spec": change}).text
    assert browser.get("/apis/example.com/v1/namespaces/default/widgets").code == 200
