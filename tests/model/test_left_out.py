"""What a manifest does not say: each field that is read of one is empty then, or what its API takes instead."""

from __future__ import annotations

import importlib
import pkgutil
import typing
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest

import stromboli
from stromboli.model.spec import Wire
from stromboli.plugins.extender import messages

DEFAULTS: Final = {
    "controllers.pods._Metadata.namespace": "default",
    "model.objects.base.NamespacedMetadata.namespace": "default",
    "controllers.pods._Status.phase": "Pending",
    # Kubernetes' own
    "model.claims.Pool.resource_slice_count": 1,
    "model.spec.SpreadConstraint.max_skew": 1,
    "model.spec.SpreadConstraint.when_unsatisfiable": "DoNotSchedule",
    "model.spec.SpreadConstraint.node_affinity_policy": "Honor",
    "model.spec.SpreadConstraint.node_taints_policy": "Ignore",
    "model.objects.storage.VolumeClaimSpec.volume_mode": "Filesystem",
    "model.objects.storage.VolumeSpec.volume_mode": "Filesystem",
    # Volcano's
    "model.podgroup.MinCount.min_count": 1,
    "api.fields.NetworkTopology.mode": "hard",
    "model.resources.device_settings.NvidiaSettings.resource_count_name": "volcano.sh/vgpu-number",
    "model.resources.device_settings.NvidiaSettings.resource_memory_name": "volcano.sh/vgpu-memory",
    "model.resources.device_settings.NvidiaSettings.resource_core_name": "volcano.sh/vgpu-cores",
    # of other files: how nodes are divided, what is simulated
    "controllers.sharding.configuration._Policy.weight": 1.0,
    "controllers.sharding.configuration._Scheduler.cpu_utilization_max": 1.0,
    "cluster.files.scenario.ScenarioOptions.scheduler_name": "volcano",
}
NONEMPTY_PARTS: Final = {"model.resources.device_settings.DeviceSettings.vnpus"}
"""Parts of which something is known where they are left out: the chips that the reference knows."""


def _below(kind: type[Any]) -> Iterator[type[Any]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


def _wire_classes() -> list[type[Any]]:
    for module in pkgutil.walk_packages(stromboli.__path__, "stromboli."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    return [kind for kind in _below(Wire) if kind.__module__.startswith("stromboli.")]


def _may_be_none(kind: object) -> bool:
    parts = typing.get_args(kind)
    return _may_be_none(parts[0]) if typing.get_origin(kind) is typing.Annotated else type(None) in parts


@pytest.fixture(scope="module")
def left_out() -> dict[str, tuple[object, object]]:
    """The default and the declared type of every optional field, by field."""
    found = {}
    for kind in _wire_classes():
        for field in msgspec.structs.fields(kind):
            default = field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()
            if field.name in kind.__annotations__ and default is not msgspec.NODEFAULT:
                found[f"{kind.__module__.removeprefix('stromboli.')}.{kind.__name__}.{field.name}"] = (
                    default,
                    field.type,
                )
    return found


def test_what_a_manifest_leaves_out_is_empty_but_for_what_its_api_defaults(
    left_out: dict[str, tuple[object, object]],
) -> None:
    filled = {name: value for name, (value, _) in left_out.items() if value and not isinstance(value, Wire)}
    assert filled == DEFAULTS


def test_absent_and_empty_differ_where_a_field_may_be_absent(left_out: dict[str, tuple[object, object]]) -> None:
    """None where the type admits it, so that 0 that is written is told from nothing that is written.

    The age of a measured node has its type from scenarios, where None is a usage that was never taken.
    """
    may_be_absent = {name for name, (_, kind) in left_out.items() if _may_be_none(kind)}
    taken_now = {"cluster.files.usage_file.MeasuredNode.age_seconds"}
    assert {name for name, (value, _) in left_out.items() if value is None} == may_be_absent - taken_now


def test_parts_that_are_left_out_are_read_as_if_they_were_empty(left_out: dict[str, tuple[object, object]]) -> None:
    parts = {name: value for name, (value, _) in left_out.items() if isinstance(value, Wire)}
    assert {name for name, value in parts.items() if value != type(value)()} == NONEMPTY_PARTS


def test_what_is_read_of_a_manifest_does_not_change() -> None:
    assert [kind.__name__ for kind in _wire_classes() if not kind.__struct_config__.frozen] == []


def test_what_an_extender_leaves_out_of_its_answer_is_empty() -> None:
    answers = [kind for kind in _below(msgspec.Struct) if kind.__module__ == messages.__name__]
    assert messages.Overused in answers
    assert [kind for kind in answers if any(msgspec.structs.astuple(msgspec.convert({}, kind)))] == []
