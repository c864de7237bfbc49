"""The process of ``stromboli controllers``: what flags make of the controllers."""

from __future__ import annotations

import os
from typing import Final

from stromboli.controllers.selection import looks_of
from stromboli.controllers.sharding.configuration import Sharding, from_flags
from stromboli.errors import ConfigError, ManifestError
from stromboli.job_plugins.registry import offered
from stromboli.live.controllers.controller_runner import Controllers
from stromboli.live.controllers.options import Options
from stromboli.live.process.control_gauges import ControlGauges
from stromboli.live.process.process import pages_of, terms_of
from stromboli.live.process.service import Service, Values, run_service
from stromboli.model.names import NAMESPACE

AGENT: Final = "stromboli-controllers"
"""What we are called in the API server's logs."""


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
