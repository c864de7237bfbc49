"""The definition of Jobs knows what a pod may say: typing errors and wrong types are refused, all else is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stromboli.api.fields import POD_TEMPLATE
from stromboli.api.kinds import ALL, KINDS
from stromboli.crds.kubernetes_types import structural, types
from stromboli.crds.manifests import definition
from stromboli.server.http.openapi import Documents
from stromboli.server.schema.decoding import shaped
from stromboli.server.schema.definitions import resources_of
from stromboli.server.schema.resources import Catalogue

[JOB] = resources_of(definition(KINDS["Job"]))

CONTAINER: dict[str, Any] = {"name": "main", "image": "x"}


def job(container: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{**CONTAINER, **(container or {})}], **spec}}
    task = {"name": "t", "replicas": 1, "template": template}
    return {"apiVersion": JOB.group_version, "kind": "Job", "metadata": {"name": "j"}, "spec": {"tasks": [task]}}


GOOD: dict[str, dict[str, Any]] = {
    "amounts": job({"resources": {"requests": {"cpu": 1, "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "1"}}}),
    "two variables of one name": job({"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}),
    "a port by name or number": job({"livenessProbe": {"tcpSocket": {"port": "web"}}, "readinessProbe": {
        "tcpSocket": {"port": 80}}}),
    "a policy that is newer than the table": job(restartPolicy="Sometimes"),
    "affinity": job(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}}]}}),
}  # fmt: skip
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "a typing error": (job(restartPolcy="Never"), "spec.tasks[0].template.spec.restartPolcy"),
    "one deep inside": (
        job({"env": [{"name": "A", "valueForm": {}}]}), "spec.tasks[0].template.spec.containers[0].env[0].valueForm",
    ),
    "a text for a list": (job({"command": "sleep"}), "spec.tasks[0].template.spec.containers[0].command"),
    "a number for a text": (job({"env": [{"name": "A", "value": 1}]}), "containers[0].env[0].value"),
    "a text for a number": (job(priority="high"), "spec.tasks[0].template.spec.priority"),
    "a truth for a text": (job(nodeSelector={"gpu": True}), "spec.tasks[0].template.spec.nodeSelector.gpu"),
    "no name": (job({"env": [{"value": "1"}]}), "containers[0].env[0].name"),
    "no amount": (job({"resources": {"limits": {"cpu": "much"}}}), "containers[0].resources.limits"),
}  # fmt: skip


def said(body: dict[str, Any]) -> str:
    """What there is to say about an object: fields that are unknown, and values that are wrong."""
    found = shaped(JOB, body)[1]
    return " ".join([*found.unknown, *found.unreadable, *map(str, found.causes)])


@pytest.mark.parametrize("row", GOOD)
def test_what_pods_may_say_is_kept_as_it_is(row: str) -> None:
    body = json.loads(json.dumps(GOOD[row]))
    assert said(body) == ""
    kept = shaped(JOB, body)[0]["spec"]["tasks"][0]["template"]
    assert kept == GOOD[row]["spec"]["tasks"][0]["template"]


@pytest.mark.parametrize("row", BAD)
def test_what_no_pod_may_say_is_told_with_its_place(row: str) -> None:
    body, place = BAD[row]
    assert place in said(body)


def test_the_template_has_every_field_of_a_pod() -> None:
    spec: Any = structural(POD_TEMPLATE)
    assert spec["properties"]["spec"]["properties"].keys() == types()["io.k8s.api.core.v1.PodSpec"]["properties"].keys()


def test_definitions_fit_into_an_annotation() -> None:
    """Client-side apply notes the whole object in an annotation."""
    for kind in ALL:
        assert len(json.dumps(definition(kind))) < 200_000


def test_kubectl_explain_finds_the_fields_of_pods() -> None:
    catalogue = Catalogue()
    catalogue.add(JOB)
    document = json.loads(Documents(catalogue).document(f"apis/{JOB.group_version}") or b"{}")
    found = document["components"]["schemas"]["sh.volcano.batch.v1alpha1.Job"]
    for name in ("spec", "tasks", "template", "spec", "tolerations"):
        found = found.get("items", found)["properties"][name]
    assert set(found["items"]["properties"]) >= {"key", "operator", "tolerationSeconds"}
