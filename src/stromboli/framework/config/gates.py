"""Feature gates: what a cluster's administrators switch on and off for the whole process."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from stromboli.errors import ConfigError
from stromboli.framework.config.argument import convert, nearest

ADMISSION, QUEUE_OVERCOMMIT = "SchedulingGatesQueueAdmission", "QueueScopedOvercommit"
POD_LEVEL_RESOURCES, IN_PLACE_RESIZE = "PodLevelResources", "InPlacePodVerticalScaling"
PIPELINED_STATE = "PipelinedStatePersistence"
"""Reservations outlive the session that made them."""

DEFAULTS: Mapping[str, bool] = MappingProxyType(
    {
        "WorkLoadSupport": True,
        "VolcanoJobSupport": True,
        "PodDisruptionBudgetsSupport": True,
        "QueueCommandSync": True,
        "PriorityClass": True,
        "ResourceTopology": True,
        "CronVolcanoJobSupport": True,
        "CSIStorage": False,
        ADMISSION: False,
        QUEUE_OVERCOMMIT: False,
        PIPELINED_STATE: True,
        POD_LEVEL_RESOURCES: True,
        IN_PLACE_RESIZE: True,
    }
)
"""Every gate, and whether it is on by default."""

KINDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "WorkLoadSupport": ("ReplicationController", "ReplicaSet", "StatefulSet"),
        "VolcanoJobSupport": ("Job",),
        "PodDisruptionBudgetsSupport": ("PodDisruptionBudget",),
        "PriorityClass": ("PriorityClass",),
    }
)
"""Kinds of object that are not looked at where a gate is off."""

DECIDING = frozenset({*KINDS, ADMISSION, QUEUE_OVERCOMMIT, POD_LEVEL_RESOURCES, IN_PLACE_RESIZE, PIPELINED_STATE})
"""Gates that make a difference to what is decided; the others concern other components than the scheduler."""


def parse_gates(text: str) -> dict[str, bool]:
    """The gates that ``Name=true,Other=false`` states.  Raises ConfigError naming the one that cannot be used."""
    stated: dict[str, bool] = {}
    for part in filter(None, map(str.strip, text.split(","))):
        name, given, value = (piece.strip() for piece in part.partition("="))
        if not given:
            raise ConfigError(f"missing bool value for {name:.63}", file=SOURCE)
        on = convert(value, bool)
        if on is None:
            raise ConfigError(f"invalid value of {name:.63}={value:.63}: neither true nor false", file=SOURCE)
        if name not in DEFAULTS:
            raise ConfigError(f"unrecognized feature gate: {name:.63}", file=SOURCE, nearest=nearest(name, DEFAULTS))
        stated[name] = on
    return stated


SOURCE = "--feature-gates"
"""Where messages say that gates come from."""


def switched_on(stated: Mapping[str, bool]) -> frozenset[str]:
    """Names of the gates that are on."""
    return frozenset(name for name, on in {**DEFAULTS, **stated}.items() if on)


def ignored_kinds(on: frozenset[str]) -> frozenset[str]:
    """Kinds of object that are ignored while only the gates ``on`` are on."""
    return frozenset(kind for gate, kinds in KINDS.items() if gate not in on for kind in kinds)
