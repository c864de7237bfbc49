"""The flags of ``stromboli controllers``, apart from what they set up: help needs them alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from stromboli.controllers.selection import CONTROLLERS
from stromboli.controllers.sharding.configuration import DEFAULT_SCHEDULERS
from stromboli.live.process.flags import FLAGS, Flag
from stromboli.model.names import CONTROLLERS_LEASE, NAMESPACE, SHARDING_CONFIG_MAP

_SHARED: Final = (
    "master", "kubeconfig", "context", "kube-api-qps", "kube-api-burst", "ca-cert-file", "tls-cert-file",
    "tls-private-key-file", "scheduler-name", "enable-healthz", "healthz-address", "enable-metrics", "enable-pprof",
    "version", "leader-elect", "leader-elect-lease-duration", "leader-elect-renew-deadline",
    "leader-elect-retry-period", "leader-elect-resource-lock", "leader-elect-resource-namespace",
    "lock-object-namespace", "job-plugins-dir", "v", "log-flush-frequency", "logtostderr", "log-format",
)  # fmt: skip
"""Flags that the scheduler has too."""

_NO_WORKERS: Final = "Looks at different objects need no workers."
CONTROL_FLAGS: Final[Sequence[Flag]] = (
    *(flag for flag in FLAGS if flag.name in _SHARED),
    Flag("listen-address", "text", ":8081", "Where metrics are served."),
    Flag("leader-elect-resource-name", "text", CONTROLLERS_LEASE, "Name of the Lease."),
    Flag("controllers", "texts", "*,-sharding-controller", f"name, -name, * for all, of {', '.join(CONTROLLERS)}."),
    Flag("max-requeue-num", "int", "15", "Failed looks at an object before it is given up; below 0 for any number."),
    Flag("inherit-owner-annotations", "bool", "true", "PodGroups of plain pods inherit their owners' annotations."),
    Flag("group-by-owner-kinds", "texts", "", "Kinds such as JobSet: all pods below such an owner are one gang."),
    Flag("feature-gates", "text", "", "Gates of the scheduler; controllers are chosen by --controllers.", idle=True),
    Flag("worker-threads", "int", "3", _NO_WORKERS, idle=True),
    Flag("worker-threads-for-podgroup", "int", "5", _NO_WORKERS, idle=True),
    Flag("worker-threads-for-queue", "int", "5", _NO_WORKERS, idle=True),
    Flag("worker-threads-for-gc", "int", "1", _NO_WORKERS, idle=True),
    Flag("worker-threads-for-cronjob", "int", "3", _NO_WORKERS, idle=True),
    Flag("scheduler-configs", "texts", ",".join(DEFAULT_SCHEDULERS), "Deprecated: what the ConfigMap says counts."),
    Flag("shard-sync-period", "duration", "60s", "How often nodes are divided again; 0 for 120s."),
    Flag("enable-node-event-trigger", "bool", "true", "Divide nodes again when they change, too."),
    Flag("sharding-configmap", "text", SHARDING_CONFIG_MAP, "ConfigMap that says how nodes are divided; empty: none."),
    Flag("sharding-configmap-namespace", "text", NAMESPACE, "Its namespace."),
)
"""The flags of ``stromboli controllers``: those of Volcano's controller manager."""
