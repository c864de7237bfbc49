r"""Write the embedded server's table of Kubernetes' own types from the OpenAPI documents of a kube-apiserver.

    mkdir openapi
    for path in api/v1 apis/apps/v1 …; do kubectl get --raw /openapi/v3/$path > openapi/${path//\//_}.json; done
    python -m tools.kubernetes_schemas openapi

Kept are names, types, formats, defaults, merge keys and list types of the kinds below and of what they refer to;
prose is not.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

OUTPUT = Path("src/stromboli/crds/kubernetes_types.json")
KINDS = frozenset(
    [
        "Binding",
        "ConfigMap",
        "ControllerRevision",
        "CronJob",
        "CSIDriver",
        "CSINode",
        "CSIStorageCapacity",
        "ClusterRole",
        "ClusterRoleBinding",
        "CompositePodGroup",
        "CustomResourceDefinition",
        "DaemonSet",
        "DeleteOptions",
        "Deployment",
        "DeviceClass",
        "Endpoints",
        "Event",
        "Eviction",
        "Job",
        "Lease",
        "LimitRange",
        "LocalSubjectAccessReview",
        "MutatingWebhookConfiguration",
        "Namespace",
        "NetworkPolicy",
        "Node",
        "ObjectMeta",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "Pod",
        "PodDisruptionBudget",
        "PodGroup",
        "PodTemplate",
        "PriorityClass",
        "ReplicaSet",
        "ReplicationController",
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourceQuota",
        "ResourceSlice",
        "Role",
        "RoleBinding",
        "Scale",
        "Secret",
        "SelfSubjectAccessReview",
        "SelfSubjectReview",
        "SelfSubjectRulesReview",
        "Service",
        "ServiceAccount",
        "StatefulSet",
        "Status",
        "StorageClass",
        "SubjectAccessReview",
        "TokenRequest",
        "TokenReview",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "VolumeAttachment",
        "Workload",
    ]
)
ELSEWHERE = ("io.k8s.api.events.",)
"""Types that bear the name of a kept kind and are another."""


def main(folder: Path) -> None:
    """Read the documents in ``folder`` and write the table, a type a line."""
    types: dict[str, object] = {}
    for document in sorted(folder.glob("*.json")):
        found = json.loads(document.read_text()).get("components", {}).get("schemas", {})
        types |= {name: _bare(schema) for name, schema in found.items()}
    kept = _reachable(types)
    lines = ",\n".join(f"{json.dumps(name)}:{json.dumps(types[name], separators=(',', ':'))}" for name in sorted(kept))
    OUTPUT.write_text(f"{{\n{lines}\n}}\n")
    print(f"{OUTPUT}: {len(kept)} types")


def _bare(schema: object) -> object:
    """The schema without prose and without empty defaults; a reference that is wrapped in allOf stands alone."""
    if isinstance(schema, list):
        return [_bare(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    bare = {key: _kept(key, value) for key, value in schema.items() if key != "description" and value != {}}
    match bare.pop("allOf", None):
        case [{"$ref": target}]:
            bare["$ref"] = target
    return bare


def _kept(key: str, value: object) -> object:
    match key, value:
        case "properties", dict():
            return {name: _bare(schema) for name, schema in value.items()}
        case "$ref", str():
            return value.rsplit("/", 1)[1]
    return _bare(value)


def _reachable(types: Mapping[str, object]) -> set[str]:
    wanted = [name for name in types if name.rsplit(".", 1)[1] in KINDS and not name.startswith(ELSEWHERE)]
    seen: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name not in seen:
            seen.add(name)
            wanted.extend(_references(types[name]))
    return seen


def _references(schema: object) -> Iterator[str]:
    if isinstance(schema, list):
        schema = dict(enumerate(schema))
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == "$ref" and isinstance(value, str):
                yield value
            else:
                yield from _references(value)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
