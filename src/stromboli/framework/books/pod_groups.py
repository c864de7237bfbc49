"""What a session notes for the PodGroups of its jobs until it closes."""

from __future__ import annotations

from stromboli.api.scheduling import PodGroupCondition
from stromboli.framework.books.plan import Event, Plan
from stromboli.model.job import Job
from stromboli.model.values.times import stamp


class PodGroups:
    """New conditions and events of PodGroups.

    ``conditions`` are by job all that the PodGroup shall have, where that differs from what it has.  ``unschedulable``
    are the jobs that got the condition of this type, ``moved`` those whose hypernodes have changed.
    """

    def __init__(self, plan: Plan, now: float) -> None:
        self._plan, self._now = plan, now
        none = PodGroupCondition()
        self._last = none, none
        self.conditions: dict[str, tuple[PodGroupCondition, ...]] = {}
        self.unschedulable: set[str] = set()
        self.moved: set[str] = set()

    def set_condition(self, job: Job, condition: PodGroupCondition) -> None:
        """Replace the first condition of the same type, or add one; one that says nothing new is not written again."""
        if condition.type == "Unschedulable" and condition.status == "True":
            self.unschedulable.add(job.uid)
        conditions = self.conditions.get(job.uid, job.conditions)
        for place, old in enumerate(conditions):
            if old.type == condition.type:
                if (old.status, old.reason, old.message) != (condition.status, condition.reason, condition.message):
                    others = conditions[:place], conditions[place + 1 :]
                    self.conditions[job.uid] = (*others[0], self._timed(condition), *others[1])
                return
        self.conditions[job.uid] = (*conditions, self._timed(condition))

    def clear_condition(self, job: Job, kind: str) -> None:
        """Remove the conditions of type ``kind``."""
        conditions = self.conditions.get(job.uid, job.conditions)
        if kind in [condition.type for condition in conditions]:
            self.conditions[job.uid] = tuple(condition for condition in conditions if condition.type != kind)

    def record_event(self, job: Job, kind: str, reason: str, message: str) -> None:
        """Have an event recorded on the PodGroup of ``job``."""
        self._plan.events.append(Event("PodGroup", job.uid, kind, reason, message))

    def _timed(self, condition: PodGroupCondition) -> PodGroupCondition:
        if self._last[0] is not condition:  # most jobs get one and the same
            kind, status, reason, message = condition.type, condition.status, condition.reason, condition.message
            timed = PodGroupCondition(kind, status, self._plan.session, stamp(self._now), reason, message)
            self._last = condition, timed
        return self._last[1]


__all__ = ["PodGroups"]
