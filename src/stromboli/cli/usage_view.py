"""Queues and nodes as people read them: what they hold of what they may, as numbers and bars."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.text import Text

from stromboli.cli.terminal import print_table, table
from stromboli.fairness.share import divisors, dominant_share
from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.extension.figures import by_name, shown
from stromboli.framework.session.session import Session
from stromboli.model.names import EPHEMERAL_STORAGE
from stromboli.model.resources.amounts import totals
from stromboli.model.resources.resource import Resource
from stromboli.sim.explanation.reasons import Cycle

BAR = 10
"""Cells of a bar."""
EIGHTHS = " ▏▎▍▌▋▊▉"
UNSEEN = (EPHEMERAL_STORAGE, "hugepages-1Gi", "hugepages-2Mi")
"""Resources that every node names and few pods ask for: shown where they are used."""
BINS = (("idle", 0.0), ("<25%", 0.25), ("<50%", 0.5), ("<75%", 0.75), ("<100%", 1.0), ("full", 2.0))
DIM = "dim"


def bar(part: float) -> Text:
    """A bar of :data:`BAR` cells for 0 to 1; red beyond."""
    cells = max(0.0, min(part, 1.0)) * BAR
    whole = int(cells)
    text = "█" * whole + (EIGHTHS[int((cells - whole) * 8)] if whole < BAR else "")
    return Text(text.rstrip().ljust(BAR, "·"), style=_heat(part))


def _heat(part: float) -> str:
    return "red" if part > 1.001 else "green" if part < 0.8 else "yellow"


# ---------------------------------------------------------------------- queues


def show_queues(console: Console, cycle: Cycle) -> None:
    """One row a queue: what it holds of what it deserves, in every dimension that queues hold or deserve."""
    session = cycle.session
    queues = [queue for queue in session.queues.values() if queue.sums.jobs or _allocated(session, queue)]
    if not queues:
        return
    names = _dimensions(session, queues)
    amounts = [f">{name}" for name in names]
    view = table("QUEUE", ">WEIGHT", *amounts, "SHARE", title="Queues: allocated / deserved")
    for queue in queues:
        view.add_row(*_queue_row(session, queue, names))
    console.print()
    print_table(console, view)


def _allocated(session: Session, queue: QueueInfo) -> dict[str, float]:
    return by_name(session.axes.resource(session.axes.full(queue.sums.held)))


def _dimensions(session: Session, queues: Sequence[QueueInfo]) -> list[str]:
    """Names of what is held or deserved anywhere, pods left out."""
    names: dict[str, None] = {}
    for queue in queues:
        found = queue.figures.get("request")
        names.update(dict.fromkeys(_allocated(session, queue)))
        names.update(dict.fromkeys(by_name(found) if isinstance(found, Resource) else ()))
    return [name for name in names if name != "pods"]


def _queue_row(session: Session, queue: QueueInfo, names: Sequence[str]) -> list[Text]:
    held, found = _allocated(session, queue), queue.figures.get("deserved")
    deserved = by_name(found) if isinstance(found, Resource) else None
    cells = [Text(f"{shown(name, held.get(name, 0))} / {_of(deserved, name)}") for name in names]
    share = _share(session, queue, found if isinstance(found, Resource) else None)
    percent = Text("-") if share is None else Text.assemble(f"{share:4.0%} ", bar(share))
    return [Text(queue.name), Text(str(queue.spec.weight)), *cells, percent]


def _of(deserved: dict[str, float] | None, name: str) -> str:
    return "-" if deserved is None else shown(name, deserved.get(name, 0))


def _share(session: Session, queue: QueueInfo, deserved: Resource | None) -> float | None:
    """The largest part of what it deserves that the queue holds."""
    if deserved is None:
        return None
    axes = session.axes
    return dominant_share(axes.full(queue.sums.held), divisors(axes.vector(deserved)))


# ---------------------------------------------------------------------- nodes


def show_usage(console: Console, cycle: Cycle) -> None:
    """One row a resource: how much of it is in use, and on how many nodes it is used how much."""
    bins = [f">{label}" for label, _ in BINS]
    view = table("RESOURCE", ">USED/OFFERED", ">", *bins, title="Nodes: use, and how many nodes by use")
    for column in _columns(cycle):
        view.add_row(*_usage_row(cycle, column))
    if len(cycle.session.table):
        console.print()
        print_table(console, view)


def _columns(cycle: Cycle) -> list[int]:
    """Columns of resources that nodes offer and people care about."""
    table, names = cycle.session.table, cycle.session.axes.names
    offered, used = totals(table.alloc), totals(table.used)
    return [i for i in range(len(offered)) if offered[i] and (used[i] or names[i] not in (*UNSEEN, "pods"))]


def _usage_row(cycle: Cycle, column: int) -> list[Text]:
    table, name = cycle.session.table, cycle.session.axes.names[column]
    offered, used = table.alloc[column], table.used[column]
    all_used, all_offered = sum(used.tolist()), sum(offered.tolist())
    part = all_used / all_offered
    amounts = f"{shown(name, float(all_used))} / {shown(name, float(all_offered))}"
    counts = histogram(used[offered > 0] / offered[offered > 0])
    numbers = [Text(str(count), style="" if count else DIM) for count in counts]
    return [Text(name), Text(amounts), Text(f"{part:.0%}", style=_heat(part)), *numbers]


def histogram(parts: npt.NDArray[np.float64]) -> list[int]:
    """How many of ``parts`` are nothing, below each limit of :data:`BINS`, and everything or more."""
    limits = [limit for _, limit in BINS[1:-1]]
    busy = parts[parts > 0]
    inner = np.digitize(busy, [*limits[:-1], limits[-1] - 1e-12])
    return [int((parts <= 0).sum()), *np.bincount(inner, minlength=len(BINS) - 1).tolist()]


def show_nodes(console: Console, cycle: Cycle) -> None:
    """One row a node: used of offered, in every dimension."""
    nodes = cycle.session.table
    columns = _columns(cycle)
    names = [cycle.session.axes.names[column] for column in columns]
    view = table("NODE", *[f">{name}" for name in names])
    for row, node in enumerate(nodes.statics.names):
        pairs = [
            (n, float(nodes.used[c, row]), float(nodes.alloc[c, row])) for n, c in zip(names, columns, strict=True)
        ]
        view.add_row(node, *[f"{shown(n, used)} / {shown(n, offer)}" if offer else "-" for n, used, offer in pairs])
    console.print()
    print_table(console, view)
