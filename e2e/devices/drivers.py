"""What runs beside a scheduler where pods have devices and volumes: device plugins, and a cluster's controllers.

A device plugin marks the pods that come to its node as served and takes the node's lock away.  A server alone makes no
claims from templates, frees none, and binds no volumes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from e2e.clusters import MERGE, Json, Refused
from e2e.real import UNREACHABLE
from e2e.stage import Stage

PHASE: Final = "volcano.sh/bind-phase"
LOCK: Final = "hamivgpu"
SELECTED: Final = "volume.kubernetes.io/selected-node"
BOUND: Final = "pv.kubernetes.io/bind-completed"
ZONE: Final = "topology.kubernetes.io/zone"
PAUSE: Final = 0.2


class Drivers:
    """One pass after the other over the objects of a namespace."""

    def __init__(self, stage: Stage, space: str) -> None:
        self._stage, self._space, self._ended = stage, space, threading.Event()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Act while the block lasts."""
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()

    def _run(self) -> None:
        acts: tuple[Callable[[], None], ...] = (
            self._serve_cards, self._make_claims, self._free_claims, self._bind_volumes,
        )  # fmt: skip
        while not self._ended.wait(PAUSE):
            for act in acts:
                with suppress(Refused, *UNREACHABLE):  # another client has changed the object, or the server is away
                    act()

    def _all(self, plural: str, group: str = "api/v1") -> list[Json]:
        return self._stage.items(f"/{group}/namespaces/{self._space}/{plural}")

    def _change(self, path: str, change: Json) -> Json:
        return self._stage.api.call("PATCH", path, change, MERGE)

    def _path(self, body: Json, plural: str, group: str = "api/v1") -> str:
        return f"/{group}/namespaces/{self._space}/{plural}/{body['metadata']['name']}"

    # ------------------------------------------------------------------ device plugins

    def _serve_cards(self) -> None:
        for pod in self._all("pods"):
            notes, where = pod["metadata"].get("annotations") or {}, pod["spec"].get("nodeName")
            if where and notes.get(PHASE) == "allocating":
                self._change(self._path(pod, "pods"), {"metadata": {"annotations": {PHASE: "success"}}})
                self._change(f"/api/v1/nodes/{where}", {"metadata": {"annotations": {LOCK: None}}})

    # ------------------------------------------------------------------ controllers of ResourceClaims

    def _make_claims(self) -> None:
        templates = {one["metadata"]["name"]: one for one in self._all("resourceclaimtemplates", DEVICES)}
        for pod in self._all("pods"):
            wanted = [one for one in pod["spec"].get("resourceClaims", ()) if "resourceClaimTemplateName" in one]
            if wanted and not pod["status"].get("resourceClaimStatuses"):
                made = [self._made(pod, one, templates[one["resourceClaimTemplateName"]]) for one in wanted]
                self._change(f"{self._path(pod, 'pods')}/status", {"status": {"resourceClaimStatuses": made}})

    def _made(self, pod: Json, wanted: Json, template: Json) -> Json:
        name = f"{pod['metadata']['name']}-{wanted['name']}"
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "spec": template["spec"]["spec"],
                "metadata": {"name": name, "ownerReferences": [{**owner, "controller": True}]}}  # fmt: skip
        self._stage.api.call("POST", f"/{DEVICES}/namespaces/{self._space}/resourceclaims", body)
        return {"name": wanted["name"], "resourceClaimName": name}

    def _free_claims(self) -> None:
        """Free claims of pods that are gone, and delete those that were made for such pods."""
        there = {pod["metadata"]["uid"] for pod in self._all("pods")}
        for claim in self._all("resourceclaims", DEVICES):
            path, status = self._path(claim, "resourceclaims", DEVICES), claim.get("status") or {}
            users = {user["uid"] for user in status.get("reservedFor") or ()}
            if users and not users & there:
                self._change(f"{path}/status", {"status": {"reservedFor": None, "allocation": None}})
            elif not users and self._is_orphan(claim, there):
                self._change(path, {"metadata": {"finalizers": None}})
                self._stage.delete(path)

    def _is_orphan(self, claim: Json, there: set[str]) -> bool:
        owners = {owner["uid"] for owner in claim["metadata"].get("ownerReferences", ())}
        return bool(owners) and not owners & there

    # ------------------------------------------------------------------ controllers of volumes

    def _bind_volumes(self) -> None:
        volumes = {one["spec"]["claimRef"]["uid"]: one for one in self._stage.items(VOLUMES)
                   if one["spec"].get("claimRef", {}).get("uid")}  # fmt: skip
        for claim in self._all("persistentvolumeclaims"):
            where = (claim["metadata"].get("annotations") or {}).get(SELECTED)
            if claim["spec"].get("volumeName"):
                continue
            volume = volumes.get(claim["metadata"]["uid"]) or (self._provisioned(claim, where) if where else None)
            if volume is not None:
                self._bind(claim, volume)

    def _provisioned(self, claim: Json, where: str) -> Json:
        zone = self._stage.api.call("GET", f"/api/v1/nodes/{where}")["metadata"]["labels"][ZONE]
        there = {"key": ZONE, "operator": "In", "values": [zone]}
        meta = claim["metadata"]
        spec: dict[str, Any] = {
            "capacity": claim["spec"]["resources"]["requests"], "accessModes": claim["spec"]["accessModes"],
            "storageClassName": claim["spec"]["storageClassName"], "csi": {"driver": "csi.example.com",
                                                                           "volumeHandle": meta["uid"]},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}},
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": self._space,
                         "name": meta["name"], "uid": meta["uid"]},
        }  # fmt: skip
        body = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"pvc-{meta['uid']}"},
            "spec": spec,
        }
        return self._stage.api.call("POST", VOLUMES, body)

    def _bind(self, claim: Json, volume: Json) -> None:
        name, path = volume["metadata"]["name"], self._path(claim, "persistentvolumeclaims")
        self._change(f"{VOLUMES}/{name}/status", {"status": {"phase": "Bound"}})
        self._change(path, {"metadata": {"annotations": {BOUND: "yes"}}, "spec": {"volumeName": name}})
        amounts = {"accessModes": volume["spec"]["accessModes"], "capacity": volume["spec"]["capacity"]}
        self._change(f"{path}/status", {"status": {"phase": "Bound", **amounts}})


DEVICES: Final = "apis/resource.k8s.io/v1"
VOLUMES: Final = "/api/v1/persistentvolumes"
