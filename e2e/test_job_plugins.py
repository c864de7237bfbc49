"""The examples of `e2e/jobs` on each kind of server: all run, their objects stand beside them and go with them."""

from __future__ import annotations

from pathlib import Path

from e2e.clusters import Json
from e2e.stage import Stage, until
from stromboli.cluster.files.documents import whole_objects

EXAMPLES = sorted((Path(__file__).parent / "jobs").glob("*.yaml"))
PATHS = (
    "/api/v1/namespaces/{}/services", "/api/v1/namespaces/{}/secrets", "/api/v1/namespaces/{}/configmaps",
    "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
)  # fmt: skip
OBJECTS = 15 + 15 + 2 + 13 + 4
"""ConfigMaps, Services, those of heads, NetworkPolicies, Secrets."""


def _owned(stage: Stage, space: str) -> list[str]:
    """Names of the objects that belong to jobs."""
    found = [one for path in PATHS for one in stage.items(path.format(space))]
    owned = [one["metadata"] for one in found if one["metadata"].get("ownerReferences")]
    return sorted(f"{metadata['name']}" for metadata in owned)


def _abort(space: str, name: str) -> Json:
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": name, "uid": ""}
    metadata = {"name": f"abort-{name}", "namespace": space}
    command = {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": metadata}
    return {**command, "action": "AbortJob", "target": target}


def test_jobs_with_plugins_run_and_take_along_what_was_made(stage: Stage, space: str) -> None:
    jobs = [body for path in EXAMPLES for body in whole_objects(path)]
    with stage.scheduler():
        for body in jobs:
            stage.create({**body, "metadata": {**body["metadata"], "namespace": space}})
        for body in jobs:
            stage.until_phase(space, body["metadata"]["name"], "Running")
        assert len(_owned(stage, space)) == OBJECTS
        for body in jobs:
            stage.create(_abort(space, body["metadata"]["name"]))
        until(lambda: not _owned(stage, space), "nothing is left of what plugins made")
