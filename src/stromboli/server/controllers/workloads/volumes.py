"""Claims get volumes: those that are there, or new ones, which every provisioner here can make."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from stromboli.cluster.body import Body, changed, meta, part
from stromboli.errors import ManifestError
from stromboli.filters.volumes.pools import is_free, suits
from stromboli.filters.volumes.resolving import shape_of
from stromboli.model.objects.storage import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    NO_PROVISIONER,
    SELECTED_NODE,
    STORAGE,
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
)
from stromboli.model.resources import quantity
from stromboli.model.spec import without_nulls
from stromboli.server.controllers.workloads.objects import Objects, is_ending
from stromboli.server.storage.store import CollectionName, Store

CLAIMS: Final = ("", "persistentvolumeclaims")
VOLUMES: Final = ("", "persistentvolumes")
CLASSES: Final = ("storage.k8s.io", "storageclasses")
CSI_NODES: Final = ("storage.k8s.io", "csinodes")
NODES: Final = ("", "nodes")
ZONE: Final = "topology.kubernetes.io/zone"
SIMULATED: Final = "simulated.stromboli.dev"
"""The driver of volumes of claims that name no class."""
RETRIES: Final = (CLASSES, NODES, VOLUMES)
"""Collections whose news may help claims that wait."""


def sync(objects: Objects, claim: Body) -> None:
    """Bind a claim: to the volume that is kept for it, to one that suits it, or to a new one.  Raises ApiFailure."""
    if is_ending(claim) or part(claim, "status", "phase") == "Bound":
        return
    volume = _kept(objects, claim) or _found(objects, claim)
    if volume is not None:
        _bind(objects, claim, volume)


def look_after(objects: Objects, volume: Body) -> None:
    """Bind a volume that is kept for a claim; reclaim it when the claim is gone.  Raises ApiFailure."""
    reference = part(volume, "spec", "claimRef")
    if not reference or is_ending(volume):
        return
    claim = objects.get(CLAIMS, reference.get("namespace", ""), reference.get("name", ""))
    if claim is not None and meta(claim)["uid"] == reference.get("uid", meta(claim)["uid"]):
        sync(objects, claim)
    elif part(volume, "status", "phase") == "Bound":
        if part(volume, "spec", "persistentVolumeReclaimPolicy") == "Delete":
            objects.delete(VOLUMES, volume)
        else:
            objects.set_status(VOLUMES, volume, {"phase": "Released"})


def make_claims(objects: Objects, pod: Body) -> None:
    """Make the claims of a pod's ephemeral volumes.  Raises ApiFailure."""
    for volume in ephemeral(pod):
        name, namespace = f"{meta(pod)['name']}-{volume['name']}", meta(pod)["namespace"]
        if not is_ending(pod) and objects.get(CLAIMS, namespace, name) is None:
            template = volume["ephemeral"].get("volumeClaimTemplate") or {}
            metadata = {**(template.get("metadata") or {}), "name": name}
            objects.create(CLAIMS, pod, metadata, spec=template.get("spec") or {})


def ephemeral(pod: Body) -> Iterator[Body]:
    """The volumes of a pod whose claims are made for it."""
    return (volume for volume in part(pod, "spec", "volumes") or () if volume.get("ephemeral"))


def related(store: Store, collection: CollectionName, body: Body) -> Iterator[tuple[CollectionName, tuple[str, str]]]:
    """What must be looked at after a change of ``body``: the volume of a claim, claims that may get one now."""
    if collection == CLAIMS and (name := part(body, "spec", "volumeName")):
        yield VOLUMES, ("", name)
    for key, entry in store.of(CLAIMS).entries.items() if collection in RETRIES else ():
        if not part(entry.body, "spec", "volumeName"):
            yield CLAIMS, key


# -- Finding and making ----------------------------------------------------------------------------------------------


def _kept(objects: Objects, claim: Body) -> Body | None:
    named = part(claim, "spec", "volumeName")
    if named:
        return objects.get(VOLUMES, "", named)
    own = meta(claim)
    for entry in objects.store.of(VOLUMES).entries.values():
        reference = part(entry.body, "spec", "claimRef") or {}
        names = (reference.get("namespace"), reference.get("name"))
        if names == (own["namespace"], own["name"]) and reference.get("uid", own["uid"]) == own["uid"]:
            return entry.body
    return None


def _found(objects: Objects, claim: Body) -> Body | None:
    named = part(claim, "spec", "storageClassName") or ""
    storage_class = objects.get(CLASSES, "", named) if named else {}
    if storage_class is None:
        return None
    node = (meta(claim).get("annotations") or {}).get(SELECTED_NODE, "")
    delayed = storage_class.get("volumeBindingMode") == WAIT_FOR_FIRST_CONSUMER
    if delayed and not node:
        return None
    there = None if delayed else _smallest(objects, claim)
    if there is not None or storage_class.get("provisioner") == NO_PROVISIONER:
        return there
    return _made(objects, claim, storage_class, node)


def _smallest(objects: Objects, claim: Body) -> Body | None:
    """The smallest free volume that suits a claim."""
    shape = shape_of(_read(claim, PersistentVolumeClaim))
    fitting: list[tuple[int, str, Body]] = []
    for entry in objects.store.of(VOLUMES).entries.values():
        volume = _read(entry.body, PersistentVolume)
        size = quantity.whole(volume.spec.capacity.get(STORAGE, 0))
        same = volume.spec.storage_class_name == shape.storage_class and size >= shape.size
        if same and is_free(volume) and suits(volume, shape):
            fitting.append((size, volume.metadata.name, entry.body))
    return min(fitting, key=lambda each: each[:2], default=(0, "", None))[2]


def _read(body: Body, kind: Any) -> Any:
    try:
        return msgspec.convert(without_nulls(body), kind)
    except msgspec.ValidationError as error:
        raise ManifestError(str(error), object=f"{body['kind']} {meta(body)['name']}") from error


def _made(objects: Objects, claim: Body, storage_class: Body, node: str) -> Body:
    spec, own = claim.get("spec") or {}, meta(claim)
    name = f"pvc-{own['uid']}"
    driver = storage_class.get("provisioner") or SIMULATED
    body = {
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": driver}},
        "spec": {
            "accessModes": spec.get("accessModes") or ["ReadWriteOnce"],
            "capacity": {STORAGE: part(spec, "resources", "requests", STORAGE) or "1Gi"},
            "claimRef": _reference(claim),
            "csi": {"driver": driver, "volumeHandle": name},
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
            "storageClassName": spec.get("storageClassName") or "",
            "volumeMode": spec.get("volumeMode") or "Filesystem",
            **_affinity(objects, driver, node),
        },
    }
    return objects.make(VOLUMES, "", body)


def _affinity(objects: Objects, driver: str, node: str) -> Body:
    """The nodes that reach a volume made for ``node``: those with its values of the driver's topology keys."""
    labels = meta(objects.get(NODES, "", node) or {"metadata": {}}).get("labels") or {}
    drivers = part(objects.get(CSI_NODES, "", node) or {}, "spec", "drivers") or ()
    keys = next((each.get("topologyKeys") or () for each in drivers if each.get("name") == driver), (ZONE,))
    wanted = [{"key": key, "operator": "In", "values": [labels[key]]} for key in keys if key in labels]
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": wanted}]}}} if wanted else {}


def _reference(claim: Body) -> Body:
    own = meta(claim)
    names = {"name": own["name"], "namespace": own["namespace"], "uid": own["uid"]}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **names}


def _bind(objects: Objects, claim: Body, volume: Body) -> None:
    reference = part(volume, "spec", "claimRef") or {}
    if reference.get("uid") not in (None, meta(claim)["uid"]):
        return
    if not reference.get("uid"):
        volume = objects.change(VOLUMES, volume, {"spec": {"claimRef": _reference(claim)}})
    objects.set_status(VOLUMES, volume, {**(volume.get("status") or {}), "phase": "Bound"})
    marks = {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
    claim = objects.change(
        CLAIMS, claim, {"metadata": {"annotations": marks}, "spec": {"volumeName": meta(volume)["name"]}}
    )
    told = {"accessModes": part(volume, "spec", "accessModes"), "capacity": part(volume, "spec", "capacity")}
    objects.set_status(CLAIMS, claim, changed(told, phase="Bound"))


SYNCS: Final = {CLAIMS: sync, VOLUMES: look_after}
"""What a look at an object of each kind does."""
