"""Jobs for tests of job plugins, and what plugins make of them."""

from __future__ import annotations

from typing import Any

from stromboli.api.batch import Job
from stromboli.api.read import read
from stromboli.job_plugins.edits import apply, copied
from stromboli.job_plugins.hosts import pod_name
from stromboli.job_plugins.plugin import JobPlugin, Place
from stromboli.job_plugins.registry import JobPlugins

Json = dict[str, Any]


def task(name: str, replicas: int = 1, *, init: bool = True, metadata: Json | None = None, **spec: Any) -> Json:
    """A task whose pods have one container, ``main``, and an init container unless told otherwise."""
    containers: Json = {"containers": [{"name": "main", "image": "x"}]}
    if init:
        containers["initContainers"] = [{"name": "init", "image": "y"}]
    return {
        "name": name,
        "replicas": replicas,
        "template": {"metadata": metadata or {}, "spec": {**containers, **spec}},
    }


def job(*tasks: Json, name: str = "j", **spec: Any) -> Job:
    """A job in namespace ``ns``."""
    metadata = {"name": name, "namespace": "ns", "uid": "u"}
    return read(Job, {"metadata": metadata, "spec": {"tasks": list(tasks), **spec}})


def plugins_of(found: Job) -> list[JobPlugin]:
    """The plugins that a job names."""
    return [kind(found, arguments) for kind, arguments in JobPlugins().chosen(found.spec.plugins)]


def pod_of(found: Job, name: str, index: int = 0) -> Json:
    """Annotations and spec of a pod of the task ``name`` after all plugins of its job."""
    [one] = [one for one in found.spec.tasks if one.name == name]
    template: Any = one.template
    metadata = {**template.get("metadata", {}), "name": pod_name(found.metadata.name, name, index)}
    pod = copied({"metadata": metadata, "spec": template["spec"]})
    for plugin in plugins_of(found):
        apply(pod, plugin.pod(pod, Place(one, index)))
    return {"annotations": pod["metadata"].get("annotations", {}), **pod["spec"]}


def objects_of(found: Job) -> dict[str, Json]:
    """What the plugins of a job want, by kind and name."""
    owner = {"uid": "u"}
    wanted = [one for plugin in plugins_of(found) for one in plugin.objects()]
    made = {f"{one.sort.kind} {one.name}": one.manifest("ns", owner, {}) for one in wanted}
    return {
        name: {one: value[one] for one in ("apiVersion", "data", "spec") if one in value}
        for name, value in made.items()
    }
