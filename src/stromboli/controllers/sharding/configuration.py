"""Which schedulers share the nodes and how: the ConfigMap's ``sharding.yaml``, or flags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from stromboli.api.fields import DNS_SUBDOMAIN
from stromboli.cluster.files import yaml_values
from stromboli.controllers.sharding.policies import (
    NODE_LIMIT,
    POLICIES,
    AllocationRate,
    NodeLimit,
    Policy,
    Warmup,
)
from stromboli.errors import DurationError, ManifestError
from stromboli.framework.config.argument import nearest
from stromboli.model.names import LONGEST_NAME
from stromboli.model.spec import Wire
from stromboli.model.values import duration

KEY: Final = "sharding.yaml"
PERIOD: Final = 60.0
FALLBACK_PERIOD: Final = 120.0
"""Seconds between two divisions where the flag says 0 or less."""
SHORTEST: Final = 1.0
LONGEST: Final = 1 << 20
"""Characters of a configuration, as many as a ConfigMap can hold."""
_NAME: Final = re.compile(DNS_SUBDOMAIN)
MOST_SCHEDULERS: Final = 256
DEFAULT_SCHEDULERS: Final = ("volcano:volcano:0.0:0.6:false:2:100", "agent-scheduler:agent:0.7:1.0:true:2:100")
"""What the flag ``--scheduler-configs`` says where it is not written."""
_PARTS: Final = 7
_INFINITE: Final = {"inf": 1.0, "+inf": 1.0, "infinity": 1.0, "+infinity": 1.0, "-inf": 0.0, "-infinity": 0.0}
_TRUE: Final = {"1": True, "t": True, "true": True, "0": False, "f": False, "false": False}


@dataclass(frozen=True, slots=True)
class Scheduler:
    """One scheduler that gets a shard: policies and how much the scores of each count."""

    name: str
    policies: tuple[tuple[Policy, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Sharding:
    """The sharding configuration: ``schedulers`` in the order in which they choose.  Nodes are divided again after
    ``period`` seconds and, with ``follows_nodes``, when nodes change.
    """

    schedulers: tuple[Scheduler, ...] = ()
    period: float = PERIOD
    follows_nodes: bool = True

    @property
    def labels(self) -> frozenset[str]:
        """The labels of nodes that a policy reads."""
        return frozenset().union(*(policy.reads for one in self.schedulers for policy, _ in one.policies))


class _Policy(Wire, frozen=True):
    name: str = ""
    weight: float = 1.0
    arguments: dict[str, Any] = {}


class _Scheduler(Wire, frozen=True):
    name: str = ""
    type: str = ""
    policies: tuple[_Policy, ...] = ()
    cpu_utilization_min: float = 0.0
    cpu_utilization_max: float = 1.0
    prefer_warmup_nodes: bool = False
    min_nodes: int = 0
    max_nodes: int = 0


class _Document(Wire, frozen=True):
    scheduler_configs: tuple[_Scheduler, ...] = ()
    shard_sync_period: str | int | float | None = None
    enable_node_event_trigger: bool | None = None


def read(data: Mapping[str, str], flags: Sharding, problems: list[str]) -> Sharding:
    """What a ConfigMap's ``data`` asks for, with the settings of ``flags`` where it says nothing of them.

    ``problems`` gets sentences on settings that are left out.  Raises ManifestError for what cannot be used at all.
    """
    text = data.get(KEY, "")
    if not text.strip():
        raise ManifestError(f"the ConfigMap has no {KEY}, or an empty one")
    if len(text) > LONGEST:
        raise ManifestError(f"{KEY} has more than {LONGEST} characters")
    try:
        found = msgspec.convert(yaml_values.load(text) or {}, _Document, strict=False)
    except msgspec.ValidationError as error:
        raise ManifestError(f"{KEY}: {error}") from error
    schedulers = _schedulers(found.scheduler_configs)
    follows = flags.follows_nodes if found.enable_node_event_trigger is None else found.enable_node_event_trigger
    return Sharding(schedulers, _period(found.shard_sync_period, flags.period, problems), follows)


def _schedulers(entries: Sequence[_Scheduler]) -> tuple[Scheduler, ...]:
    if not entries:
        raise ManifestError("sharding config must contain at least one schedulerConfig entry")
    if len(entries) > MOST_SCHEDULERS:
        raise ManifestError(f"sharding config has {len(entries)} schedulerConfig entries; at most {MOST_SCHEDULERS}")
    found: dict[str, Scheduler] = {}
    for index, entry in enumerate(entries):
        if not entry.name:
            raise ManifestError(f"schedulerConfigs[{index}]: name must not be empty")
        where = f"schedulerConfigs[{index}] ({entry.name:.63})"
        if len(entry.name) > LONGEST_NAME or not _NAME.match(entry.name):
            raise ManifestError(f"{where}: name is no name of a NodeShard (lower case letters, digits, '-' and '.')")
        if entry.name in found:
            raise ManifestError(f"{where}: there is an entry of that name already")
        found[entry.name] = Scheduler(entry.name, _policies(entry, where))
    return tuple(found.values())


def _policies(entry: _Scheduler, where: str) -> tuple[tuple[Policy, float], ...]:
    if not entry.policies:
        return tuple((policy, 1.0) for policy in _legacy(entry, where))
    rows = enumerate(entry.policies)
    return tuple((_policy(found, f"{where}: policies[{index}]"), found.weight) for index, found in rows)


def _policy(found: _Policy, where: str) -> Policy:
    if not found.name:
        raise ManifestError(f"{where}.name must not be empty")
    where = f"{where} ({found.name:.63})"
    if found.weight < 0:
        raise ManifestError(f"{where}: weight must be >= 0 (omit for default of 1)")
    if found.name not in POLICIES:
        meant = nearest(found.name, POLICIES)
        hint = f"; did you mean {meant!r}?" if meant else f"; there are {', '.join(POLICIES)}"
        raise ManifestError(f"{where}: there is no such policy{hint}")
    if found.name != NODE_LIMIT and {"minNodes", "maxNodes"} & found.arguments.keys():
        raise ManifestError(f"{where}: minNodes|maxNodes is only supported by the {NODE_LIMIT} policy")
    try:
        return POLICIES[found.name](found.arguments)
    except ManifestError as error:
        raise ManifestError(f"{where}: {error}") from error


def _legacy(entry: _Scheduler, where: str) -> Iterable[Policy]:
    """The policies that the older fields stand for."""
    least, most = entry.cpu_utilization_min, entry.cpu_utilization_max
    for name, value in (("cpuUtilizationMin", least), ("cpuUtilizationMax", most)):
        if not 0 <= value <= 1:
            raise ManifestError(f"{where}: {name} {value:.2f} out of range [0,1]")
    if least > most:
        raise ManifestError(f"{where}: cpuUtilizationMin ({least:.2f}) must be <= cpuUtilizationMax ({most:.2f})")
    if entry.min_nodes < 0:
        raise ManifestError(f"{where}: minNodes must be >= 0")
    if entry.max_nodes < 0 or 0 < entry.max_nodes < entry.min_nodes:
        raise ManifestError(f"{where}: maxNodes ({entry.max_nodes}) must be >= minNodes ({entry.min_nodes})")
    yield AllocationRate(least, most)
    if entry.prefer_warmup_nodes:
        yield Warmup()
    if entry.min_nodes or entry.max_nodes:
        yield NodeLimit(entry.min_nodes, entry.max_nodes)


def _period(given: str | int | float | None, otherwise: float, problems: list[str]) -> float:
    if given is None:
        return otherwise
    try:
        seconds = duration.seconds(str(given))
    except DurationError as error:
        problems.append(f"shardSyncPeriod: {error}; every {otherwise:g} s as before")
        return otherwise
    if seconds <= 0:
        problems.append(f"shardSyncPeriod: {given} is not positive; every {otherwise:g} s as before")
        return otherwise
    return max(seconds, SHORTEST)


def from_flags(texts: Sequence[str], period: float = PERIOD, *, follows_nodes: bool = True) -> Sharding:
    """What flags ask for: texts of ``name:type:minUtil:maxUtil:preferWarmup:minNodes:maxNodes``.

    Raises ManifestError for a text of another form.
    """
    schedulers = _schedulers([_from_text(text) for text in texts])
    return Sharding(schedulers, period if period > 0 else FALLBACK_PERIOD, follows_nodes)


def _from_text(text: str) -> _Scheduler:
    parts = text.split(":")
    if len(parts) != _PARTS:
        raise ManifestError(f"invalid scheduler config format: {text:.200}, expected {_PARTS} colon-separated parts")
    name, kind, least, most, warm, fewest, largest = parts
    try:
        return _Scheduler(
            name, kind, (), _utilisation(least), _utilisation(most), _TRUE[warm.lower()], int(fewest), int(largest)
        )
    except (ValueError, KeyError) as error:
        raise ManifestError(f"invalid scheduler config format: {text:.200}: {error}") from error


def _utilisation(text: str) -> float:
    return _INFINITE[text.lower()] if text.lower() in _INFINITE else float(text)
