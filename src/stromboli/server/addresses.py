"""Addresses of objects, such as ``/apis/<group>/<version>/namespaces/<namespace>/<plural>/<name>/<subresource>``."""

from __future__ import annotations

from typing import Final, NamedTuple

from stromboli.cluster.body import Key

_OF_NAMESPACES: Final = frozenset({"status", "finalize"})


class Address(NamedTuple):
    """What an address names; empty parts are not there."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def key(self) -> Key:
        """Where the object stands in its collection."""
        return self.namespace, self.name


def address_of(path: str) -> Address | None:
    """The address that a path, with no escapes left, spells; None if it is none of objects."""
    steps = path.strip("/").split("/")
    match steps:
        case ["api", version, *rest] if rest:
            return _within("", version, rest)
        case ["apis", group, version, *rest] if rest:
            return _within(group, version, rest)
    return None


def _within(group: str, version: str, steps: list[str]) -> Address | None:
    namespace = ""
    if steps[0] == "namespaces" and len(steps) > 2 and steps[2] not in _OF_NAMESPACES:
        namespace, steps = steps[1], steps[2:]
    if not 1 <= len(steps) <= 3:
        return None
    plural, name, subresource = (*steps, "", "")[:3]
    return Address(group, version, plural, namespace, name, subresource)
