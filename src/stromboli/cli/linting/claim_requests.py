"""Claims of devices that no node can meet, however many of its devices are free."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from stromboli.filters.devices.book import GIVEN_UP, DeviceBook
from stromboli.model.claims import DeviceObjects, ResourceClaimStatus
from stromboli.model.snapshot import Snapshot
from stromboli.model.task import Task

MOST_TEXT = 300
"""Characters of what an expression gets wrong."""


def idle_devices(snapshot: Snapshot, tasks: Iterable[Task]) -> DeviceBook:
    """The devices of a cluster as if no claim had any."""
    found, free = snapshot.devices, ResourceClaimStatus()
    claims = {key: msgspec.structs.replace(claim, status=free) for key, claim in found.claims.items()}
    return DeviceBook(DeviceObjects(claims, found.slices, found.classes), snapshot.table, tasks, shares=True)


def lacking_devices(book: DeviceBook, task: Task) -> str:
    """What is wrong with a pod whose claims no node can meet; empty for other pods, and where claims are missing.

    Where the search gave up on a node, it is unknown whether the node could meet them, so nothing is reported.
    """
    if not task.claims or task.lacks_claims:
        return ""
    if problem := book.problem(task):
        return problem
    masks = book.masks(task)
    if masks is None or not masks.all() or (masks == GIVEN_UP).any():
        return ""
    errors = book.errors(task)
    why = f": {next(iter(errors.values()))[:MOST_TEXT]}" if errors else ""
    return f"no node has the devices that the pod's claims ask for, even if all were free{why}"
