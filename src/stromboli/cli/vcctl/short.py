"""The short commands vsub, vjobs, vqueues, vcancel, vsuspend, vresume: ``-n`` is the name, ``-N`` the namespace."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Final

import typer

from stromboli.cli.running import run
from stromboli.cli.vcctl import job, queue
from stromboli.cli.vcctl.app import FAILED
from stromboli.cli.vcctl.connection import AllNamespaces, Kubeconfig, Master, failed
from stromboli.cli.vcctl.job_run import OneTask, submit

Name = Annotated[str, typer.Option("--name", "-n", help="Name of the job.")]
Namespace = Annotated[str, typer.Option("--namespace", "-N", help="Namespace of the job.")]
AMOUNTS: Final = "cpu=1000m,memory=100Mi"


def vsub(
    name: Name = "",
    namespace: Annotated[
        str, typer.Option("--namespace", "-N", envvar="VOLCANO_DEFAULT_JOB_NAMESPACE", help="Namespace of the job.")
    ] = "default",
    image: Annotated[
        str, typer.Option("--image", "-i", envvar="VOLCANO_DEFAULT_IMAGE", help="Image of the container.")
    ] = "busybox",
    minimum: Annotated[int, typer.Option("--min", "-m", help="Pods that must run at once.")] = 1,
    replicas: Annotated[int, typer.Option("--replicas", "-r", help="Number of pods.")] = 1,
    requests: Annotated[str, typer.Option("--requests", "-R", help="What a pod asks for.")] = AMOUNTS,
    limits: Annotated[str, typer.Option("--limits", "-L", help="What a pod may use.")] = AMOUNTS,
    scheduler: Annotated[
        str, typer.Option("--scheduler", "-S", envvar="VOLCANO_SCHEDULER_NAME", help="Scheduler of the pods.")
    ] = "volcano",
    command: Annotated[
        str, typer.Option("--command", "-c", help="What the container runs, as a shell splits it.")
    ] = "",
    kubeconfig: Kubeconfig = "",
    master: Master = "",
) -> None:
    """Submit a job of one task."""
    what = "submit job"
    if not name:
        raise failed(what, "job name cannot be left blank")
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise failed(what, f"command {command[:100]}: {error}") from error
    one = OneTask(name, image, minimum, replicas, requests, limits, scheduler, words)
    submit(one.body(what), namespace, what, kubeconfig, master)


def vjobs(
    name: Name = "",
    namespace: Namespace = "default",
    scheduler: Annotated[str, typer.Option("--scheduler", "-S", help="Only jobs of this scheduler.")] = "",
    all_namespaces: AllNamespaces = False,
    selector: Annotated[str, typer.Option("--selector", help="Only jobs whose names contain this.")] = "",
    kubeconfig: Kubeconfig = "",
    master: Master = "",
) -> None:
    """List jobs, or show everything about one."""
    if name:
        job.view("", name, namespace, kubeconfig, master)
    else:
        job.list_jobs(namespace, all_namespaces, "", scheduler, selector, kubeconfig, master)


def vqueues(
    name: Annotated[str, typer.Option("--name", "-n", help="Name of the queue.")] = "",
    kubeconfig: Kubeconfig = "",
    master: Master = "",
) -> None:
    """List queues, or show one."""
    queue.show(name, queue.SHORT_COLUMNS, kubeconfig, master)


def vcancel(
    name: Name = "", namespace: Namespace = "default", kubeconfig: Kubeconfig = "", master: Master = ""
) -> None:
    """Cancel a job: it is deleted with everything that belongs to it."""
    job.remove(name, "cancel", namespace, kubeconfig, master)


def vsuspend(
    name: Name = "", namespace: Namespace = "default", kubeconfig: Kubeconfig = "", master: Master = ""
) -> None:
    """Abort a job: its pods end, and it can be resumed."""
    job.suspend(name, namespace, kubeconfig, master)


def vresume(
    name: Name = "", namespace: Namespace = "default", kubeconfig: Kubeconfig = "", master: Master = ""
) -> None:
    """Resume a job that was suspended."""
    job.resume(name, namespace, kubeconfig, master)


COMMANDS: Final[dict[str, Callable[..., None]]] = {
    command.__name__: command for command in (vsub, vjobs, vqueues, vcancel, vsuspend, vresume)
}


def main(program: str = "", arguments: Sequence[str] | None = None) -> int:
    """Run the command that ``program``, or else the name of the script, says; returns the exit code."""
    program = program or sys.argv[0].rpartition("/")[2].removesuffix(".exe")
    app = typer.Typer(name=program, pretty_exceptions_enable=False)
    app.command()(COMMANDS[program])
    return FAILED if run(app, program, arguments) else 0
