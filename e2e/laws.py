"""What must hold at every moment of every story, checked against everything that a watch tells about pods."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict

from e2e.clusters import Api, Json, Refused
from e2e.real import UNREACHABLE
from stromboli.model.resources.quantity import milli

PODS = "/api/v1/pods"
TURN = 5
"""Seconds that one watch is asked for: the next one goes on where it ended, so nothing is missed."""

_COUNTED = ("cpu", "memory", "nvidia.com/gpu")
_OVER = frozenset({"Succeeded", "Failed"})


class Recorder:
    """Follows all pods and collects what broke a law: a pod on two nodes, a node that holds more than it has."""

    def __init__(self, api: Api) -> None:
        self.broken: list[str] = []
        self.placed: dict[str, str] = {}
        """The node of every pod that ever had one, by uid."""
        self._api = api
        self._pods: dict[str, Json] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._room = _rooms(api)

    def start(self) -> None:
        """Follow until :meth:`stop`."""
        self._thread.start()

    def stop(self) -> None:
        """No more events count."""
        self._stopped.set()

    def _follow(self) -> None:
        version = ""
        while not self._stopped.is_set():
            try:
                version = version or self._listed()
                version = self._watched(version)
            except (*UNREACHABLE, Refused, json.JSONDecodeError):
                version = ""
                time.sleep(0.2)

    def _listed(self) -> str:
        """See everything there is; the version to watch from."""
        found = self._api.call("GET", PODS)
        self._pods = {}
        for pod in found["items"]:
            self._see("ADDED", pod)
        version: str = found["metadata"]["resourceVersion"]
        return version

    def _watched(self, version: str) -> str:
        """See what happens after ``version`` for some seconds; the version to go on from, empty where there is none."""
        path = f"{PODS}?watch=true&timeoutSeconds={TURN}&resourceVersion={version}"
        with self._api.open("GET", path, seconds=3.0 * TURN) as events:
            for line in events:
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return ""
                version = event["object"]["metadata"]["resourceVersion"]
                self._see(event["type"], event["object"])
                if self._stopped.is_set():
                    break
        return version

    def _see(self, kind: str, pod: Json) -> None:
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName", "")
        if node and self.placed.setdefault(uid, node) != node:
            self.broken.append(f"{_name(pod)} moved from {self.placed[uid]} to {node}")
        if kind == "DELETED" or pod.get("status", {}).get("phase") in _OVER:
            self._pods.pop(uid, None)
            return
        self._pods[uid] = pod
        here = [_requests(other) for other in self._pods.values() if node and other["spec"].get("nodeName") == node]
        for resource in _COUNTED if node else ():
            used, room = sum(request[resource] for request in here), self._room[node][resource]
            if used > room:
                self.broken.append(f"{node} holds {used}m of {room}m {resource} with {_name(pod)}")


def _rooms(api: Api) -> dict[str, dict[str, int]]:
    """Thousandths of what each node has of each resource."""
    nodes = api.call("GET", "/api/v1/nodes")["items"]
    found: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(_COUNTED, 0))
    return found | {node["metadata"]["name"]: _amounts(node["status"]["allocatable"]) for node in nodes}


def _requests(pod: Json) -> dict[str, int]:
    asked = [_amounts(container.get("resources", {}).get("requests", {})) for container in pod["spec"]["containers"]]
    return {resource: sum(one[resource] for one in asked) for resource in _COUNTED}


def _amounts(listed: Json) -> dict[str, int]:
    return {resource: milli(listed.get(resource, "0")) for resource in _COUNTED}


def _name(pod: Json) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
