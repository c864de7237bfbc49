"""What the pods of a job have written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from stromboli.model.names import JOB_NAME, TASK_SPEC

if TYPE_CHECKING:
    from stromboli.kube.client import Client

MOST_PODS: Final = 50
"""Pods whose logs are shown."""


class Wanted(NamedTuple):
    """Whose logs are wanted: all of the job's tasks where ``task`` is empty; ``tail`` lines of each, all below 0."""

    namespace: str
    job: str
    task: str
    container: str
    tail: int


async def show_logs(client: Client, wanted: Wanted) -> None:
    """Print the logs of the job's pods, pod by pod; one that has none yet says why.  Raises ApiError for no job."""
    from stromboli.kube.client import Select
    from stromboli.kube.resources import PODS, plain
    from stromboli.live.controllers.controlled import JOB

    await client.get(JOB, wanted.job, wanted.namespace)
    labels = f"{JOB_NAME}={wanted.job}" + (f",{TASK_SPEC}={wanted.task}" if wanted.task else "")
    pods = await client.list_all(PODS.read_as(plain), wanted.namespace, Select(labels=labels))
    names = sorted(pod["metadata"]["name"] for pod in pods)
    if not names:
        print("No resources found")
    for name in names[:MOST_PODS]:
        print(f"==> {name} <==")
        print(await _log(client, name, wanted))
    if len(names) > MOST_PODS:
        print(f"... and {len(names) - MOST_PODS} more pods")


async def _log(client: Client, pod: str, wanted: Wanted) -> str:
    from stromboli.errors import ApiError
    from stromboli.kube.resources import PODS

    params = {"container": wanted.container} if wanted.container else {}
    if wanted.tail >= 0:
        params["tailLines"] = str(wanted.tail)
    try:
        answer = await client.request("GET", PODS.path(wanted.namespace, pod, "log"), params=params)
    except ApiError as error:
        return f"({error})"
    return bytes(answer).decode("utf-8", "replace").rstrip("\n")
