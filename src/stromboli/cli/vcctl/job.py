"""``stromboli job``: run, list, view, suspend, resume, delete and explain jobs, and show their logs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stromboli.cli.vcctl.columns import NOTHING, Column, table
from stromboli.cli.vcctl.connection import AllNamespaces, Kubeconfig, Master, Namespace, failed, talk
from stromboli.cli.vcctl.job_run import OneTask, from_file, submit

if TYPE_CHECKING:
    from stromboli.api.batch import Job
    from stromboli.kube.client import Client
    from stromboli.sim.planning import Planning

app = typer.Typer(
    name="job", help="Jobs: run, list, view, logs, suspend, resume, delete, explain.", no_args_is_help=True
)

Name = Annotated[str, typer.Option("--name", "-N", help="Name of the job.")]
Named = Annotated[str, typer.Argument(metavar="NAME", help="Name of the job.", show_default=False)]
COLUMNS = (
    Column("Name"),
    Column("Creation", 15),
    Column("Phase", 12),
    Column("JobType", 12),
    Column("Replicas", 12),
    Column("Min", 6),
    Column("Pending", 10),
    Column("Running", 10),
    Column("Succeeded", 12),
    Column("Failed", 10),
    Column("Unknown", 12),
    Column("RetryCount", 10),
)


@app.command()
def run(
    name: Name = "",
    namespace: Namespace = "default",
    image: Annotated[str, typer.Option("--image", "-i", help="Image of the container.")] = "busybox",
    minimum: Annotated[int, typer.Option("--min", "-m", help="Pods that must run at once.")] = 1,
    replicas: Annotated[int, typer.Option("--replicas", "-r", help="Number of pods.")] = 1,
    requests: Annotated[str, typer.Option("--requests", "-R", help="What a pod asks for.")] = "cpu=1000m,memory=100Mi",
    limits: Annotated[str, typer.Option("--limits", "-L", help="What a pod may use.")] = "cpu=1000m,memory=100Mi",
    scheduler: Annotated[str, typer.Option("--scheduler", "-S", help="Scheduler of the pods.")] = "volcano",
    filename: Annotated[str, typer.Option("--filename", "-f", help="A YAML file with the job.")] = "",
    wait: Annotated[bool, typer.Option("--wait", help="Show how the job is doing until it has ended.")] = False,
    eta: Annotated[
        str, typer.Option("--eta", metavar="DIR", help="Say by this record when it would start, and create nothing.")
    ] = "",
    kubeconfig: Kubeconfig = "",
    master: Master = "",
) -> None:
    """Create a job of one task, or the job of a file."""
    what = "job run"
    if not name and not filename:
        raise failed(what, "job name cannot be left blank")
    one = OneTask(name, image, minimum, replicas, requests, limits, scheduler)
    body = from_file(filename, what) if filename else one.body(what)
    if eta:
        from stromboli.cli.insight.eta import foretell

        foretell({**body, "metadata": {"namespace": namespace, **body["metadata"]}}, eta)
        return
    submit(body, namespace, what, kubeconfig, master, wait=wait)


@app.command("list")
def list_jobs(
    namespace: Namespace = "default",
    all_namespaces: AllNamespaces = False,
    queue: Annotated[str, typer.Option("--queue", "-q", help="Only jobs of this queue.")] = "",
    scheduler: Annotated[str, typer.Option("--scheduler", "-S", help="Only jobs of this scheduler.")] = "",
    selector: Annotated[str, typer.Option("--selector", help="Only jobs whose names contain this.")] = "",
    kubeconfig: Kubeconfig = "",
    master: Master = "",
) -> None:
    """List jobs, a line each."""

    async def story(client: Client) -> list[Job]:
        from stromboli.live.controllers.controlled import JOB

        return await client.list_all(JOB, "" if all_namespaces else namespace)

    jobs = [
        job
        for job in talk("job list", kubeconfig, master, story)
        if queue in ("", job.spec.queue)
        and scheduler in ("", job.spec.scheduler_name)
        and selector in job.metadata.name
    ]
    print(_listed(jobs, all_namespaces) if jobs else NOTHING)


def _listed(jobs: list[Job], all_namespaces: bool) -> str:
    rows = [_row(job) for job in jobs]
    if not all_namespaces:
        return table(COLUMNS, rows)
    spaces = [[job.metadata.namespace, *row] for job, row in zip(jobs, rows, strict=True)]
    return table([Column("Namespace"), *COLUMNS], spaces)


def _row(job: Job) -> list[object]:
    from stromboli.model.names import JOB_TYPE

    status = job.status
    return [
        job.metadata.name,
        (job.metadata.creation_timestamp or "")[:10],
        status.state.phase,
        job.metadata.labels.get(JOB_TYPE) or "Batch",
        sum(task.replicas for task in job.spec.tasks),
        status.min_available,
        status.pending,
        status.running,
        status.succeeded,
        status.failed,
        status.unknown,
        status.retry_count,
    ]


@app.command()
def view(
    named: Named = "",
    name: Name = "",
    namespace: Namespace = "default",
    kubeconfig: Kubeconfig = "",
    master: Master = "",
) -> None:
    """Show everything about a job, with its conditions and events."""
    from stromboli.cli.vcctl.job_view import view_of

    name = _need(name or named, "view")

    async def story(client: Client) -> tuple[Job, list[dict[str, Any]], list[str]]:
        from stromboli.cli.vcctl.job_devices import devices_of
        from stromboli.kube.client import Select
        from stromboli.kube.resources import EVENTS
        from stromboli.live.controllers.controlled import JOB

        found = await client.get(JOB, name, namespace)
        of_job = Select(fields=f"involvedObject.name={name},involvedObject.kind=Job")
        return found, await client.list_all(EVENTS, namespace, of_job), await devices_of(client, name, namespace)

    job, events, devices = talk("job view", kubeconfig, master, story)
    own = [event for event in events if event["involvedObject"].get("uid") == job.metadata.uid]
    print(view_of(job, own, time.time(), devices))


@app.command()
def suspend(
    name: Name = "", namespace: Namespace = "default", kubeconfig: Kubeconfig = "", master: Master = ""
) -> None:
    """Abort a job: its pods end, and it can be resumed."""
    _need(name, "suspend")
    _command("job suspend", "AbortJob", name, namespace, kubeconfig, master)


@app.command()
def resume(name: Name = "", namespace: Namespace = "default", kubeconfig: Kubeconfig = "", master: Master = "") -> None:
    """Resume a job that was suspended."""
    _need(name, "resume")
    _command("job resume", "ResumeJob", name, namespace, kubeconfig, master)


def _command(what: str, action: str, name: str, namespace: str, kubeconfig: str, master: str) -> None:
    async def story(client: Client) -> None:
        from stromboli.cli.vcctl.orders import job_order
        from stromboli.live.controllers.controlled import COMMAND, JOB

        job = await client.get(JOB, name, namespace)
        await client.create(COMMAND, job_order(job, action), namespace)

    talk(what, kubeconfig, master, story)


@app.command()
def delete(name: Name = "", namespace: Namespace = "default", kubeconfig: Kubeconfig = "", master: Master = "") -> None:
    """Delete a job and everything that belongs to it."""
    remove(name, "delete", namespace, kubeconfig, master)


def remove(name: str, word: str, namespace: str, kubeconfig: str, master: str) -> None:
    """Delete a job; ``word`` is what the user calls that."""
    _need(name, word)

    async def story(client: Client) -> None:
        from stromboli.live.controllers.controlled import JOB

        await client.delete(JOB, name, namespace)

    talk(f"job {word}", kubeconfig, master, story)
    print(f"{word} job {name} successfully")


@app.command()
def explain(
    named: Named = "",
    name: Name = "",
    namespace: Namespace = "default",
    config: Annotated[
        str | None, typer.Option("--config", "-c", metavar="FILE", help="The scheduler's configuration.")
    ] = None,
    kubeconfig: Kubeconfig = "",
    master: Master = "",
    record: Annotated[
        str, typer.Option("--record", metavar="DIR", help="Explain what a record holds, and not the present.")
    ] = "",
    since: Annotated[str, typer.Option("--from", metavar="T", help="With --record: begin at this time.")] = "",
    until: Annotated[str, typer.Option("--to", metavar="T", help="With --record: end at this time.")] = "",
) -> None:
    """Say step by step why a job waits: what a scheduling cycle over the cluster as it is now makes of it.

    With --record: when its standing changed, and what the cycle at each of these moments made of it.
    """
    from stromboli.cli.explain_view import show_explanation
    from stromboli.cli.terminal import console
    from stromboli.cli.vcctl.live_plan import planned
    from stromboli.sim.explanation.explain import explain as explained
    from stromboli.sim.explanation.explain import find_job

    name = _need(name or named, "explain")
    if record:
        from stromboli.cli.insight.record import explain_past

        explain_past(record, f"{namespace}/{name}", since, until)
        return
    if since or until:
        raise typer.BadParameter("goes with --record DIR", param_hint="--from, --to")

    async def story(client: Client) -> tuple[Planning, str]:
        return await planned(client, config), await _group_name(client, namespace, name)

    planning, group = talk("job explain", kubeconfig, master, story)
    show_explanation(console(), explained(planning, find_job(planning, f"{namespace}/{group}")))


async def _group_name(client: Client, namespace: str, name: str) -> str:
    """The name of a job's PodGroup, which it has before it has pods; ``name`` itself for any other PodGroup."""
    from stromboli.errors import ApiError
    from stromboli.live.controllers.controlled import JOB

    try:
        job = await client.get(JOB, name, namespace)
    except ApiError as error:
        if error.not_found:
            return name
        raise
    return f"{name}-{job.metadata.uid}"


@app.command()
def logs(
    named: Named = "",
    name: Name = "",
    namespace: Namespace = "default",
    task: Annotated[str, typer.Option("--task", "-t", help="Only pods of this task.")] = "",
    container: Annotated[
        str, typer.Option("--container", "-c", help="Container; needed where pods have several.")
    ] = "",
    tail: Annotated[int, typer.Option("--tail", help="Last lines of each pod; all below 0.")] = 10,
    kubeconfig: Kubeconfig = "",
    master: Master = "",
) -> None:
    """Show what the pods of a job have written."""
    from stromboli.cli.vcctl.job_logs import Wanted, show_logs

    name = _need(name or named, "show the logs of")
    talk(
        "job logs", kubeconfig, master, lambda client: show_logs(client, Wanted(namespace, name, task, container, tail))
    )


def _need(name: str, what: str) -> str:
    if not name:
        raise failed(f"job {what}", f"job name is mandatory to {what} a particular job")
    return name
