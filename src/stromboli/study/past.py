"""Why a job waited: its spans in a record, and for each cause its way through the first cycle that had it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from stromboli.cluster.state import ClusterState
from stromboli.framework.config.registry import Registry
from stromboli.journal.checkpoint import Checkpoint, restored
from stromboli.journal.segments import Segment, begun, segments
from stromboli.sim.explanation.explain import Explanation, explain, names_of
from stromboli.sim.planning import Planning
from stromboli.study.replay import Moment, Reading, standings
from stromboli.study.story import Span, Story

MOST: Final = 50
"""Causes that are explained, the first ones; all spans are listed."""
NUMBER: Final = re.compile(r"\d+")


class Past:
    """The spans of job ``uid`` (``namespace/podgroup`` or ``namespace/job``) between two times (seconds since 1970)."""

    def __init__(self, record: Path, uid: str, registry: Registry, since: float, until: float) -> None:
        self._registry, self._since, self._until = registry, since, until
        self._story = Story(uid)
        self._causes: set[tuple[object, ...]] = set()
        self._begins: dict[Path, dict[int, Span]] = {}
        self._segments = segments(record, since)

    def spans(self) -> list[Span]:
        """All spans.  Raises RecordError."""
        for segment in self._segments:
            if begun(segment.path) > self._until:
                break
            for state, entry, now in standings(segment, self._until):
                if now >= self._since:
                    self._look(segment, state, entry, now)
        return self._story.spans

    def _look(self, segment: Segment, state: ClusterState, entry: int, now: float) -> None:
        self._story.uid = _group(state, self._story.uid)
        if self._story.look(state, now):
            span = self._story.spans[-1]
            cause = cause_of(span)
            if cause not in self._causes and len(self._causes) < MOST:
                self._causes.add(cause)
                self._begins.setdefault(segment.path, {})[entry] = span

    def explained(self) -> Iterator[tuple[Span, Explanation]]:
        """The first span of each cause, explained, where the job is there.  To be asked after :meth:`spans`."""
        for segment in self._segments:
            if begins := self._begins.get(segment.path):
                yield from self._of(segment, begins)

    def _of(self, segment: Segment, begins: Mapping[int, Span]) -> list[tuple[Span, Explanation]]:
        found: list[tuple[Span, Explanation]] = []

        def look(moment: Moment) -> None:
            span = begins.get(moment.entry)
            if span is not None and self._story.uid in moment.rim.state.jobs:
                found.append((span, explain(planning_of(moment, self._registry), self._story.uid)))

        last = max(span.since for span in begins.values())
        Reading(self._registry).read(segment, look, until=last)
        return found


def cause_of(span: Span) -> tuple[object, ...]:
    """Equal for spans that tell the same but for numbers: so many nodes without room, so many pods that wait."""
    return span.phase, bool(span.placed), span.placed >= span.pods, NUMBER.sub("#", span.why)


def _group(state: ClusterState, uid: str) -> str:
    """The PodGroup that is called ``uid``, or else that of the Volcano Job of that name; ``uid`` if there is none."""
    if uid in state.jobs:
        return uid
    alike = (job for key, job in state.jobs.items() if key.startswith(f"{uid}-"))
    return next((job.uid for job in alike if uid in names_of(job)), uid)


def planning_of(moment: Moment, registry: Registry) -> Planning:
    """The recorded cycle, run on a state of its own."""
    planning = Planning(moment.config, registry, now=moment.cut.now, seed=moment.cut.seed)
    planning.state = restored(Checkpoint(moment.rim.state).encode(), again=True)
    planning.run()
    return planning
