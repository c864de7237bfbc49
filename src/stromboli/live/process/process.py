"""The process of ``stromboli serve``: what flags make of a live scheduler, and what signals ask of it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
import uuid
from collections.abc import Callable, Collection, Coroutine, Iterator
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry

from stromboli.cluster.files.written import manifests
from stromboli.errors import ConfigError, QuantityError
from stromboli.framework.config.sampling import Sampling
from stromboli.kube.client import Client
from stromboli.kube.lease import Terms
from stromboli.kube.turns import Slices
from stromboli.live.process.flags import GIVEN, SAMPLING
from stromboli.live.process.gauges import LiveGauges
from stromboli.live.process.service import Part, Service, Values, run_service
from stromboli.live.process.web import Pages, health_pages, metrics_page, server_tls, stacks_page
from stromboli.live.scheduler.configuration import Source
from stromboli.live.scheduler.dump import summary, write_dump
from stromboli.live.scheduler.hash_ring import replica_of
from stromboli.live.scheduler.options import Options
from stromboli.live.scheduler.recording import Limits, Recorder, record
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.metrics.prometheus import MetricsObserver
from stromboli.model.objects.shard import MODES
from stromboli.model.resources import quantity
from stromboli.narration.observe import Observer, Several

AGENT: Final = "stromboli-scheduler"
SHADOW_AGENT: Final = "stromboli-shadow"
"""What we are called in the API server's logs."""


def options_of(flags: Values) -> Options:
    """What flags say to the scheduler.  Raises ConfigError for what is not offered."""
    if (mode := flags["scheduler_sharding_mode"]) not in MODES:
        raise ConfigError(f"--scheduler-sharding-mode={mode}: write one of {', '.join(MODES)}")
    if flags["leader_elect_resource_lock"] != "leases":
        raise ConfigError("--leader-elect-resource-lock: only leases are offered")
    return Options(
        scheduler_names=flags["scheduler_name"],
        default_queue=flags["default_queue"],
        schedule_period=flags["schedule_period"],
        resource_sync_timeout=flags["resource_sync_timeout"],
        resync_period=flags["resync_period"],
        priority_class=flags["priority_class"] and flags["feature_gates"]["PriorityClass"],
        disruption_budgets=flags["feature_gates"]["PodDisruptionBudgetsSupport"],
        workloads=flags["feature_gates"]["WorkLoadSupport"],
        csi_storage=flags["csi_storage"],
        ignored_provisioners=frozenset(flags["ignored_provisioners"]),
        node_selector=flags["node_selector"],
        audit_period=flags["audit_period"],
        namespace=namespace_of(flags),
        replica=replica_of(os.environ),
        sharding_mode=mode,
        sharding_name=flags["scheduler_sharding_name"],
    )


def source_of(flags: Values) -> Source:
    """Where flags say that configurations come from."""
    return Source(
        flags["scheduler_conf"],
        plugins=flags["plugins_dir"],
        compat=flags["compat"] == "volcano",
        lenient=flags["lenient_config"],
        strict=flags["disable_default_scheduler_config"],
        features=frozenset(name for name, on in flags["feature_gates"].items() if on),
        sampling=sampling_of(flags),
    )


def sampling_of(flags: Values) -> Sampling | None:
    """How many nodes are looked at, if flags speak of it at all."""
    if flags[GIVEN].isdisjoint(SAMPLING):
        return None
    return Sampling(*(flags[name.replace("-", "_")] for name in SAMPLING))


def namespace_of(flags: Values) -> str:
    """The namespace that flags name for what replicas share."""
    found: str = flags["lock_object_namespace"] or flags["leader_elect_resource_namespace"]
    return found


def terms_of(flags: Values) -> Terms:
    """The Lease that the flags name, and our identity: the host's name and a unique suffix."""
    return Terms(
        namespace_of(flags),
        flags["leader_elect_resource_name"],
        f"{socket.gethostname()}_{uuid.uuid4()}",
        flags["leader_elect_lease_duration"],
        flags["leader_elect_renew_deadline"],
        flags["leader_elect_retry_period"],
    )


def pages_of(
    flags: Values, registry: CollectorRegistry, healthy: Callable[[], str], ready: Callable[[], str]
) -> list[Pages]:
    """The pages that flags ask for; ``healthy`` and ``ready`` say what is wrong, if anything."""
    found = []
    if flags["enable_metrics"] or flags["enable_pprof"]:
        pages = Pages(flags["listen_address"])
        if flags["enable_metrics"]:
            metrics_page(pages, registry)
        if flags["enable_pprof"]:
            stacks_page(pages)
        found.append(pages)
    if flags["enable_healthz"]:
        files = [flags[name] for name in ("ca_cert_file", "tls_cert_file", "tls_private_key_file")]
        pages = Pages(flags["healthz_address"], server_tls(*files))
        health_pages(pages, healthy, ready)
        found.append(pages)
    return found


def recorder_of(flags: Values, scheduler: LiveScheduler) -> Recorder | None:
    """What records the scheduler, if flags ask for it.  Raises ConfigError and OSError."""
    if not flags["record"]:
        return None
    try:
        most = int(quantity.whole(flags["record_max_size"]))
    except QuantityError as error:
        raise ConfigError(f"--record-max-size={flags['record_max_size']}: {error}") from error
    return record(scheduler, Path(flags["record"]), Limits(bytes=most, seconds=flags["record_max_age"]))


def shadow_client(client: Client, flags: Values) -> Client:
    """The same client for reads alone.  Raises ConfigError for what a shadow cannot do."""
    from stromboli.live.shadow.shadow import read_only

    if flags["controllers"]:
        raise ConfigError("--shadow writes nothing, and --controllers writes all the time; leave one of them out")
    return client.through(read_only)


class Process(Service):
    """Everything that ``stromboli serve`` runs, from flags; ``background`` makes further coroutines."""

    def __init__(
        self, flags: Values, background: Callable[[LiveScheduler], Collection[Coroutine[Any, Any, None]]] = lambda _: ()
    ) -> None:
        super().__init__(flags, SHADOW_AGENT if flags["shadow"] else AGENT)
        if flags["shadow"]:
            self.client = shadow_client(self.client, flags)
        self.observer: Observer = Several([MetricsObserver(self.registry), self.log])
        self.scheduler = LiveScheduler(
            self.client, options_of(flags), source_of(flags), observer=self.observer, may_write=self._may_write
        )
        self.tell = self.scheduler.tell
        if flags["leader_elect"] and not flags["shadow"]:
            self.leadership.stand(self.client, terms_of(flags), self.tell, self.scheduler.recorder)
        self.pages = pages_of(flags, self.registry, self.scheduler.stuck, self._unready)
        self.parts = [self._shadow() if flags["shadow"] else self.scheduler, *self._controllers()]
        self.background = background(self.scheduler)
        if flags["cache_dumper"]:
            self.asked = {signal.SIGUSR1: self._dump, signal.SIGUSR2: self._log_state}
        self._one_at_a_time = asyncio.Lock()
        self.recorder = recorder_of(flags, self.scheduler)
        LiveGauges(self.registry, self.scheduler, self.recorder)

    def _may_write(self) -> bool:
        return self.leadership.leads() and not self.flags["shadow"]

    def _shadow(self) -> Part:
        """What plans in the scheduler's place and carries nothing out."""
        from stromboli.live.shadow.figures import ShadowFigures, shadow_page
        from stromboli.live.shadow.shadow import Shadow

        shadow = Shadow(self.scheduler, self.flags["shadow_patience"])
        ShadowFigures(self.registry, shadow)
        if self.flags["enable_metrics"]:
            shadow_page(self.pages[0], shadow)
        return shadow

    def _controllers(self) -> Iterator[Part]:
        """The controllers, which write while the scheduler does; most schedulers do without, so without their code."""
        if not self.flags["controllers"]:
            return
        from stromboli.controllers.selection import OFF, looks_of
        from stromboli.job_plugins.registry import offered
        from stromboli.live.controllers.controller_runner import Controllers
        from stromboli.live.controllers.options import Options as ControllerOptions
        from stromboli.live.process.control_gauges import ControlGauges

        chosen = [*self.flags["controllers"]]
        looks = looks_of(chosen if chosen != ["*"] else [f"-{name}" for name in OFF])
        plugins = offered(self.flags["job_plugins_dir"])
        options = ControllerOptions(scheduler_names=self.flags["scheduler_name"], looks=looks, job_plugins=plugins)
        controllers = Controllers(self.client, options, observer=self.observer, may_write=self.leadership.leads)
        ControlGauges(self.registry, controllers.manager)
        yield controllers

    async def run(self) -> int:
        """See :class:`Service`; a record is closed in the end."""
        try:
            return await super().run()
        finally:
            if self.recorder is not None:
                await asyncio.to_thread(self.recorder.close)

    def _unready(self) -> str:
        return "" if self.scheduler.ready.is_set() else "not all objects have been read"

    # ------------------------------------------------------------------ what signals ask for

    async def _dump(self) -> None:
        """Write the state as it stands now; the writing is done in another thread."""
        async with self._one_at_a_time:
            now = time.time()
            try:
                found = manifests(self.scheduler.state, now)
                path = await asyncio.to_thread(write_dump, found, self.flags["cache_dump_dir"], now)
            except OSError as error:
                self.tell("dump_failed", error=error)
            else:
                self.tell("dumped", path=path)

    async def _log_state(self) -> None:
        busy = Slices()
        for line in summary(self.scheduler.state):
            self.tell("state_line", line=line)
            await busy.give_way()


def serve(
    flags: Values, background: Callable[[LiveScheduler], Collection[Coroutine[Any, Any, None]]] = lambda _: ()
) -> int:
    """Run ``stromboli serve`` and return its exit code."""
    return run_service(lambda: Process(flags, background))
