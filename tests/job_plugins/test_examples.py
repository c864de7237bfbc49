"""The examples of `e2e/jobs` on the embedded cluster run as their plugins promise, and nothing is left of them."""

from __future__ import annotations

import asyncio
from typing import Any

from stromboli.live.up.up import Setup, Up, objects_in, up
from stromboli.server.kubelet.shapes import nodes_of
from stromboli.server.verbs.writing import Deletion, Options
from tests.job_plugins.expected import EXAMPLES, differences, expected

JOBS = ("batch.volcano.sh", "v1alpha1", "jobs")
KINDS = {"": ("configmaps", "services", "secrets"), "networking.k8s.io": ("networkpolicies",)}


def objects(cluster: Up) -> dict[str, set[str]]:
    """The objects besides the pods, by the job that owns them."""
    found: dict[str, set[str]] = {}
    for group, plurals in KINDS.items():
        for plural in plurals:
            for body in cluster.serving.api.bodies(group, plural, "default"):
                for owner in body["metadata"].get("ownerReferences", ()):
                    found.setdefault(owner["name"], set()).add(f"{plural} {body['metadata']['name']}")
    return found


def pods(cluster: Up) -> dict[str, Any]:
    return {body["metadata"]["name"]: body for body in cluster.serving.api.bodies("", "pods", "default")}


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
            there = {tuple(one.split(" ")) for found in made.values() for one in found}
            for pod in pods(cluster).values():
                assert promises(pod) <= there
            assert unlike(cluster) == []
            api = cluster.serving.api
            resource = api.catalogue.find(*JOBS)
            assert resource is not None
            for job in jobs:
                key = ("default", job["metadata"]["name"])
                api.writer.delete(resource, key, Deletion(propagation="Background"), Options())
            await _until(lambda: not (pods(cluster) or objects(cluster) or cluster.jobs()))

    asyncio.run(story())


def unlike(cluster: Up) -> list[str]:
    """Where objects and pods are not as recorded."""
    api, found = cluster.serving.api, list[str]()
    bodies = [body for group, plurals in KINDS.items() for plural in plurals for body in api.bodies(group, plural)]
    for path in sorted(EXAMPLES.glob("*.yaml")):
        own = {f"{body['kind']} {body['metadata']['name']}": body for body in bodies if owner(body) == path.stem}
        members = {name: pod for name, pod in pods(cluster).items() if owner(pod) == path.stem}
        found += differences(expected(path, "default"), own, members)
    return found


def owner(body: dict[str, Any]) -> str:
    """The job that an object belongs to."""
    return next((str(one["name"]) for one in body["metadata"].get("ownerReferences", ())), "")
