"""Stories of jobs: what users make, change and remove of them, and what becomes of them."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.recorded.live.cluster import Cluster, container, job, queue, task
from tests.recorded.live.notes import Json

FLOW = "flow.volcano.sh/v1alpha1"
LOCAL = "kubernetes.io/no-provisioner"


async def lives_of_jobs(c: Cluster) -> None:
    """Jobs run, fail, are restarted, suspended, resumed, scaled and removed when they are over."""
    await c.begin()
    await c.make(queue("team", weight=3, capability={"cpu": "8"}))
    await asyncio.sleep(1)
    retry = [{"event": "PodFailed", "action": "RestartJob"}]
    await c.make(
        job("plain", task("a", 2, "sleep 8"), queue="team", minAvailable=2, ttlSecondsAfterFinished=20),
        job("fails", task("a", 2, "sleep 3; exit 3"), maxRetry=2, policies=retry),
        job("stays", task("a", 2), task("b", 1, "sleep 5"), queue="team", minAvailable=3),
    )
    await asyncio.sleep(12)
    await c.command("AbortJob", "Job", "stays")
    await asyncio.sleep(6)
    await c.command("ResumeJob", "Job", "stays")
    await asyncio.sleep(8)
    scaled = [task("a", 4), task("b", 1, "sleep 5")]
    await c.change("jobs", "stays", {"spec": {"tasks": scaled}})
    await asyncio.sleep(8)
    await c.remove("pods", "stays-a-0")
    await asyncio.sleep(10)
    await c.command("CloseQueue", "Queue", "team")
    await asyncio.sleep(3)
    await c.make(job("late", task("a", 1, "sleep 3"), queue="team"))
    await asyncio.sleep(5)
    await c.remove("jobs", "stays")
    await asyncio.sleep(5)
    await c.command("OpenQueue", "Queue", "team")
    await asyncio.sleep(10)
    await c.command("TerminateJob", "Job", "fails")
    await c.command("AbortJob", "Job", "nobody")
    await asyncio.sleep(20)


async def plugins_of_jobs(c: Cluster) -> None:
    """Job plugins make objects and change pods; what users change or remove of that is put right."""
    await c.begin()
    ports = [{"containerPort": 5000, "name": "tensorflow"}]
    served: Json = {"spec": {"containers": [{**container(), "ports": ports}]}}
    await c.make(
        job(
            "tf",
            task("ps", 1, **served),
            task("worker", 2, **served),
            plugins={"svc": ["--disable-network-policy=false"], "env": [], "tensorflow": ["--port=5001"]},
        ),
        job(
            "mpi",
            task("mpimaster", 1, "sleep 25", policies=[{"event": "TaskCompleted", "action": "CompleteJob"}]),
            task("mpiworker", 2),
            plugins={"ssh": [], "svc": [], "mpi": ["--master=mpimaster", "--worker=mpiworker", "--port=22"]},
        ),
        job("torch", task("master", 1), task("worker", 1), plugins={"pytorch": ["--master=master", "--port=23456"]}),
        job("wrong", task("a", 1), plugins={"unknown": []}),
    )
    await asyncio.sleep(12)
    await c.change("configmaps", "tf-svc", {"data": {"ps.host": "nowhere"}})
    await c.remove("services", "tf")
    await c.remove("secrets", "mpi-ssh")
    await asyncio.sleep(6)
    await c.change("jobs", "tf", {"spec": {"tasks": [task("ps", 1, **served), task("worker", 3, **served)]}})
    await asyncio.sleep(8)
    await c.remove("jobs", "torch")
    await c.make(
        job("ray", task("head", 1), task("worker", 1), plugins={"ray": ["--head=head", "--worker=worker"], "svc": []}),
        job("npu", task("worker", 2), plugins={"hcclrank": [], "env": []}),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "taken", "namespace": "ns"},
            "spec": {"ports": [{"port": 80}]},
        },
        job("taken", task("a", 1, "sleep 4"), plugins={"svc": []}),
    )
    await asyncio.sleep(12)
    await c.remove("services", "taken")
    await asyncio.sleep(8)
    await c.command("RestartJob", "Job", "ray")
    await c.command("AbortJob", "Job", "tf")
    await asyncio.sleep(15)


async def policies_of_jobs(c: Cluster) -> None:
    """Events of pods, tasks and jobs lead to what their policies say, some of it after a while."""
    await c.begin()

    def policy(event: str, action: str, **more: Any) -> Json:
        return {"event": event, "action": action, **more}

    await c.make(
        job("abort", task("a", 2, "sleep 6; exit 1"), policies=[policy("PodFailed", "AbortJob")]),
        job("end", task("a", 1, "sleep 4", policies=[policy("TaskCompleted", "CompleteJob")]), task("b", 1)),
        job("code", task("a", 1, "sleep 5; exit 7"), policies=[{"exitCode": 7, "action": "TerminateJob"}]),
        job(
            "part",
            task("a", 1, "sleep 3; exit 2", policies=[policy("PodFailed", "RestartTask")], maxRetry=2),
            task("b", 1),
            minAvailable=1,
        ),
        job("one", task("a", 2, "sleep 4; exit 2"), policies=[policy("PodFailed", "RestartPod")], maxRetry=3),
        job("slow", task("a", 1, cpu="64"), policies=[policy("PodPending", "TerminateJob", timeout="9s")]),
        job("evicted", task("a", 2), policies=[policy("PodEvicted", "RestartJob", timeout="4s")], maxRetry=5),
    )
    await asyncio.sleep(9)
    await c.remove("pods", "evicted-a-1")
    await asyncio.sleep(4)
    await c.make(
        job("any", task("a", 1, "sleep 3; exit 1"), task("b", 1), policies=[policy("*", "RestartJob")], maxRetry=1),
        job("chain", task("a", 1, "sleep 4"), task("b", 1, "sleep 4", dependsOn={"name": ["a"]}), minAvailable=2),
        job("success", task("a", 3, "sleep 3"), minSuccess=2),
        job("fewer", task("a", 3, "sleep 5; exit 1", minAvailable=1), task("b", 1, "sleep 9"), minAvailable=2),
    )
    await asyncio.sleep(30)
    await c.remove("pods", "evicted-a-0")
    await asyncio.sleep(2)
    await c.command("AbortJob", "Job", "evicted")
    await asyncio.sleep(15)
    await c.command("ResumeJob", "Job", "abort")
    await c.command("CompleteJob", "Job", "part")
    await asyncio.sleep(15)


async def flows_of_jobs(c: Cluster) -> None:
    """JobFlows make jobs from templates, one after the other; some fail, are kept, or are asked whether they are up."""
    await c.begin()

    def template(name: str, seconds: str, **spec: Any) -> Json:
        found = job(name, task("t", 1, seconds), **spec)["spec"]
        return {"apiVersion": FLOW, "kind": "JobTemplate", "metadata": {"name": name, "namespace": "ns"}, "spec": found}

    def flow(name: str, policy: str, *steps: Json) -> Json:
        spec = {"jobRetainPolicy": policy, "flows": list(steps)}
        return {"apiVersion": FLOW, "kind": "JobFlow", "metadata": {"name": name, "namespace": "ns"}, "spec": spec}

    def step(name: str, *targets: str, **probe: Any) -> Json:
        after = {"dependsOn": {"targets": list(targets), **({"probe": probe} if probe else {})}} if targets else {}
        return {"name": name, **after}

    states = [{"taskName": "t", "phase": "Running"}]
    await c.make(
        template("a", "sleep 4"),
        template("b", "sleep 6"),
        template("bad", "sleep 2; exit 1"),
        template("up", ""),
        flow("diamond", "retain", step("a"), step("b", "a"), step("bad2", "a"), step("up", "b")),
        flow(
            "gone",
            "delete",
            step("a"),
            {**step("b", "a"), "patch": {"spec": {"queue": "default", "priorityClassName": ""}}},
        ),
        flow("fails", "retain", step("bad"), step("a", "bad")),
        flow(
            "probed",
            "delete",
            step("up"),
            step("a", "up", taskStatusList=states),
            step("b", "up", httpGetList=[{"taskName": "t", "path": "/ready", "port": 80}]),
            step("bad", "up", tcpSocketList=[{"taskName": "t", "port": 81}]),
        ),
    )
    await asyncio.sleep(20)
    await c.make(template("bad2", "sleep 3"))
    await asyncio.sleep(20)
    await c.remove("jobs", "diamond-b")
    await c.remove("jobflows", "probed")
    await c.change("jobtemplates", "a", {"spec": {"minAvailable": 1, "maxRetry": 1}})
    await asyncio.sleep(15)
    await c.remove("jobtemplates", "b")
    await c.remove("jobflows", "diamond")
    await asyncio.sleep(8)


async def scheduled_jobs(c: Cluster) -> None:
    """CronJobs start jobs each minute, wait for the one before, replace it, are suspended, and keep few that ended."""
    await c.begin()

    def cron(name: str, seconds: str, schedule: str = "* * * * *", **spec: Any) -> Json:
        made: Json = {"metadata": {"labels": {"made": "by-cron"}}, "spec": job(name, task("t", 1, seconds))["spec"]}
        spec = {"schedule": schedule, "jobTemplate": made, **spec}
        meta = {"name": name, "namespace": "ns"}
        return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "metadata": meta, "spec": spec}

    await c.make(
        cron("allow", "sleep 70", concurrencyPolicy="Allow"),
        cron("forbid", "sleep 70", concurrencyPolicy="Forbid", startingDeadlineSeconds=30),
        cron("replace", "sleep 70", concurrencyPolicy="Replace"),
        cron("short", "sleep 5", successfulJobsHistoryLimit=1),
        cron("fails", "sleep 5; exit 1", failedJobsHistoryLimit=1, timeZone="Asia/Tokyo"),
        cron("odd", "sleep 1", "*/7 25 * * *"),
        cron("still", "sleep 1", suspend=True),
    )
    await asyncio.sleep(150)
    await c.change("cronjobs", "still", {"spec": {"suspend": False}})
    await c.change("cronjobs", "allow", {"spec": {"suspend": True}})
    await c.remove("cronjobs", "replace")
    await asyncio.sleep(70)
    await c.change("cronjobs", "short", {"spec": {"schedule": "0 0 1 1 *", "successfulJobsHistoryLimit": 0}})
    await asyncio.sleep(60)
