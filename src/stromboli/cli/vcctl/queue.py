"""``stromboli queue``: list, get, create, operate and delete queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stromboli.api.scheduling import (
    POD_GROUP_COMPLETED,
    POD_GROUP_INQUEUE,
    POD_GROUP_PENDING,
    POD_GROUP_RUNNING,
    POD_GROUP_UNKNOWN,
    QUEUE_OPEN,
)
from stromboli.cli.vcctl.columns import NOTHING, Column, table
from stromboli.cli.vcctl.connection import Kubeconfig, Master, failed, talk

if TYPE_CHECKING:
    from stromboli.api.scheduling import PodGroup, Queue
    from stromboli.kube.client import Client

app = typer.Typer(name="queue", help="Queues: list, get, create, operate, delete.", no_args_is_help=True)

Name = Annotated[str, typer.Option("--name", "-n", help="Name of the queue.")]
PHASES = (POD_GROUP_INQUEUE, POD_GROUP_PENDING, POD_GROUP_RUNNING, POD_GROUP_UNKNOWN, POD_GROUP_COMPLETED)
COLUMNS = (Column("Name", 25), *(Column(title, 8) for title in ("Weight", "State", "Parent", *PHASES)))
SHORT_COLUMNS = tuple(column for column in COLUMNS if column.title not in ("Parent", POD_GROUP_COMPLETED))
"""What ``vqueues`` shows."""
ACTIONS = {"open": "OpenQueue", "close": "CloseQueue"}


@app.command("list")
def list_queues(kubeconfig: Kubeconfig = "", master: Master = "") -> None:
    """List queues with the numbers of their PodGroups by phase."""
    show("", COLUMNS, kubeconfig, master)


@app.command()
def get(name: Name = "", kubeconfig: Kubeconfig = "", master: Master = "") -> None:
    """Show one queue."""
    if not name:
        raise failed("queue get", "name is mandatory to get the particular queue details")
    show(name, COLUMNS, kubeconfig, master)


def show(name: str, columns: Sequence[Column], kubeconfig: str, master: str) -> None:
    """Print one queue, or all for an empty name, with these of :data:`COLUMNS`."""

    async def story(client: Client) -> tuple[list[Queue], list[PodGroup]]:
        from stromboli.live.controllers.controlled import POD_GROUP, QUEUE

        queues = [await client.get(QUEUE, name)] if name else await client.list_all(QUEUE)
        return queues, await client.list_all(POD_GROUP)

    queues, groups = talk("queue get" if name else "queue list", kubeconfig, master, story)
    print(_listed(queues, groups, columns) if queues else NOTHING)


def _listed(queues: list[Queue], groups: list[PodGroup], columns: Sequence[Column]) -> str:
    counts = Counter((group.spec.queue, group.status.phase) for group in groups)

    def row(queue: Queue) -> dict[str, object]:
        name, spec = queue.metadata.name, queue.spec
        own = {"Name": name, "Weight": spec.weight, "State": queue.status.state, "Parent": spec.parent}
        return {**own, **{phase: counts[name, phase] for phase in PHASES}}

    return table(columns, [[found[column.title] for column in columns] for found in map(row, queues)])


@app.command()
def create(
    name: Name = "test",
    weight: Annotated[int, typer.Option("--weight", "-w", help="Weight of the queue.")] = 1,
    state: Annotated[str, typer.Option("--state", "-S", help="State of the queue.")] = QUEUE_OPEN,
    kubeconfig: Kubeconfig = "",
    master: Master = "",
) -> None:
    """Create a queue."""

    async def story(client: Client) -> None:
        from stromboli.api.kinds import KINDS
        from stromboli.live.controllers.controlled import QUEUE

        row = KINDS["Queue"]
        body = {
            "apiVersion": row.api_version,
            "kind": row.kind,
            "metadata": {"name": name},
            "spec": {"weight": weight},
            "status": {"state": state},
        }
        await client.create(QUEUE, body)

    talk("queue create", kubeconfig, master, story)


@app.command()
def operate(
    name: Name = "",
    action: Annotated[str, typer.Option("--action", "-a", help="open, close or update.")] = "",
    weight: Annotated[int, typer.Option("--weight", "-w", help="The new weight, for update.")] = 0,
    kubeconfig: Kubeconfig = "",
    master: Master = "",
) -> None:
    """Open or close a queue, or give it another weight."""
    what = "queue operate"
    problem = _operate_problem(name, action, weight)
    if problem:
        raise failed(what, problem)

    async def story(client: Client) -> None:
        from stromboli.cli.vcctl.orders import QUEUE_NAMESPACE, queue_order
        from stromboli.live.controllers.controlled import COMMAND, QUEUE

        if action == "update":
            await client.patch(QUEUE, name, "", {"spec": {"weight": weight}})
            return
        queue: Any = await client.get(QUEUE, name)
        await client.create(COMMAND, queue_order(queue, ACTIONS[action]), QUEUE_NAMESPACE)

    talk(what, kubeconfig, master, story)


def _operate_problem(name: str, action: str, weight: int) -> str:
    if not name:
        return "queue name must be specified"
    if not action:
        return "action can not be null"
    if action not in (*ACTIONS, "update"):
        return f"action {action} invalid, valid actions are open, close and update"
    if action == "update" and not weight:
        return f"when update queue {name}, weight must be specified, the value must be greater than 0"
    return ""


@app.command()
def delete(name: Name = "", kubeconfig: Kubeconfig = "", master: Master = "") -> None:
    """Delete a queue."""
    if not name:
        raise failed("queue delete", "queue name must be specified")

    async def story(client: Client) -> None:
        from stromboli.live.controllers.controlled import QUEUE

        await client.delete(QUEUE, name)

    talk("queue delete", kubeconfig, master, story)
