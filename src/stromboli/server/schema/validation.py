"""What Kubernetes refuses beyond the form of an object, for the kinds that batch clusters use; texts are its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from stromboli.cluster.body import Body, encode, meta, part
from stromboli.crds.admission.pod_templates import HIGHEST_DEADLINE, check_pod_spec
from stromboli.server.schema.claim_statuses import wrong_claim_status, wrong_group_status
from stromboli.server.schema.definition_rules import wrong_definition
from stromboli.server.schema.expression_rules import wrong_by_rules
from stromboli.server.schema.names import wrong_marks, wrong_names
from stromboli.server.schema.resources import Resource
from stromboli.server.schema.upstream_groups import FIXED, wrong_composite, wrong_group, wrong_workload
from stromboli.server.status_errors import Cause, cause_of, closed, required, wrong
from stromboli.server.storage.selection import matches, of_selector

Check = Callable[[Body], Iterator[Cause]]


def wrong_fields(resource: Resource, body: Body, old: Body | None) -> Iterator[Cause]:
    """What is wrong with a new object, or with the change of ``old`` to it."""
    if old is None:
        yield from wrong_names(resource, body)
    else:
        yield from wrong_marks(body)
        yield from _changed_forbiddenly(resource, body, old)
    check = _CHECKS.get(resource.collection)
    if check is not None:
        yield from check(body)
    if resource.custom:
        yield from wrong_by_rules(resource.schema, body, old)


def wrong_status(resource: Resource, body: Body, old: Body) -> Iterator[Cause]:
    """What is wrong with the change of a status alone: the rules in CEL of custom kinds know the whole object."""
    check = _STATUS_CHECKS.get(resource.collection)
    if check is not None:
        yield from check(body)
    if resource.custom:
        yield from wrong_by_rules(resource.schema, body, old)


def _pod(body: Body) -> Iterator[Cause]:
    yield from _pod_spec(body.get("spec") or {}, "spec")


def _pod_spec(spec: Mapping[str, Any], path: str) -> Iterator[Cause]:
    yield from map(cause_of, check_pod_spec(spec, path))


def _templated(body: Body) -> Iterator[Cause]:
    spec = body.get("spec") or {}
    template = spec.get("template") or {}
    labels = part(template, "metadata", "labels") or {}
    terms = of_selector(spec.get("selector"))
    if terms is None:
        yield required("spec.selector")
    elif not matches(terms, labels):
        told = "`selector` does not match template `labels`"
        value = encode(dict(sorted(labels.items()))).decode()
        yield Cause("spec.template.metadata.labels", "FieldValueInvalid", f"Invalid value: {value}: {told}")
    yield from _pod_spec(template.get("spec") or {}, "spec.template.spec")


def _job(body: Body) -> Iterator[Cause]:
    spec = part(body, "spec", "template", "spec") or {}
    yield from _pod_spec(spec, "spec.template.spec")
    if spec.get("restartPolicy") == "Always":
        told = 'Required value: valid values: "OnFailure", "Never"'
        yield Cause("spec.template.spec.restartPolicy", "FieldValueRequired", told)


def _service(body: Body) -> Iterator[Cause]:
    spec = body.get("spec") or {}
    if not spec.get("ports") and spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName":
        yield required("spec.ports")


def _budget(body: Body) -> Iterator[Cause]:
    spec = body.get("spec") or {}
    if "minAvailable" in spec and "maxUnavailable" in spec:
        yield wrong("spec", spec, "minAvailable and maxUnavailable cannot be both set")


_HIGHEST_PRIORITY: Final = 1_000_000_000
SYSTEM_CLASSES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The priority classes that every cluster has, with their values."""


def _priority_class(body: Body) -> Iterator[Cause]:
    name, value = meta(body).get("name", ""), body.get("value", 0)
    if SYSTEM_CLASSES.get(name) == value:
        return
    if name.startswith("system-"):
        told = "priority class names with 'system-' prefix are reserved for system use only"
        yield closed("metadata.name", f"{told}. error: {name} is not a known system priority class")
    if value > _HIGHEST_PRIORITY:
        yield closed("value", f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}")


_CHECKS: Final[dict[tuple[str, str], Check]] = {
    ("", "pods"): _pod,
    ("", "services"): _service,
    ("apps", "deployments"): _templated,
    ("apps", "replicasets"): _templated,
    ("apps", "daemonsets"): _templated,
    ("apps", "statefulsets"): _templated,
    ("batch", "jobs"): _job,
    ("policy", "poddisruptionbudgets"): _budget,
    ("scheduling.k8s.io", "priorityclasses"): _priority_class,
    ("scheduling.k8s.io", "podgroups"): wrong_group,
    ("scheduling.k8s.io", "compositepodgroups"): wrong_composite,
    ("scheduling.k8s.io", "workloads"): wrong_workload,
    ("apiextensions.k8s.io", "customresourcedefinitions"): wrong_definition,
}
_STATUS_CHECKS: Final[dict[tuple[str, str], Check]] = {
    ("resource.k8s.io", "resourceclaims"): wrong_claim_status,
    ("scheduling.k8s.io", "podgroups"): wrong_group_status,
}

_FIXED: Final[Mapping[tuple[str, str], Sequence[str]]] = {
    ("apiextensions.k8s.io", "customresourcedefinitions"): ("group", "scope", "names.kind", "names.plural"),
    ("apps", "deployments"): ("selector",),
    ("apps", "replicasets"): ("selector",),
    ("apps", "daemonsets"): ("selector",),
    ("apps", "statefulsets"): ("selector", "serviceName", "podManagementPolicy"),
    ("batch", "jobs"): ("selector", "template", "completionMode"),
    **FIXED,
}
"""Fields of a spec that never change."""
_DEADLINE: Final = "activeDeadlineSeconds"
_POD_TEXT: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def _changed_forbiddenly(resource: Resource, body: Body, old: Body) -> Iterator[Cause]:
    if resource.collection == ("", "pods"):
        yield from _changed_pod(body.get("spec") or {}, old.get("spec") or {})
    for name in _FIXED.get(resource.collection, ()):
        path = ("spec", *name.split("."))
        if part(body, *path) != part(old, *path):
            yield wrong(f"spec.{name}", part(body, *path), "field is immutable")
    if resource.collection == ("scheduling.k8s.io", "priorityclasses") and body.get("value") != old.get("value"):
        yield closed("value", "may not be changed in an update.")
    if old.get("immutable") and (body.get("data"), body.get("binaryData")) != (old.get("data"), old.get("binaryData")):
        yield closed("data", "field is immutable when `immutable` is set")


def _changed_pod(spec: Body, old: Body) -> Iterator[Cause]:
    if spec.get("schedulingGates") and not set(_gates(spec)) <= set(_gates(old)):
        yield closed("spec.schedulingGates", "only deletion is allowed, but found new scheduling gate")
    yield from _changed_deadline(spec.get(_DEADLINE), old.get(_DEADLINE))
    gated = bool(old.get("schedulingGates"))
    if _lasting(spec, gated) != _lasting(old, gated):
        yield closed("spec", _POD_TEXT)


def _changed_deadline(new: int | None, old: int | None) -> Iterator[Cause]:
    path = f"spec.{_DEADLINE}"
    if new is not None and new < 0:
        yield wrong(path, new, f"must be between 0 and {HIGHEST_DEADLINE}, inclusive")
    elif new is not None and old is not None and old < new:
        yield wrong(path, new, "must be less than or equal to previous value")
    elif new is None and old is not None:
        told = "Invalid value: null: must not update from a positive integer to nil value"
        yield Cause(path, "FieldValueInvalid", told)


def _gates(spec: Body) -> list[str]:
    return [gate.get("name", "") for gate in spec.get("schedulingGates") or ()]


def _lasting(spec: Body, gated: bool) -> Body:
    """What may not change of a pod's spec; a gated pod's placement may still be narrowed."""
    free = {"activeDeadlineSeconds", "tolerations", "schedulingGates", "containers", "initContainers"}
    free |= {"nodeSelector", "affinity"} if gated else set()
    kept = {name: value for name, value in spec.items() if name not in free}
    for kind in ("containers", "initContainers"):
        kept[kind] = [{name: value for name, value in one.items() if name != "image"} for one in spec.get(kind) or ()]
    return kept
