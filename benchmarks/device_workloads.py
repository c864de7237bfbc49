"""Workloads of devices and volumes: what nodes, pods and the cluster have beside cpu and memory.

``vgpu``: eight cards a node, each shared by up to ten pods; pods ask for a quarter or a third of a card.  ``claimed``:
eight devices a node of two models, a claim a pod, two expressions each.  ``volumes``: local volumes of three sizes on
each node, a claim a pod.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]

CARDS: Final = 8
CARD_MEMORY: Final = 24_000
SHARES: Final = ({"memory": 6000, "cores": 25}, {"memory": 8000, "cores": 30})
DRIVER: Final = "gpu.example.com"
API: Final = "resource.k8s.io/v1"
SIZES: Final = (5, 10, 20)
HOSTNAME: Final = "kubernetes.io/hostname"
KINDS: Final = ("vgpu", "claimed", "volumes")
"""Kinds of workloads that are about devices or volumes."""
PREFIX: Final = "volcano.sh/vgpu-"


@dataclass(frozen=True)
class Extras:
    """What a kind adds: ``conf`` to the plugins, ``annotations`` and ``room`` to a node, ``pod`` to a pod's spec."""

    kind: str

    @property
    def plugins(self) -> list[str]:
        """Lines of the plugins' list."""
        arguments = (
            "{deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: binpack, deviceshare.ScheduleWeight: 10}"
        )
        return ["  - name: deviceshare", f"    arguments: {arguments}"] if self.kind == "vgpu" else []

    def annotations(self, i: int) -> Json:
        """The cards that node i has registered."""
        cards = "".join(f"card-{i:05d}-{number},10,{CARD_MEMORY},A100,true,hami-core:" for number in range(CARDS))
        return {"volcano.sh/node-vgpu-register": cards} if self.kind == "vgpu" else {}

    @property
    def room(self) -> Json:
        """What a node offers beside cpu and memory."""
        amounts = {"number": 10 * CARDS, "memory": CARDS * CARD_MEMORY, "cores": 100 * CARDS}
        return {f"{PREFIX}{name}": str(amount) for name, amount in amounts.items()} if self.kind == "vgpu" else {}

    def beside(self, r: int) -> Json:
        """What pod r asks for beside cpu and memory."""
        if self.kind != "vgpu":
            return {}
        share = SHARES[r // 100 % len(SHARES)]
        return {f"{PREFIX}number": "1", **{f"{PREFIX}{name}": str(amount) for name, amount in share.items()}}

    def spec(self, r: int) -> Json:
        """What the spec of pod r names."""
        if self.kind == "claimed":
            return {"resourceClaims": [{"name": "gpu", "resourceClaimName": f"claim-{r:06d}"}]}
        if self.kind == "volumes":
            return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": f"claim-{r:06d}"}}]}
        return {}

    def lists(self, nodes: list[str], pods: int) -> Iterator[tuple[str, Iterator[Json]]]:
        """Further objects by the key of their list in a scenario."""
        if self.kind == "claimed":
            yield "deviceClasses", iter([_DEVICE_CLASS])
            yield "resourceSlices", map(_slice, nodes)
            yield "resourceClaims", map(_device_claim, range(pods))
        if self.kind == "volumes":
            yield "storageClasses", iter([_STORAGE_CLASS])
            yield "persistentVolumes", (_volume(name, number) for name in nodes for number in range(pods // len(nodes)))
            yield "persistentVolumeClaims", map(_volume_claim, range(pods))


_DEVICE_CLASS: Final[Json] = {
    "metadata": {"name": "gpu", "uid": "class-gpu"},
    "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
}
_STORAGE_CLASS: Final[Json] = {
    "metadata": {"name": "local", "uid": "class-local"}, "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}  # fmt: skip


def _slice(node: str) -> Json:
    devices = [
        {"name": f"gpu-{number}", "attributes": {"model": {"string": "ab"[number % 2]}, "index": {"int": number}},
         "capacity": {"memory": {"value": f"{40 + 40 * (number % 2)}Gi"}}}
        for number in range(CARDS)
    ]  # fmt: skip
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
    return {"metadata": {"name": f"{node}-gpus", "uid": f"slice-{node}"}, "spec": spec}


def _device_claim(r: int) -> Json:
    """A claim with two expressions; those of odd hundreds want the larger model."""
    model, least = ("a", 40) if r // 100 % 2 == 0 else ("b", 80)
    expressions = (
        f'device.attributes["{DRIVER}"].model == "{model}"',
        f'device.capacity["{DRIVER}"].memory.compareTo(quantity("{least}Gi")) >= 0',
    )
    selectors = [{"cel": {"expression": each}} for each in expressions]
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, "selectors": selectors}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    return {"metadata": {"name": f"claim-{r:06d}", "namespace": "default", "uid": f"claim-{r}"}, "spec": spec}


def _volume(node: str, number: int) -> Json:
    term = {"matchExpressions": [{"key": HOSTNAME, "operator": "In", "values": [node]}]}
    spec = {
        "capacity": {"storage": f"{SIZES[number % len(SIZES)]}Gi"}, "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local", "volumeMode": "Filesystem", "local": {"path": f"/mnt/{number}"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}, "persistentVolumeReclaimPolicy": "Delete",
    }  # fmt: skip
    name = f"{node}-{number}"
    return {"metadata": {"name": name, "uid": f"pv-{name}"}, "spec": spec, "status": {"phase": "Available"}}


def _volume_claim(r: int) -> Json:
    spec = {
        "accessModes": ["ReadWriteOnce"], "storageClassName": "local", "volumeMode": "Filesystem",
        "resources": {"requests": {"storage": "5Gi"}},
    }  # fmt: skip
    meta = {"name": f"claim-{r:06d}", "namespace": "default", "uid": f"pvc-{r}"}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Pending"}}
