"""Defaults of Kubernetes' own kinds that the table of types does not tell, a function a kind."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from stromboli.cluster.body import Body, changed, meta, part, with_meta
from stromboli.server.schema.definitions import established
from stromboli.server.schema.pod_defaults import (
    class_of_service,
    with_outage_tolerations,
    with_pod_defaults,
    with_requests,
)

Default = Callable[[Body], Body]


def with_defaults(group: str, body: Body) -> Body:
    """The object with the defaults of its kind."""
    default = _BY_KIND.get((group, body.get("kind", "")))
    return body if default is None else default(body)


def _with_spec(body: Body, defaults: Mapping[str, Any]) -> Body:
    return {**body, "spec": {**defaults, **(body.get("spec") or {})}}


def _plain(**defaults: Any) -> Default:
    return lambda body: {**defaults, **body}


def _spec(**defaults: Any) -> Default:
    return lambda body: _with_spec(body, defaults)


def _pod(body: Body) -> Body:
    spec = {"serviceAccountName": "default", "enableServiceLinks": True, **(body.get("spec") or {})}
    spec = with_outage_tolerations(with_requests(with_pod_defaults(spec)))
    status = {"phase": "Pending", "qosClass": class_of_service(spec)}
    return {**body, "spec": spec, "status": {**status, **(body.get("status") or {})}}


def _templated(**defaults: Any) -> Default:
    def default(body: Body) -> Body:
        body = _with_spec(body, defaults)
        template = body["spec"].get("template")
        if isinstance(template, dict) and isinstance(template.get("spec"), dict):
            template = {"metadata": {}, **template, "spec": with_pod_defaults(template["spec"])}
            body = {**body, "spec": {**body["spec"], "template": template}}
        return body

    return default


def _namespace(body: Body) -> Body:
    labels = {**(meta(body).get("labels") or {}), "kubernetes.io/metadata.name": meta(body).get("name", "")}
    return _with_spec({**with_meta(body, labels=labels), "status": {"phase": "Active"}}, {"finalizers": ["kubernetes"]})


def _service(body: Body) -> Body:
    spec = body.get("spec") or {}
    body = _with_spec(body, {"type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster"})
    if "ports" in spec:
        ports = [{"protocol": "TCP", "targetPort": port.get("port"), **port} for port in spec["ports"]]
        body = {**body, "spec": {**body["spec"], "ports": ports}}
    address = spec.get("clusterIP") or _address(meta(body).get("namespace", ""), meta(body).get("name", ""))
    if body["spec"]["type"] == "ExternalName":
        return body
    families = {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}
    return {
        **_with_spec(body, {"clusterIP": address, "clusterIPs": [address], **families}),
        "status": {"loadBalancer": {}},
    }


def _address(namespace: str, name: str) -> str:
    """An address of a service, the same whenever a service of this name is made; no traffic is routed to it."""
    number = zlib.crc32(f"{namespace}/{name}".encode()) % 65_000 + 10
    return f"10.96.{number // 256}.{number % 256}"


def _secret(body: Body) -> Body:
    texts = body.get("stringData") or {}
    data = {
        **(body.get("data") or {}),
        **{key: base64.b64encode(text.encode()).decode() for key, text in texts.items()},
    }
    return {"type": "Opaque", **changed(body, stringData=None, data=data or None)}


def _binding(body: Body) -> Body:
    role = {"apiGroup": "rbac.authorization.k8s.io", **(body.get("roleRef") or {})}
    subjects = [_subject(subject) for subject in body.get("subjects") or ()]
    return changed(body, roleRef=role, subjects=subjects or None)


def _subject(subject: Body) -> Body:
    return subject if subject.get("kind") == "ServiceAccount" else {"apiGroup": "rbac.authorization.k8s.io", **subject}


def _volume(body: Body) -> Body:
    body = _with_spec(body, {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"})
    return {**body, "status": {"phase": "Bound" if part(body, "spec", "claimRef", "uid") else "Available"}}


def _limit_range(body: Body) -> Body:
    """A maximum is the limit, a limit the request, and else a minimum the request, where nothing else is said."""
    items = [_limit_item(item) for item in part(body, "spec", "limits") or ()]
    return {**body, "spec": {**(body.get("spec") or {}), "limits": items}}


def _limit_item(item: Body) -> Body:
    if item.get("type") != "Container":
        return item
    limits = {**(item.get("max") or {}), **(item.get("default") or {})}
    requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
    return changed(item, default=limits or None, defaultRequest=requests or None)


def _claim(body: Body) -> Body:
    return {**_with_spec(body, {"volumeMode": "Filesystem"}), "status": {"phase": "Pending"}}


def _definition(body: Body) -> Body:
    names = part(body, "spec", "names") or {}
    kind = names.get("kind", "")
    names = {"singular": kind.lower(), "listKind": f"{kind}List", **names}
    body = _with_spec(body, {"conversion": {"strategy": "None"}})
    body = {**body, "spec": {**body["spec"], "names": names}}
    return {**body, "status": established(body)}


def _deployment(body: Body) -> Body:
    body = _templated(progressDeadlineSeconds=600, replicas=1, revisionHistoryLimit=10)(body)
    strategy = {"type": "RollingUpdate", **(body["spec"].get("strategy") or {})}
    if strategy["type"] == "RollingUpdate":
        strategy["rollingUpdate"] = {**_ROLLING, **(strategy.get("rollingUpdate") or {})}
    return {**body, "spec": {**body["spec"], "strategy": strategy}}


def _updated(others: Default, **rolling: Any) -> Default:
    """With the strategy by which pods are replaced: one after the other, unless the object says something else."""

    def default(body: Body) -> Body:
        body = others(body)
        strategy = {"type": "RollingUpdate", **(body["spec"].get("updateStrategy") or {})}
        if strategy["type"] == "RollingUpdate":
            strategy["rollingUpdate"] = {**rolling, **(strategy.get("rollingUpdate") or {})}
        return {**body, "spec": {**body["spec"], "updateStrategy": strategy}}

    return default


def _job(body: Body) -> Body:
    """A job, with a selector of its own unless it brings one; it bears its template's labels where it has none."""
    alone = part(body, "spec", "parallelism") is None  # else a job without completions ends once its pods have
    body = _templated(**_JOB, **({"completions": 1} if alone else {}))(body)
    spec, template = body["spec"], body["spec"].get("template") or {}
    labels = part(template, "metadata", "labels") or {}
    if not spec["manualSelector"] and "selector" not in spec:
        known = {"controller-uid": meta(body).get("uid", ""), "job-name": meta(body).get("name", "")}
        mine = {f"{prefix}{name}": value for name, value in known.items() for prefix in ("batch.kubernetes.io/", "")}
        labels = {**labels, **mine}
        selector = {"matchLabels": {_JOB_UID: known["controller-uid"]}}
        body = {**body, "spec": {**spec, "selector": selector, "template": with_meta(template, labels=labels)}}
    return body if meta(body).get("labels") else with_meta(body, labels=labels or None)


def _cron_job(body: Body) -> Body:
    body = _with_spec(body, _CRON_JOB)
    template = body["spec"].get("jobTemplate") or {}
    return {**body, "spec": {**body["spec"], "jobTemplate": _templated()(template)}}


def _network_policy(body: Body) -> Body:
    spec = body.get("spec") or {}
    rules = {name: [_traffic(rule) for rule in spec[name]] for name in ("ingress", "egress") if spec.get(name)}
    types = ["Ingress", *(["Egress"] if spec.get("egress") else [])]
    return {**body, "spec": {"podSelector": {}, "policyTypes": types, **spec, **rules}}


def _traffic(rule: Body) -> Body:
    ports = [{"protocol": "TCP", **port} for port in rule.get("ports") or ()]
    return changed(rule, ports=ports or None)


def _webhooks(**more: Any) -> Default:
    def default(body: Body) -> Body:
        return {**body, "webhooks": [_webhook({**_WEBHOOK, **more, **hook}) for hook in body.get("webhooks") or ()]}

    return default


def _webhook(hook: Body) -> Body:
    rules = [{"scope": "*", **rule} for rule in hook.get("rules") or ()]
    client = hook.get("clientConfig") or {}
    if client.get("service"):
        client = {**client, "service": {"port": 443, **client["service"]}}
    return {**hook, "clientConfig": client, **({"rules": rules} if rules else {})}


_WEBHOOK: Final = {
    "failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
    "timeoutSeconds": 10,
}  # fmt: skip
_JOB_UID: Final = "batch.kubernetes.io/controller-uid"
_ROLLING: Final = {"maxSurge": "25%", "maxUnavailable": "25%"}
_CRON_JOB: Final = {
    "concurrencyPolicy": "Allow", "failedJobsHistoryLimit": 1, "successfulJobsHistoryLimit": 3, "suspend": False,
}  # fmt: skip
_JOB: Final = {
    "backoffLimit": 6, "completionMode": "NonIndexed", "manualSelector": False, "parallelism": 1,
    "podReplacementPolicy": "TerminatingOrFailed", "suspend": False,
}  # fmt: skip

_BY_KIND: Final[dict[tuple[str, str], Default]] = {
    ("", "Pod"): _pod,
    ("", "LimitRange"): _limit_range,
    ("", "Namespace"): _namespace,
    ("", "Service"): _service,
    ("", "Secret"): _secret,
    ("", "PersistentVolume"): _volume,
    ("", "PersistentVolumeClaim"): _claim,
    ("", "ReplicationController"): _templated(replicas=1),
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _templated(replicas=1),
    ("apps", "DaemonSet"): _updated(_templated(revisionHistoryLimit=10), maxSurge=0, maxUnavailable=1),
    ("apps", "StatefulSet"): _updated(
        _templated(replicas=1, revisionHistoryLimit=10, podManagementPolicy="OrderedReady"), partition=0
    ),
    ("batch", "Job"): _job,
    ("batch", "CronJob"): _cron_job,
    ("networking.k8s.io", "NetworkPolicy"): _network_policy,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _webhooks(reinvocationPolicy="Never"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _webhooks(),
    ("scheduling.k8s.io", "PriorityClass"): _plain(value=0, preemptionPolicy="PreemptLowerPriority"),
    ("scheduling.k8s.io", "PodGroup"): _spec(disruptionMode={"single": {}}),
    ("scheduling.k8s.io", "CompositePodGroup"): _spec(disruptionMode={"single": {}}),
    ("storage.k8s.io", "StorageClass"): _plain(reclaimPolicy="Delete", volumeBindingMode="Immediate"),
    ("storage.k8s.io", "CSIDriver"): _spec(attachRequired=True, podInfoOnMount=False),
    ("rbac.authorization.k8s.io", "RoleBinding"): _binding,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _binding,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
}
