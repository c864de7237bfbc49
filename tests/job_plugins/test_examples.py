"""The examples of `e2e/jobs` on the embedded cluster run as their plugins promise, and nothing is left of them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from stromboli.live.up.up import Setup, Up, objects_in, up
from stromboli.server.kubelet.shapes import nodes_of
from stromboli.server.verbs.writing import Deletion, Options

EXAMPLES = Path(__file__).parents[2] / "e2e/jobs"
JOBS = ("batch.volcano.sh", "v1alpha1", "jobs")
KINDS = {"": ("configmaps", "services", "secrets"), "networking.k8s.io": ("networkpolicies",)}


def objects(cluster: Up) -> dict[str, set[str]]:
    """What stands beside the pods, by the job that owns it."""
    found: dict[str, set[str]] = {}
    for group, plurals in KINDS.items():
        for plural in plurals:
            for body in cluster.serving.api.bodies(group, plural, "default"):
                for owner in body["metadata"].get("ownerReferences", ()):
                    found.setdefault(owner["name"], set()).add(f"{plural} {body['metadata']['name']}")
    return found


def pods(cluster: Up) -> dict[str, Any]:
    return {body["metadata"]["name"]: body for body in cluster.serving.api.bodies("", "pods", "default")}


def expected(job: dict[str, Any]) -> set[str]:
    """The objects of a job, from the plugins that it names and those that these need."""
    name, plugins = job["metadata"]["name"], job["spec"]["plugins"]
    served = {"svc", "tensorflow", "mpi", "pytorch", "ray"} & plugins.keys()
    found = {f"configmaps {name}-svc", f"services {name}"} if served else set()
    is_open = any(flag.startswith("--disable-network-policy") for flag in plugins.get("svc", ()))
    found |= {f"networkpolicies {name}"} if served and not is_open else set()
    found |= {f"secrets {name}-ssh"} if {"ssh", "mpi"} & plugins.keys() else set()
    return found | ({f"services {name}-head-svc"} if "ray" in plugins else set())


def promises(pod: dict[str, Any]) -> set[tuple[str, str]]:
    """The objects that a pod relies on."""
    found = set[tuple[str, str]]()
    for volume in pod["spec"].get("volumes", ()):
        if "configMap" in volume:
            found.add(("configmaps", volume["configMap"]["name"]))
        if "secret" in volume:
            found.add(("secrets", volume["secret"]["secretName"]))
    return found


async def _until(look: Any) -> None:
    async with asyncio.timeout(60):
        while not look():
            await asyncio.sleep(0.05)


def test_all_run_as_promised_and_leave_nothing() -> None:
    jobs = objects_in([EXAMPLES])
    assert len(jobs) == 17

    async def story() -> None:
        setup = Setup(nodes_of(["4x16cpu,64Gi"]), examples=jobs, period=0.1)
        async with up(setup) as cluster:
            await _until(lambda: {row.phase for row in cluster.jobs()} == {"Running"} and len(cluster.jobs()) == 17)
            await _until(lambda: all(row.running == row.wanted for row in cluster.jobs()))
            made = objects(cluster)
            assert made == {job["metadata"]["name"]: found for job in jobs if (found := expected(job))}
            there = {tuple(one.split(" ")) for found in made.values() for one in found}
            for pod in pods(cluster).values():
                assert promises(pod) <= there
            check(pods(cluster))
            api = cluster.serving.api
            resource = api.catalogue.find(*JOBS)
            assert resource is not None
            for job in jobs:
                key = ("default", job["metadata"]["name"])
                api.writer.delete(resource, key, Deletion(propagation="Background"), Options())
            await _until(lambda: not (pods(cluster) or objects(cluster) or cluster.jobs()))

    asyncio.run(story())


def check(found: dict[str, Any]) -> None:
    """Something of each plugin in the pods as they are stored."""

    def env(name: str) -> dict[str, Any]:
        [container] = found[name]["spec"]["containers"]
        return {one["name"]: one.get("value") or one["valueFrom"] for one in container["env"]}

    assert env("env-worker-1") == {"VK_TASK_INDEX": "1", "VC_TASK_INDEX": "1"}
    assert {"VC_WEB_HOSTS", "VC_DATA_BASE_NUM"} <= env("svc-web-0").keys()
    named = found["svc-names-web-1"]["spec"]
    assert (named["hostname"], named["subdomain"]) == ("web", "site")
    assert (found["svc-web-0"]["spec"]["hostname"], found["svc-web-0"]["spec"]["subdomain"]) == ("svc-web-0", "svc")
    assert found["ssh-user-worker-0"]["spec"]["volumes"][-1]["secret"]["defaultMode"] == 0o644
    assert '"type":"evaluator"' in env("tensorflow-chief-judge-0")["TF_CONFIG"]
    assert env("mpi-master-0")["MPI_HOST"] == "mpi-worker-0.mpi,mpi-worker-1.mpi"
    assert env("pytorch-worker-1")["RANK"] == "2"
    [waiter] = found["pytorch-wait-worker-0"]["spec"]["initContainers"]
    assert waiter["name"] == "wait-for-master"
    assert "--port=6379" in found["ray-head-0"]["spec"]["containers"][0]["command"][2]
    assert found["hcclrank-worker-1"]["metadata"]["annotations"]["hccl/rankIndex"] == "2"
    assert found["hcclrank-pytorch-worker-0"]["metadata"]["annotations"]["hccl/rankIndex"] == "1"
    assert {"depends-server-0", "depends-client-0", "depends-client-1"} <= found.keys()
