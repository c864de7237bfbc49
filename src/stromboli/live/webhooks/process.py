"""The process of ``stromboli webhooks``: what flags make of the webhook server."""

from __future__ import annotations

import datetime as dt
import ipaddress
import time
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from stromboli.crds.admission import Settings
from stromboli.crds.admission.paths import Path, chosen
from stromboli.errors import ConfigError
from stromboli.framework.config.gates import ADMISSION, QUEUE_OVERCOMMIT
from stromboli.job_plugins.registry import offered
from stromboli.kube.informers import Informers
from stromboli.live.process.gauges import PREFIX
from stromboli.live.process.service import Service, Values, run_service
from stromboli.live.process.web import Pages, health_pages, metrics_page
from stromboli.live.webhooks.bundles import Bundles
from stromboli.live.webhooks.certificates import Terms as CertificateTerms
from stromboli.live.webhooks.conf_file import AdmissionFile
from stromboli.live.webhooks.sight import Sight
from stromboli.live.webhooks.sources import Files, SharedSecret, Source
from stromboli.live.webhooks.webhook_server import Terms, WebhookServer
from stromboli.server.http.certificates import Bearer, begins, ends

AGENT: Final = "stromboli-webhooks"
"""What we are called in the API server's logs."""

LATENCIES: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 5.0)
"""Upper ends, in seconds, of the buckets of durations."""

NOWHERE: Final = "failed to start webhooks as both 'url' and 'namespace/name' of webhook are empty"
NO_PORT: Final = "the port should be in the range of 1 and 65535"


def bearer_of(flags: Values) -> Bearer:
    """The subject of certificates, with the names that API servers use.  Raises ConfigError."""
    service, namespace, url = (flags[name] for name in ("webhook_service_name", "webhook_namespace", "webhook_url"))
    if not (service or namespace or url):
        raise ConfigError(NOWHERE)
    names = (f"{service}.{namespace}.svc", f"{service}.{namespace}", service) if service and namespace else ()
    host = urlsplit(url).hostname or ""
    if not (names or host):
        raise ConfigError("--webhook-namespace and --webhook-service-name belong together")
    try:
        addresses = (str(ipaddress.ip_address(host)),) if host else ()
    except ValueError:
        addresses, names = (), (*names, host)
    return Bearer((*names, *addresses)[0], names, addresses)


def settings_of(flags: Values) -> Settings:
    """How flags set up the rules."""
    gates = flags["feature_gates"]
    return Settings(
        scheduler_names=flags["scheduler_name"],
        max_queue_depth=flags["max_queue_depth"],
        check_allocated_pods=flags["enable_queue_allocated_pods_check"],
        protect_root=flags["enable_root_queue_protection"],
        job_plugins=offered(flags["job_plugins_dir"]).names,
        gates_pods=gates[ADMISSION],
        scales_queues=gates[QUEUE_OVERCOMMIT],
    )


class Figures:
    """What is counted of reviews, and when the certificate ends."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._reviews = Counter(
            f"{PREFIX}webhook_reviews", "Reviews by path and outcome.", ("path", "outcome"), registry=registry
        )
        self._seconds = Histogram(
            f"{PREFIX}webhook_review_duration_seconds", "Time to answer a review.", ("path",), registry=registry,
            buckets=LATENCIES,
        )  # fmt: skip
        self._begin = Gauge(
            f"{PREFIX}webhook_certificate_begin_seconds", "When the certificate begins, since 1970.", registry=registry
        )
        self._end = Gauge(
            f"{PREFIX}webhook_certificate_end_seconds", "When the certificate ends, since 1970.", registry=registry
        )

    def count(self, path: Path, outcome: str, seconds: float) -> None:
        """Count an answer."""
        self._reviews.labels(path.path, outcome).inc()
        self._seconds.labels(path.path).observe(seconds)

    def watch(self, server: WebhookServer) -> None:
        """Show when the certificate of a server begins and ends; 0 as long as it has none that can be read."""
        self._begin.set_function(lambda: _moment(begins, server.certificate.shown))
        self._end.set_function(lambda: _moment(ends, server.certificate.shown))


def _moment(read: Callable[[bytes], dt.datetime], certificate: bytes) -> float:
    try:
        return read(certificate).timestamp()
    except ValueError:  # TLS takes some certificates that cannot be read here
        return 0.0


class WebhookProcess(Service):
    """Everything that ``stromboli webhooks`` runs, from flags."""

    def __init__(self, flags: Values) -> None:
        if not 1 <= flags["port"] <= 65535:
            raise ConfigError(f"--port={flags['port']}: {NO_PORT}")
        bearer, paths = bearer_of(flags), chosen(flags["enabled_admission"])
        super().__init__(flags, AGENT)
        settings, file = settings_of(flags), AdmissionFile(flags["admission_conf"], self.tell)
        file.look()
        informers, figures = Informers(), Figures(self.registry)
        sight = Sight(self.client, paths, informers, self.tell)
        bundles = Bundles(self.client, paths, informers, self.tell)
        terms = Terms(
            flags["listen_address"], flags["port"], flags["drain_time"], flags["graceful_shutdown_time"],
            min(Terms.look, flags["certificate_pause"] / 4),
        )  # fmt: skip
        self.server = WebhookServer(
            paths, sight, bundles, self._source(bearer), informers,
            lambda: replace(settings, resource_groups=file.groups), terms, self.tell, figures.count,
        )  # fmt: skip
        figures.watch(self.server)
        self.parts = [self.server]
        self.pages = [*self._pages()]
        self.background = [file.follow()] if flags["admission_conf"] else ()

    def _source(self, bearer: Bearer) -> Source:
        flags = self.flags
        certificate, key = flags["tls_cert_file"], flags["tls_private_key_file"]
        if bool(certificate) != bool(key):
            raise ConfigError("--tls-cert-file and --tls-private-key-file belong together")
        if certificate:
            return Files(certificate, key, flags["ca_cert_file"])
        if not flags["webhook_namespace"]:
            raise ConfigError("--webhook-namespace: it says where the Secret of the certificate is kept")
        name = (flags["webhook_namespace"], flags["certificate_secret"])
        terms = CertificateTerms(bearer, flags["certificate_lifetime"], flags["certificate_pause"])
        return SharedSecret(self.client, name, terms, self.tell, time.time)

    def _pages(self) -> Collection[Pages]:
        found = []
        if self.flags["enable_metrics"]:
            found.append(Pages(self.flags["metrics_address"]))
            metrics_page(found[-1], self.registry)
        if self.flags["enable_healthz"]:
            found.append(Pages(self.flags["healthz_address"]))
            health_pages(found[-1], lambda: "", self.server.unready)
        return found


def serve_webhooks(flags: Values) -> int:
    """Run ``stromboli webhooks`` and return its exit code."""
    return run_service(lambda: WebhookProcess(flags))
