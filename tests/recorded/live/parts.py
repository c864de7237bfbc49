"""Stories of what runs beside: a shadow, the small cluster's other schedulers, dumps, groups of Kubernetes' own."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, Final, cast

from stromboli.cluster.files.reader import load, read
from stromboli.cluster.files.written import manifests
from stromboli.cluster.state import ClusterState
from stromboli.kube.recorder import Recorder
from stromboli.live.scheduler.configuration import Source
from stromboli.live.scheduler.dump import summary, write_dump
from stromboli.live.shadow.shadow import Shadow
from stromboli.live.up.default_scheduler import DefaultScheduler
from stromboli.live.up.shown_configuration import show_configuration
from stromboli.live.up.strangers import Strangers
from stromboli.live.up.up import Setup, Up
from tests.recorded.live.cluster import Cluster, container, job, pod, priority, queue, task
from tests.recorded.live.notes import Json
from tests.recorded.live.sharing import PREEMPTING

UPSTREAM: Final = "scheduling.k8s.io/v1beta1"


async def shadow(c: Cluster) -> None:
    """A shadow with another configuration plans beside the scheduler, and tells what that does otherwise."""
    await c.begin(PREEMPTING)
    binpack = PREEMPTING.replace("{name: nodeorder}", "{name: binpack}").replace("preempt, ", "")
    c.configure(binpack, "shadow.conf")
    beside = c.scheduler(author="shadow", may_write=lambda: False, path=str(c.folder / "shadow.conf"))
    found = Shadow(beside, 6.0)
    running = c.start(found.run())
    await c.make(priority("high", 1000))
    await asyncio.sleep(3)
    await c.make(job("one", task("t", 6), minAvailable=6), job("two", task("t", 10), minAvailable=1))
    await asyncio.sleep(10)
    await c.make(job("high", task("t", 3), minAvailable=3, priorityClassName="high"), pod("big", "9"))
    await asyncio.sleep(15)
    c.configure(
        binpack + "- plugins: [{name: extender, arguments: {extender.urlPrefix: http://127.0.0.1:1}}]\n", "shadow.conf"
    )
    await asyncio.sleep(3)
    await c.remove("jobs", "two")
    await c.make(job("three", task("t", 4), minAvailable=4))
    await asyncio.sleep(14)
    found.stop()
    await running
    c.note_figures("shadow", {"plans": found.plans, "left out": found.left_out, **found.comparison.counts})


async def small_cluster(c: Cluster) -> None:
    """The embedded cluster's other parts: its default scheduler, pods of strangers, a configuration in a ConfigMap."""
    api = c.server.api
    source = show_configuration(api, Source(), c.folder)
    c.start(DefaultScheduler(api, Recorder(c.client("default"), "default-scheduler", c.clock)).run())
    c.start(Strangers(api, Recorder(c.client("up"), "stromboli-up", c.clock), ("volcano", "default-scheduler")).run())
    await c.begin(path=source.path)
    serving = cast(Any, SimpleNamespace(api=api))
    creation = asyncio.create_task(asyncio.sleep(0))
    small = Up(Setup(), serving, creation)
    own: Json = {"schedulerName": "default-scheduler"}
    await c.make(
        pod("plain", seconds="sleep 4", **own),
        pod("large", "64", **own),
        pod("theirs", schedulerName="others"),
        pod("pinned", **own, nodeSelector={"kubernetes.io/hostname": "node-2"}),
        job("j", task("t", 3, "sleep 8"), minAvailable=3),
        job("wide", task("t", 1, cpu="64"), minAvailable=1),
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "ns"},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}},
            },
        },
    )
    for _ in range(4):
        await asyncio.sleep(5)
        for row in small.jobs():
            c.notes.note("up", f"{row} {small.all_done}")
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}, {name: predicates}]\n'
    await c.change(
        "configmaps", "volcano-scheduler-configmap", {"data": {"volcano-scheduler.conf": text}}, "volcano-system"
    )
    await asyncio.sleep(3)
    await c.change(
        "configmaps", "volcano-scheduler-configmap", {"data": {"volcano-scheduler.conf": None}}, "volcano-system"
    )
    c.note_pods()
    await c.remove("pods", "large")
    await asyncio.sleep(5)


async def dumps(c: Cluster) -> None:
    """What a scheduler knows is written down, and read again as plans from files read it."""
    scheduler = await c.begin(PREEMPTING, in_thread=True)
    await c.make(
        queue("team", capability={"cpu": "8"}, weight=2),
        priority("high", 5),
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "q", "namespace": "ns"},
            "spec": {"hard": {"requests.cpu": "20", "pods": "30"}},
        },
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "keep", "namespace": "ns"},
            "spec": {
                "maxUnavailable": 1,
                "selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]},
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web", "namespace": "ns"},
            "spec": {"selector": {"app": "x"}, "ports": [{"port": 80}]},
        },
    )
    await asyncio.sleep(1)
    terms = [{"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}]
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "x"}},
        }
    ]
    wants = {
        "affinity": {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 3, "podAffinityTerm": terms[0]}]
            }
        },
        "topologySpreadConstraints": spread,
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "containers": [{**container(), "ports": [{"containerPort": 80, "hostPort": 8080}]}],
        "initContainers": [{**container("2"), "name": "first"}],
        "overhead": {"cpu": "100m"},
    }
    await c.make(
        job(
            "x",
            task("t", 3, metadata={"labels": {"app": "x"}}, spec=wants),
            queue="team",
            minAvailable=2,
            priorityClassName="high",
        ),
        job("y", task("t", 3, "sleep 4"), minAvailable=3),
        job("waits", task("t", 2, cpu="7"), queue="team", minAvailable=2),
    )
    await asyncio.sleep(8)
    for line in summary(scheduler.state)[:-1]:
        c.notes.note("dump", line)
    path = write_dump(manifests(scheduler.state, c.clock()), str(c.folder), c.clock())
    text = path.read_text()
    for line in text.splitlines():
        c.notes.note("dump", line)
    again = ClusterState()
    found = read([path])
    for problem in load(found, again.apply):
        c.notes.note("dump", str(problem))
    c.notes.note("dump", f"{found.count} read, skipped {found.skipped}, ignored {found.ignored}")
    for line in summary(again)[:-1]:
        c.notes.note("read", line)
    scheduler.stop()
    await asyncio.sleep(3)


async def upstream(c: Cluster) -> None:
    """PodGroups of Kubernetes' own kind: pods wait for them and for each other; some find no room."""
    await c.begin()

    def group(name: str, least: int | None, **spec: Any) -> Json:
        policy = {"basic": {}} if least is None else {"gang": {"minCount": least}}
        meta = {"name": name, "namespace": "ns"}
        return {
            "apiVersion": UPSTREAM,
            "kind": "PodGroup",
            "metadata": meta,
            "spec": {"schedulingPolicy": policy, **spec},
        }

    def member(name: str, of: str, cpu: str = "1", seconds: str = "") -> Json:
        return pod(name, cpu, seconds, schedulingGroup={"podGroupName": of})

    await c.make(member("early", "late"), group("pair", 2), member("pair-0", "pair"), priority("high", 100))
    await asyncio.sleep(8)
    await c.make(member("pair-1", "pair", seconds="sleep 6"), group("late", 1), group("single", None))
    await c.make(*(member(f"single-{n}", "single") for n in range(2)))
    await asyncio.sleep(8)
    await c.make(group("large", 4, priorityClassName="high"), *(member(f"large-{n}", "large", "4") for n in range(4)))
    await asyncio.sleep(10)
    theirs = {"type": "Audited", "status": "True", "reason": "Seen", "lastTransitionTime": "2027-01-15T08:00:00Z"}
    known = c.server.get("podgroups.scheduling.k8s.io", "large", "ns").get("status", {}).get("conditions", [])
    status = {"status": {"conditions": [*known, theirs]}}
    await c.change("podgroups.scheduling.k8s.io", "large", status, below="/status")
    await asyncio.sleep(4)
    await c.remove("pods", "large-3")
    await c.remove("pods", "pair-0")
    await c.remove("podgroups.scheduling.k8s.io", "late")
    await asyncio.sleep(10)
