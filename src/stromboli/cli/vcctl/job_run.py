"""Making a job of one task or of a file, and showing how it is doing until it has ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from stromboli.api.batch import COMPLETED, FINISHED
from stromboli.api.kinds import KINDS
from stromboli.cli.vcctl.connection import failed, talk
from stromboli.errors import ApiError, Unreachable

if TYPE_CHECKING:
    from stromboli.api.batch import Job
    from stromboli.kube.client import Client

PERIOD: Final = 1.0
"""Seconds after which a server that could not be reached is asked again."""


class OneTask(NamedTuple):
    """A job of one task, as flags say it; ``command`` has a container's arguments."""

    name: str
    image: str
    minimum: int
    replicas: int
    requests: str
    limits: str
    scheduler: str
    command: tuple[str, ...] = ()

    def body(self, what: str) -> dict[str, Any]:
        """The job; ends the program with ``Failed to <what>`` where amounts cannot be read."""
        container: dict[str, Any] = {"name": self.name, "image": self.image, "imagePullPolicy": "IfNotPresent"}
        if self.command:
            container["command"] = list(self.command)
        container["resources"] = {"limits": _amounts(self.limits, what), "requests": _amounts(self.requests, what)}
        template = {
            "metadata": {"name": self.name, "labels": {"job.volcano.sh": self.name}},
            "spec": {"restartPolicy": "Never", "containers": [container]},
        }
        return {
            "apiVersion": KINDS["Job"].api_version,
            "kind": "Job",
            "metadata": {"name": self.name},
            "spec": {
                "minAvailable": self.minimum,
                "schedulerName": self.scheduler,
                "tasks": [{"replicas": self.replicas, "template": template}],
            },
        }


def submit(
    body: dict[str, Any], namespace: str, what: str, kubeconfig: str, master: str, *, wait: bool = False
) -> None:
    """Create a job and say so; if wished, show its way until it has ended, and fail unless it has completed."""

    async def story(client: Client) -> Job:
        from stromboli.live.controllers.controlled import JOB

        made = await client.create(JOB, body, namespace)
        print(f"run job {made.metadata.name} successfully", flush=True)
        return await _until_ended(client, made, what) if wait else made

    ended = talk(what, kubeconfig, master, story)
    if wait and ended.status.state.phase != COMPLETED:
        raise failed(what, f"job {ended.metadata.name} has not completed: {_progress(ended)}")


async def _until_ended(client: Client, job: Job, what: str) -> Job:
    """The job when it has ended, as it was told last where it is deleted at once (``ttlSecondsAfterFinished``)."""
    told = ""
    async with aclosing(_changes(client, job)) as changes:
        async for kind, now in changes:
            told, before = _progress(now), told
            if told != before:
                print(f"job {now.metadata.name}: {told}", flush=True)
            if now.status.state.phase in FINISHED:
                return now
            if kind == "DELETED":
                break
    raise failed(what, f"job {job.metadata.name} was deleted before it had ended: {told}")


async def _changes(client: Client, job: Job) -> AsyncGenerator[tuple[str, Job], None]:
    """What happens to a job since ``job``: what kind of change, and the job after it."""
    from stromboli.kube.client import Select, watch_error
    from stromboli.live.controllers.controlled import JOB

    meta = job.metadata
    select, version = Select(fields=f"metadata.name={meta.name}"), meta.resource_version
    while True:
        try:
            async with aclosing(client.watch(JOB, meta.namespace, select, resource_version=version)) as events:
                async for event in events:
                    if event.type == "ERROR":
                        raise watch_error(event)
                    now = JOB.decode(event.object)
                    version = now.metadata.resource_version
                    if event.type != "BOOKMARK":
                        yield event.type, now
        except ApiError as error:
            if not error.gone:
                raise
            now = await client.get(JOB, meta.name, meta.namespace)
            version = now.metadata.resource_version
            yield "MODIFIED", now
        except Unreachable:
            await asyncio.sleep(PERIOD)


def _progress(job: Job) -> str:
    """``Running, 2 running, 1 pending of 3: why``."""
    status = job.status
    counts = {
        "running": status.running,
        "pending": status.pending,
        "succeeded": status.succeeded,
        "failed": status.failed,
    }
    parts = [status.state.phase or "New", *(f"{count} {word}" for word, count in counts.items() if count)]
    why = f": {status.state.message}" if status.state.message else ""
    return f"{', '.join(parts)} of {sum(task.replicas for task in job.spec.tasks)}{why}"


def from_file(filename: str, what: str) -> dict[str, Any]:
    """The object of a YAML file; ends the program where there is none."""
    import yaml

    if ".yaml" not in filename and ".yml" not in filename:
        raise failed(what, "only support yaml file")
    try:
        found = yaml.safe_load(Path(filename).read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise failed(what, f"failed to read file, err: {error}") from error
    if not isinstance(found, dict):
        raise failed(what, f"{filename} holds no object")
    return found


def _amounts(text: str, what: str) -> dict[str, str]:
    """``cpu=1000m,memory=100Mi`` as a resource list."""
    from stromboli.errors import QuantityError
    from stromboli.model.resources import quantity

    found: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        name, _, amount = part.partition("=")
        try:
            quantity.parse(amount)
        except QuantityError as error:
            raise failed(what, f"{part}: {error}") from error
        found[name] = amount
    return found
