"""ConfigMaps, as far as they describe devices."""

from __future__ import annotations

import msgspec

from stromboli.model.objects.base import NamespacedMetadata, Object


class ConfigMap(Object, frozen=True):
    """v1 ConfigMap, of which one may describe devices."""

    metadata: NamespacedMetadata = NamespacedMetadata()
    data: dict[str, str] = msgspec.field(default_factory=dict)


class NpuReport(ConfigMap, frozen=True):
    """A ConfigMap in which MindCluster reports on the NPUs of a node."""
