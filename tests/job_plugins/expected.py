"""What the plugins of the examples in `e2e/jobs` make, as recorded from their description, and how that is compared."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

Json = dict[str, Any]
EXAMPLES: Final = Path(__file__).parents[2] / "e2e" / "jobs"
SPACE: Final = "NAMESPACE"
"""What stands in recordings for the namespace."""
LISTS: Final[Json] = {"env": [], "ports": [], "volumeMounts": []}
"""What plugins append to in a container."""
KINDS: Final = {
    "ConfigMap": "/api/v1/namespaces/{}/configmaps", "Service": "/api/v1/namespaces/{}/services",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
}  # fmt: skip
"""Where the objects of plugins are, by kind."""


def expected(path: Path, space: str) -> Json:
    """Objects and pods of an example, which lies in ``path``, in a namespace."""
    text = (path.parent / "expected" / path.name).read_text(encoding="utf-8").replace(SPACE, space)
    found: Json = yaml.safe_load(text)
    return found


def differences(wanted: Json, objects: Mapping[str, Json], pods: Mapping[str, Json]) -> list[str]:
    """Where ``objects``, by kind and name, and ``pods`` are not what is ``wanted``; servers may fill in defaults."""
    found = [*_equal("objects", sorted(wanted["objects"]), sorted(objects))]
    found += _equal("pods", sorted(wanted["pods"]), sorted(pods))
    for name, one in wanted["objects"].items():
        found += _of_object(name, one, objects.get(name, {}))
    for name, one in wanted["pods"].items():
        found += _of_pod(name, one, pods.get(name, {}))
    return found


def _of_object(name: str, wanted: Json, there: Json) -> Iterator[str]:
    yield from _unlike(name, {key: wanted[key] for key in ("spec", "type") if key in wanted}, there)
    if "data" in wanted:
        yield from _equal(f"{name} data", wanted["data"], there.get("data"))
    if "keys" in wanted:
        yield from _equal(f"{name} keys", wanted["keys"], sorted(there.get("data", {})))
    for key, text in wanted.get("text", {}).items():
        yield from _equal(f"{name} {key}", text, base64.b64decode(there.get("data", {}).get(key, "")).decode())
    for key in wanted.get("absent", ()):
        yield from _equal(f"{name} {key}", None, there.get("spec", {}).get(key))


def _of_pod(name: str, wanted: Json, there: Json) -> Iterator[str]:
    spec = there.get("spec", {})
    for key in ("hostname", "subdomain"):
        yield from _equal(f"{name} {key}", wanted.get(key), spec.get(key))
    for key in ("containers", "initContainers"):
        listed, stored = ([{**LISTS, **container} for container in one.get(key, ())] for one in (wanted, spec))
        yield from _unlike(f"{name} {key}", listed, stored)
    yield from _unlike(f"{name} volumes", wanted.get("volumes", []), spec.get("volumes", []))
    notes = {key: text for key, text in there.get("metadata", {}).get("annotations", {}).items() if "hccl" in key}
    yield from _equal(f"{name} annotations", wanted.get("annotations", {}), notes)


def _equal(where: str, wanted: object, there: object) -> Iterator[str]:
    if wanted != there:
        yield f"{where}: {there!r} instead of {wanted!r}"


def _unlike(where: str, wanted: object, there: object) -> Iterable[str]:
    """Where what is there is not what is wanted: lists have the same items in order, objects may have more fields."""
    if isinstance(wanted, dict) and isinstance(there, dict):
        for key, value in wanted.items():
            yield from _unlike(f"{where}.{key}", value, there.get(key))
    elif isinstance(wanted, list) and isinstance(there, list) and len(wanted) == len(there):
        for index, (one, other) in enumerate(zip(wanted, there, strict=True)):
            yield from _unlike(f"{where}[{index}]", one, other)
    else:
        yield from _equal(where, wanted, there)
