"""``stromboli pod list``: the pods of jobs, or of a queue."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stromboli.cli.vcctl.columns import NOTHING, Column, age, table
from stromboli.cli.vcctl.connection import AllNamespaces, Kubeconfig, Master, Namespace, failed, talk
from stromboli.model.names import JOB_NAME, JOB_QUEUE_NAME, QUEUE_NAME

if TYPE_CHECKING:
    from stromboli.kube.client import Client

app = typer.Typer(name="pod", help="Pods of jobs: list.", no_args_is_help=True)

Pod = dict[str, Any]
COLUMNS = tuple(Column(title, spare=8) for title in ("Name", "Ready", "Status", "Restart", "Age"))


@app.callback()
def pods() -> None:
    """Pods of jobs."""


@app.command("list")
def list_pods(
    namespace: Namespace = "default",
    all_namespaces: AllNamespaces = False,
    queue: Annotated[str, typer.Option("--queue", "-q", help="Only pods of this queue, plain ones too.")] = "",
    job: Annotated[str, typer.Option("--job", "-j", help="Only pods of this job.")] = "",
    kubeconfig: Kubeconfig = "",
    master: Master = "",
) -> None:
    """List pods, a line each."""
    what = "pod list"

    async def story(client: Client) -> list[Pod]:
        from stromboli.kube.resources import PODS, plain

        return await client.list_all(PODS.read_as(plain), "" if all_namespaces else namespace)

    found = [pod for pod in talk(what, kubeconfig, master, story) if _is_wanted(pod, job, queue)]
    if job and queue and any(_label(pod, JOB_QUEUE_NAME) != queue for pod in found):
        raise failed(what, f"the input vcjob {job} does not match the queue {queue}")
    print(_listed(found, all_namespaces) if found else NOTHING)


def _label(pod: Pod, key: str) -> str:
    return str((pod["metadata"].get("labels") or {}).get(key, ""))


def _is_wanted(pod: Pod, job: str, queue: str) -> bool:
    of_job = _label(pod, JOB_NAME)
    if job:
        return of_job == job
    if queue:
        annotations = pod["metadata"].get("annotations") or {}
        return queue in (_label(pod, JOB_QUEUE_NAME), annotations.get(QUEUE_NAME))
    return bool(of_job)


def _listed(found: list[Pod], all_namespaces: bool) -> str:
    ordered = sorted(found, key=lambda pod: (pod["metadata"].get("namespace", ""), pod["metadata"]["name"]))
    rows = [_row(pod) for pod in ordered]
    if not all_namespaces:
        return table(COLUMNS, rows)
    spaces = [[pod["metadata"].get("namespace", ""), *row] for pod, row in zip(ordered, rows, strict=True)]
    return table([Column("Namespace", spare=8), *COLUMNS], spaces)


def _row(pod: Pod) -> list[object]:
    from stromboli.model.values.times import seconds

    meta, status = pod["metadata"], pod.get("status") or {}
    containers = status.get("containerStatuses") or []
    ready = sum(bool(container.get("ready")) for container in containers)
    created = seconds(meta.get("creationTimestamp"), "metadata.creationTimestamp")
    return [
        meta["name"],
        f"{ready}/{len(pod['spec'].get('containers') or [])}",
        _state(pod, containers),
        sum(container.get("restartCount", 0) for container in containers),
        age(time.time() - created) if created else "<unknown>",
    ]


def _state(pod: Pod, containers: list[Any]) -> str:
    """What the column STATUS of kubectl says: the phase, or the reason why a container waits or has ended."""
    if pod["metadata"].get("deletionTimestamp"):
        return "Terminating"
    status = pod.get("status") or {}
    shown = status.get("reason") or status.get("phase") or "Unknown"
    for container in containers:
        state = container.get("state") or {}
        for part in ("waiting", "terminated"):
            shown = (state.get(part) or {}).get("reason") or shown
    return str(shown)
