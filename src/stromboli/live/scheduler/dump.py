"""What the scheduler knows, written to a file on request."""

from __future__ import annotations

import resource
from collections.abc import Iterable
from pathlib import Path

from stromboli.api.scheduling import QUEUE_OPEN
from stromboli.cluster.files.written import Manifest, as_list
from stromboli.cluster.state import ClusterState


def write_dump(found: Iterable[Manifest], folder: str, now: float) -> Path:
    """Write manifests to ``snapshot-<unix seconds>.json`` in ``folder``, which ``stromboli plan`` reads.

    Only the owner may read the file.  Raises OSError.
    """
    path = Path(folder) / f"snapshot-{int(now)}.json"
    partial = path.with_suffix(".part")
    partial.unlink(missing_ok=True)
    partial.touch(0o600, exist_ok=False)  # what others put there meanwhile is not written through
    try:
        with partial.open("wb") as file:
            file.writelines(as_list(found))
        return partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)  # of one that could not be written whole nothing is left


def summary(state: ClusterState) -> list[str]:
    """The state in lines for the log."""
    lines = [f"node {name}: {len(entry.tasks)} pods" for name, entry in state.nodes.entries().items()]
    lines += [f"queue {name}: {queue.status.state or QUEUE_OPEN}" for name, queue in state.queues.items()]
    lines += [f"job {job.uid}: {job.phase}, queue {job.queue}, {len(job.tasks)} pods" for job in state.jobs.values()]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return [*lines, f"{len(state.tasks)} pods, {len(state.templates)} templates, {memory:.0f} MiB at most"]
