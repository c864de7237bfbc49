"""The interface through which actions find nodes for tasks; the engine implements it."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol

import numpy as np

from stromboli.framework.engine.class_store import Classes
from stromboli.framework.engine.classes import NEVER, TaskClass
from stromboli.framework.engine.eviction_nodes import curable, foreseen, passes, ranking
from stromboli.framework.engine.fits import Fits
from stromboli.framework.engine.limited import limited_run
from stromboli.framework.engine.placement import Choice, Seen, Ties, chosen, first_of_best, one, run
from stromboli.framework.engine.refusals import refusals
from stromboli.framework.engine.rows import Bools, Floats
from stromboli.framework.engine.sampling import Sampler
from stromboli.framework.engine.unoffered import unoffered
from stromboli.framework.statement.operation_kind import OperationKind
from stromboli.model.task import Task
from stromboli.narration.observe import Teller


class Placer(Protocol):
    """Finds nodes.  ``within`` limits the search to some rows, shape (nodes,); None means all of them."""

    @property
    def own(self) -> Bools | None:
        """The rows that are taken before all others, shape (nodes,): those of a soft shard; None without one."""

    @property
    def samples(self) -> bool:
        """Whether each look sees a part of the nodes, and the next one goes on where it has ended."""

    def place(self, task: Task, within: Bools | None = None, *, room: bool = True) -> Choice | None:
        """The best node for ``task``: idle room first, then room about to become free; None when no node takes it.

        Without ``room`` amounts are not looked at (backfill).
        """

    def idle_row(self, task: Task) -> int:
        """The row that :meth:`place` gives ``task`` on idle room; -1 where there is none, or it takes a closer look."""

    def place_run(self, tasks: Sequence[Task], within: Bools | None = None) -> Choice | None:
        """Idle nodes for as many of equal ``tasks`` as fit, in order; None when they must be placed one by one."""

    def refusals(self, task: Task, within: Bools | None = None, *, room: bool = True) -> Fits:
        """Why no node takes ``task``."""

    def run_length(self, tasks: Sequence[Task]) -> int:
        """How many of ``tasks``, from the first on, can be placed in one step: every hook sees them alike."""

    def kind(self, task: Task) -> Hashable:
        """What ``task`` has in common with the tasks that get the same answers from all nodes."""

    def eligible(self, task: Task) -> Bools | list[bool]:
        """The nodes that no refusal excludes for the whole session, whatever is placed or evicted."""

    def hopeless(self, task: Task) -> bool:
        """Whether no node will ever take ``task``: it asks for what none offers."""

    # What evicting actions ask; amounts are not looked at.

    def curable(self, task: Task) -> Bools | list[bool]:
        """The nodes that ``task`` fits, or would fit once tasks are evicted, shape (nodes,)."""

    def ranking(self, task: Task, members: Bools) -> Floats | list[float]:
        """Scores of ``members`` among themselves, shape (nodes,); minus infinity for all other rows.

        Raises PluginError where a normalising score fails.
        """

    def sampled(self, members: Bools | list[bool]) -> Bools | list[bool]:
        """Those of ``members`` that an evicting action looks at: all, unless nodes are sampled."""

    def choose(self, task: Task, members: Bools) -> int:
        """The best row among ``members``, of which there is at least one."""

    def passes(self, task: Task, row: int) -> bool:
        """Whether no predicate at all speaks against ``task`` on ``row`` as it stands now."""

    def foresee(self, tasks: Sequence[Task], row: int, leaving: Sequence[Task]) -> list[float]:
        """The scores of ``row`` when each of ``tasks``, one after the other, has taken the place of one ``leaving``.

        As far as that is known without asking, and all of them pass: it may stop before the last one.
        """


class Engine:
    """The fast placer: one vector a task class, renewed where placements touch it.

    ``scores`` tells the scores of the nodes among which one is chosen, where it is wanted.
    """

    __slots__ = ("classes", "sampler", "scores", "ties", "unoffered")

    def __init__(
        self, classes: Classes, ties: Ties, sampler: Sampler | None = None, scores: Teller | None = None
    ) -> None:
        self.classes, self.ties, self.sampler, self.scores = classes, ties, sampler, scores
        self.unoffered = unoffered(classes.ledger.table)

    @property
    def own(self) -> Bools | None:
        """See :class:`Placer`."""
        return self.classes.own

    @property
    def samples(self) -> bool:
        """See :class:`Placer`."""
        return self.sampler is not None

    def place(self, task: Task, within: Bools | None = None, *, room: bool = True) -> Choice | None:
        """See :class:`Placer`."""
        if self.unoffered and room and self.hopeless(task):
            return None
        return self.best(self.classes.of(task, room=room), within, task)

    def best(self, cls: TaskClass, within: Bools | None, task: Task) -> Choice | None:
        """The best node that is looked at, for ``task``, which is one of ``cls``."""
        if self.sampler is not None:
            among = np.ones(len(cls.table), dtype=bool) if within is None else within
            within = self.sampler.looked_at(cls.fitting(within), among)
        return one(cls, self.ties, within, self._seen(cls, task), self.own)

    def idle_row(self, task: Task) -> int:
        """See :class:`Placer`."""
        cls = self.classes.best_of(task) if self.may_be_simple(task) else None
        return -1 if cls is None or not cls.simple else first_of_best(cls.best_now)

    def may_be_simple(self, task: Task) -> bool:
        """Whether the best of all nodes is taken, the first in ties, where ``task`` is of a simple class."""
        if self.sampler is not None or self.own is not None or self.ties.seed is not None or self.scores:
            return False
        return not (self.unoffered and self.unoffered.asked_by(task))

    def _seen(self, cls: TaskClass, task: Task) -> Seen | None:
        """What tells the scores among which a node is chosen for ``task``, where they leave a choice."""
        if (say := self.scores) is None:
            return None

        def seen(scores: Floats) -> None:
            rows = np.flatnonzero(scores > NEVER).tolist()
            if len(rows) > 1:
                say(task=task, scores={cls.table.statics.names[row]: float(scores[row]) for row in rows})

        return seen

    def place_run(self, tasks: Sequence[Task], within: Bools | None = None) -> Choice | None:
        """See :class:`Placer`."""
        if self.unoffered and self.hopeless(tasks[0]):
            return Choice([], OperationKind.ALLOCATE)
        cls = self.classes.of(tasks[0])
        way = limited_run if cls.global_filters else run
        return way(cls, len(tasks), within, self._seen(cls, tasks[0]))

    def refusals(self, task: Task, within: Bools | None = None, *, room: bool = True) -> Fits:
        """See :class:`Placer`."""
        if self.unoffered and room and self.unoffered.asked_by(task):
            return self.unoffered.refusals(task, within)
        return refusals(self.classes.of(task, room=room, scores=False), within, room=room)

    def run_length(self, tasks: Sequence[Task]) -> int:
        """See :class:`Placer`."""
        if self.unoffered and self.hopeless(tasks[0]):
            return 1
        runs = self.ties.seed is None and self.sampler is None and self.own is None and self.classes.of(tasks[0]).runs
        return self.classes.run_length(tasks) if runs else 1

    def hopeless(self, task: Task) -> bool:
        """See :class:`Placer`.  Where nodes are sampled, each look moves the place at which the next one begins."""
        return self.unoffered is not None and self.sampler is None and self.unoffered.asked_by(task)

    def kind(self, task: Task) -> Hashable:
        """See :class:`Placer`."""
        return self.classes.key(task)

    def eligible(self, task: Task) -> Bools:
        """See :class:`Placer`."""
        return self.classes.of(task, room=False, fresh=False, scores=False).static_ok

    def curable(self, task: Task) -> Bools:
        """See :class:`Placer`."""
        return curable(self.classes.of(task, room=False, fresh=False, scores=False))

    def ranking(self, task: Task, members: Bools) -> Floats:
        """See :class:`Placer`."""
        return ranking(self.classes.of(task, room=False), members)

    def sampled(self, members: Bools | list[bool]) -> Bools:
        """See :class:`Placer`."""
        found: Bools = np.asarray(members, dtype=bool)
        return found if self.sampler is None else self.sampler.looked_at(found, found)

    def choose(self, task: Task, members: Bools) -> int:
        """See :class:`Placer`."""
        return chosen(self.classes.of(task, room=False), self.ties, members)

    def passes(self, task: Task, row: int) -> bool:
        """See :class:`Placer`."""
        return passes(self.classes.of(task, room=False, scores=False), row)

    def foresee(self, tasks: Sequence[Task], row: int, leaving: Sequence[Task]) -> list[float]:
        """See :class:`Placer`."""
        alike, ledger = self.classes.run_length(tasks), self.classes.ledger
        leave, come = map(ledger.leaving, leaving[:alike]), ledger.coming(tasks[0])
        return foreseen(
            self.classes.of(tasks[0], room=False), row, [change for gone in leave for change in (gone, come)]
        )
