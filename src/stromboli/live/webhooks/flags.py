"""The flags of ``stromboli webhooks``, apart from what they set up: help needs them alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from stromboli.live.process.flags import FLAGS, Flag
from stromboli.model.names import CERTIFICATE_SECRET

DRAIN: Final = 5.0
"""Seconds for which reviews are still taken after the wish to stop: until no API server sends any more."""

BINARY_DEFAULT: Final = (
    "/jobs/mutate", "/jobs/validate", "/podgroups/mutate", "/pods/validate", "/pods/mutate", "/queues/mutate",
    "/queues/validate",
)  # fmt: skip
"""What Volcano's program serves where no flag says otherwise."""

_SHARED: Final = (
    "master", "kubeconfig", "context", "scheduler-name", "enable-healthz", "healthz-address", "version",
    "feature-gates", "job-plugins-dir", "v", "log-flush-frequency", "logtostderr", "log-format", "enable-metrics",
)  # fmt: skip
"""Flags that the scheduler has too."""

WEBHOOK_FLAGS: Final[Sequence[Flag]] = (
    *(flag for flag in FLAGS if flag.name in _SHARED),
    Flag("kube-api-qps", "float", "50", "Requests a second to the API server."),
    Flag("kube-api-burst", "int", "100", "Requests at once to the API server."),
    Flag("tls-cert-file", "text", "", "Certificate that is shown; read again when it changes. Else one is made."),
    Flag("tls-private-key-file", "text", "", "Its key."),
    Flag("ca-cert-file", "text", "", "Authorities to be written into the configurations; without it none are."),
    Flag("listen-address", "text", "", "Address that webhooks are served on; all if empty."),
    Flag("port", "int", "8443", "Port that webhooks are served on."),
    Flag("webhook-namespace", "text", "", "Namespace of the Service that leads here."),
    Flag("webhook-service-name", "text", "", "Name of the Service that leads here."),
    Flag("webhook-url", "text", "", "URL that leads here, without a Service."),
    Flag("enabled-admission", "texts", ",".join(BINARY_DEFAULT), "Paths that are served."),
    Flag("admission-conf", "text", "", "Resource groups; the file is read again when it changes."),
    Flag("graceful-shutdown-time", "duration", "30s", "How long reviews under way may take in the end."),
    Flag("enable-queue-allocated-pods-check", "bool", "false", "Keep queues that hold pods from being deleted."),
    Flag("max-queue-depth", "int", "5", "Levels of queues below root."),
    Flag("enable-root-queue-protection", "bool", "true", "Keep the amounts of root as they are."),
    Flag("drain-time", "duration", f"{DRAIN:g}s", "How long reviews are still taken after SIGTERM.", own=True),
    Flag("certificate-secret", "text", CERTIFICATE_SECRET, "Secret that replicas keep their certificate in.", own=True),
    Flag("certificate-lifetime", "duration", "8760h", "How long a certificate lasts that is made here.", own=True),
    Flag("certificate-pause", "duration", "5m", "Pause between the steps of a new certificate.", own=True),
    Flag("metrics-address", "text", ":8080", "Where metrics are served.", own=True),
)
"""The flags of ``stromboli webhooks``: those of Volcano's webhook manager, and a few of our own."""
