"""Why a job waited: its spans in a record, and at the beginning of each its way through that very cycle."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from stromboli.cluster.state import ClusterState
from stromboli.framework.config.registry import Registry
from stromboli.journal.checkpoint import Checkpoint, restored
from stromboli.journal.entries import Planned
from stromboli.journal.segments import Segment, segments
from stromboli.model.names import JOB_NAME
from stromboli.sim.explanation.explain import Explanation, explain
from stromboli.sim.planning import Planning
from stromboli.study.replay import Moment, Reading
from stromboli.study.story import Span, Story

MOST: Final = 50
"""Spans that are explained, the first ones; all are listed."""


class Past:
    """The spans of job ``uid`` (``namespace/podgroup`` or ``namespace/job``) between two times (seconds since 1970)."""

    def __init__(self, record: Path, uid: str, registry: Registry, since: float, until: float) -> None:
        self._registry, self._since, self._until = registry, since, until
        self._story = Story(uid)
        self._moment: Moment | None = None
        self._begins: dict[tuple[Path, int], Span] = {}
        self._segments = segments(record, since)

    def spans(self) -> list[Span]:
        """All spans.  Raises RecordError."""
        reading = Reading(self._registry)
        for segment in self._segments:
            if not reading.read(segment, self._begun, self._planned, until=self._until):
                break
        return self._story.spans

    def _begun(self, moment: Moment) -> None:
        self._moment = moment

    def _planned(self, planned: Planned) -> None:
        moment = self._moment
        if moment is not None and moment.cut.now >= self._since:
            self._story.uid = _group(moment.rim.state, self._story.uid)
            if self._story.look(moment.rim.state, moment.cut.now) and len(self._begins) < MOST:
                self._begins[moment.segment.path, moment.entry] = self._story.spans[-1]

    def explained(self) -> Iterator[tuple[Span, Explanation]]:
        """The first spans with explanations, where the job is there.  To be asked after :meth:`spans`."""
        for segment in self._segments:
            if any(path == segment.path for path, _ in self._begins):
                yield from self._of(segment)

    def _of(self, segment: Segment) -> list[tuple[Span, Explanation]]:
        found: list[tuple[Span, Explanation]] = []

        def begun(moment: Moment) -> None:
            span = self._begins.get((segment.path, moment.entry))
            if span is not None and self._story.uid in moment.rim.state.jobs:
                found.append((span, explain(planning_of(moment, self._registry), self._story.uid)))

        Reading(self._registry).read(segment, begun, until=self._until)
        return found


def _group(state: ClusterState, uid: str) -> str:
    """The PodGroup that is called ``uid``, or else that of the Volcano Job of that name; ``uid`` if there is none."""
    if uid in state.jobs:
        return uid
    name = uid.partition("/")[2]
    alike = (job for key, job in state.jobs.items() if key.startswith(f"{uid}-"))
    named = (job.uid for job in alike if any(one.annotations.get(JOB_NAME) == name for one in job.tasks.values()))
    return next(named, uid)


def planning_of(moment: Moment, registry: Registry) -> Planning:
    """The recorded cycle, run on a state of its own."""
    planning = Planning(moment.config, registry, now=moment.cut.now, seed=moment.cut.seed)
    planning.state = restored(Checkpoint(moment.rim.state).encode(), again=True)
    planning.run()
    return planning
