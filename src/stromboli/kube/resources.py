"""The API's resources: what a kind is called in paths, and how its objects are read.

A :class:`Resource` can be made for any kind, also one that is not known here:
``Resource("batch.volcano.sh/v1alpha1", "jobs", "Job", True, plain)`` reads objects as plain dictionaries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

import msgspec

from stromboli.api.kinds import KINDS as DECLARED
from stromboli.cluster.kinds import KINDS, Object
from stromboli.cluster.objects import from_json, json_value

T = TypeVar("T")
Raw = bytes | msgspec.Raw


def plain(raw: Raw) -> dict[str, Any]:
    """An object as a dictionary.  Raises ManifestError."""
    return cast("dict[str, Any]", json_value(raw))


def nothing(_raw: Raw) -> None:
    """An answer that is not looked at."""


class Resource(NamedTuple, Generic[T]):
    """One kind of object in an API server; ``decode`` reads one from JSON and may raise ManifestError."""

    api_version: str
    plural: str
    kind: str
    namespaced: bool
    decode: Callable[[Raw], T]

    def __str__(self) -> str:
        group = self.api_version.rpartition("/")[0]
        return f"{self.plural}.{group}" if group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The path of the collection, of one object, or of what lies below it."""
        prefix = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return "/".join(part for part in (prefix + scope, self.plural, name, subresource) if part)

    def read_as(self, decode: Callable[[Raw], Any]) -> Resource[Any]:
        """The same resource, its objects read by ``decode`` (such as :func:`plain`, :func:`nothing`)."""
        return cast("Resource[Any]", self._replace(decode=decode))


def plural_of(kind: str) -> str:
    """What objects of ``kind`` are called in paths, by the rule that all known kinds keep."""
    name = kind.lower()
    if name.endswith("y"):
        return name[:-1] + "ies"
    return name + ("es" if name.endswith("s") else "s")


def _decoder(kind: str) -> Callable[[Raw], Object]:
    return lambda raw: from_json(kind, raw)


def _scheduled(kind: str) -> Resource[Object]:
    row = KINDS[kind]
    wire = row.wire or row.part_of or kind
    return Resource(row.api_versions[0], plural_of(wire), wire, row.namespaced, _decoder(kind))


RESOURCES: Final[Mapping[str, Resource[Object]]] = {kind: _scheduled(kind) for kind in KINDS}
"""What scheduling reads, by kind, decoded to :mod:`stromboli.cluster.kinds`."""


def versions_of(kind: str) -> tuple[Resource[Object], ...]:
    """The kind in all versions that can be read, the one that is asked for first in front."""
    return tuple(RESOURCES[kind]._replace(api_version=version) for version in KINDS[kind].api_versions)


def _declared(kind: str) -> Resource[Any]:
    """One of our kinds, read as plain values."""
    row = DECLARED[kind]
    return Resource(row.api_version, row.plural, kind, row.namespaced, plain)


PODS: Final = RESOURCES["Pod"]
NODES: Final = RESOURCES["Node"]
POD_GROUPS: Final = RESOURCES["PodGroup"]
QUEUES: Final = RESOURCES["Queue"]
JOBS: Final = _declared("Job")
COMMANDS: Final = _declared("Command")
EVENTS: Final = Resource("v1", "events", "Event", True, plain)
SECRETS: Final = Resource("v1", "secrets", "Secret", True, plain)
LEASES: Final = Resource("coordination.k8s.io/v1", "leases", "Lease", True, plain)
