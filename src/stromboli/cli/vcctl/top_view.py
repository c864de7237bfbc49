"""How ``stromboli top`` looks."""

from __future__ import annotations

from typing import Final

from rich.console import Group, RenderableType
from rich.text import Text

from stromboli.api.scheduling import (
    POD_GROUP_COMPLETED,
    POD_GROUP_INQUEUE,
    POD_GROUP_PENDING,
    POD_GROUP_RUNNING,
    POD_GROUP_UNKNOWN,
)
from stromboli.cli.terminal import counted, table
from stromboli.cli.usage_view import bar
from stromboli.cli.vcctl.top_devices import DeviceLine
from stromboli.cli.vcctl.top_picture import SPAN, Lately, NodeLine, Picture, QueueLine
from stromboli.filters.devices.capacity import written

MOST_JOBS: Final = 12
MOST_NODES: Final = 8
MOST_AMOUNTS: Final = 4
PHASES: Final = (POD_GROUP_PENDING, POD_GROUP_INQUEUE, POD_GROUP_RUNNING, POD_GROUP_UNKNOWN, POD_GROUP_COMPLETED)


def drawn(picture: Picture) -> RenderableType:
    """The picture for a terminal."""
    parts: list[RenderableType] = [_headline(picture), Text(), _queues(picture), Text(), _heads(picture.queues)]
    if picture.jobs:
        parts += [_jobs(picture), Text()]
    if picture.nodes:
        parts.append(_nodes(picture))
    if picture.devices:
        parts += [Text(), _devices(picture)]
    return Group(*parts)


def _headline(picture: Picture) -> Text:
    placed = sum(queue.placed for queue in picture.queues)
    waiting = sum(queue.waiting for queue in picture.queues)
    text = Text.assemble(
        (counted(placed, "pod"), "bold green"),
        " placed, ",
        (f"{waiting:,}", "bold red" if waiting else "bold"),
        f" waiting, {counted(len(picture.jobs), 'job')}, {counted(len(picture.nodes), 'node')}",
    )
    return text.append(f"   last {SPAN:.0f} s: {_lately(picture.lately)}", style="dim")


def _lately(lately: Lately) -> str:
    rows = zip(lately._fields, lately, strict=True)
    return ", ".join(f"{number:,} {name}" for name, number in rows if number) or "nothing"


def _queues(picture: Picture) -> RenderableType:
    view = table("QUEUE", "STATE", ">WEIGHT", ">PLACED", ">WAITING", *(f">{phase.upper()}" for phase in PHASES))
    for queue in picture.queues:
        counts = [str(queue.phases.get(phase, 0)) for phase in PHASES]
        view.add_row(queue.name, queue.state, str(queue.weight), str(queue.placed), str(queue.waiting), *counts)
    return view


def _heads(queues: list[QueueLine]) -> Text:
    """Why the first job of each queue waits."""
    text = Text()
    for queue in queues:
        if queue.head:
            text.append(f"{queue.name}: ", style="bold")
            text.append(f"{queue.head} waits: {queue.why}\n")
    return text


def _jobs(picture: Picture) -> RenderableType:
    view = table("JOB", "QUEUE", "PHASE", ">PRIORITY", ">PLACED", ">NEEDED", ">PODS")
    for job in picture.jobs[:MOST_JOBS]:
        numbers = (job.priority, job.placed, job.least, job.pods)
        view.add_row(job.name, job.queue, job.phase, *map(str, numbers))
    more = len(picture.jobs) - MOST_JOBS
    return Group(view, Text(f"... and {counted(more, 'more job')}", style="dim")) if more > 0 else view


def _nodes(picture: Picture) -> RenderableType:
    view = table("NODE", "CPU", "", "MEMORY", "", ">PODS")
    fullest = sorted(picture.nodes, key=lambda node: -max(node.cpu, node.memory))
    for node in fullest[:MOST_NODES]:
        view.add_row(*_node(node))
    more = len(picture.nodes) - MOST_NODES
    return Group(view, Text(f"... and {counted(more, 'more node')}", style="dim")) if more > 0 else view


def _node(node: NodeLine) -> list[Text]:
    cells = [Text(node.name)]
    for part in (node.cpu, node.memory):
        cells += [bar(part), Text(f"{part:.0%}")]
    return [*cells, Text(str(node.pods))]


def _devices(picture: Picture) -> RenderableType:
    """The nodes whose devices are used most."""
    fullest = sorted(picture.devices, key=lambda line: (-line.part, line.node, line.type))[:MOST_NODES]
    shared = ["SHARED"] if any(line.shared for line in fullest) else []
    view = table("NODE", "DEVICES", ">USED", ">FREE", "", ">", "MEMORY (MB)", "CORES (%)", *shared)
    for line in fullest:
        view.add_row(*_device(line), *(Text(_amounts(line)) for _ in shared))
    used, every = sum(line.used for line in picture.devices), sum(line.all for line in picture.devices)
    total = f"{used:,} of {counted(every, 'device')} in use"
    more = len(picture.devices) - MOST_NODES
    return Group(view, Text(f"... and {more} more; {total}" if more > 0 else total, style="dim"))


def _device(line: DeviceLine) -> list[Text]:
    memory = f"{line.used_memory:,} / {line.memory:,}" if line.memory else "-"
    cores = f"{line.used_cores} / {line.cores}" if line.cores else "-"
    numbers = Text(str(line.used)), Text(str(line.all - line.used))
    return [
        Text(line.node),
        Text(line.type),
        *numbers,
        bar(line.part),
        Text(f"{line.part:.0%}"),
        Text(memory),
        Text(cores),
    ]


def _amounts(line: DeviceLine) -> str:
    """What is taken of the capacities of devices that claims share: ``memory 2Gi / 40Gi``."""
    parts = [f"{each.name} {written(each.used)} / {written(each.all)}" for each in line.shared[:MOST_AMOUNTS]]
    more = ["..."] if len(line.shared) > MOST_AMOUNTS else []
    return ", ".join([*parts, *more]) or "-"
