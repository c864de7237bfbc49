"""Whether JobFlows may be stored."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter
from typing import Final

from stromboli.api.flow import JobFlow

MOST_FLOWS: Final = 1000
"""Flows of one JobFlow: the status, which names each job, has to fit into one object."""

_NOT_ORDERED: Final = "jobflow Flow is not DAG"


def check_job_flow(flow: JobFlow) -> list[str]:
    """That the jobs of a flow can be started one after the other, and are not too many."""
    flows = flow.spec.flows
    if len(flows) > MOST_FLOWS:
        return [f"spec.flows: Too many: {len(flows)}: must have at most {MOST_FLOWS} items"]
    waiting = {one.name: set(one.depends_on.targets if one.depends_on else ()) for one in flows}
    unknown = [target for targets in waiting.values() for target in sorted(targets) if target not in waiting]
    if unknown:
        return [f"{_NOT_ORDERED}: vertex is not defined: {unknown[0]}"]
    try:
        TopologicalSorter(waiting).prepare()
    except CycleError:
        return [_NOT_ORDERED]
    return []
