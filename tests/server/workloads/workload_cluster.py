"""An embedded server with the controllers of workloads, for tests that play scheduler and kubelets."""

from __future__ import annotations

import asyncio
from itertools import takewhile
from typing import Any

from stromboli.server.controllers.workloads.room import Workloads
from tests.server.browser import MERGE, Browser

APPS = "/apis/apps/v1/namespaces/default"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
POD_NAMES = ("", "pods")
READY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
LOOP: list[asyncio.Runner] = []
"""The event loop that a module's clusters share, as one made for each test costs more than the test."""


class Cluster:
    """A server with the controllers, and a test that plays scheduler and kubelets."""

    def __init__(self, nodes: int = 0) -> None:
        self.browser = Browser()
        self.browser.runner = LOOP[0]
        self.api = self.browser.api
        self.room = Workloads(self.api)
        for number in range(nodes):
            self.browser("POST", "/api/v1/nodes", {"metadata": {"name": f"n{number}"}})

    def make(self, url: str, name: str, image: str = "one", **spec: Any) -> Any:
        container = {"name": "c", "image": image}
        template: Any = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
        if url == JOBS:
            template["spec"]["restartPolicy"] = "Never"
        else:
            spec["selector"] = {"matchLabels": {"app": name}}
        answer = self.browser("POST", url, {"metadata": {"name": name}, "spec": {"template": template, **spec}})
        assert answer.code == 201, answer.body
        self.settle()
        return answer.body

    def patch(self, url: str, body: Any) -> None:
        answer = self.browser("PATCH", url, body, MERGE)
        assert answer.code == 200, answer.body
        self.settle()

    def settle(self) -> None:
        """Run the controllers until nothing is left for them to do."""
        before = -1
        while before != self.api.store.version:
            before = self.api.store.version
            assert sum(1 for _ in takewhile(bool, (self.room.look() for _ in range(1000)))) < 1000
            self.browser.settle()

    @property
    def pods(self) -> dict[str, Any]:
        return {key[1]: entry.body for key, entry in self.api.store.of(POD_NAMES).entries.items()}

    def step(self, **status: Any) -> bool:
        """Kubelets let go what was deleted and start the rest; whether there was anything to do."""
        done = False
        for name, pod in self.pods.items():
            if "deletionTimestamp" in pod["metadata"]:
                self.api.store.drop(POD_NAMES, ("default", name))
                done = True
            elif pod["status"].get("phase") == "Pending":
                placed = {**pod, "spec": {**pod["spec"], "nodeName": "n0"}, "status": {**READY, **status}}
                self.api.store.put(POD_NAMES, placed)
                done = True
        self.settle()
        return done

    def run(self) -> None:
        """Until nothing is left to do."""
        for _ in range(200):
            if not self.step():
                return
        raise AssertionError("it comes to no end")

    def end(self, name: str, phase: str) -> None:
        self.api.store.put(POD_NAMES, {**self.pods[name], "status": {"phase": phase}})
        self.settle()

    def wait(self, seconds: float) -> None:
        """So much time passes."""
        self.browser.now += seconds
        self.settle()

    def get(self, url: str) -> Any:
        return self.browser("GET", url).body

    def images(self) -> list[str]:
        return sorted(pod["spec"]["containers"][0]["image"] for pod in self.pods.values())
