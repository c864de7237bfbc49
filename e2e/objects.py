"""Manifests of stories."""

from __future__ import annotations

from typing import Any

from e2e.clusters import Json


def pod_spec(cpu: str, command: str) -> Json:
    """A pod that runs as long as ``command`` says; simulated kubelets understand sleep and exit."""
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sh", "-c", command],
        "resources": {"requests": {"cpu": cpu, "memory": "100Mi"}},
    }
    return {"restartPolicy": "Never", "containers": [container], "terminationGracePeriodSeconds": 0}


def job(
    space: str, name: str, replicas: int, cpu: str = "1", command: str = "serve", least: int | None = None, **spec: Any
) -> Json:
    """A job of one task; all of its pods are needed unless ``least`` says how many."""
    needed = replicas if least is None else least
    task = {"name": "worker", "replicas": replicas, "template": {"spec": pod_spec(cpu, command)}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": space},
        "spec": {"schedulerName": "volcano", "minAvailable": needed, "tasks": [task], **spec},
    }


def plain_pod(space: str, name: str, cpu: str = "1", owner: Json | None = None) -> Json:
    """A pod without a job; of ``owner``, as its controller would make it."""
    metadata: Json = {"name": name, "namespace": space}
    if owner is not None:
        reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
        metadata["ownerReferences"] = [
            {**reference, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]},
        ]
    spec = {**pod_spec(cpu, "serve"), "schedulerName": "volcano", "restartPolicy": "Always"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def namespace(name: str) -> Json:
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def priority_class(name: str, value: int) -> Json:
    """A priority class."""
    body = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**body, "metadata": {"name": name}, "value": value}


def cron_job(space: str, name: str, schedule: str, **of_job: Any) -> Json:
    """A CronJob that makes jobs of one pod."""
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": space},
        "spec": {"schedule": schedule, "jobTemplate": {"spec": job(space, name, 1, **of_job)["spec"]}},
    }


def job_template(space: str, name: str, **of_job: Any) -> Json:
    """A JobTemplate of one pod."""
    metadata = {"name": name, "namespace": space}
    spec = job(space, name, 1, **of_job)["spec"]
    return {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobTemplate", "metadata": metadata, "spec": spec}


def job_flow(space: str, name: str, steps: dict[str, list[str]]) -> Json:
    """A JobFlow whose jobs wait for others by name, and go when all have succeeded."""
    flows = [{"name": step, **({"dependsOn": {"targets": needs}} if needs else {})} for step, needs in steps.items()]
    metadata = {"name": name, "namespace": space}
    spec = {"flows": flows, "jobRetainPolicy": "delete"}
    return {"apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobFlow", "metadata": metadata, "spec": spec}
