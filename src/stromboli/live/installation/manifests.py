"""The objects of an installation by hand: those that the chart makes, with settings of their own."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from stromboli.crds.admission.paths import INSTALLED
from stromboli.errors import ConfigError
from stromboli.framework.config.argument import nearest
from stromboli.framework.config.document import read_text
from stromboli.live.installation.configurations import CONFIGURATION, CONFIGURATIONS
from stromboli.live.installation.objects import everything
from stromboli.live.installation.readings import evaluated
from stromboli.live.installation.settings import SETTINGS, nested
from stromboli.model.names import NAMESPACE

Manifest = Mapping[str, Any]

RELEASE: Final = "stromboli"
CONFIG_MAP: Final = "volcano-scheduler-configmap"
"""The ConfigMap of Volcano's installation: a cluster that has it keeps its configuration."""
SERVICE: Final = "stromboli-manifests"
"""What manages these objects, in a label of theirs."""


class Parts(NamedTuple):
    """What differs between installations; ``config`` is a configuration's text, ``settings`` are by dotted paths."""

    image: str
    namespace: str = NAMESPACE
    config: str = CONFIGURATION
    crds: bool = True
    release: str = RELEASE
    settings: Mapping[str, Any] = {}


def manifests(parts: Parts) -> list[Manifest]:
    """All objects in the order in which they may be applied.  Raises ConfigError for settings that are refused."""
    chosen = {
        "basic.image": parts.image,
        "basic.scheduler_configmap": CONFIG_MAP,
        "custom.scheduler_config_override": parts.config,
        "custom.leader_elect_enable": True,
        "custom.scheduler_replicas": 2,
        "custom.controller_replicas": 2,
        "custom.admission_replicas": 2,
        "custom.enabled_admissions": ",".join(INSTALLED),
        "crds.enabled": parts.crds,
        **parts.settings,
    }
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": parts.namespace}}
    found: list[Manifest] = evaluated(everything(), scope(chosen, parts.release, parts.namespace, SERVICE))
    first = sum(one["kind"] == "CustomResourceDefinition" for one in found)
    return [*found[:first], namespace, *found[first:]]


def read_settings(path: Path) -> dict[str, Any]:
    """The settings of a values file, by dotted paths.  Raises ConfigError for one that cannot be read or is unknown."""
    found = yaml.safe_load(read_text(path)) or {}
    if not isinstance(found, Mapping) or not all(isinstance(one, Mapping) for one in found.values()):
        raise ConfigError(f"{path}: a values file holds groups of settings, such as custom")
    known = [one.path for one in SETTINGS]
    flat = {f"{group}.{name}": value for group, one in found.items() for name, value in one.items()}
    for name in flat:
        if name not in known:
            raise ConfigError(f"{path}: there is no setting {name}", nearest=nearest(name, known))
    return flat


def scope(chosen: Mapping[str, Any], release: str, namespace: str, service: str = "Helm") -> dict[str, Any]:
    """What expressions see: the settings with defaults, and what Helm says of a release and its chart."""
    ours = version("stromboli")
    return {
        "Values": nested({**chosen, **{one.path: _over(one.default, chosen, one.path) for one in SETTINGS}}),
        "Release": {"Name": release, "Namespace": namespace, "Service": service},
        "Chart": {"AppVersion": ours, "Version": ours},
        "Files": CONFIGURATIONS,
    }


def _over(default: Any, chosen: Mapping[str, Any], path: str) -> Any:
    """A setting as Helm reads it: mappings are laid over each other, and null takes a key away."""
    if path not in chosen:
        return default
    value = chosen[path]
    if not isinstance(value, Mapping) or not isinstance(default, Mapping):
        return value
    laid = {key: _over(default.get(key), value, key) for key in {**default, **value}}
    return {key: one if key in value else default[key] for key, one in laid.items() if value.get(key, one) is not None}
