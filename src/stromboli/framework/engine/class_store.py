"""The task classes of a session, each made when it is first asked for."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from stromboli.framework.engine.classes import TaskClass
from stromboli.framework.engine.hooks import Hooks
from stromboli.framework.engine.rows import Bools
from stromboli.model.task import Task
from stromboli.narration.mute import Mute

if TYPE_CHECKING:
    from stromboli.framework.books.ledger import Ledger

KEPT = 256
"""How many classes keep their arrays; the one unused for longest is computed again when it is needed."""


class Classes:
    """All task classes of a session, made when first asked for, ``mute`` lifted: plugins explain them only then.

    ``own`` are the rows that are taken before all others, shape (nodes,); None: there are none.
    """

    __slots__ = ("_made", "_mute", "hooks", "ledger", "own")

    def __init__(self, hooks: Hooks, ledger: Ledger, mute: Mute | None = None, own: Bools | None = None) -> None:
        self.hooks, self.ledger, self._mute, self.own = hooks, ledger, mute or Mute(), own
        self._made: dict[Hashable, TaskClass] = {}

    def key(self, task: Task) -> Hashable:
        """What tells the classes apart: the template, and what the enabled hooks read of the task."""
        keys = self.hooks.keys
        return (task.template.number, *[key(task) for key in keys]) if keys else task.template.number

    def run_length(self, tasks: Sequence[Task]) -> int:
        """How many of ``tasks``, from the first on, are of one class."""
        keys, template = self.hooks.keys, tasks[0].template
        same = next((number for number, task in enumerate(tasks) if task.template is not template), len(tasks))
        for key in keys:
            own = key(tasks[0])
            same = next((number for number in range(1, same) if key(tasks[number]) != own), same)
        return same

    def best_of(self, task: Task) -> TaskClass:
        """The class of ``task``, of which ``best_now`` is up to date if it is simple."""
        made = self.of(task, fresh=False)
        if made.simple:
            made.refresh_best()
        return made

    def of(self, task: Task, *, room: bool = True, fresh: bool = True, scores: bool = True) -> TaskClass:
        """The class of ``task``; without ``room`` the one that does not look at amounts.

        Its rows are up to date, unless it need not be ``fresh``.  With ``scores`` nodes are scored where one may be
        chosen: an open one, or without ``room`` one that an eviction may open.
        """
        key = (room, self.key(task))
        made = self._made.pop(key, None)
        if made is None:
            with self._mute.lifted():
                made = TaskClass(self.hooks, self.ledger, task, room, scored=False)
            if len(self._made) >= KEPT:
                del self._made[next(iter(self._made))]
        made.task = task
        if fresh:
            made.refresh()
        if scores and not made.scored and (not room or made.open.any()):
            with self._mute.lifted():
                made.add_scores()
        self._made[key] = made
        return made
