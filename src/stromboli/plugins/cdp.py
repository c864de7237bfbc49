"""cdp: a pod that has just got its place keeps it for a while (cooldown protection)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stromboli.errors import DurationError
from stromboli.model.names import CONDITION_TRUE, COOLDOWN_TIME, POD_RUNNING
from stromboli.model.task import Task
from stromboli.model.values import duration
from stromboli.plugin import Plugin, preemptable, reclaimable

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView


class Cdp(Plugin, trusted=True):
    """Keeps running pods from being victims for the time that they ask for, counted from when they were scheduled.

    The time is the pod's label ``volcano.sh/cooldown-time``, else its annotation of that name; an unreadable one
    protects nothing.
    """

    name = "cdp"
    depends_on_time = True

    def on_session_open(self, session: ClusterView) -> None:
        """Note the time."""
        self.now = session.now
        self.say_invalid = session.tells("cdp_invalid")
        self.say_victims = session.tells("cdp_victims")
        self.say_spared = session.tells("spared")
        if say := session.tells("cdp_opened"):
            say()

    @preemptable
    def cooled_down(self, preemptor: Task, preemptees: Sequence[Task]) -> list[Task]:
        """The candidates whose time is over, or that have none."""
        victims = [task for task in preemptees if self._is_cool(task)]
        if self.say_victims:
            self.say_victims(victims=[task.key for task in victims])
        return victims

    @reclaimable
    def cooled_down_of_others(self, reclaimer: Task, reclaimees: Sequence[Task]) -> list[Task]:
        """See :meth:`cooled_down`."""
        return self.cooled_down(reclaimer, reclaimees)

    def _is_cool(self, task: Task) -> bool:
        left = self.protected_until(task) - self.now
        if left > 0 and self.say_spared:
            self.say_spared(plugin=self.name, task=task.key, why=f"its cooldown time ends in {left:.0f} s")
        return left <= 0

    def protected_until(self, task: Task) -> float:
        """When the protection of ``task`` ends, in seconds since 1970; 0 for one that has none."""
        written = task.labels.get(COOLDOWN_TIME, task.annotations.get(COOLDOWN_TIME))
        scheduled = task.condition
        if written is None or task.phase != POD_RUNNING or scheduled is None or scheduled.status != CONDITION_TRUE:
            return 0.0
        return scheduled.since + self._wait(written)

    def _wait(self, written: str) -> float:
        """Seconds of the cooldown time; minus infinity, after telling, where it cannot be read."""
        try:
            return duration.seconds(written)
        except DurationError:
            if self.say_invalid:
                self.say_invalid(name=COOLDOWN_TIME, value=written)
            return float("-inf")
