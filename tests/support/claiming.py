"""A gang whose pods each claim a device, a volume and a part of a card, in a cluster with controllers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Final

from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.model.objects.storage import BIND_COMPLETED, SELECTED_NODE
from tests.support.contested import Mortal
from tests.support.live_world import Json, LiveWorld, group, node, pod

DRIVER: Final = "gpu.example.com"
CARDS: Final = "volcano.sh/node-vgpu-register"
IDS: Final = "volcano.sh/vgpu-ids-new"
PHASE: Final = "volcano.sh/bind-phase"
LOCK: Final = "hamivgpu"
NODES: Final = ("n0", "n1")
NAMES: Final = ("p-0", "p-1")
CLASSES: Final = {"local": "kubernetes.io/no-provisioner", "made": "csi.example.com"}
CONF: Final = """\
actions: "allocate"
tiers:
- plugins:
  - {name: gang}
  - {name: predicates}
  - {name: deviceshare, arguments: {deviceshare.VGPUEnable: true, deviceshare.NodeLockEnable: true}}
"""


def shared(name: str) -> Json:
    """A node with one card of 1000 MB."""
    body = node(name)
    body["metadata"]["annotations"] = {CARDS: f"card-{name},2,1000,A100,true,hami-core:"}
    for amounts in body["status"].values():
        amounts.update(
            {"volcano.sh/vgpu-number": "2", "volcano.sh/vgpu-memory": "1000", "volcano.sh/vgpu-cores": "100"}
        )
    return body


def disk(name: str, where: str) -> Json:
    """A volume that one node reaches."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [where]}]}
    spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}  # fmt: skip
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}}


def claiming(name: str) -> Json:
    """A pod that claims a device, a volume, and 600 MB of a card."""
    body = pod(name, "p", resourceClaims=[{"name": "gpu", "resourceClaimName": f"{name}-gpu"}],
               volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": f"{name}-data"}}])  # fmt: skip
    limits = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "600"}
    body["spec"]["containers"][0]["resources"].update(limits=limits)
    body["spec"]["containers"][0]["resources"]["requests"].update(limits)
    return body


class Claiming(LiveWorld):
    """Two nodes, each with a device, a volume and a card for one pod of the gang; the second has its volume made."""

    def __init__(self, conf: Path) -> None:
        super().__init__(nodes=0)
        conf.write_text(CONF)
        self.conf = str(conf)
        self.server.put("deviceclasses", {"metadata": {"name": "gpu"}, "spec": {}})
        for name, provisioner in CLASSES.items():
            delayed = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
            self.server.put("storageclasses", {"metadata": {"name": name}, **delayed})
        for name in NODES:
            body = shared(name)
            body["metadata"]["labels"] = {"kubernetes.io/hostname": name}
            self.server.put("nodes", body)
            self.server.put("persistentvolumes", disk(f"disk-{name}", name))
            spec = {"driver": DRIVER, "nodeName": name, "devices": [{"name": "d"}],
                    "pool": {"name": name, "generation": 1, "resourceSliceCount": 1}}  # fmt: skip
            self.server.put("resourceslices", {"metadata": {"name": name}, "spec": spec})
        self.tasks.append(asyncio.create_task(self._control()))

    def arrive(self) -> None:
        """The gang and its claims are there."""
        self.server.put("podgroups", group("p", len(NAMES)))
        for name, storage_class in zip(NAMES, CLASSES, strict=True):
            exactly = {"deviceClassName": "gpu", "count": 1, "allocationMode": "ExactCount"}
            meta = {"name": f"{name}-gpu", "namespace": "ns"}
            spec = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
            self.server.put("resourceclaims", {"metadata": meta, "spec": spec})
            wants = {"accessModes": ["ReadWriteOnce"], "storageClassName": storage_class,
                     "resources": {"requests": {"storage": "1Gi"}}}  # fmt: skip
            meta = {"name": f"{name}-data", "namespace": "ns"}
            self.server.put("persistentvolumeclaims", {"metadata": meta, "spec": wants, "status": {"phase": "Pending"}})
            self.server.put("pods", claiming(name))

    def leave(self) -> None:
        """The gang's pods are deleted."""
        for name in NAMES:
            if name in self.pods():
                self.server.drop("pods", name, "ns")

    def mortal(self, wire: Mortal | None = None, **more: Any) -> LiveScheduler:
        """A scheduler that reaches the server through ``wire``."""
        self.running = self.scheduler(self.conf, wire, **more)
        return self.running

    # ------------------------------------------------------------------ the cluster's controllers

    async def _control(self) -> None:
        while True:
            await asyncio.sleep(0.25)
            self._serve_cards()
            for volume in self.server.all("persistentvolumes"):
                if reference := volume["spec"].get("claimRef"):
                    self._bind(volume, reference)
            for claim in self.server.all("persistentvolumeclaims"):
                where = (claim["metadata"].get("annotations") or {}).get(SELECTED_NODE)
                if where and not claim["spec"].get("volumeName"):
                    volume = disk(f"made-{where}", where)
                    volume["spec"]["claimRef"] = {
                        name: claim["metadata"][name] for name in ("name", "namespace", "uid")
                    }
                    self._bind(volume, volume["spec"]["claimRef"])
            for claim in self.server.all("resourceclaims"):
                users = claim.get("status", {}).get("reservedFor") or []
                if users and not any(user["name"] in self.pods() for user in users):
                    self.server.put("resourceclaims", {**claim, "status": {}})

    def _serve_cards(self) -> None:
        """What a device plugin does for pods that have come to its node: it says so, and takes the node's lock away."""
        for found in self.server.all("pods"):
            notes, where = found["metadata"].get("annotations") or {}, found["spec"].get("nodeName")
            if where and notes.get(PHASE) == "allocating":
                meta = {**found["metadata"], "annotations": {**notes, PHASE: "success"}}
                self.server.put("pods", {**found, "metadata": meta})
                node = self.server.get("nodes", where)
                kept = {key: note for key, note in node["metadata"]["annotations"].items() if key != LOCK}
                self.server.put("nodes", {**node, "metadata": {**node["metadata"], "annotations": kept}})

    def _bind(self, volume: Json, reference: Json) -> None:
        claim = self.server.get("persistentvolumeclaims", reference["name"], "ns")
        if claim["spec"].get("volumeName"):
            return
        self.server.put("persistentvolumes", {**volume, "status": {"phase": "Bound"}})
        notes = {**(claim["metadata"].get("annotations") or {}), BIND_COMPLETED: "yes"}
        meta = {**claim["metadata"], "annotations": notes}
        spec = {**claim["spec"], "volumeName": volume["metadata"]["name"]}
        self.server.put(
            "persistentvolumeclaims", {**claim, "metadata": meta, "spec": spec, "status": {"phase": "Bound"}}
        )

    # ------------------------------------------------------------------ what holds

    def allocated(self) -> dict[str, str]:
        """The node of the device that each claim has."""
        found = {one["metadata"]["name"]: (one.get("status") or {}).get("allocation") for one in self.claims()}
        return {name: has["devices"]["results"][0]["pool"] for name, has in found.items() if has}

    def claims(self) -> list[Json]:
        """The ResourceClaims."""
        return list(self.server.all("resourceclaims"))

    def kept(self) -> dict[str, str]:
        """The claim that each volume names."""
        found = {one["metadata"]["name"]: one["spec"].get("claimRef") for one in self.server.all("persistentvolumes")}
        return {name: reference["name"] for name, reference in found.items() if reference}

    def cards(self) -> dict[str, str]:
        """What each pod states of cards."""
        found = {one["metadata"]["name"]: one["metadata"].get("annotations", {}) for one in self.server.all("pods")}
        return {name: notes[IDS] for name, notes in found.items() if IDS in notes}

    def locks(self) -> dict[str, str]:
        """When each node was locked."""
        found = {one["metadata"]["name"]: one["metadata"]["annotations"] for one in self.server.all("nodes")}
        return {name: notes[LOCK] for name, notes in found.items() if LOCK in notes}

    def standing(self) -> object:
        """What the server says of pods, claims, devices, volumes and locks."""
        parts = (self.pods(), self.allocated(), self.kept(), self.cards(), self.locks())
        return tuple(tuple(sorted(part.items())) for part in parts)

    def check_whole(self, scheduler: LiveScheduler) -> None:
        """Each pod runs where its own device, volume and card are, and nothing is assumed any more."""
        at = self.pods()
        assert sorted(at.values()) == list(NODES), at
        assert self.allocated() == {f"{name}-gpu": at[name] for name in NAMES}
        users = [user["name"] for one in self.claims() for user in one["status"]["reservedFor"]]
        assert sorted(users) == list(NAMES)
        volumes = {f"{sort}-{at[name]}": f"{name}-data" for name, sort in zip(NAMES, ("disk", "made"), strict=True)}
        assert self.kept() == volumes
        assert self.cards() == {name: f"card-{where},NVIDIA,600,0:" for name, where in at.items()}
        assert self.locks() == {}
        self.check_clean(scheduler)

    def check_clean(self, scheduler: LiveScheduler) -> None:
        """The scheduler assumes nothing beyond what objects say, and no pod was bound twice."""
        storage = scheduler.state.storage
        assert (storage.given, storage.devices.given, scheduler.mirror.assumed) == ({}, {}, {})
        bound = [name for name, _ in self.server.bindings]
        assert len(bound) == len(set(bound)), "bound twice"
