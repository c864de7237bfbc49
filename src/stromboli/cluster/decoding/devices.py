"""ConfigMaps that describe devices; no others are kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from stromboli.cluster import kinds
from stromboli.cluster.decoding.chip_reports import node_of, report_of
from stromboli.cluster.files import yaml_values
from stromboli.errors import ManifestError
from stromboli.model.resources.device_settings import DeviceSettings

KEY: Final = "device-config.yaml"
MAX_INSTANCES: Final = 64
"""Instances of one MIG geometry; no card has more than seven."""


class DeviceSettingsStore(dict[str, DeviceSettings]):
    """What is said of devices, by namespace and name of the ConfigMap."""

    def apply(self, found: kinds.ConfigMap, stays: bool) -> None:
        """Take an object in, new or changed, or let it go.  Raises ManifestError, nothing changed."""
        key = f"{found.metadata.namespace}/{found.metadata.name}"
        settings = settings_of(found) if stays and describes_devices(found) else None
        self.pop(key, None)
        if settings is not None:
            self[key] = settings


def describes_devices(found: kinds.ConfigMap) -> bool:
    """Whether a ConfigMap is about devices at all."""
    return KEY in found.data or bool(node_of(found))


def settings_of(found: kinds.ConfigMap) -> DeviceSettings:
    """The settings that a ConfigMap states.  Raises ManifestError, which says where it cannot be read."""
    if KEY not in found.data:
        return DeviceSettings(chips={node_of(found): report_of(found)})
    where, path = kinds.title("ConfigMap", found.metadata), f"data.{KEY}"
    try:
        stated: Any = yaml_values.load(found.data[KEY])
        if not isinstance(stated, dict):
            raise ManifestError("is no mapping")
        shown = {key: stated[key] for key in ("nvidia", "vnpus") if stated.get(key) is not None}
        if isinstance(shown.get("vnpus"), list):  # as older device plugins have it
            shown["vnpus"] = {"configs": shown["vnpus"]}
        settings = msgspec.convert(shown, DeviceSettings)
    except msgspec.ValidationError as error:
        raise ManifestError(str(error), object=where, path=path) from error
    except ManifestError as error:
        raise ManifestError(error.message, object=where, path=path) from error
    if problem := next(_problems(settings), ""):
        raise ManifestError(problem, object=where, path=path)
    return settings


def _problems(settings: DeviceSettings) -> Iterator[str]:
    for geometry in (one for models in settings.nvidia.known_mig_geometries for one in models.allowed_geometries):
        if min((one.count for one in geometry.geometries), default=0) < 0:
            yield f"MIG group {geometry.group:.40} has a negative count"
        if sum(one.count for one in geometry.geometries) > MAX_INSTANCES:
            yield f"MIG group {geometry.group:.40} has more than {MAX_INSTANCES} instances"
