"""The document of version 2 in protobuf says what it says in JSON, to a reader that goes by the published messages."""

from __future__ import annotations

import json
import re
import struct
from typing import Any

import pytest

from stromboli.server.http.openapi_protobuf import to_protobuf
from tests.server.browser import Browser, definition

PUBLISHED = """
message AdditionalPropertiesItem { Schema schema = 1; bool boolean = 2; }
message Any { Any value = 1; string yaml = 2; }
message BodyParameter { string description = 1; string name = 2; string in = 3; bool required = 4; Schema schema = 5; }
message Definitions { repeated NamedSchema additional_properties = 1; }
message Document { string swagger = 1; Info info = 2; string host = 3; Paths paths = 8; Definitions definitions = 9; }
message Info { string title = 1; string version = 2; string description = 3; }
message ItemsItem { repeated Schema schema = 1; }
message NamedAny { string name = 1; Any value = 2; }
message NamedPathItem { string name = 1; PathItem value = 2; }
message NamedResponseValue { string name = 1; ResponseValue value = 2; }
message NamedSchema { string name = 1; Schema value = 2; }
message NonBodyParameter { QueryParameterSubSchema query_parameter_sub_schema = 3;
  PathParameterSubSchema path_parameter_sub_schema = 4; }
message Operation { repeated string tags = 1; string summary = 2; string description = 3; string operation_id = 5;
  repeated string produces = 6; repeated string consumes = 7; repeated ParametersItem parameters = 8;
  Responses responses = 9; repeated NamedAny vendor_extension = 13; }
message Parameter { BodyParameter body_parameter = 1; NonBodyParameter non_body_parameter = 2; }
message ParametersItem { Parameter parameter = 1; }
message PathItem { string _ref = 1; Operation get = 2; Operation put = 3; Operation post = 4; Operation delete = 5;
  Operation patch = 8; repeated ParametersItem parameters = 9; repeated NamedAny vendor_extension = 10; }
message PathParameterSubSchema { bool required = 1; string in = 2; string description = 3; string name = 4;
  string type = 5; string format = 6; }
message Paths { repeated NamedAny vendor_extension = 1; repeated NamedPathItem path = 2; }
message Properties { repeated NamedSchema additional_properties = 1; }
message QueryParameterSubSchema { bool required = 1; string in = 2; string description = 3; string name = 4;
  bool allow_empty_value = 5; string type = 6; string format = 7; }
message Response { string description = 1; SchemaItem schema = 2; }
message ResponseValue { Response response = 1; }
message Responses { repeated NamedResponseValue response_code = 1; repeated NamedAny vendor_extension = 2; }
message Schema { string _ref = 1; string format = 2; string title = 3; string description = 4; Any default = 5;
  double multiple_of = 6; double maximum = 7; bool exclusive_maximum = 8; double minimum = 9;
  bool exclusive_minimum = 10; int64 max_length = 11; int64 min_length = 12; string pattern = 13; int64 max_items = 14;
  int64 min_items = 15; bool unique_items = 16; int64 max_properties = 17; int64 min_properties = 18;
  repeated string required = 19; repeated Any enum = 20; AdditionalPropertiesItem additional_properties = 21;
  TypeItem type = 22; ItemsItem items = 23; repeated Schema all_of = 24; Properties properties = 25;
  string discriminator = 26; bool read_only = 27; Any example = 30; repeated NamedAny vendor_extension = 31; }
message SchemaItem { Schema schema = 1; }
message TypeItem { repeated string value = 1; }
"""
"""The messages of `openapi.v2` that a Document of Kubernetes holds, as gnostic publishes them."""

FIELDS = {
    message: {
        int(number): (bool(repeated), kind, name)
        for repeated, kind, name, number in re.findall(r"(repeated )?(\w+) (\w+) = (\d+);", fields)
    }
    for message, fields in re.findall(r"message (\w+) {(.*?)}", PUBLISHED, re.DOTALL)
}
SCALARS = {"bool": 0, "int64": 0, "double": 1, "string": 2}
WRAPPERS = {"AdditionalPropertiesItem", "ItemsItem", "NonBodyParameter", "Parameter", "ParametersItem", "ResponseValue",
            "SchemaItem", "TypeItem"}  # fmt: skip


def varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (content[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if content[at - 1] < 0x80:
            return value, at


def fields_of(message: str, content: bytes) -> Any:
    """What is in a message: whether a field may come again, its name, its value.  Unknown numbers are errors."""
    at = 0
    while at < len(content):
        tag, at = varint(content, at)
        repeated, kind, name = FIELDS[message][tag >> 3]
        assert tag & 7 == SCALARS.get(kind, 2), (message, name)
        if kind in ("bool", "int64"):
            value, at = varint(content, at)
            yield repeated, name, bool(value) if kind == "bool" else value
            continue
        length, at = (8, at) if kind == "double" else varint(content, at)
        raw, at = content[at : at + length], at + length
        assert len(raw) == length
        if kind == "double":
            yield repeated, name, struct.unpack("<d", raw)[0]
        else:
            yield repeated, name, raw.decode() if kind == "string" else told(kind, raw)


def told(message: str, content: bytes) -> Any:
    """A message as JSON has it."""
    found: dict[str, Any] = {}
    for repeated, name, value in fields_of(message, content):
        if message in WRAPPERS:
            return value
        if message == "Any":
            return json.loads(value)
        if repeated and isinstance(value, dict) and value.keys() == {"name", "value"}:
            found[value["name"]] = value["value"]
            continue
        word = "$ref" if name == "_ref" else re.sub("_(.)", lambda letter: letter[1].upper(), name)
        if repeated:
            found.setdefault(word, []).append(value)
        else:
            assert word not in found
            found[word] = value
    return found


def test_the_document_says_in_protobuf_what_it_says_in_json():
    browser = Browser()
    with browser.runner:
        browser.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
        plain = browser.get("/openapi/v2").body
        form = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
        answer = browser.get("/openapi/v2", accept=form)
    assert dict(answer.headers)["content-type"] == form.replace("@", ".")
    assert told("Document", answer.content) == plain


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/definitions/x", "title": "t", "description": "ein größeres Wort", "format": "int64"},
        {"type": "integer", "maximum": 2.5, "minimum": -1, "exclusiveMaximum": True, "exclusiveMinimum": False},
        {"type": "number", "multipleOf": 0.5, "default": 1.5, "example": {"a": [1, None]}},
        {"type": "array", "items": {"type": "string"}, "maxItems": 1 << 40, "minItems": 0, "uniqueItems": True},
        {"type": "object", "maxProperties": 300, "minProperties": 1, "properties": {"x-": {"default": [1, 2]}}},
        {"type": "string", "maxLength": 127, "minLength": 128, "pattern": '^"$', "enum": ["a", 1, None, {}]},
        {"additionalProperties": {"type": "boolean"}, "required": ["a", "b"], "x-a": {"b": "c"}, "x-d": False},
    ],
)
def test_every_word_of_a_schema_comes_back(schema):
    assert told("Schema", to_protobuf(schema, "Schema")) == schema


def test_words_without_a_number_are_left_out():
    assert told("Schema", to_protobuf({"type": "object", "patternProperties": {"a": {}}}, "Schema")) == {
        "type": "object"
    }
