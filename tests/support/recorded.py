"""Recorded integrations: what an operator writes, step by step, played on a server in memory with our programs.

A recording is a YAML file: a head (``project``, ``version``, ``objects``, ``shows``, perhaps ``plugins`` beyond the
usual ones, and ``servers`` where not both kinds have the objects) and a list of steps.  ``create``, ``patch`` and
``delete`` are requests as the operator sends them; owner references get the uids that the server gave.
``pod`` makes a pod out of a few fields.  ``check`` waits a while and compares.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any, Final

import yaml

from stromboli.cluster.body import merge_patched, with_meta
from stromboli.kube.client import Client
from stromboli.live.controllers.controller_runner import Controllers
from stromboli.server.schema.resources import Resource
from stromboli.server.verbs.writing import Deletion, Options
from tests.support.live_world import Json, LiveWorld
from tools.integrations import RECORDED, SERVERS

WAIT: Final = 5.0
"""Seconds, by the clock of the test, after which a step has had its effect."""


def recordings(server: str) -> list[Path]:
    """The recordings that are played on a kind of server."""
    return [path for path in sorted(RECORDED.glob("*.yaml")) if server in read(path)[0].get("servers", SERVERS)]


def read(path: Path) -> tuple[Json, list[Json]]:
    """Head and steps of a recording."""
    head, steps = yaml.load_all(path.read_text(encoding="utf-8"), yaml.CSafeLoader)
    return head, steps


class Stage:
    """A cluster of four nodes with scheduler, controllers and kubelets, and a hand that plays the operator."""

    def __init__(self, conf: str = "") -> None:
        self.world = LiveWorld(on="embedded")
        self.api = self.world.server.api
        for number in range(4):
            self.world.server.put(
                "nodes", merge_patched(self.world.server.get("nodes", f"n{number}"),
                                       {"metadata": {"labels": {"kubernetes.io/hostname": f"n{number}"}}})
            )  # fmt: skip
        self.scheduler = self.world.scheduler(conf)

    async def play(self, steps: list[Json]) -> None:
        """Play all steps."""
        client = Client(self.world.server, dice=random.Random(5), agent="stromboli-controllers")
        controllers = Controllers(client, observer=self.world.told, clock=self.world.clock)
        self.world.tasks += [asyncio.create_task(controllers.run()), asyncio.create_task(self._kubelets())]
        self.world.start(self.scheduler)
        await asyncio.sleep(5)
        try:
            for step in steps:
                ((verb, given),) = step.items()
                await getattr(self, f"_{verb}")(given)
        finally:
            await self.world.end()

    async def _kubelets(self) -> None:
        """Evicted pods end."""
        while True:
            await asyncio.sleep(0.5)
            for pod in self.world.server.all("pods"):
                if "deletionTimestamp" in pod["metadata"]:
                    self.world.server.drop("pods", pod["metadata"]["name"], "ns")

    # ------------------------------------------------------------------ the operator

    async def _create(self, body: Json) -> None:
        resource = self._served(body)
        if body.pop("unchecked", False):  # stored before our admission was there
            self.api.store.put(resource.collection, with_meta(body, uid="u", creationTimestamp="2026-01-01T00:00:00Z"))
            return
        metadata = {**body["metadata"], "ownerReferences": [self._found(one) for one in _owners(body)]}
        created = {**body, "metadata": metadata}
        self.api.writer.create(resource, body["metadata"].get("namespace", ""), created, Options())
        await asyncio.sleep(0.1)

    async def _pod(self, given: Json) -> None:
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": str(given["cpu"]), "memory": "1Gi"}}}
        notes = {"scheduling.k8s.io/group-name": given.get("group"), "volcano.sh/task-spec": given.get("task")}
        metadata = {
            "name": given["name"],
            "namespace": "ns",
            "labels": given.get("labels", {}),
            "annotations": {key: text for key, text in notes.items() if text},
            "ownerReferences": [{**given["owner"], "controller": True}] if "owner" in given else [],
        }
        spec: Json = {"schedulerName": "volcano", "containers": [container], "nodeSelector": given.get("selector", {})}
        spec["schedulingGates"] = [{"name": name} for name in given.get("gates", ())]
        spec |= {"schedulingGroup": {"podGroupName": given["upstream"]}} if "upstream" in given else {}
        spec["resourceClaims"] = given.get("claims", [])
        await self._create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    async def _patch(self, given: Json) -> None:
        resource = self._served(given)
        key = ("ns" if resource.namespaced else "", given["name"])
        self.api.writer.patch(resource, key, lambda old: merge_patched(old, given["by"]), "", Options())
        await asyncio.sleep(0.1)

    async def _delete(self, given: Json) -> None:
        resource = self._served(given)
        key = ("ns" if resource.namespaced else "", given["name"])
        self.api.writer.delete(resource, key, Deletion(propagation="Background"), Options())
        await asyncio.sleep(0.1)

    def _served(self, body: Json) -> Resource:
        """The kind; one that an operator brings is defined when it is first met."""
        found: Resource | None = self.api.catalogue.of_kind(body["apiVersion"], body["kind"])
        if found is None:
            definitions = self.api.catalogue.stored()["apiextensions.k8s.io", "customresourcedefinitions"]
            self.api.writer.create(definitions, "", definition(body["apiVersion"], body["kind"]), Options())
            found = self.api.catalogue.of_kind(body["apiVersion"], body["kind"])
        assert found is not None, body
        return found

    def _found(self, owner: Json) -> Json:
        """An owner reference with the uid of the object that it means."""
        resource = self._served(owner)
        entry = self.api.store.get(resource.collection, ("ns", owner["name"]))
        assert entry is not None, owner
        return {**owner, "uid": entry.body["metadata"]["uid"]}

    # ------------------------------------------------------------------ what holds

    async def _check(self, wanted: Json) -> None:
        late = any(text.startswith(("there is no", "queue")) for text in wanted.get("told", {}).values())
        await asyncio.sleep(4 * WAIT if late else WAIT)
        pods = self.world.pods()
        waiting = sorted(name for name, node in pods.items() if not node)
        if "waiting" in wanted:
            assert waiting == wanted["waiting"]
        if "running" in wanted:
            running = sorted(name for name, node in pods.items() if node)
            assert (running, waiting) == (wanted["running"], wanted.get("waiting", []))
        assert {name: pods[name] for name in wanted.get("nodes", {})} == wanted.get("nodes", {})
        assert len({pods[name] for name in wanted.get("alike", ())}) <= 1
        for name, group in wanted.get("group", {}).items():
            self._check_group(name, group)
        for name, text in wanted.get("told", {}).items():
            assert any(text in one for one in self._told(name)), (name, self._told(name))
        for name, users in wanted.get("reserved", {}).items():
            claim = self.world.server.get("resourceclaims", name, "ns")
            assert sorted(f"{one['resource']}/{one['name']}" for one in claim["status"]["reservedFor"]) == users
        if wanted.get("nothing"):
            assert (pods, self.world.server.all("podgroups")) == ({}, [])

    def _check_group(self, name: str, wanted: Json) -> None:
        job = self.scheduler.state.jobs[f"ns/{name}"]
        shown: Json = {"queue": job.queue, "priority": job.priority}
        if "phase" in wanted:
            shown["phase"] = self.world.server.get("podgroups", name, "ns")["status"]["phase"]
        assert {key: shown[key] for key in wanted} == wanted

    def _told(self, name: str) -> list[str]:
        """What events and conditions say of an object."""
        events = [one for one in self.world.server.all("events") if one["involvedObject"]["name"] == name]
        kinds = ("pods", "podgroups", "podgroups.scheduling.k8s.io")
        objects = [one for kind in kinds for one in self.world.server.all(kind)]
        statuses = [one.get("status", {}) for one in objects if one["metadata"]["name"] == name]
        conditions = [one for status in statuses for one in status.get("conditions", ())]
        return [one["message"] for one in (*events, *conditions) if one.get("message")]


def _owners(body: Json) -> list[Json]:
    return list(body["metadata"].get("ownerReferences", ()))


def definition(api_version: str, kind: str) -> dict[str, Any]:
    """A definition that takes whatever an operator writes."""
    group, _, version = api_version.partition("/")
    plural = f"{kind.lower()}s"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    row = {"name": version, "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    names = {"plural": plural, "kind": kind}
    metadata = {"name": f"{plural}.{group}", "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [row]}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": spec,
    }
