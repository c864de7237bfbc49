"""Scenarios: a cluster, a configuration and how many cycles to run, as one JSON document.

The objects stand in lists by kind (``nodes``, ``pods``, ``podGroups`` ...) and are handed over one at a time, so a bad
one is a problem of its own and the rest stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

import msgspec

from stromboli.api.topology import NodeShardSpec
from stromboli.cluster.complete import namespace_named
from stromboli.cluster.events import Added, Event
from stromboli.cluster.kinds import KINDS, Metadata, NodeShard, Object
from stromboli.cluster.objects import from_json, json_value
from stromboli.errors import ManifestError, ScenarioError
from stromboli.framework.config.sampling import Sampling
from stromboli.model import usage
from stromboli.model.names import SCHEDULER_NAME
from stromboli.model.objects.shard import NodeShardStatus
from stromboli.model.spec import Wire, without_nulls
from stromboli.model.values.reading import explained, unreadable

_Type = TypeVar("_Type")
_Parts = dict[str, msgspec.Raw]
_LISTS: Final = {row.list_key: kind for kind, row in KINDS.items()}


class NodeUsage(Wire, frozen=True):
    """Measured use of a node in percent, and how old the sample is; without an age it was never taken."""

    cpu: float = 0.0
    memory: float = 0.0
    age_seconds: float | None = None

    def at(self, now: float) -> usage.NodeUsage:
        """The sample as snapshots hold it."""
        taken = 0.0 if self.age_seconds is None else now - self.age_seconds
        return usage.NodeUsage(taken, {usage.PERIOD: self.cpu}, {usage.PERIOD: self.memory})


class ScenarioOptions(Wire, frozen=True):
    """How the scheduler is to be started; what is left out has the reference's default.

    ``bound_become`` (``Bound``: pods stay Pending with a node) and ``evicted_become`` (``terminating``: pods stay,
    marked for deletion) say what happens between cycles.
    """

    scheduler_name: str = SCHEDULER_NAME
    percentage_of_nodes_to_find: int | None = None
    min_nodes_to_find: int | None = None
    min_percentage_of_nodes_to_find: int | None = None
    ignored_provisioners: tuple[str, ...] = ()
    sharding_mode: str = ""
    shard_name: str = ""
    nodes_in_shard: tuple[str, ...] = ()
    allow_hdrf_with_proportion: bool = False
    node_usage: dict[str, NodeUsage] = msgspec.field(default_factory=dict)
    bound_become: str = ""
    evicted_become: str = ""

    @property
    def shard(self) -> NodeShard:
        """Our shard with the nodes that the options say are in it."""
        spec, status = NodeShardSpec(self.nodes_in_shard), NodeShardStatus(self.nodes_in_shard)
        return NodeShard(Metadata(name=self.shard_name), spec, status)

    @property
    def sampling(self) -> Sampling | None:
        """How many nodes are looked at, if the options speak of it."""
        names = ("min_nodes_to_find", "min_percentage_of_nodes_to_find", "percentage_of_nodes_to_find")
        given = dict(zip(Sampling._fields, (getattr(self, name) for name in names), strict=True))
        told = {name: value for name, value in given.items() if value is not None}
        return Sampling(**told) if told else None


class ScenarioChange(Wire, frozen=True):
    """What happens to the cluster before cycle ``before_cycle`` (counted from 1); pods by ``namespace/name``."""

    before_cycle: int = 0
    delete_pods: tuple[str, ...] = ()
    succeed_pods: tuple[str, ...] = ()
    add_pods: list[msgspec.Raw] = msgspec.field(default_factory=list)
    add_pod_groups: list[msgspec.Raw] = msgspec.field(default_factory=list)
    add_nodes: list[msgspec.Raw] = msgspec.field(default_factory=list)

    def apart(self) -> ScenarioChange:
        """The same with the text of its objects copied, so that it keeps no larger text alive."""
        lists = {
            name: [raw.copy() for raw in getattr(self, name)] for name in ("add_pods", "add_pod_groups", "add_nodes")
        }
        return msgspec.structs.replace(self, **lists)

    def objects(self) -> Iterator[Event | ManifestError]:
        """The objects that appear, as events; what cannot be used as the error that says why."""
        for kind, raws in (("Node", self.add_nodes), ("Pod", self.add_pods), ("PodGroup", self.add_pod_groups)):
            yield from _added(kind, raws, {})


class Scenario:
    """One scenario.

    ``conf`` is the text of volcano-scheduler.conf, ``events`` what happens between cycles, ``skipped`` how many objects
    stand in lists that are not known, by the list's key.
    """

    __slots__ = ("_lists", "conf", "cycles", "events", "name", "options", "skipped")

    def __init__(self, parts: _Parts, file: str = "") -> None:
        self.name = _part(parts, "name", str, "", file)
        self.conf = _part(parts, "conf", str, "", file)
        self.cycles = _part(parts, "cycles", int, 1, file)
        if not 0 <= self.cycles <= _MOST_CYCLES:
            raise ScenarioError(f"{self.cycles!r:.40} must be from 0 to {_MOST_CYCLES}", file=file, path="cycles")
        self.options = _part(parts, "options", ScenarioOptions, ScenarioOptions(), file)
        events: tuple[ScenarioChange, ...] = _part(parts, "events", tuple[ScenarioChange, ...], (), file)
        self.events = tuple(change.apart() for change in events)
        self._lists = {kind: _part(parts, key, list[msgspec.Raw], [], file) for key, kind in _LISTS.items()}
        self.skipped = {key: count for key in sorted(parts) if key not in _KNOWN and (count := _length(parts[key]))}

    @property
    def ignored(self) -> list[str]:
        """What of the scenario changes nothing, a sentence each: objects in lists that are not known."""
        return [f"{key}: {count} objects of a kind that is not read" for key, count in self.skipped.items()]

    def __len__(self) -> int:
        return sum(len(raws) for raws in self._lists.values())

    def taken(self) -> Iterator[Event | ManifestError]:
        """As :meth:`objects`; afterwards there are none, and the text that they stand in is let go."""
        yield from self.objects()
        self._lists = {kind: [] for kind in self._lists}

    def objects(self) -> Iterator[Event | ManifestError]:
        """All objects as events, by kind in the order of :data:`~stromboli.cluster.kinds.KINDS`, then in list order.

        What cannot be used comes as the error that says why.  Namespaces that pods use but no file lists come last, as
        the API server would make them.
        """
        used: dict[str, None] = {}
        listed: dict[str, None] = {}
        for kind, raws in self._lists.items():
            for found in _added(kind, raws, listed if kind == "Namespace" else {}):
                if kind == "Pod" and isinstance(found, Event):
                    used[found.object.metadata.namespace] = None
                yield found
        for name in used:
            if name not in listed:
                yield Added("Namespace", namespace_named(name))


_MOST_CYCLES: Final = 10**9
_KNOWN: Final = {*_LISTS, "name", "conf", "cycles", "options", "events"}


def decode_scenario(text: bytes | str, file: str = "") -> Scenario:
    """The scenario that ``text`` spells in JSON; one that stands under the key ``scenario`` is taken from there.

    Raises :class:`~stromboli.errors.ScenarioError` when it is no JSON mapping, or a part that is no object is wrong.
    """
    data = text.encode() if isinstance(text, str) else text
    parts = _parts(data, file)
    while "scenario" in parts:
        parts = _parts(parts["scenario"], file)
    return Scenario(parts, file)


def _parts(raw: bytes | msgspec.Raw, file: str) -> _Parts:
    try:
        return msgspec.json.decode(raw, type=_Parts)
    except msgspec.ValidationError as error:
        raise ScenarioError("a scenario is a JSON mapping", file=file) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ScenarioError(unreadable(error), file=file) from error


def _part(parts: _Parts, key: str, wanted: type[_Type], absent: _Type, file: str) -> _Type:
    """Part ``key`` of a scenario; ``absent`` when it is missing or null."""
    raw = parts.get(key)
    if raw is None:
        return absent
    try:
        return msgspec.json.decode(raw, type=wanted)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):  # perhaps only nulls stand in the way
        return _slowly(raw, key, wanted, absent, file)


def _slowly(raw: msgspec.Raw, key: str, wanted: type[_Type], absent: _Type, file: str) -> _Type:
    try:
        value = without_nulls(json_value(raw))
        return absent if value is None else msgspec.json.decode(msgspec.json.encode(value), type=wanted)
    except msgspec.ValidationError as error:
        found = explained(error, value)
    except ManifestError as error:
        found = error
    place = f"{key}{found.path}" if found.path.startswith("[") else f"{key}.{found.path}".rstrip(".")
    raise ScenarioError(found.problem, file=file, path=place)


def _length(raw: msgspec.Raw) -> int:
    try:
        return len(msgspec.json.decode(raw, type=list[msgspec.Raw]))
    except (msgspec.DecodeError, RecursionError):
        return 0


def _added(kind: str, raws: list[msgspec.Raw], seen: dict[str, None]) -> Iterator[Event | ManifestError]:
    for number, raw in enumerate(raws):
        try:
            found: Object = from_json(kind, raw)
        except ManifestError as error:
            path = f"{KINDS[kind].list_key}[{number}].{error.path}".rstrip(".")
            yield ManifestError(error.problem, object=error.object, path=path)
        else:
            seen[found.metadata.name] = None
            yield Added(kind, found)
