"""Figures of the controllers, read when metrics are asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric

from stromboli.controllers.manager import Manager
from stromboli.live.process.gauges import Figures
from stromboli.metrics.descriptions import FLOW_PHASES, GROUP_PHASES, JOB_PHASES, flows_ended, groups_in, jobs_ended
from stromboli.metrics.families import collected


class ControlGauges(Figures):
    """Shows what a manager has counted and sees, in ``registry``, to whichever thread reads them."""

    def __init__(self, registry: CollectorRegistry, manager: Manager) -> None:
        self._manager = manager
        super().__init__(registry)

    def collect(self) -> Iterator[Metric]:
        """All figures as they stand; every queue has a series of each phase."""
        world = self._manager.world
        endings = [(key, counts.copy()) for key, counts in list(self._manager.jobs.endings.items())]
        queues = [queue.metadata.name for queue in list(world.queues.values())]
        groups = {name: Counter(one.status.phase for one in list(world.pod_groups.of_queue(name))) for name in queues}
        for phase in GROUP_PHASES:
            yield collected(groups_in(phase), (((name,), groups[name][phase]) for name in queues))
        for phase in JOB_PHASES:
            ended = (
                (key, queue, times) for key, counts in endings for (queue, to), times in counts.items() if to == phase
            )
            yield collected(jobs_ended(phase), ((("/".join(key), queue), times) for key, queue, times in ended))
        yield from self._flows()

    def _flows(self) -> Iterator[Metric]:
        ended = self._manager.job_flows.endings.copy()
        for phase in FLOW_PHASES:
            yield collected(
                flows_ended(phase), (((name,), times) for (name, to), times in ended.items() if to == phase)
            )
