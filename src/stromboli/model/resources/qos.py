"""Kubernetes' quality of service of a pod: which pods are evicted first when a node runs short."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from stromboli.model.names import CPU, MEMORY
from stromboli.model.resources import quantity
from stromboli.model.spec import Amount, Container, PodSpec


class Qos(IntEnum):
    """The classes, those that lose their place first before the others."""

    BEST_EFFORT = 0
    BURSTABLE = 1
    GUARANTEED = 2


_COUNTED: Final = (CPU, MEMORY)


def qos_of(spec: PodSpec) -> Qos:
    """The class that follows from requests and limits of cpu and memory; zero counts as not stated.

    Guaranteed: every container limits both, and requests what it limits.  Best effort: nothing is stated at all.
    """
    containers = (*spec.containers, *spec.init_containers)
    if not any(_stated(part) for c in containers for part in (c.resources.requests, c.resources.limits)):
        return Qos.BEST_EFFORT
    return Qos.GUARANTEED if all(_guaranteed(container) for container in containers) else Qos.BURSTABLE


def _guaranteed(container: Container) -> bool:
    limits = _stated(container.resources.limits)
    requests = _stated(container.resources.requests)
    return len(limits) == len(_COUNTED) and requests == limits


def _stated(amounts: Mapping[str, Amount]) -> dict[str, int]:
    """Thousandths of cpu and memory, where they are above zero."""
    found = {name: quantity.milli(amounts[name]) for name in _COUNTED if name in amounts}
    return {name: size for name, size in found.items() if size > 0}
