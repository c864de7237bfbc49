"""How long the stages of a placement take, for observers that want to know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stromboli.framework.classes import Classes
from stromboli.framework.observe import Observer, Several, wanting
from stromboli.framework.placement import Choice, Ties
from stromboli.framework.placer import Engine
from stromboli.framework.rows import Bools
from stromboli.framework.sampling import Sampler, sampler_of
from stromboli.model.task import Task

if TYPE_CHECKING:
    from stromboli.framework.session import Session

STAGE = "stage"


def engine_of(session: Session) -> Engine:
    """The engine that asks the plugins which are in the session."""
    classes = Classes(session.answers.hooks(), session.ledger)
    listeners = wanting(session.observer, "metric.stage_duration")
    if not listeners:
        return Engine(classes, session.ties, sampler_of(session))
    observer = listeners[0] if len(listeners) == 1 else Several(listeners)
    return StagedEngine(classes, session.ties, observer, sampler_of(session))


class StagedEngine(Engine):
    """Announces two spans a placement, or a run of placements in one step.

    ``Predicate`` is the renewal of what the nodes say to the class of the task, filters and scores together: they are
    looked at in one go.  ``Scoring`` is the choice among them; where no node is chosen it never ends.
    """

    __slots__ = ("_ended", "_started")

    def __init__(self, classes: Classes, ties: Ties, observer: Observer, sampler: Sampler | None = None) -> None:
        super().__init__(classes, ties, sampler)
        self._started, self._ended = observer.started, observer.ended

    def place(self, task: Task, within: Bools | None = None, *, room: bool = True) -> Choice | None:
        """See :class:`~stromboli.framework.placer.Placer`."""
        started, ended = self._started, self._ended
        started(STAGE, "Predicate")
        made = self.classes.of(task, room=room)
        ended(STAGE, "Predicate")
        started(STAGE, "Scoring")
        choice = self.best(made, within)
        if choice is not None:
            ended(STAGE, "Scoring")
        return choice

    def run_length(self, tasks: Sequence[Task]) -> int:
        """See :class:`~stromboli.framework.placer.Placer`."""
        self._started(STAGE, "Predicate")
        length = super().run_length(tasks)
        self._ended(STAGE, "Predicate")
        return length

    def place_run(self, tasks: Sequence[Task], within: Bools | None = None) -> Choice | None:
        """See :class:`~stromboli.framework.placer.Placer`."""
        self._started(STAGE, "Scoring")
        choice = super().place_run(tasks, within)
        if choice is not None and choice.rows:
            self._ended(STAGE, "Scoring")
        return choice
