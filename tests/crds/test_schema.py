"""Definitions of our kinds: structural and complete."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from stromboli.api.batch import Job
from stromboli.api.fields import KUBERNETES
from stromboli.api.kinds import ALL, KINDS, Kind
from stromboli.api.read import read
from stromboli.crds.manifests import definition, definitions
from stromboli.crds.schema import schema_of
from stromboli.errors import ManifestError

SCHEMAS = [pytest.param(kind, id=kind.kind) for kind in ALL]


def nodes(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema inside of a schema, with its path."""
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from nodes(inner, f"{path}.{name}")
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from nodes(schema[key], f"{path}[]")


@pytest.mark.parametrize("kind", SCHEMAS)
def test_schemas_are_structural(kind: Kind) -> None:
    """The rules of Kubernetes for schemas of custom resources."""
    for path, schema in nodes(schema_of(kind)):
        typed = "type" in schema or schema.get("x-kubernetes-int-or-string")
        assert typed, path
        assert schema.keys().isdisjoint(
            {"$ref", "definitions", "oneOf", "allOf", "not", "nullable", "x-stromboli-required", KUBERNETES}
        )
        assert not ("properties" in schema and "additionalProperties" in schema), path
        assert set(schema.get("required", ())) <= schema.get("properties", {}).keys(), path
        assert (schema.get("type") == "array") == ("items" in schema), path
        assert "default" not in schema or "type" in schema, path
        re.compile(schema.get("pattern", ""))


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_field_says_what_it_means(kind: Kind) -> None:
    for path, schema in nodes(schema_of(kind)):
        for name, inner in schema.get("properties", {}).items():
            if name != "metadata" and "Reference" not in str(schema.get("description")):
                assert inner.get("description") or _OTHERS.search(path), f"{path}.{name}"


_OTHERS = re.compile(r"\.active|\.template\b|\.volumeClaim$|\.volumeClaim\.")
"""Kinds of Kubernetes' own, of which the table of types has no prose."""


@pytest.mark.parametrize(
    ("kind", "path", "rules"),
    [
        ("Job", ".spec.tasks[].name", {"maxLength": 63, "pattern": "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"}),
        ("Job", ".spec.minSuccess", {"minimum": 1, "format": "int32"}),
        ("Job", ".spec.maxRetry", {"minimum": 0, "default": 3}),
        ("Job", ".spec.queue", {"default": "default", "maxLength": 253}),
        ("Job", ".spec.tasks", {"minItems": 1}),
        ("Job", ".spec.tasks[].template.spec", {"required": ["containers"], "type": "object"}),
        ("Job", ".spec.tasks[].template.spec.containers[].ports[].containerPort", {"format": "int32"}),
        ("Job", ".spec.tasks[].template.spec.containers[].resources.limits[]", {"x-kubernetes-int-or-string": True}),
        ("Job", ".spec.volumes[].volumeClaim.accessModes", {"type": "array"}),
        ("Job", ".spec.tasks[].partitionPolicy", {"required": ["partitionSize", "totalPartitions"]}),
        ("PodGroup", ".spec.networkTopology.mode", {"enum": ["hard", "soft"], "default": "hard"}),
        ("PodGroup", ".spec.minResources[]", {"x-kubernetes-int-or-string": True}),
        ("PodGroup", ".spec.subGroupPolicy[].subGroupSize", {"default": 1, "minimum": 1}),
        ("Queue", ".spec.weight", {"default": 1, "minimum": 1, "maximum": 65535}),
        ("Queue", ".spec.dequeueStrategy", {"default": "traverse", "enum": ["fifo", "traverse"]}),
        ("HyperNode", ".spec", {"required": ["tier"]}),
        ("HyperNode", ".spec.members[].type", {"enum": ["Node", "HyperNode"]}),
        ("Command", ".target", {"required": ["apiVersion", "kind", "name", "uid"]}),
    ],
)
def test_rules_stand_in_the_schema(kind: str, path: str, rules: dict[str, object]) -> None:
    found = dict(nodes(schema_of(KINDS[kind])))[path]
    assert {key: found.get(key) for key in rules} == rules


def test_definitions_name_columns_scope_and_subresources() -> None:
    assert [found["metadata"]["name"] for found in definitions()] == [kind.resource for kind in ALL]  # type: ignore[index]
    job: Any = definition(KINDS["Job"])
    version = job["spec"]["versions"][0]
    assert job["spec"]["names"]["shortNames"] == ["vcjob", "vj"]
    assert [column["name"] for column in version["additionalPrinterColumns"]] == [
        "STATUS", "minAvailable", "RUNNINGS", "AGE", "QUEUE",
    ]  # fmt: skip
    assert version["additionalPrinterColumns"][4]["priority"] == 1
    assert version["subresources"] == {"status": {}}
    group: Any = definition(KINDS["PodGroup"])
    assert "subresources" not in group["spec"]["versions"][0], "the scheduler writes status and annotations at once"
    assert group["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
    assert definition(KINDS["Queue"])["spec"]["scope"] == "Cluster"  # type: ignore[index]


def test_objects_come_back_as_they_were_written() -> None:
    written = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j", "namespace": "n"},
        "spec": {
            "minAvailable": 2,
            "tasks": [{"name": "t", "replicas": 2, "template": {"spec": {"anything": [1, {"x": "y"}]}}}],
            "policies": [{"events": ["PodEvicted"], "action": "RestartJob", "timeout": "10m"}],
            "plugins": {"svc": ["--x"], "env": []},
        },
        "status": {"state": {"phase": "Running"}, "taskStatusCount": {"t": {"phase": {"Running": 2}}}},
    }
    assert msgspec.json.decode(msgspec.json.encode(read(Job, written))) == written


def test_nulls_count_as_absent_and_wrong_types_are_named() -> None:
    assert read(Job, {"metadata": {"name": "j", "labels": None}}).metadata.labels == {}
    with pytest.raises(ManifestError, match=r"Job n/j, spec.tasks\[0\].replicas: expected a whole number, got a text"):
        read(Job, {"metadata": {"name": "j", "namespace": "n"}, "spec": {"tasks": [{"replicas": "2"}]}})
