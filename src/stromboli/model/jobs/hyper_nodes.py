"""In which hypernodes a job lies, and for which it waits."""

from __future__ import annotations

from collections.abc import Mapping

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

    def with_nominated(self, part: str, hyper_node: str) -> JobHyperNodes:
        """The same, with ``part`` waiting for room in ``hyper_node``; an empty name: no longer."""
        others = {uid: name for uid, name in self.nominated.items() if uid != part or hyper_node}
        return JobHyperNodes(self.allocated, self.of_parts, {**others, part: hyper_node} if hyper_node else others)


NO_HYPER_NODES = JobHyperNodes()
"""A job that lies in no hypernode and waits for none."""
