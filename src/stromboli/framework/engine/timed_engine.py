"""How long the stages of a placement take, for observers that want to know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stromboli.framework.engine.class_store import Classes
from stromboli.framework.engine.hooks import hooks_of
from stromboli.framework.engine.placement import Choice, Ties, first_of_best
from stromboli.framework.engine.placer import Engine
from stromboli.framework.engine.rows import Bools
from stromboli.framework.engine.sampling import Sampler, sampler_of
from stromboli.framework.engine.shards import shard_rules
from stromboli.framework.extension.answers import Answers
from stromboli.model.task import Task
from stromboli.narration.observe import Observer, Several, Teller, wanting
from stromboli.narration.spans import span

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

STAGE = "stage"


def engine_of(session: ClusterView, answers: Answers, ties: Ties) -> Engine:
    """The engine that asks the plugins which are in the session, whose trials are silent."""
    fences, own = shard_rules(session.snapshot.shard, session.table)
    classes = Classes(hooks_of(answers, fences), session.ledger, session.narrator.mute, own)
    listeners = wanting(session.narrator.observer, "metric.stage_duration")
    if not listeners:
        return Engine(classes, ties, sampler_of(session), session.tells("scores"))
    observer = listeners[0] if len(listeners) == 1 else Several(listeners)
    return StagedEngine(classes, ties, observer, sampler_of(session), session.tells("scores"))


class StagedEngine(Engine):
    """Announces two spans a placement, or a run of placements in one step.

    ``Predicate`` is the renewal of what the nodes say to the class of the task, filters and scores together: they are
    looked at in one go.  ``Scoring`` is the choice among them; where no node is chosen it never ends.
    """

    __slots__ = ("_predicate", "_scoring")

    def __init__(
        self, classes: Classes, ties: Ties, observer: Observer, sampler: Sampler | None, scores: Teller | None
    ) -> None:
        super().__init__(classes, ties, sampler, scores)
        self._predicate, self._scoring = span(observer, STAGE, "Predicate"), span(observer, STAGE, "Scoring")

    def place(self, task: Task, within: Bools | None = None, *, room: bool = True) -> Choice | None:
        """See :class:`~stromboli.framework.engine.placer.Placer`."""
        if self.unoffered and room and self.hopeless(task):
            return None
        (started, ended), (scoring_started, scoring_ended) = self._predicate, self._scoring
        started()
        made = self.classes.of(task, room=room)
        ended()
        scoring_started()
        choice = self.best(made, within, task)
        if choice is not None:
            scoring_ended()
        return choice

    def idle_row(self, task: Task) -> int:
        """See :class:`~stromboli.framework.engine.placer.Placer`.

        Where it is -1 no span ends, because :meth:`place` announces both again; so ``Predicate`` ends with the choice.
        """
        if not self.may_be_simple(task):
            return -1
        (started, ended), (scoring_started, scoring_ended) = self._predicate, self._scoring
        started()
        made = self.classes.best_of(task)
        if not made.simple:
            return -1
        scoring_started()
        row = first_of_best(made.best_now)
        if row >= 0:
            ended()
            scoring_ended()
        return row

    def run_length(self, tasks: Sequence[Task]) -> int:
        """See :class:`~stromboli.framework.engine.placer.Placer`."""
        started, ended = self._predicate
        started()
        length = super().run_length(tasks)
        ended()
        return length

    def place_run(self, tasks: Sequence[Task], within: Bools | None = None) -> Choice | None:
        """See :class:`~stromboli.framework.engine.placer.Placer`."""
        started, ended = self._scoring
        started()
        choice = super().place_run(tasks, within)
        if choice is not None and choice.rows:
            ended()
        return choice
