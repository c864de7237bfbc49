"""Resource groups: which pods an administrator sends to which nodes and scheduler, as Volcano's admission file says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from stromboli.errors import ConfigError, ManifestError
from stromboli.framework.config.document import read_document
from stromboli.model.names import RESOURCE_GROUP
from stromboli.model.spec import Wire, without_nulls
from stromboli.model.values.reading import convert

BY_NAMESPACE: Final = "namespace"
BY_ANNOTATION: Final = "annotation"


class _Object(Wire, frozen=True):
    key: str = ""
    value: tuple[str, ...] = ()


class _Group(Wire, frozen=True):
    resource_group: str = ""
    object: _Object = _Object()
    scheduler_name: str = ""
    tolerations: tuple[dict[str, Any], ...] = ()
    labels: dict[str, str] = {}
    affinity: str = ""


class _File(Wire, frozen=True):
    resource_groups: tuple[_Group, ...] = ()


_TOLERATION: Final = {
    "key": "key", "operator": "operator", "value": "value", "effect": "effect",
    "tolerationseconds": "tolerationSeconds", "tolerationSeconds": "tolerationSeconds",
}  # fmt: skip
"""Fields of tolerations as they may be written: the reference knows the lower-case spelling alone."""


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """A group of nodes: which pods belong to it, and what is written into their specs.

    ``key`` says what of a pod is looked at: ``namespace`` (one of ``values``), ``annotation`` (one of ``pairs``), or,
    if empty, the annotations or ``volcano.sh/resource-group``; another key matches nothing.
    """

    name: str
    key: str
    values: frozenset[str]
    pairs: Mapping[str, str]
    scheduler: str
    labels: Mapping[str, str]
    tolerations: tuple[Mapping[str, object], ...]
    affinity: Mapping[str, object] | None

    def takes(self, namespace: str, annotations: Mapping[str, object]) -> bool:
        """Whether a pod belongs to the group."""
        if self.key == BY_NAMESPACE:
            return namespace in self.values
        if self.key not in ("", BY_ANNOTATION):
            return False
        if any(annotations.get(key) == value for key, value in self.pairs.items()):
            return True
        return not self.key and annotations.get(RESOURCE_GROUP) == self.name


def parse_groups(text: str, *, file: str = "") -> tuple[ResourceGroup, ...]:
    """The groups of an admission file, in order.  Unknown keys are ignored; raises ConfigError."""
    root = read_document(text, file=file).root
    value = without_nulls(root.plain() if root is not None else {})
    try:
        found = convert(value or {}, _File)
    except ManifestError as error:
        where = f"{error.path}: " if error.path else ""
        raise ConfigError(f"{where}{error.problem}", file=file) from error
    return tuple(_group(one, file) for one in found.resource_groups)


def _group(one: _Group, file: str) -> ResourceGroup:
    return ResourceGroup(
        one.resource_group,
        one.object.key,
        frozenset(one.object.value),
        _pairs(one.object.value, file) if one.object.key != BY_NAMESPACE else {},
        one.scheduler_name,
        one.labels,
        tuple(_toleration(row) for row in one.tolerations),
        _affinity(one.affinity),
    )


def _pairs(values: tuple[str, ...], file: str) -> dict[str, str]:
    """Annotations out of texts that are YAML mappings themselves; of equal keys the first counts."""
    found: dict[str, str] = {}
    for text in values:
        root = read_document(text, file=file).root
        plain = root.plain() if root is not None else None
        for key, value in plain.items() if isinstance(plain, dict) else ():
            if isinstance(value, str):
                found.setdefault(str(key), value)
    return found


def _toleration(row: Mapping[str, Any]) -> Mapping[str, object]:
    return {_TOLERATION[key]: value for key, value in row.items() if key in _TOLERATION}


def _affinity(text: str) -> Mapping[str, object] | None:
    """The affinity that a JSON text spells; None for an empty text, and for one that cannot be read."""
    try:
        found = msgspec.json.decode(text) if text else None
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
