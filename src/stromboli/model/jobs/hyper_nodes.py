"""In which hypernodes a job lies, and for which it waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec


class JobHyperNodes(msgspec.Struct, frozen=True):
    """The hypernodes of one job; copies of the job share the value.

    ``allocated`` holds what is placed of the job, ``of_parts`` what is placed of its sub-jobs, by their ids;
    ``nominated`` are those in which sub-jobs wait for room.
    """

    allocated: str = ""
    of_parts: Mapping[str, str] = {}
    nominated: Mapping[str, str] = {}

    def with_allocated(self, hyper_node: str) -> JobHyperNodes:
        """The same, with the whole job in ``hyper_node``."""
        return JobHyperNodes(hyper_node, self.of_parts, self.nominated)

    def with_nominated(self, places: Iterable[tuple[str, str]]) -> JobHyperNodes:
        """The same, with sub-jobs, by their ids, waiting for room in hypernodes; an empty name: no longer."""
        nominated = dict(self.nominated)
        for part, hyper_node in places:
            if hyper_node:
                nominated[part] = hyper_node
            else:
                nominated.pop(part, None)
        return JobHyperNodes(self.allocated, self.of_parts, nominated)


NO_HYPER_NODES = JobHyperNodes()
"""A job that lies in no hypernode and waits for none."""
