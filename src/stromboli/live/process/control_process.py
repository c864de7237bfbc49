"""The process of ``stromboli controllers``: what flags make of the controllers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from stromboli.controllers.selection import CONTROLLERS, looks_of
from stromboli.controllers.sharding.configuration import DEFAULT_SCHEDULERS, Sharding, from_flags
from stromboli.errors import ConfigError, ManifestError
from stromboli.job_plugins.registry import offered
from stromboli.live.controllers.controller_runner import Controllers
from stromboli.live.controllers.options import SHARDING_CONFIG_MAP, Options
from stromboli.live.process.control_gauges import ControlGauges
from stromboli.live.process.flags import FLAGS, Flag
from stromboli.live.process.process import pages_of, terms_of
from stromboli.live.process.service import Service, Values, run_service
from stromboli.model.names import CONTROLLERS_LEASE, NAMESPACE

AGENT: Final = "stromboli-controllers"
"""What we are called in the API server's logs."""

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
    Flag("shard-sync-period", "duration", "60s", "How often nodes are divided anew; 0 for 120s."),
    Flag("enable-node-event-trigger", "bool", "true", "Divide nodes anew when they change, too."),
    Flag("sharding-configmap", "text", SHARDING_CONFIG_MAP, "ConfigMap that says how nodes are divided; empty: none."),
    Flag("sharding-configmap-namespace", "text", NAMESPACE, "Its namespace."),
)
"""The flags of ``stromboli controllers``: those of Volcano's controller manager."""


def sharding_of(flags: Values) -> Sharding:
    """How flags say that nodes are divided.  Raises ConfigError."""
    follows = flags["enable_node_event_trigger"]
    try:
        return from_flags(flags["scheduler_configs"], flags["shard_sync_period"], follows_nodes=follows)
    except ManifestError as error:
        raise ConfigError(f"--scheduler-configs: {error}") from error


class ControlProcess(Service):
    """Everything that ``stromboli controllers`` runs, from flags."""

    def __init__(self, flags: Values) -> None:
        super().__init__(flags, AGENT)
        options = Options(
            scheduler_names=flags["scheduler_name"],
            max_requeue=flags["max_requeue_num"],
            inherit_owner_annotations=flags["inherit_owner_annotations"],
            looks=looks_of(flags["controllers"]),
            group_by=frozenset(flags["group_by_owner_kinds"]),
            job_plugins=offered(flags["job_plugins_dir"]),
            namespace=os.environ.get("KUBE_POD_NAMESPACE") or NAMESPACE,
            config_map=f"{os.environ.get('HELM_RELEASE_NAME') or 'volcano'}-controller-configmap",
            sharding=sharding_of(flags),
            sharding_config_map=flags["sharding_configmap"],
            sharding_namespace=flags["sharding_configmap_namespace"],
        )
        self.controllers = Controllers(self.client, options, observer=self.log, may_write=self.leadership.leads)
        if flags["leader_elect"]:
            self.leadership.stand(self.client, terms_of(flags), self.controllers.tell, self.controllers.recorder)
        self.parts = [self.controllers]
        ControlGauges(self.registry, self.controllers.manager)
        self.pages = pages_of(flags, self.registry, lambda: "", self._unready)

    def _unready(self) -> str:
        return "" if self.controllers.ready.is_set() else "not all objects have been read"


def control(flags: Values) -> int:
    """Run ``stromboli controllers`` and return its exit code."""
    return run_service(lambda: ControlProcess(flags))
