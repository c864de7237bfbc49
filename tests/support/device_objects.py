"""Objects of claimed devices and of volumes, as the API server stores them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st

from stromboli.filters.devices.book import DeviceBook
from stromboli.model.claims import DeviceResult
from stromboli.model.snapshot import Snapshot
from stromboli.testing.builders import Manifest

API: Final = "resource.k8s.io/v1"
DRIVER: Final = "gpu.example.com"
ZONE: Final = "topology.kubernetes.io/zone"


def device_class(name: str = "gpu", *expressions: str) -> Manifest:
    selectors = [{"cel": {"expression": each}} for each in expressions or (f'device.driver == "{DRIVER}"',)]
    return {"apiVersion": API, "kind": "DeviceClass", "metadata": {"name": name}, "spec": {"selectors": selectors}}


def device(name: str, model: str = "a", memory: str = "40Gi", **more: Any) -> Manifest:
    attributes = {"model": {"string": model}, "numa": {"int": int(name[-1]) // 2}}
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": memory}}, **more}


def resource_slice(pool: str, *devices: Manifest, name: str = "", **spec: Any) -> Manifest:
    """The slice of a node's pool unless ``spec`` says which nodes reach it."""
    generation = {"name": pool, "generation": spec.pop("generation", 1), "resourceSliceCount": spec.pop("slices", 1)}
    where = spec or {"nodeName": pool}
    whole = {"driver": DRIVER, "pool": generation, "devices": list(devices), **where}
    return {"apiVersion": API, "kind": "ResourceSlice", "metadata": {"name": name or f"{pool}-gpu"}, "spec": whole}


def exactly(*expressions: str, count: int = 1, of: str = "gpu", **more: Any) -> Manifest:
    """A request as the API server stores it."""
    selectors = [{"cel": {"expression": each}} for each in expressions]
    found = {"deviceClassName": of, "allocationMode": "ExactCount", "count": count, **more}
    return {**found, "selectors": selectors} if selectors else found


def device_claim(name: str, *requests: Manifest, on: str = "", devices: tuple[str, ...] = (), **more: Any) -> Manifest:
    """A claim; one with ``devices`` has them already, on the node ``on``."""
    rows = [one if "name" in one else {"name": f"r{place}", "exactly": one} for place, one in enumerate(requests)]
    spec = {"devices": {"requests": rows or [{"name": "r0", "exactly": exactly()}], **more.pop("devices_spec", {})}}
    fields = [{"key": "metadata.name", "operator": "In", "values": [on]}]
    results = [{"request": "r0", "driver": DRIVER, "pool": on, "device": each} for each in devices]
    given = {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]}}
    status = {"status": {"allocation": given, **more}} if devices else {}
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return {"apiVersion": API, "kind": "ResourceClaim", "metadata": metadata, "spec": spec, **status}


def object_of(version: str, kind: str, name: str, namespace: str = "", **parts: Any) -> Manifest:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **parts.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}


def storage_class(name: str, provisioner: str = "kubernetes.io/no-provisioner", **more: Any) -> Manifest:
    mode = {"volumeBindingMode": "WaitForFirstConsumer"}
    return object_of("storage.k8s.io/v1", "StorageClass", name, provisioner=provisioner, **(mode | more))


def volume(name: str, on: str = "", size: str = "1Gi", claim: str = "", zone: str = "", **spec: Any) -> Manifest:
    """A local volume of one node, or one that all nodes reach; free unless a claim is named."""
    where = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}]}
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": [where]}}} if on else {}
    held = {"claimRef": {"namespace": "default", "name": claim}} if claim else {}
    amounts = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem"}
    status = {"phase": "Bound" if claim else "Available"}
    labels = {"labels": {ZONE: zone}} if zone else {}
    whole = {**amounts, "storageClassName": "local", **affinity, **held, **spec}
    return object_of("v1", "PersistentVolume", name, spec=whole, status=status, metadata=labels)


def volume_claim(
    name: str, of: str = "local", size: str = "1Gi", bound: str = "", modes: str = "ReadWriteOnce"
) -> Manifest:
    marks = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}} if bound else {}
    asked = {"accessModes": [modes], "resources": {"requests": {"storage": size}}, "volumeMode": "Filesystem"}
    spec = {**asked, "storageClassName": of, **({"volumeName": bound} if bound else {})}
    status = {"phase": "Bound" if bound else "Pending"}
    return object_of("v1", "PersistentVolumeClaim", name, "default", spec=spec, status=status, metadata=marks)


def drawn_placements(
    data: st.DataObject, snapshot: Snapshot, steps: int, check: Callable[[list[DeviceResult]], None]
) -> None:
    """Place pods on two nodes in any order and take some back; ``check`` looks at all that is held after each step.

    What fits is placed and nothing else, and when all have left nothing is left of them.
    """
    tasks = sorted((task for job in snapshot.jobs.values() for task in job.tasks.values()), key=lambda task: task.name)
    book = DeviceBook(snapshot.devices, snapshot.table, tasks, shares=True)
    before = [np.array(book.masks(task)) for task in tasks]
    placed: dict[str, list[DeviceResult]] = {}
    for _ in range(steps):
        task, row = data.draw(st.sampled_from(tasks)), data.draw(st.integers(0, 1))
        if task.uid in placed:
            book.leave(task)
            del placed[task.uid]
            continue
        fits = not np.array(book.masks(task))[row]
        found = book.place(task, row)
        assert (found is not None) == fits
        if found is not None:
            placed[task.uid] = [one for each in found.values() for one in each.devices.results]
        check([one for each in placed.values() for one in each])
    for task in tasks:
        book.leave(task)
    assert all(np.array_equal(np.array(book.masks(task)), old) for task, old in zip(tasks, before, strict=True))


SETTINGS: Final = """
nvidia:
  resourceCountName: volcano.sh/vgpu-number
  resourceMemoryName: volcano.sh/vgpu-memory
  resourceCoreName: volcano.sh/vgpu-cores
  resourceMemoryPercentageName: volcano.sh/vgpu-memory-percentage
  knownMigGeometries:
  - models: ["A100"]
    allowedGeometries:
    - group: small
      geometries: [{name: 1g.10gb, memory: 10240, count: 3}]
    - group: mixed
      geometries: [{name: 2g.20gb, memory: 20480, count: 2}, {name: 1g.10gb, memory: 10240, count: 1}]
vnpus:
- chipName: 910B3
  commonWord: Ascend910B3
  resourceName: huawei.com/Ascend910B3
  resourceMemoryName: huawei.com/Ascend910B3-memory
  memoryAllocatable: 65536
  memoryCapacity: 65536
  templates: [{name: vir10, memory: 32768}, {name: vir05, memory: 16384}]
"""
"""Settings of devices of which cards are parted: geometries of MIG, and templates of virtual NPUs."""
