"""A stand-in for what a cluster does with Deployments: pods as they are asked for, run from the unpacked image.

It makes pods of the Deployments of one namespace by their strategies, as the API server here has no controllers, runs
them as processes, probes them, and writes what came of it into their statuses.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from e2e.clusters import Api, Login, Refused, Server
from e2e.image.pods import Access, PodProcess
from e2e.image.services import Reach, Services
from e2e.real import UNREACHABLE

Json = dict[str, Any]
HASH: Final = "pod-template-hash"
_EVERY: Final = 0.5
_PATCH: Final = "application/merge-patch+json"


class Deployments:
    """Runs the Deployments of ``namespace``; logs lie in ``folder``."""

    def __init__(self, server: Server, namespace: str, image: Path, folder: Path) -> None:
        self._server, self._namespace, self._image, self._folder = server, namespace, image, folder
        self._api = Api(Login.of(server.kubeconfig))
        self._ready: frozenset[str] = frozenset()
        self._sets: dict[str, int] = {}
        self._services = Services(self._reached)
        self._stop = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.running: dict[str, PodProcess] = {}
        """The pods by their names."""
        self.ended: dict[str, int] = {}
        """Exit codes of pods that are gone."""
        self.most: dict[str, int] = {}
        """How many pods of each Deployment have run at once."""

    def __enter__(self) -> Deployments:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        """End, and every pod with it.  Raises what ended the thread before, if nothing else is raised already."""
        self._stop.set()
        self._thread.join()
        for name in list(self.running):
            self._end(name)
        self._services.close()
        if self._error is not None and error is None:
            raise self._error
        if self._error is not None and error is not None:
            error.add_note(f"the stand-in for the cluster had ended with {self._error!r}")

    def _run(self) -> None:
        try:
            while not self._stop.wait(_EVERY):
                with suppress(*UNREACHABLE, Refused):
                    self._look()
        except Exception as error:  # noqa: BLE001  # it is raised where the pods are ended
            self._error = error

    def _look(self) -> None:
        for deployment in self._items("apis/apps/v1", "deployments"):
            self._tend(deployment)
        for service in self._items("api/v1", "services"):
            self._services.tend(service)

    def _reached(self, labels: Mapping[str, str], port: str) -> list[Reach]:
        """Ways to the pods of a Service that were ready at the last look."""
        ready = [one for name, one in list(self.running.items()) if name in self._ready]
        return [partial(one.connect, port) for one in ready if labels.items() <= one.body["metadata"]["labels"].items()]

    def _items(self, api: str, plural: str) -> list[Json]:
        found: list[Json] = self._api.call("GET", f"/{api}/namespaces/{self._namespace}/{plural}")["items"]
        return found

    # ------------------------------------------------------------------------------------------------ deployments

    def _tend(self, deployment: Json) -> None:
        """One step towards what a Deployment asks for."""
        name, spec = deployment["metadata"]["name"], deployment["spec"]
        wanted = hashlib.sha256(json.dumps(spec["template"], sort_keys=True).encode()).hexdigest()[:10]
        mine = {pod: one for pod, one in self.running.items() if pod.startswith(f"{name}-")}
        old = [pod for pod in mine if not pod.startswith(f"{name}-{wanted}-")]
        for one in mine.values():
            one.refresh(self._contents(spec["template"]["spec"]))
        if spec["strategy"]["type"] == "Recreate" and old:
            for pod in old:
                self._end(pod)
        names = [f"{name}-{wanted}-{number}" for number in range(spec["replicas"])]
        for pod in names:
            if pod not in self.running:
                self._start(pod, spec["template"])
        self.most[name] = max(self.most.get(name, 0), sum(pod.startswith(f"{name}-") for pod in self.running))
        ready = [pod for pod in names if self.running[pod].ready()]
        self._ready = (self._ready - mine.keys()) | {*ready, *(pod for pod in old if pod in self.running)}
        if len(ready) == len(names):
            for pod in [*old, *(pod for pod in mine if pod not in names)]:
                if pod in self.running:
                    self._end(pod)
        self._tell_of_set(deployment, wanted, len(ready))
        self._tell(deployment, len(names), len(ready))

    def _tell_of_set(self, deployment: Json, wanted: str, ready: int) -> None:
        """The ReplicaSet by which Helm knows how many pods of the newest template are ready."""
        about, spec = deployment["metadata"], deployment["spec"]
        path, name = f"/apis/apps/v1/namespaces/{self._namespace}/replicasets", f"{about['name']}-{wanted}"
        labels = {**spec["template"]["metadata"]["labels"], HASH: wanted}
        owner = {"apiVersion": "apps/v1", "kind": "Deployment", "controller": True}
        if name not in self._sets:
            made = {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {
                    "name": name, "labels": labels,
                    "ownerReferences": [{**owner, "name": about["name"], "uid": about["uid"]}],
                },
                "spec": {
                    "replicas": spec["replicas"],
                    "selector": {"matchLabels": {**spec["selector"]["matchLabels"], HASH: wanted}},
                    "template": {**spec["template"], "metadata": {**spec["template"]["metadata"], "labels": labels}},
                },
            }  # fmt: skip
            self._api.call("POST", path, made)
            self._sets[name] = -1
        if self._sets[name] != ready:
            count = {"replicas": spec["replicas"], "readyReplicas": ready, "availableReplicas": ready}
            status = {**count, "observedGeneration": 1}
            self._api.call("PATCH", f"{path}/{name}/status", {"status": status}, _PATCH)
            self._sets[name] = ready

    def _tell(self, deployment: Json, count: int, ready: int) -> None:
        status = {
            "observedGeneration": deployment["metadata"]["generation"], "replicas": count, "updatedReplicas": count,
            "readyReplicas": ready, "availableReplicas": ready, "unavailableReplicas": count - ready or None,
        }  # fmt: skip
        path = f"/apis/apps/v1/namespaces/{self._namespace}/deployments/{deployment['metadata']['name']}/status"
        if any((deployment.get("status") or {}).get(key) != value for key, value in status.items()):
            self._api.call("PATCH", path, {"status": status}, _PATCH)

    # ------------------------------------------------------------------------------------------------------- pods

    def _start(self, name: str, template: Json) -> None:
        pod = {**template, "metadata": {**template["metadata"], "name": name, "namespace": self._namespace}}
        login = Login.of(self._server.kubeconfig)
        token = self._server.account(self._namespace, template["spec"]["serviceAccountName"]) or login.token
        access = Access(int(login.url.rpartition(":")[2]), login.authority, token, self._namespace)
        folder = self._folder / f"{name}-{len(self.ended)}"
        self.running[name] = PodProcess(pod, self._image, folder, access, self._contents(template["spec"]))
        self.running[name].start()

    def _end(self, name: str) -> None:
        self._ready -= {name}
        self.ended[name] = self.running.pop(name).end()

    def _contents(self, spec: Json) -> Mapping[str, Mapping[str, str]]:
        return dict(self._volumes(spec))

    def _volumes(self, spec: Json) -> Iterator[tuple[str, Mapping[str, str]]]:
        for volume in spec.get("volumes") or ():
            if "configMap" in volume:
                path = f"/api/v1/namespaces/{self._namespace}/configmaps/{volume['configMap']['name']}"
                yield volume["name"], self._api.call("GET", path).get("data") or {}

    def logs(self, look: Callable[[str], bool] = lambda _: True) -> dict[str, str]:
        """What the pods have written so far, by their folders' names."""
        found = {folder.name: (folder / "log").read_text(errors="replace") for folder in sorted(self._folder.iterdir())}
        return {name: text for name, text in found.items() if look(name)}
