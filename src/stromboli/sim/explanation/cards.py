"""Which cards refused a pod that asks for shared devices, with numbers per node."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from stromboli.framework.session.session import Session
from stromboli.model.task import Task
from stromboli.plugins.deviceshare import DeviceShare

MOST_NODES: Final = 5
"""Nodes whose cards are listed."""
WIDTH: Final = 400
"""Characters of a node's line."""


def card_lines(session: Session, task: Task) -> Iterator[str]:
    """A line for each of the first nodes that have cards and not enough of them, and how many more there are."""
    shares = session.plugins.get(DeviceShare.name)
    if not isinstance(shares, DeviceShare):
        return
    short = shares.shortages(task)
    for node, text in islice(short, MOST_NODES):
        yield f"  cards of {node}: {text if len(text) <= WIDTH else text[: WIDTH - 3] + '...'}"
    if more := sum(1 for _ in short):
        yield f"  and {more} more nodes without enough cards"
