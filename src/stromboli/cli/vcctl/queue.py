"""``stromboli queue``: list, get, create, operate and delete queues."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stromboli.cli.vcctl.columns import NOTHING, Column, table
from stromboli.cli.vcctl.connection import Kubeconfig, Master, failed, talk

if TYPE_CHECKING:
    from stromboli.crds.scheduling import PodGroup, Queue
    from stromboli.kube.client import Client

app = typer.Typer(name="queue", help="Queues: list, get, create, operate, delete.", no_args_is_help=True)

Name = Annotated[str, typer.Option("--name", "-n", help="Name of the queue.")]
PHASES = ("Inqueue", "Pending", "Running", "Unknown", "Completed")
COLUMNS = (Column("Name", 25), *(Column(title, 8) for title in ("Weight", "State", "Parent", *PHASES)))
ACTIONS = {"open": "OpenQueue", "close": "CloseQueue"}


@app.command("list")
def list_queues(kubeconfig: Kubeconfig = "", master: Master = "") -> None:
    """List queues with the numbers of their PodGroups by phase."""
    queues, groups = talk("queue list", kubeconfig, master, _everything)
    print(_listed(queues, groups) if queues else NOTHING)


@app.command()
def get(name: Name = "", kubeconfig: Kubeconfig = "", master: Master = "") -> None:
    """Show one queue."""
    if not name:
        raise failed("queue get", "name is mandatory to get the particular queue details")

    async def story(client: Client) -> tuple[list[Queue], list[PodGroup]]:
        from stromboli.live.controllers.controlled import POD_GROUP, QUEUE

        return [await client.get(QUEUE, name)], await client.list_all(POD_GROUP)

    print(_listed(*talk("queue get", kubeconfig, master, story)))


async def _everything(client: Client) -> tuple[list[Queue], list[PodGroup]]:
    from stromboli.live.controllers.controlled import POD_GROUP, QUEUE

    return await client.list_all(QUEUE), await client.list_all(POD_GROUP)


def _listed(queues: list[Queue], groups: list[PodGroup]) -> str:
    counts = Counter((group.spec.queue, group.status.phase) for group in groups)
    return table(
        COLUMNS,
        [
            [
                queue.metadata.name,
                queue.spec.weight,
                queue.status.state,
                queue.spec.parent,
                *(counts[queue.metadata.name, phase] for phase in PHASES),
            ]
            for queue in queues
        ],
    )


@app.command()
def create(
    name: Name = "test",
    weight: Annotated[int, typer.Option("--weight", "-w", help="Weight of the queue.")] = 1,
    state: Annotated[str, typer.Option("--state", "-S", help="State of the queue.")] = "Open",
    kubeconfig: Kubeconfig = "",
    master: Master = "",
) -> None:
    """Create a queue."""

    async def story(client: Client) -> None:
        from stromboli.crds.kinds import KINDS
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
