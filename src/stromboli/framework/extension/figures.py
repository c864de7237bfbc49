"""Amounts as people read them: cores, GiB, and units of everything else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stromboli.model.names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from stromboli.model.resources.amounts import MIN
from stromboli.model.resources.resource import INFINITE, Resource

_BINARY = ((2**50, "Pi", 2), (2**40, "Ti", 2), (2**30, "Gi", 1), (2**20, "Mi", 1), (2**10, "Ki", 1))
"""Sizes, their suffixes, and from how many on they are used: 1.4Ti would hide what 1434Gi shows."""


def by_name(resource: Resource) -> dict[str, float]:
    """The dimensions of ``resource`` that are not zero, by name, in the scheduler's units."""
    named = {CPU: resource.milli_cpu, MEMORY: resource.memory, **(resource.scalars or {})}
    return {name: value for name, value in named.items() if value}


def shown(name: str, value: float) -> str:
    """An amount of resource ``name``, given in the scheduler's units: ``1.5`` cores, ``16Gi``, ``8`` GPUs."""
    if abs(value) >= INFINITE:
        return "unlimited"
    if name == MEMORY:
        return _bytes(value)
    if name == EPHEMERAL_STORAGE:
        return _bytes(value / 1000)
    return _number(value if name == PODS else value / 1000)


def amounts_text(values: Mapping[str, float], names: Iterable[str] | None = None) -> str:
    """Several amounts in a row, ``cpu 4, memory 16Gi``; of ``names`` where they are given."""
    chosen = values if names is None else {name: values.get(name, 0) for name in names}
    return ", ".join(f"{name} {shown(name, value)}" for name, value in chosen.items()) or "nothing"


def exceeding(parts: Iterable[Mapping[str, float]], limit: Mapping[str, float], names: Iterable[str]) -> list[str]:
    """Those of ``names`` in which the parts together are more than the limit."""
    held = list(parts)
    return [name for name in names if sum(part.get(name, 0) for part in held) >= limit.get(name, 0) + MIN]


def _number(value: float) -> str:
    text = f"{value:.3f}" if abs(value) < 10 else f"{value:.2f}" if abs(value) < 100 else f"{value:.1f}"
    return text.rstrip("0").rstrip(".")


def _bytes(value: float) -> str:
    for size, suffix, least in _BINARY:
        if abs(value) >= size * least:
            return _number(value / size) + suffix
    return _number(value)
