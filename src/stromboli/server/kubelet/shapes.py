"""What simulated nodes look like: from ``3x8cpu,32Gi,nvidia.com/gpu=4,label:zone=a``, or from manifests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from stromboli.cluster.body import Body, meta, part
from stromboli.cluster.files.documents import whole_objects
from stromboli.crds.admission.pod_templates import name_problems
from stromboli.errors import ManifestError, QuantityError, ShapeError
from stromboli.model.names import PODS
from stromboli.server.amounts import canonical

_COUNTED: Final = re.compile(r"(?:(?P<count>\d+)x)?(?P<rest>.+)")
_CPU: Final = re.compile(r"(?P<amount>[0-9.]+m?)\s*cpus?")
_NAME: Final = "node-{number}"
_DEFAULTS: Final = {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"}
FORM: Final = (
    "the form is [COUNTx]CPUcpu[,MEMORY][,RESOURCE=AMOUNT][,label:KEY=VALUE], such as 3x8cpu,32Gi or "
    "2x16cpu,64Gi,nvidia.com/gpu=4,label:zone=a"
)
VERSION: Final = "v1.33.0-simulated"


def nodes_of(descriptions: Sequence[str]) -> list[Body]:
    """The nodes that descriptions, or files of manifests, ask for; names count through all of them."""
    nodes: list[Body] = []
    for description in descriptions:
        if description.endswith((".yaml", ".yml", ".json")) or Path(description).is_file():
            nodes += from_manifest(description)
        else:
            nodes += _described(description, len(nodes) + 1)
    _refuse_twins(nodes)
    return nodes


def _refuse_twins(nodes: Iterable[Body]) -> None:
    seen: set[str] = set()
    for node in nodes:
        name = meta(node)["name"]
        if name in seen:
            raise ShapeError(f"there are two nodes of the name {name}")
        seen.add(name)


def _described(description: str, first: int) -> Iterator[Body]:
    found = _COUNTED.fullmatch(description.strip())
    if found is None:
        raise ShapeError(f"--nodes {description!r}: {FORM}")
    amounts = dict(_DEFAULTS)
    labels: dict[str, str] = {}
    for piece in found["rest"].split(","):
        key, value, kind = _piece(piece.strip(), description)
        (labels if kind == "label" else amounts)[key] = value
    for number in range(first, first + int(found["count"] or 1)):
        yield node_of(_NAME.format(number=number), amounts, labels, number)


def _piece(piece: str, description: str) -> tuple[str, str, str]:
    """Name, value, and whether it is a label or an amount."""
    if piece.startswith("label:"):
        key, _, value = piece.removeprefix("label:").partition("=")
        return key, value, "label"
    cpu = _CPU.fullmatch(piece)
    name, stated, amount = ("cpu", "=", cpu["amount"]) if cpu else piece.rpartition("=")
    if name not in ("", PODS) and any(name_problems(name)):
        raise ShapeError(f"--nodes {description!r}: nodes offer no resource {name!r}; {FORM}")
    try:
        return name or "memory", canonical(amount), "amount"
    except QuantityError as error:
        problem = f"{piece!r} is no amount" if not stated else str(error)
        raise ShapeError(f"--nodes {description!r}: {problem}; {FORM}") from error


def from_manifest(file: str) -> list[Body]:
    """The nodes of a manifest; other objects in it are passed over.  Raises ManifestError, ShapeError and OSError."""
    nodes = [one for one in whole_objects(file) if one["kind"] == "Node"]
    if not nodes:
        raise ShapeError(f"{file}: there is no Node in it")
    if not all(meta(node).get("name") for node in nodes):
        raise ManifestError("is missing", file=file, object="Node", path="metadata.name")
    return [_completed(node, number) for number, node in enumerate(nodes, 1)]


def _completed(node: Body, number: int) -> Body:
    given = part(node, "status", "allocatable") or part(node, "status", "capacity") or {}
    amounts = {**_DEFAULTS, **{name: canonical(amount) for name, amount in given.items()}}
    whole = node_of(meta(node)["name"], amounts, meta(node).get("labels") or {}, number)
    spec, found = node.get("spec") or {}, {**meta(whole), "annotations": meta(node).get("annotations") or {}}
    return {**whole, "metadata": found, "spec": spec}


def is_simulated(node: Body) -> bool:
    """Whether the node is one of simulated kubelets, with the addresses that these give it."""
    return part(node, "status", "nodeInfo", "kubeletVersion") == VERSION and bool(part(node, "status", "addresses"))


def node_of(name: str, amounts: Mapping[str, str], labels: Mapping[str, str], number: int) -> Body:
    """A node without conditions; ``number`` makes its address."""
    known = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    high, low = divmod(number, 250)
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**known, **labels}},
        "spec": {},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": f"10.1.{high}.{low + 1}"},
                {"type": "Hostname", "address": name},
            ],
            "allocatable": dict(amounts),
            "capacity": dict(amounts),
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": _info(name),
        },
    }


def _info(name: str) -> Body:
    return {
        "architecture": "amd64",
        "bootID": name,
        "containerRuntimeVersion": "simulated://1",
        "kernelVersion": "simulated",
        "kubeProxyVersion": "",
        "kubeletVersion": VERSION,
        "machineID": name,
        "operatingSystem": "linux",
        "osImage": "Simulated",
        "systemUUID": name,
    }
