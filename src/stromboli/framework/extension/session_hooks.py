"""The hooks of a session's plugins, and what is compiled from them."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from stromboli.errors import PluginError
from stromboli.framework.books.priority_queue import Order
from stromboli.framework.config.compat import Compat
from stromboli.framework.config.config import PluginOption
from stromboli.framework.extension.answers import Answers
from stromboli.framework.extension.ask import Questions, unguarded
from stromboli.framework.extension.handlers import Handler, Handlers
from stromboli.framework.extension.hook import Hook, by_template
from stromboli.framework.extension.plugin import Plugin
from stromboli.framework.extension.points import POINTS
from stromboli.framework.extension.prefilters import JobPrefilter, OwnVote, job_prefilter, own_vote
from stromboli.model.task import Task


class SessionHooks:
    """What the plugins of a session answer, and the forms in which the scheduler asks for it.

    ``answers`` are the hooks themselves, ``handlers`` those that are called for every task placed or removed,
    ``orders`` the orders by point.  ``task_keys`` are the sort keys of tasks, None where a plugin gives none.  By point
    ``batch_forms`` are the forms for runs of equal tasks, ``job_prefilters`` rule out all victims of a job at once, and
    ``own_votes`` are votes on victims that may be kept; None where a plugin has none.  ``own_quotas`` says by point
    whether what plugins allow a queue follows from what it holds.  ``by_template`` says that whether a task may be
    placed at all follows from its template, ``sates_settled`` that no job starves that has all it wants.  ``opening``
    is the plugin that opens at the moment, with its tier and its options.
    """

    def __init__(self, tiers: int) -> None:
        self.answers = Answers(tiers)
        self.handlers = Handlers()
        self.opening: tuple[int, PluginOption, Plugin] | None = None
        self.orders: dict[str, Order[Any]] = {}
        self.task_keys: list[Callable[[Task], Any]] | None = None
        self.batch_forms: dict[str, list[Callable[..., int]] | None] = {}
        self.job_prefilters: dict[str, JobPrefilter | None] = {}
        self.own_votes: dict[str, OwnVote | None] = {}
        self.own_quotas: dict[str, bool] = {}
        self.by_template = self.sates_settled = False

    @property
    def opening_name(self) -> str:
        """The name of the plugin that opens at the moment; empty when none does."""
        return self.opening[2].name if self.opening else ""

    def register(self, point: str, plugin: str, function: Callable[..., Any], form: str = "scalar") -> None:
        """Answer an extension point with ``function`` for ``plugin``; only while that plugin opens.

        Raises PluginError for an unknown point or at another time.
        """
        if point not in POINTS or self.opening is None or self.opening[2].name != plugin:
            raise PluginError(
                plugin, f"cannot register {point}: only known points, in the plugin's own on_session_open", point=point
            )
        tier, option, opened = self.opening
        self.answers.register(tier, option, opened, Hook(POINTS[point], form), function)  # type: ignore[arg-type]

    def tasks_in_turn(self, tasks: list[Task]) -> list[Task]:
        """``tasks`` of one job in the order in which they are placed."""
        if len(tasks) < 2:
            return tasks
        indexed = sum([task.index >= 0 for task in tasks])
        if self.task_keys is None or 0 < indexed < len(tasks):
            return self.orders["task_order"].sorted(tasks)
        try:
            return _key_by_key(tasks, self.task_keys)
        except TypeError:  # where a plugin's key compares only with those of tasks that earlier keys don't tell apart
            return self.orders["task_order"].sorted(tasks)

    def compile(self, compat: Compat) -> Questions:
        """Compile everything from the answers as they are now; returns the merged functions."""
        answers, restart = self.answers, compat.asks("agree-restart")
        guards_of = unguarded if compat.asks("protections-absolute") else answers.guards
        asked = Questions(answers.chain, restart=restart, guards_of=guards_of)
        for name in ("job_order", "queue_order", "task_order", "sub_job_order"):
            self.orders[name] = answers.order(name, getattr(asked, name))
        self.task_keys = [*answers.forms("task_order", "key").values()] if self.orders["task_order"].key else None
        self.batch_forms = {name: answers.batch_forms(name) for name in _RUNS}
        self.by_template = all(answer.hook.key is by_template for answer in answers.of("pre_predicate"))
        self.sates_settled = answers.has_some_own("job_starving")
        self.own_quotas = {name: answers.has_own(name, form) for name, form in _QUOTAS.items()}
        self.job_prefilters = {name: job_prefilter(answers, name, restart) for name in _VICTIMS}
        kept = not restart and not compat.asks("protections-absolute") and answers.has_own_orders
        self.own_votes = {name: own_vote(answers, name) if kept else None for name in _VICTIMS}
        self.handlers.allocate = _handlers(answers, "on_allocate")
        self.handlers.deallocate = _handlers(answers, "on_deallocate")
        return asked


_TURN: Final = attrgetter("index", "created", "uid")
"""The order of tasks that plugins leave open."""

_RUNS: Final = ("allocatable", "job_ready", "job_starving", "sub_job_ready")
"""The points that are asked about runs of equal tasks."""

_QUOTAS: Final = {"allocatable": "many", "preemptive": "scalar"}
"""The points at which plugins say what a queue may have, with the form that makes the promise."""

_VICTIMS: Final = ("preemptable", "reclaimable")
"""The points at which plugins name victims for one task."""


def _key_by_key(tasks: list[Task], keys: list[Callable[[Task], Any]]) -> list[Task]:
    """``tasks`` by keys of which the first one counts most, sooner than by tuples of them."""
    found = sorted(tasks, key=_TURN)
    for key in reversed(keys):  # each sort leaves equal ones in the order of those before it
        found.sort(key=key)
    return found


def _handlers(answers: Answers, point: str) -> list[Handler]:
    forms = answers.forms(point, "many")
    ones = [Handler(a.function, forms.pop(id(a.plugin), None)) for a in answers.of(point)]
    return [*ones, *(Handler(None, function) for function in forms.values())]


__all__ = ["SessionHooks"]
