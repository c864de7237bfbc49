"""Simulated kubelets on a real kube-apiserver: nodes that it takes for ready, pods that run and end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from e2e.real import RealServer
from e2e.stage import PATIENCE
from stromboli.cluster.body import Body
from stromboli.errors import ApiFailure
from stromboli.kube.access import from_kubeconfig
from stromboli.kube.client import Client
from stromboli.live.up.kubelets import Reached
from stromboli.server.kubelet.kubelets import Kubelets
from stromboli.server.kubelet.shapes import nodes_of

SPACE = "simulated"
ONE = "metadata.name=simulated-1"
PODS = f"/api/v1/namespaces/{SPACE}/pods"


def _pod(name: str, command: list[str]) -> Body:
    container = {"name": "main", "image": "busybox", "command": command}
    spec = {"containers": [container], "restartPolicy": "Never", "schedulerName": "none"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def _until(remote: Reached, path: str, test: Callable[[Body], bool]) -> Body:
    async with asyncio.timeout(PATIENCE):
        while True:
            body = await remote.call("GET", path)
            if test(body):
                return body
            await asyncio.sleep(0.1)


async def _run_and_end(remote: Reached) -> None:
    for name, command in (("good", ["sleep", "1"]), ("bad", ["sh", "-c", "exit 3"]), ("stays", ["serve"])):
        await remote.call("POST", PODS, _pod(name, command))
        target = {"apiVersion": "v1", "kind": "Node", "name": "simulated-1"}
        await remote.call("POST", f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": target})
    good = await _until(remote, f"{PODS}/good", lambda pod: pod["status"]["phase"] == "Succeeded")
    bad = await _until(remote, f"{PODS}/bad", lambda pod: pod["status"]["phase"] == "Failed")
    codes = [pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for pod in (good, bad)]
    assert codes == [0, 3]
    await _until(remote, f"{PODS}/stays", lambda pod: pod["status"]["phase"] == "Running")
    await remote.call("DELETE", f"{PODS}/stays", {})
    await _until(remote, PODS, lambda pods: len(pods["items"]) == 2)


async def _story(server: RealServer) -> None:
    (node,) = nodes_of(["4cpu,8Gi"])
    node["metadata"]["name"] = "simulated-1"
    async with Client.reaching(from_kubeconfig([str(server.kubeconfig)])) as client:
        remote = Reached(client)
        await remote.call("POST", "/api/v1/namespaces", {"metadata": {"name": SPACE}})
        with suppress(ApiFailure):
            await remote.call("POST", "/api/v1/namespaces", {"metadata": {"name": "kube-node-lease"}})
        running = asyncio.ensure_future(Kubelets(remote, [node]).run())
        try:
            nodes = await _until(remote, f"/api/v1/nodes?fieldSelector={ONE}", lambda nodes: bool(nodes["items"]))
            assert nodes["items"][0]["status"]["conditions"][-1]["status"] == "True"
            await _run_and_end(remote)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            await remote.call("DELETE", "/api/v1/nodes/simulated-1", {})


def test_pods_run_and_end_on_a_real_server(kube_apiserver: RealServer) -> None:
    asyncio.run(_story(kube_apiserver))
