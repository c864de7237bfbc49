"""What a manifest does not say: each field that is read of one is empty then, but for those of the table."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, Final

import msgspec

import stromboli
from stromboli.model.spec import Wire

DEFAULTS: Final = {
    "NamespacedMetadata.namespace": "default",
    "_Metadata.namespace": "default",
    "_Status.phase": "Pending",
    # Kubernetes' own
    "Pool.resource_slice_count": 1,
    "SpreadConstraint.max_skew": 1,
    "SpreadConstraint.when_unsatisfiable": "DoNotSchedule",
    "SpreadConstraint.node_affinity_policy": "Honor",
    "SpreadConstraint.node_taints_policy": "Ignore",
    "VolumeClaimSpec.volume_mode": "Filesystem",
    "VolumeSpec.volume_mode": "Filesystem",
    # Volcano's
    "MinCount.min_count": 1,
    "NetworkTopology.mode": "hard",
    "NvidiaSettings.resource_count_name": "volcano.sh/vgpu-number",
    "NvidiaSettings.resource_memory_name": "volcano.sh/vgpu-memory",
    "NvidiaSettings.resource_core_name": "volcano.sh/vgpu-cores",
    "_Policy.weight": 1.0,
    "_Scheduler.cpu_utilization_max": 1.0,
    # of a file that simulates
    "ScenarioOptions.scheduler_name": "volcano",
}

FILLED: Final = {"DeviceSettings.vnpus"}
"""Parts of which something is known where they are left out: the chips that the reference knows."""


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


def _kinds() -> list[type[Any]]:
    """All kinds that are read of manifests, wherever they stand."""
    for module in pkgutil.walk_packages(stromboli.__path__, "stromboli."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    return [kind for kind in _below(Wire) if kind.__module__.startswith("stromboli.")]


def test_what_a_manifest_leaves_out_is_empty_but_for_what_its_api_defaults() -> None:
    said = {}
    for kind in _kinds():
        for field in msgspec.structs.fields(kind):
            default = field.default
            if field.name in kind.__annotations__ and default is not msgspec.NODEFAULT and default:
                said[f"{kind.__name__}.{field.name}"] = default
    assert {name: value for name, value in said.items() if not isinstance(value, Wire)} == DEFAULTS


def test_parts_that_are_left_out_are_read_as_if_they_were_empty() -> None:
    for kind in _kinds():
        for field in msgspec.structs.fields(kind):
            name = f"{kind.__name__}.{field.name}"
            if isinstance(field.default, Wire) and name not in FILLED:
                assert field.default == type(field.default)(), name


def test_what_is_read_of_a_manifest_does_not_change() -> None:
    assert [kind.__name__ for kind in _kinds() if not kind.__struct_config__.frozen] == []
