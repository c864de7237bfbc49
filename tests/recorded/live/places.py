"""Stories of where pods may go: network topology, shards, cards, volumes and devices, loads of nodes."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from stromboli.controllers.work import About
from stromboli.kube.transport import Request, Response
from stromboli.live.scheduler.hash_ring import Replica
from tests.recorded.live.cluster import Cluster, container, group, job, pod, queue, task
from tests.recorded.live.notes import Json
from tests.support.faulty import status

CLOSE: Final = """actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}, {name: network-topology-aware}]
"""
DISCOVERED: Final = """networkTopologyDiscovery:
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      racks: [{nodeLabel: block}, {nodeLabel: rack}, {nodeLabel: kubernetes.io/hostname}]
- {source: file, enabled: true, interval: 10s, config: {configMap: {name: tree, key: topology.conf}}}
- {source: ufm, enabled: true, interval: soon, config: {endpoint: ufm}}
- {source: other, enabled: true}
"""
TREE: Final = "SwitchName=s0 Nodes=node-[1-2]\nSwitchName=s1 Nodes=node-[3-4]\nSwitchName=top Switches=s[0-1]\n"
SHARDS: Final = """shardSyncPeriod: 20s
enableNodeEventTrigger: true
schedulerConfigs:
- name: agents
  policies:
  - {name: allocation-rate, arguments: {minCPUUtil: 0, maxCPUUtil: 0.7}}
  - {name: warmup, weight: 2, arguments: {warmupLabel: warm, warmupLabelValue: "true"}}
  - {name: node-limit, arguments: {minNodes: 2, maxNodes: 2}}
- name: volcano
"""
CARDS: Final = """actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins:
  - {name: predicates}
  - {name: deviceshare, arguments: {deviceshare.VGPUEnable: true, deviceshare.NodeLockEnable: true}}
"""
LOADS: Final = """actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: usage, arguments: {thresholds: {cpu: 80, mem: 70}}}]
metrics: {type: %s, address: %s, interval: 5s}
"""


def config_map(name: str, namespace: str = "volcano-system", **data: str) -> Json:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


async def topology(c: Cluster) -> None:
    """HyperNodes come from labels, from a tree and from users; jobs lie within them."""
    await c.begin(CLOSE)
    for number in range(1, 7):
        labels = {"rack": f"r{(number - 1) // 2}", "block": f"b{(number - 1) // 4}"}
        await c.change("nodes", f"node-{number}", {"metadata": {"labels": labels}})
    await c.make(
        config_map("volcano-controller-configmap", **{"volcano-controller.conf": DISCOVERED}),
        config_map("tree", **{"topology.conf": TREE}),
        {
            "apiVersion": "topology.volcano.sh/v1alpha1",
            "kind": "HyperNode",
            "metadata": {"name": "mine"},
            "spec": {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "node-6"}}}]},
        },
    )
    await asyncio.sleep(6)
    hard, soft = {"mode": "hard", "highestTierAllowed": 1}, {"mode": "soft"}
    parts = {"totalPartitions": 2, "partitionSize": 2, "networkTopology": hard}
    await c.make(
        job("near", task("t", 6, "sleep 15"), minAvailable=6, networkTopology=hard),
        job("soft", task("t", 5, "sleep 12"), minAvailable=5, networkTopology=soft),
        job("parts", task("t", 4, "sleep 9", partitionPolicy=parts), minAvailable=4),
        job("far", task("t", 12), minAvailable=12, networkTopology=hard),
    )
    await asyncio.sleep(8)
    await c.change("nodes", "node-3", {"metadata": {"labels": {"rack": "r0"}}})
    await c.change("nodes", "node-5", {"metadata": {"labels": {"block": "b0"}}})
    await c.change(
        "configmaps", "tree", {"data": {"topology.conf": TREE + "SwitchName=top Switches=top\n"}}, "volcano-system"
    )
    await asyncio.sleep(12)
    await c.remove("hypernodes", "mine")
    await c.change("configmaps", "tree", {"data": {"topology.conf": TREE.replace("s1 ", "s2 ")}}, "volcano-system")
    await asyncio.sleep(12)
    await c.remove("configmaps", "tree", "volcano-system")
    await asyncio.sleep(25)
    for found in c.all("hypernodes")[:1]:
        await c.remove("hypernodes", found["metadata"]["name"])
    await c.remove("nodes", "node-6")
    await asyncio.sleep(6)
    data = {"volcano-controller.conf": "networkTopologyDiscovery: {}"}
    await c.change("configmaps", "volcano-controller-configmap", {"data": data}, "volcano-system")
    await asyncio.sleep(3)
    await c.remove("configmaps", "volcano-controller-configmap", "volcano-system")
    await asyncio.sleep(5)


async def unseen(c: Cluster) -> None:
    """Jobs ask for closeness and for groups that no plugin of the configuration sees to."""
    await c.begin()
    hard = {"mode": "hard", "highestTierAllowed": 1}
    await c.make(
        job("near", task("t", 2), minAvailable=2, networkTopology=hard),
        group("alone", 1, networkTopology=hard),
        pod("alone-0", notes={"scheduling.k8s.io/group-name": "alone"}),
        pod("lost", notes={"scheduling.k8s.io/group-name": "nowhere"}),
    )
    await asyncio.sleep(16)
    c.server.put("podgroups", group("queueless", 1, queue="nowhere"))
    await c.make(pod("queueless-0", notes={"scheduling.k8s.io/group-name": "queueless"}))
    c.server.put("pods", {**pod("wrong"), "spec": {**pod("wrong")["spec"], "priority": "high"}})
    amounts = {"limits": {"cpu": "much"}}
    broken = pod("broken", notes={"scheduling.k8s.io/group-name": "alone"})
    broken["spec"]["containers"][0]["resources"] = amounts
    c.server.put("pods", broken)
    c.server.put("nodes", {"metadata": {"name": "odd"}, "status": {"allocatable": {"cpu": "x"}}})
    await asyncio.sleep(14)
    await c.make(queue("nowhere"))
    await c.remove("pods", "broken")
    await asyncio.sleep(14)


async def shards(c: Cluster) -> None:
    """Nodes are divided between two schedulers by NodeShards, which change as nodes do."""
    for work in (c.kubelets.run(), c.workloads.run(), c._tick()):
        c.start(work)
    await c.kubelets.registered.wait()
    await c.make(config_map("volcano-sharding-configmap", **{"sharding.yaml": SHARDS}))
    c.start(c.controllers(looks=frozenset(About), scheduler_names=("volcano", "agents")).run())
    for author, mode in (("volcano", "hard"), ("agents", "soft")):
        found = c.scheduler(author=author, scheduler_names=(author,), sharding_mode=mode, sharding_name=author)
        c.start(found.run())
    await asyncio.sleep(4)
    await c.change("nodes", "node-5", {"metadata": {"labels": {"warm": "true"}}})
    await c.make(
        job("here", task("t", 8, "sleep 20"), minAvailable=8),
        *(pod(f"there-{n}", "2", schedulerName="agents") for n in range(5)),
    )
    await asyncio.sleep(12)
    await c.remove("nodes", "node-5")
    await asyncio.sleep(5)
    await c.remove("nodeshards", "agents")
    await c.change("nodeshards", "volcano", {"spec": {"nodesDesired": ["node-1"]}})
    await asyncio.sleep(10)
    fewer = SHARDS.replace("- name: volcano\n", "").replace("minNodes: 2", "minNodes: 9")
    await c.change("configmaps", "volcano-sharding-configmap", {"data": {"sharding.yaml": fewer}}, "volcano-system")
    await asyncio.sleep(12)
    await c.change("configmaps", "volcano-sharding-configmap", {"data": {"sharding.yaml": "["}}, "volcano-system")
    await asyncio.sleep(25)


async def ring(c: Cluster) -> None:
    """Two replicas divide nodes and jobs by their names."""
    for work in (c.kubelets.run(), c.workloads.run(), c._tick()):
        c.start(work)
    await c.kubelets.registered.wait()
    c.start(c.controllers().run())
    for number in range(2):
        replica = Replica(f"volcano-scheduler-{number}", 2)
        c.start(c.scheduler(author=f"replica-{number}", replica=replica).run())
    await asyncio.sleep(3)
    await c.make(*(job(f"j{n}", task("t", 2, f"sleep {8 + n}"), minAvailable=2) for n in range(7)), pod("p"), pod("q"))
    await asyncio.sleep(20)


def shared(name: str) -> Json:
    """What a device plugin says of a node with two shared cards."""
    amounts = {"volcano.sh/vgpu-number": "4", "volcano.sh/vgpu-memory": "2000", "volcano.sh/vgpu-cores": "200"}
    cards = "".join(f"card-{name}-{n},2,1000,100,A100,{n},true,hami-core:" for n in range(2))
    return {"metadata": {"annotations": {"volcano.sh/node-vgpu-register": cards}}, "amounts": amounts}


async def cards(c: Cluster) -> None:
    """Pods share cards, a node at a time is locked for them; limits alone are counted as requests."""
    await c.begin(CARDS)
    for number in range(1, 4):
        said = shared(f"n{number}")
        await c.change("nodes", f"node-{number}", {"metadata": said["metadata"]})
        amounts = {"allocatable": said["amounts"], "capacity": said["amounts"]}
        await c.change("nodes", f"node-{number}", {"status": amounts}, below="/status")
    await c.change("nodes", "node-3", {"metadata": {"annotations": {"hamivgpu": "2027-01-15T08:16:00Z"}}})

    def wants(memory: str, **more: str) -> Json:
        limits = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": memory, **more}
        return {
            "containers": [
                {"name": "m", "image": "i", "resources": {"limits": {"cpu": "1", "memory": "1Gi", **limits}}}
            ]
        }

    async def device_plugin() -> None:
        while True:
            await asyncio.sleep(1.5)
            for found in c.pods():
                notes, where = found["metadata"].get("annotations") or {}, found["spec"].get("nodeName")
                if where and notes.get("volcano.sh/bind-phase") == "allocating":
                    done = {"metadata": {"annotations": {"volcano.sh/bind-phase": "success"}}}
                    await c.change("pods", found["metadata"]["name"], done)
                    await c.change("nodes", where, {"metadata": {"annotations": {"hamivgpu": None}}})

    c.start(device_plugin())
    await c.make(
        job("half", task("t", 3, spec=wants("600")), minAvailable=3),
        job("small", task("t", 4, "sleep 20", spec=wants("300", **{"volcano.sh/vgpu-cores": "30"})), minAvailable=2),
        job("large", task("t", 2, spec=wants("5000")), minAvailable=1),
        job("whole", task("t", 1, spec={"containers": [container(**{"nvidia.com/gpu": "1"})]}), minAvailable=1),
    )
    await asyncio.sleep(25)
    await c.remove("jobs", "half")
    await c.change("nodes", "node-1", {"metadata": {"annotations": {"volcano.sh/node-vgpu-register": None}}})
    await asyncio.sleep(15)


def disk(name: str, where: str) -> Json:
    """A volume that one node reaches."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [where]}]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "hostPath": {"path": "/x"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def wish(name: str, storage_class: str) -> Json:
    """A claim of a volume."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": spec,
    }


async def offer_storage(c: Cluster) -> None:
    """Make volumes and devices, and claims of them."""
    storage, devices = "storage.k8s.io/v1", "resource.k8s.io/v1"
    for name, provisioner in (("local", "kubernetes.io/no-provisioner"), ("made", "csi.example.com")):
        mode = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer"}
        await c.make({"apiVersion": storage, "kind": "StorageClass", "metadata": {"name": name}, **mode})
    await c.make(
        disk("disk-1", "node-1"),
        disk("disk-2", "node-2"),
        {"apiVersion": devices, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
    )
    for number in (1, 2, 3):
        spec = {
            "driver": "gpu.example.com",
            "nodeName": f"node-{number}",
            "devices": [{"name": "d"}, {"name": "e"}][:number],
            "pool": {"name": f"node-{number}", "generation": 1, "resourceSliceCount": 1},
        }
        await c.make({"apiVersion": devices, "kind": "ResourceSlice", "metadata": {"name": f"s{number}"}, "spec": spec})
    exactly = {"deviceClassName": "gpu", "count": 1, "allocationMode": "ExactCount"}
    template = {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}
    await c.make(
        {
            "apiVersion": devices,
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": "gpus", "namespace": "ns"},
            "spec": {"spec": template},
        },
        {
            "apiVersion": devices,
            "kind": "ResourceClaim",
            "metadata": {"name": "own", "namespace": "ns"},
            "spec": template,
        },
        *(wish(f"local-{n}", "local") for n in range(3)),
        wish("later", "made"),
    )


async def claims(c: Cluster) -> None:
    """Pods claim volumes and devices, of which there are too few; some come later, some are given back."""
    await c.begin()
    await offer_storage(c)

    def mounts(claim: str) -> Json:
        return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}

    await c.make(
        job(
            "local",
            *(task(f"t{n}", 1, spec={**mounts(f"local-{n}"), "containers": [container()]}) for n in range(2)),
            minAvailable=2,
        ),
        job(
            "gpus",
            task(
                "t",
                3,
                "sleep 18",
                spec={
                    "resourceClaims": [{"name": "g", "resourceClaimTemplateName": "gpus"}],
                    "containers": [container(seconds="sleep 18")],
                },
            ),
            minAvailable=2,
        ),
        pod("third", **mounts("local-2")),
        pod("made", **mounts("later")),
        pod("missing", **mounts("nowhere")),
        pod("owns", resourceClaims=[{"name": "g", "resourceClaimName": "own"}]),
        job(
            "volumes",
            task("t", 2),
            minAvailable=2,
            volumes=[
                {
                    "mountPath": "/out",
                    "volumeClaim": {
                        "accessModes": ["ReadWriteOnce"],
                        "storageClassName": "made",
                        "resources": {"requests": {"storage": "1Gi"}},
                    },
                },
                {"mountPath": "/in", "volumeClaimName": "later"},
            ],
        ),
    )
    await asyncio.sleep(14)
    await c.make(disk("disk-3", "node-4"), wish("nowhere", "made"))
    await asyncio.sleep(12)
    await c.remove("jobs", "local")
    await c.remove("pods", "owns")
    await c.remove("jobs", "volumes")
    await asyncio.sleep(14)


async def loads(c: Cluster) -> None:
    """Loads of nodes keep pods away: from a file, then as custom metrics of the API server, then from nowhere."""
    file = c.folder / "usage.json"

    def measured(idle: str) -> None:
        file.write_text(
            json.dumps({f"node-{n}": {"cpu": 10 if f"node-{n}" == idle else 95, "memory": 5} for n in range(1, 5)})
        )

    def answered(request: Request, _when: str) -> Response | None:
        if "custom.metrics" not in request.path:
            return None
        if "v1beta2" not in request.path or dead:
            return status(404, "NotFound")
        items = [
            {
                "describedObject": {"kind": "Node", "name": f"node-{n}"},
                "value": f"{100 * n}m",
                "timestamp": "2027-01-15T08:17:00Z",
            }
            for n in range(1, 5)
        ]
        return Response(200, {}, json.dumps({"kind": "MetricValueList", "items": items}).encode())

    dead: list[Any] = []
    c.server.faults.append(answered)
    measured("node-3")
    await c.begin(LOADS % ("file", file))
    await c.make(job("one", task("t", 2, "sleep 9"), minAvailable=2))
    await asyncio.sleep(6)
    measured("node-1")
    await asyncio.sleep(6)
    await c.make(job("two", task("t", 3, "sleep 9"), minAvailable=2))
    file.write_text("no json")
    await asyncio.sleep(8)
    c.configure(LOADS % ("prometheus_adaptor", "none"))
    await asyncio.sleep(11)
    await c.make(job("three", task("t", 3, "sleep 9"), minAvailable=2))
    await asyncio.sleep(6)
    dead.append(1)
    await asyncio.sleep(6)
    c.configure(LOADS % ("oracle", "delphi"))
    await asyncio.sleep(8)
