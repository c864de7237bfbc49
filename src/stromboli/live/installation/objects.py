"""All objects of an installation, by the files of the chart that make them; what is printed is the same, evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from stromboli.api.kinds import BATCH_GROUP, BUS_GROUP
from stromboli.controllers.selection import NOT_OFFERED
from stromboli.crds.admission.paths import PODS_MUTATE
from stromboli.crds.manifests import definitions
from stromboli.framework.config.gates import ADMISSION as QUEUE_GATE
from stromboli.live.installation import parts, registered, workloads
from stromboli.live.installation.expressions import (
    Call,
    Node,
    Refusal,
    When,
    both,
    matches,
    merged,
    more,
    no,
    same,
    text,
)
from stromboli.live.installation.parts import (
    ADMISSION,
    CONTROLLERS,
    HYPERNODES,
    NAMESPACE,
    RELEASE,
    SCHEDULER,
    Part,
    made,
)
from stromboli.live.installation.settings import SETTINGS, setting
from stromboli.live.proofs.guarding import guard
from stromboli.metrics.boards.alerts import groups

_MODES: Final = ("controller-manager", "standalone", "disabled")
_ROLES: Final[Mapping[str, Mapping[str, Sequence[str]]]] = {
    "editor": {"jobs": ("create", "get", "list", "update", "delete"), "commands": ("create", "get", "list")},
    "viewer": {"jobs": ("get", "list"), "commands": ("get", "list")},
}
"""Roles for users of jobs: what each may do."""


def files() -> Mapping[str, Sequence[Node]]:
    """The objects, by the names of the chart's files."""
    return {
        "checks": list(_checks()),
        "crds": [When(setting("crds.enabled"), one) for one in definitions()],
        "reservations": list(_guard()),
        "scheduler": list(workloads.program(SCHEDULER)),
        "controllers": list(workloads.program(CONTROLLERS)),
        "hypernode-controller": list(workloads.program(HYPERNODES)),
        "admission": list(workloads.program(ADMISSION)),
        "roles": list(_roles()),
        "network-policies": [_network(part) for part in parts.PARTS],
        "monitoring": list(_monitoring()),
        "policies": list(registered.policies_in_cel()),
        "webhooks": list(registered.webhooks()),
    }


def everything() -> list[Node]:
    """All objects in the order in which they may be applied."""
    return [node for nodes in files().values() for node in nodes]


def _checks() -> Iterator[Refusal]:
    """What is refused before anything is made."""
    for one in SETTINGS:
        if one.refused:
            yield Refusal(setting(one.path), f"{one.path}: {one.refused}")
    unknown = both(*(no(same(parts.MODE, mode)) for mode in _MODES))
    yield Refusal(unknown, f"custom.hypernode_controller_mode must be one of {', '.join(_MODES)}")
    alone = both(same(parts.MODE, "standalone"), no(more(HYPERNODES.replicas, 0)))
    yield Refusal(alone, "custom.hypernode_controller_replicas must be at least 1 in mode standalone")
    named = setting("custom.controller_enabled_controllers")
    twice = both(matches(named, _chosen("hyperNode-controller")), no(same(parts.MODE, "controller-manager")))
    yield Refusal(
        twice,
        "custom.controller_enabled_controllers names hyperNode-controller, and custom.hypernode_controller_mode takes"
        " it out of the controllers: leave one of them out",
    )
    for name in sorted(NOT_OFFERED):
        yield Refusal(
            matches(named, _chosen(name)), f"custom.controller_enabled_controllers: {name} is not offered yet"
        )
    yield _one_sided_gate()
    empty = both(setting("custom.scheduler_enable"), no(workloads.CONFIGURATION))
    told = "basic.scheduler_config_file: the chart has no such file; custom.scheduler_config_override takes a text"
    yield Refusal(empty, told)


def _one_sided_gate() -> Refusal:
    """Webhooks that give pods a gate, and a scheduler that never takes it away: those pods would wait for ever."""
    is_on = rf"(^|,)\s*{QUEUE_GATE}\s*=\s*(1|t|T|true|TRUE|True)\s*(,|$)"
    gated = both(
        setting("custom.admission_enable"),
        Call("contains", (setting("custom.enabled_admissions"), PODS_MUTATE)),
        matches(setting("custom.admission_feature_gates"), is_on),
    )
    takes_away = matches(setting("custom.scheduler_feature_gates"), is_on)
    told = (
        f"custom.admission_feature_gates has {QUEUE_GATE} on, and custom.scheduler_feature_gates has not: pods would"
        " get a gate that nothing takes away; turn it on or off in both"
    )
    return Refusal(both(setting("custom.scheduler_enable"), gated, no(takes_away)), told)


def _chosen(controller: str) -> str:
    """The pattern of a list that has a controller run."""
    return rf"(^|,)[+]?{controller}(,|$)"


def _guard() -> Iterator[When]:
    user = text("system:serviceaccount:", NAMESPACE, ":", SCHEDULER.name)
    is_there = both(setting("custom.scheduler_enable"), setting("reservationGuard.enabled"))
    for one in guard(text(RELEASE, "-reservations"), user, parts.labels(SCHEDULER)):
        yield When(is_there, one)


def _roles() -> Iterator[Mapping[str, Node]]:
    extra = setting("custom.aggregationRule_labels")
    for name, verbs in _ROLES.items():
        role = made("rbac.authorization.k8s.io/v1", "ClusterRole", f"vcjob-{name}-role", cluster=True)
        labels = merged(extra, parts.labels(None))
        rules = [
            {"apiGroups": [group], "resources": [plural], "verbs": list(verbs[plural])}
            for group, plural in ((BATCH_GROUP, "jobs"), (BUS_GROUP, "commands"))
        ]
        yield {**role, "metadata": {**role["metadata"], "labels": labels}, "rules": rules}


def _network(part: Part) -> When:
    """What may reach a program: scrapers of metrics, and health probes."""
    peers = setting("networkPolicy.metricsFrom")
    asked = ("webhooks",) if part is ADMISSION else ()
    spec = {
        "podSelector": {"matchLabels": parts.selector(part)},
        "policyTypes": ["Ingress"],
        "ingress": [
            {"ports": [{"port": "metrics", "protocol": "TCP"}], "from": When(peers, peers)},
            {"ports": [{"port": name, "protocol": "TCP"} for name in ("health", *asked)]},
        ],
    }
    policy = {**made("networking.k8s.io/v1", "NetworkPolicy", part.name, part), "spec": spec}
    return parts.enabled(part, policy, setting("networkPolicy.enabled"))


def _monitoring() -> Iterator[When]:
    kinds = (("ServiceMonitor", "serviceMonitor", _scraped()), ("PrometheusRule", "prometheusRule", _alerted()))
    for kind, group, spec in kinds:
        found = made("monitoring.coreos.com/v1", kind, RELEASE)
        labels = merged(setting(f"{group}.labels"), parts.labels(None))
        yield When(
            setting(f"{group}.enabled"), {**found, "metadata": {**found["metadata"], "labels": labels}, "spec": spec}
        )


def _scraped() -> Mapping[str, Node]:
    ours: dict[str, Node] = {"app.kubernetes.io/name": "stromboli", "app.kubernetes.io/instance": RELEASE}
    return {
        "selector": {"matchLabels": ours},
        "namespaceSelector": {"matchNames": [NAMESPACE]},
        "endpoints": [{"port": "metrics", "interval": setting("serviceMonitor.interval")}],
    }


def _alerted() -> Mapping[str, Node]:
    return {"groups": groups()}
