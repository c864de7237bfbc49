"""The examples of `e2e/jobs` on each kind of server: all are as recorded, run to their end, and leave nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from e2e.clusters import Json
from e2e.stage import Stage, until
from stromboli.cluster.files.documents import whole_objects
from tests.job_plugins.expected import EXAMPLES, KINDS, differences, expected

RUN_FOR: Final = {"simulation.stromboli.dev/run-for": "20s"}
"""What ends the simulated pods, whatever command a plugin gives them."""


def _objects(stage: Stage, space: str) -> Iterator[Json]:
    """The objects besides the pods that belong to jobs."""
    for kind, path in KINDS.items():
        yield from ({"kind": kind, **one} for one in stage.items(path.format(space)) if _owner(one))


def _owner(body: Json) -> str:
    return next((str(one["name"]) for one in body["metadata"].get("ownerReferences") or ()), "")


def _of_job(stage: Stage, space: str, job: str) -> dict[str, Json]:
    return {f"{one['kind']} {one['metadata']['name']}": one for one in _objects(stage, space) if _owner(one) == job}


def _ending(body: Json, space: str) -> Json:
    """A job whose pods end by themselves."""
    template = {"metadata": {"annotations": RUN_FOR}}
    tasks = [{**task, "template": {**template, **task["template"]}} for task in body["spec"]["tasks"]]
    return {**body, "metadata": {**body["metadata"], "namespace": space}, "spec": {**body["spec"], "tasks": tasks}}


def _compare(stage: Stage, space: str, job: str, wanted: Json) -> None:
    until(lambda: len(stage.pods(space, job)) == len(wanted["pods"]), f"{job} has all pods")
    pods = {pod["metadata"]["name"]: pod for pod in stage.pods(space, job)}
    assert differences(wanted, _of_job(stage, space, job), pods) == []


def test_jobs_with_plugins_are_as_recorded_and_run_to_their_end(stage: Stage, space: str) -> None:
    names = []
    with stage.scheduler():
        for path in sorted(EXAMPLES.glob("*.yaml")):
            [body] = whole_objects(path)
            stage.create(_ending(body, space))
            names.append(body["metadata"]["name"])
            stage.until_phase(space, names[-1], "Running")
            _compare(stage, space, names[-1], expected(path, space))
        for name in names:
            stage.until_phase(space, name, "Completed")
        until(lambda: not list(_objects(stage, space)), "nothing is left of what plugins made")
