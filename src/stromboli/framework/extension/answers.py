"""What the plugins of a session answer: their hooks by extension point, and what is compiled from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, NamedTuple

from stromboli.framework.books.priority_queue import Order
from stromboli.framework.config.config import PluginOption
from stromboli.framework.extension.contract import A_ROW_EACH, SCORES_OF_A_RUN, rule_of, rule_of_row
from stromboli.framework.extension.guarded import guarded
from stromboli.framework.extension.hook import Hook
from stromboli.framework.extension.merge import All, FirstOpinion
from stromboli.framework.extension.plugin import Plugin
from stromboli.framework.extension.points import POINTS
from stromboli.model.job import Job

Function = Callable[..., Any]


class Answer(NamedTuple):
    """One hook of one plugin in a session."""

    tier: int
    plugin: Plugin
    hook: Hook
    function: Function

    @property
    def row(self) -> Function | None:
        """The one-node form of a vector hook, if it names one."""
        plugin, hook = self.plugin, self.hook
        return guarded(plugin, hook, getattr(plugin, hook.row), rule_of_row) if hook.row else None

    @property
    def normalise(self) -> Function:
        """What makes scores of the raw ones of this hook."""
        return guarded(self.plugin, self.hook, getattr(self.plugin, self.hook.normalise), lambda _: A_ROW_EACH)

    @property
    def limit(self) -> Function | None:
        """What tells how refusals follow from placements, if this hook names it."""
        plugin, hook = self.plugin, self.hook
        return guarded(plugin, hook, getattr(plugin, hook.limit), lambda _: None) if hook.limit else None

    @property
    def alike(self) -> Function | None:
        """What tells the raw score that some rows have in common, if this hook names it."""
        plugin, hook = self.plugin, self.hook
        return guarded(plugin, hook, getattr(plugin, hook.alike), lambda _: SCORES_OF_A_RUN) if hook.alike else None


class Answers:
    """All hooks of a session in the order of the configuration, tier by tier."""

    def __init__(self, tiers: int) -> None:
        self.tiers = tiers
        self._all: list[Answer] = []
        self._of: dict[tuple[str, str], list[Answer]] = {}

    def take(self, tier: int, option: PluginOption, plugin: Plugin, hooks: Iterable[tuple[Hook, Function]]) -> None:
        """Note the hooks of ``plugin`` whose points are switched on."""
        self._of = {}
        self._all += [
            Answer(tier, plugin, hook, guarded(plugin, hook, function, rule_of))
            for hook, function in hooks
            if option.enabled(hook.point)
        ]

    def register(self, tier: int, option: PluginOption, plugin: Plugin, hook: Hook, function: Function) -> None:
        """Note a function registered while the session opens; it replaces an earlier one of that plugin and point."""
        if not hook.point.several:
            kept = [
                a
                for a in self._all
                if a.plugin is not plugin or a.hook.point is not hook.point or a.hook.form != hook.form
            ]
            self._all = kept
        self.take(tier, option, plugin, [(hook, function)])

    def drop(self, plugin: str) -> None:
        """Forget every hook of ``plugin``."""
        self._all = [answer for answer in self._all if answer.plugin.name != plugin]
        self._of.clear()

    def of(self, point: str, form: str = "scalar") -> list[Answer]:
        """The hooks of one point and form, in order; a list to read, as it is kept."""
        if not self._of:
            for answer in sorted(self._all, key=lambda answer: answer.tier):
                self._of.setdefault((answer.hook.point.name, answer.hook.form), []).append(answer)
        return self._of.get((point, form), [])

    def chain(self, point: str) -> tuple[tuple[Function, ...], ...]:
        """The functions of one point, tier by tier."""
        answers = self.of(point)
        return tuple([tuple([a.function for a in answers if a.tier == tier]) for tier in range(self.tiers)])

    def tiered(self, point: str) -> list[list[Answer]]:
        """The hooks of one point, tier by tier, without the tiers that have none."""
        return [list(tier) for _, tier in groupby(self.of(point), key=lambda answer: answer.tier)]

    def protecting(self, point: str) -> list[Answer]:
        """The hooks of one point whose refusal is absolute."""
        return [answer for answer in self.of(point) if answer.hook.protects]

    def guards(self, point: str) -> list[Function]:
        """The functions of one point whose refusal is absolute."""
        return [answer.function for answer in self.protecting(point)]

    def key(self, point: str) -> Function | None:
        """One sort key for an order point; None when a plugin in the order gives none."""
        merge, keys = POINTS[point].merge, self.batch_forms(point, "key")
        return merge.compile_key(keys) if isinstance(merge, FirstOpinion) and keys is not None else None

    def opinion(self, point: str) -> Function | None:
        """One sort key of the plugins alone, without the tie-breaker; None when one of them gives none."""
        keys = self.batch_forms(point, "key")
        if keys is None:
            return None
        kept = point == "job_order" and all(answer.hook.own for answer in self.of(point, "key"))
        return until_it_moves(keys) if kept else lambda item: tuple([key(item) for key in keys])

    @property
    def has_own_orders(self) -> bool:
        """Whether only a move of a job, or of the job of a task, changes where it comes in order."""
        return all(answer.hook.own for point in ("job_order", "task_order") for answer in self.of(point, "key"))

    def forms(self, point: str, form: str) -> dict[int, Function]:
        """The functions of one point and form, by the identity of the plugin."""
        return {id(answer.plugin): answer.function for answer in self.of(point, form)}

    def batch_forms(self, point: str, form: str = "many") -> list[Function] | None:
        """The functions of ``form`` of the plugins at one point; None when one of these plugins has none."""
        forms, asked = self.forms(point, form), self._asked(point)
        return [forms[id(a.plugin)] for a in asked] if all(id(a.plugin) in forms for a in asked) else None

    def _asked(self, point: str) -> list[Answer]:
        """The hooks of one point that are asked: all of them, or those of the first tier where that one decides."""
        merge, tiers = POINTS[point].merge, self.tiered(point)
        return tiers[0] if tiers and isinstance(merge, All) and merge.by_tier else self.of(point)

    def has_own(self, point: str, form: str = "scalar") -> bool:
        """Whether all plugins at one point give that form, and promise ``own=`` of it."""
        return self.batch_forms(point, form) is not None and all(answer.hook.own for answer in self.of(point, form))

    def has_some_own(self, point: str) -> bool:
        """Whether one of the plugins that are asked at a point promises ``own=``."""
        return any(answer.hook.own for answer in self._asked(point))

    def order(self, point: str, compare: Function) -> Order[Any]:
        """The order of one point, by comparison and by key."""
        return Order(compare, self.key(point), self.opinion(point))

    def in_order(self, *answers: Answer) -> list[Answer]:
        """``answers`` in the order in which the plugins gave them."""
        places = {id(answer): place for place, answer in enumerate(self._all)}
        return sorted(answers, key=lambda answer: places[id(answer)])


def until_it_moves(keys: list[Function]) -> Function:
    """The sort key of a job, kept until a task of the job moves."""
    known: dict[str, tuple[int, tuple[Any, ...]]] = {}

    def opinion(job: Job) -> tuple[Any, ...]:
        found = known.get(job.uid)
        if found is None or found[0] != job.sums.moves:
            found = known[job.uid] = job.sums.moves, tuple([key(job) for key in keys])
        return found[1]

    return opinion
