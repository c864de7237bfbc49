"""Deployments of the programs, with their Services, budgets, accounts and rights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from stromboli.crds.registration import SERVICE_PORT
from stromboli.live.installation import parts
from stromboli.live.installation.expressions import (
    Call,
    File,
    Node,
    When,
    both,
    either,
    first,
    is_set,
    same,
    text,
)
from stromboli.live.installation.parts import (
    ADMISSION,
    CONTROLLERS,
    HEALTH_PORT,
    NAMESPACE,
    RELEASE,
    SCHEDULER,
    Part,
    enabled,
    made,
)
from stromboli.live.installation.settings import setting
from stromboli.live.proofs.permissions import rules

CONFIG_FOLDER: Final = "/volcano.scheduler"
ADMISSION_FOLDER: Final = "/admission.local.config/configmap"
ADMISSION_GRACE: Final = 45
"""Seconds that a webhook server may take to end: reviews are taken until no API server sends any more."""
_RBAC: Final = "rbac.authorization.k8s.io"
_FILE: Final = setting("basic.scheduler_config_file")
CONFIGURATION: Final = first(setting("custom.scheduler_config_override"), File(_FILE))
"""The scheduler's configuration."""
_CONFIG_KEY: Final = Call("base", (_FILE,))
SCHEDULER_CONFIG: Final = first(setting("basic.scheduler_configmap"), text(RELEASE, "-scheduler-configmap"))
_ADMISSION_FILE: Final = setting("basic.admission_config_file")
_ADMISSION_KEY: Final = Call("base", (_ADMISSION_FILE,))
ADMISSION_CONFIGURATION: Final = first(setting("custom.admission_config_override"), File(_ADMISSION_FILE))
"""The admission file: resource groups."""
ADMISSION_CONFIG: Final = text(RELEASE, "-admission-configmap")
SHARDING_CONFIG: Final = text(RELEASE, "-sharding-configmap")
HAS_SHARDS: Final = both(setting("custom.sharding_configmap_enable"), setting("custom.sharding_configmap_data"))


def program(part: Part) -> Iterator[Node]:
    """All objects of one program, in the order in which they may be applied."""
    yield enabled(part, made("v1", "ServiceAccount", part.name, part))
    yield from (enabled(part, one) for one in _access(part))
    yield from (When(one.condition, one.then) for one in _configuration(part))
    yield enabled(part, {**made("apps/v1", "Deployment", part.name, part), "spec": _deployment(part)})
    yield enabled(part, _service(part))
    budget = {"maxUnavailable": 1, "selector": {"matchLabels": parts.selector(part)}}
    yield enabled(
        part, {**made("policy/v1", "PodDisruptionBudget", part.name, part), "spec": budget}, parts.budgeted(part)
    )


# ------------------------------------------------------------------------------------------------------ access


def _access(part: Part) -> Iterator[Mapping[str, Node]]:
    """The least that it needs: in the cluster, and in its own namespace."""
    subject = {"kind": "ServiceAccount", "name": part.name, "namespace": NAMESPACE}
    for kind, grants in (("ClusterRole", part.granted), ("Role", part.own)):
        role = made(f"{_RBAC}/v1", kind, part.name, part, cluster=kind == "ClusterRole")
        binding = made(f"{_RBAC}/v1", f"{kind}Binding", text(part.name, "-role"), part, cluster=kind == "ClusterRole")
        reference = {"apiGroup": _RBAC, "kind": kind, "name": part.name}
        yield {**role, "rules": rules(grants)}
        yield {**binding, "roleRef": reference, "subjects": [subject]}


# --------------------------------------------------------------------------------------------- configuration


def _configuration(part: Part) -> Iterator[When]:
    if part is SCHEDULER:
        config = made("v1", "ConfigMap", SCHEDULER_CONFIG, part)
        yield enabled(part, {**config, "data": Call("entry", (_CONFIG_KEY, CONFIGURATION))})
    if part is ADMISSION:
        config = made("v1", "ConfigMap", ADMISSION_CONFIG, part)
        yield enabled(part, {**config, "data": Call("entry", (_ADMISSION_KEY, ADMISSION_CONFIGURATION))})
    if part is CONTROLLERS:
        override = setting("custom.controller_config_override")
        config = made("v1", "ConfigMap", text(RELEASE, "-controller-configmap"), part)
        yield When(override, {**config, "data": {"volcano-controller.conf": override}})
        shards = made("v1", "ConfigMap", SHARDING_CONFIG, part)
        yield When(HAS_SHARDS, {**shards, "data": {"sharding.yaml": setting("custom.sharding_configmap_data")}})


# ------------------------------------------------------------------------------------------------- deployments


def _deployment(part: Part) -> Mapping[str, Node]:
    return {
        "replicas": part.replicas,
        "selector": {"matchLabels": parts.selector(part)},
        # without election the old one ends before the new one begins: two would both decide
        "strategy": either(parts.silent(part), {"type": "Recreate"}, {"type": "RollingUpdate"}),
        "template": {"metadata": {"labels": parts.pod_labels(part)}, "spec": _pod(part)},
    }


def _pod(part: Part) -> Mapping[str, Node]:
    found = {name: parts.own(part, name) for name in ("affinity", "tolerations", "ns", "sc")}
    secret = setting("basic.image_pull_secret")
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": parts.selector(part)},
    }
    return {
        "serviceAccountName": part.name,
        "priorityClassName": "system-cluster-critical",
        **({"terminationGracePeriodSeconds": ADMISSION_GRACE} if part is ADMISSION else {}),
        "securityContext": When(found["sc"], found["sc"]),
        "affinity": When(found["affinity"], found["affinity"]),
        "tolerations": When(found["tolerations"], found["tolerations"]),
        "nodeSelector": When(found["ns"], found["ns"]),
        "imagePullSecrets": When(secret, [{"name": secret}]),
        "topologySpreadConstraints": When(setting("topologySpread.enabled"), [spread]),
        "containers": [_container(part)],
        "volumes": [volume for volume, _ in _volumes(part)],
    }


def _container(part: Part) -> Mapping[str, Node]:
    security, resources = parts.own(part, "main_csc"), setting(f"custom.{part.key}_resources")
    return {
        "name": part.name,
        "image": parts.image(part),
        "imagePullPolicy": setting("basic.image_pull_policy"),
        "command": [part.program],
        "args": [*_shared_arguments(part), *_ARGUMENTS[part.key]],
        "env": [
            {"name": "KUBE_POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
            {"name": "HELM_RELEASE_NAME", "value": RELEASE},
        ],
        "ports": [
            *([{"name": "webhooks", "containerPort": setting("basic.admission_port")}] if part is ADMISSION else ()),
            {"name": "metrics", "containerPort": part.metrics_port},
            {"name": "health", "containerPort": HEALTH_PORT},
        ],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": "health"}, "initialDelaySeconds": 60},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": "health"}},
        "resources": When(resources, resources),
        "securityContext": When(security, security),
        "volumeMounts": [mount for _, mount in _volumes(part)],
    }


def _volumes(part: Part) -> Iterator[tuple[Mapping[str, Node], Mapping[str, Node]]]:
    """Volumes, and where they are mounted; the root is read-only, so that dumps need a folder of their own."""
    if part is SCHEDULER:
        mount = {"name": "scheduler-config", "mountPath": CONFIG_FOLDER, "readOnly": True}
        yield {"name": "scheduler-config", "configMap": {"name": SCHEDULER_CONFIG}}, mount
    if part is ADMISSION:
        mount = {"name": "admission-config", "mountPath": ADMISSION_FOLDER, "readOnly": True}
        yield {"name": "admission-config", "configMap": {"name": ADMISSION_CONFIG}}, mount
    yield {"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}}, {"name": "tmp", "mountPath": "/tmp"}


def _shared_arguments(part: Part) -> Sequence[Node]:
    """What all are told, and what those are told that elect a leader."""
    alone: Sequence[Node] = (
        f"--listen-address=:{part.metrics_port}",
        text("--leader-elect=", parts.elects(part)),
        text("--leader-elect-resource-namespace=", NAMESPACE),
    )
    rates: Sequence[Node] = [
        text(f"--kube-api-{name}=", setting(f"custom.{part.key}_kube_api_{name}"))
        for name in (("qps", "burst") if part.elects else ())
    ]
    return [
        "--enable-healthz=true",
        f"--healthz-address=:{HEALTH_PORT}",
        text("--enable-metrics=", setting(f"custom.{part.key}_metrics_enable")),
        *(alone if part.elects else (f"--metrics-address=:{part.metrics_port}",)),
        *rates,
        text("--log-format=", setting("custom.log_format")),
        text("-v=", setting(f"custom.{part.key}_log_level")),
    ]


def _given(flag: str, path: str) -> When:
    """A flag that stands only where its setting does."""
    return When(setting(path), text(f"--{flag}=", setting(path)))


_NAMED: Final = _given("scheduler-name", "custom.scheduler_name")
_SAMPLE: Final = setting("custom.scheduler_percentage_nodes_to_find")
_CHOSEN: Final = first(setting("custom.controller_enabled_controllers"), "*,-sharding-controller")
_ARGUMENTS: Final[Mapping[str, Sequence[Node]]] = {
    "scheduler": (
        text(f"--scheduler-conf={CONFIG_FOLDER}/", _CONFIG_KEY),
        text("--schedule-period=", setting("custom.scheduler_schedule_period")),
        _NAMED,
        When(setting("custom.scheduler_pprof_enable"), "--enable-pprof=true"),
        _given("plugins-dir", "custom.scheduler_plugins_dir"),
        When(is_set(_SAMPLE), text("--percentage-nodes-to-find=", _SAMPLE)),
        _given("feature-gates", "custom.scheduler_feature_gates"),
        _given("ignored-provisioners", "custom.ignored_provisioners"),
        _given("scheduler-sharding-mode", "custom.scheduler_sharding_mode"),
        _given("scheduler-sharding-name", "custom.scheduler_sharding_name"),
    ),
    "controller": (
        _NAMED,
        text("--controllers=", _CHOSEN, either(same(parts.MODE, "controller-manager"), "", ",-hyperNode-controller")),
        # always, as the controllers may read the ConfigMaps of their own namespace alone
        text("--sharding-configmap=", SHARDING_CONFIG),
        text("--sharding-configmap-namespace=", NAMESPACE),
    ),
    "hypernode_controller": (),
    "admission": (
        text("--enabled-admission=", setting("custom.enabled_admissions")),
        text("--webhook-namespace=", NAMESPACE),
        text("--webhook-service-name=", RELEASE, f"-{ADMISSION.service}"),
        text("--certificate-secret=", setting("basic.admission_secret_name")),
        text("--port=", setting("basic.admission_port")),
        text(f"--admission-conf={ADMISSION_FOLDER}/", _ADMISSION_KEY),
        _NAMED,
        _given("feature-gates", "custom.admission_feature_gates"),
    ),
}
"""Flags of each program in addition to the common ones."""


# ---------------------------------------------------------------------------------------------------- services


def _service(part: Part) -> Mapping[str, Node]:
    """Where metrics are; Prometheus finds it by the annotations that Volcano's Services have."""
    family, families = setting("service.ipFamilyPolicy"), setting("service.ipFamilies")
    service = made("v1", "Service", text(RELEASE, f"-{part.service}"), part)
    notes = {"scrape": "true", "path": "/metrics", "port": str(part.metrics_port)}
    annotations = {f"prometheus.io/{name}": value for name, value in notes.items()}
    spec = {
        "selector": parts.selector(part),
        "ipFamilyPolicy": When(family, family),
        "ipFamilies": When(families, families),
        "ports": [
            *([{"name": "webhooks", "port": SERVICE_PORT, "targetPort": "webhooks"}] if part is ADMISSION else ()),
            {"name": "metrics", "port": part.metrics_port, "targetPort": "metrics"},
        ],
    }
    return {**service, "metadata": {**service["metadata"], "annotations": annotations}, "spec": spec}
