"""Opening a session: plugins are made and asked for their hooks, and the hooks become the session's questions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from stromboli.errors import PluginError
from stromboli.framework.ask import compile_points
from stromboli.framework.choosers import Choosers, Mapped
from stromboli.framework.classes import Hooks
from stromboli.framework.config import PluginOption
from stromboli.framework.contract import A_ROW_EACH, Rule, held_to, rule_of, rule_of_row
from stromboli.framework.direct import questions
from stromboli.framework.handlers import Handler
from stromboli.framework.hook import Hook
from stromboli.framework.merge import FirstOpinion
from stromboli.framework.plugin import Plugin
from stromboli.framework.points import POINTS
from stromboli.framework.rows import Fit, Score, fit_of, score_of
from stromboli.framework.turns import Order

if TYPE_CHECKING:
    from stromboli.framework.session import Session

Function = Callable[..., Any]

OUR_OWN = "stromboli.plugins."
"""Plugins from this package are not guarded: an error in them is an error in the scheduler."""


class PluginFailed(Exception):
    """A plugin raised; carries its name.  It never leaves the cycle."""

    def __init__(self, plugin: str, error: Exception) -> None:
        super().__init__(f"{plugin}: {type(error).__name__}: {error}")
        self.plugin = plugin


class Answer(NamedTuple):
    """One hook of one plugin in a session."""

    tier: int
    plugin: Plugin
    hook: Hook
    function: Function

    @property
    def row(self) -> Function | None:
        """The form for one node that stands beside a vector hook, if it names one."""
        plugin, hook = self.plugin, self.hook
        return guarded(plugin, hook, getattr(plugin, hook.row), rule_of_row(hook)) if hook.row else None

    @property
    def normalise(self) -> Function:
        """What makes scores of the raw ones of this hook."""
        return guarded(self.plugin, self.hook, getattr(self.plugin, self.hook.normalise), A_ROW_EACH)


class Answers:
    """All hooks of a session in the order of the configuration, tier by tier."""

    def __init__(self, tiers: int) -> None:
        self.tiers = tiers
        self._all: list[Answer] = []

    def take(self, tier: int, option: PluginOption, plugin: Plugin, hooks: Iterable[tuple[Hook, Function]]) -> None:
        """Note the hooks of ``plugin`` whose points are switched on."""
        for hook, function in hooks:
            if option.enabled(hook.point):
                self._all.append(Answer(tier, plugin, hook, guarded(plugin, hook, function, rule_of(hook))))

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

    def of(self, point: str, form: str = "scalar") -> list[Answer]:
        """The hooks of one point and form, in order."""
        found = [a for a in self._all if a.hook.point.name == point and a.hook.form == form]
        return sorted(found, key=lambda answer: answer.tier)

    def chain(self, point: str) -> tuple[tuple[Function, ...], ...]:
        """The functions of one point, tier by tier."""
        answers = self.of(point)
        return tuple(tuple(a.function for a in answers if a.tier == tier) for tier in range(self.tiers))

    def guards(self, point: str) -> list[Function]:
        """The functions of one point whose refusal is absolute."""
        return [answer.function for answer in self.of(point) if answer.hook.protects]

    def key(self, point: str) -> Function | None:
        """One sort key for an order point; None when a plugin in the order gives none."""
        merge, keys = POINTS[point].merge, self._keys(point)
        return merge.compile_key(keys) if isinstance(merge, FirstOpinion) and keys is not None else None

    def opinion(self, point: str) -> Function | None:
        """One sort key of the plugins alone, without the tie-breaker; None when one of them gives none."""
        keys = self._keys(point)
        return None if keys is None else lambda item: tuple([key(item) for key in keys])

    def _keys(self, point: str) -> list[Function] | None:
        keys = {id(answer.plugin): answer.function for answer in self.of(point, "key")}
        compared = self.of(point)
        return [keys[id(a.plugin)] for a in compared] if all(id(a.plugin) in keys for a in compared) else None

    def many(self, point: str) -> list[Function] | None:
        """The forms of one point for runs of tasks; None when a plugin at the point has none."""
        forms = {id(answer.plugin): answer.function for answer in self.of(point, "many")}
        asked = self.of(point)
        return [forms[id(a.plugin)] for a in asked] if all(id(a.plugin) in forms for a in asked) else None

    def may(self, point: str, restart: bool) -> Function | None:
        """Whether any task of a job could be named at a point of victims; None when no tier can rule any job out.

        A tier names only whom all its voters name; with ``restart`` perhaps whom only one of them names.
        """
        forms = {id(answer.plugin): answer.function for answer in self.of(point, "job")}
        voters = self.of(point)
        guards = [forms[id(a.plugin)] for a in voters if a.hook.protects and id(a.plugin) in forms and not restart]
        tiers = [[forms.get(id(a.plugin)) for a in voters if a.tier == tier] for tier in range(self.tiers)]
        weigh = any if restart else all
        known = [[form for form in tier if form is not None] for tier in tiers if tier]
        if any((None in tier) if restart else not any(tier) for tier in tiers if tier):
            known = []  # such a tier rules nobody out
        if not known and not guards:
            return None

        def may(actor: Any, job: Any) -> bool:
            if not all(guard(actor, job) for guard in guards):
                return False
            return not known or any(weigh(form(actor, job) for form in tier) for tier in known)

        return may

    def order(self, point: str, compare: Function) -> Order[Any]:
        """The order of one point, by comparison and by key."""
        return Order(compare, self.key(point), self.opinion(point))

    def hooks(self) -> Hooks:
        """The per-node hooks in the engine's form."""
        by_plugin: dict[int, list[Fit]] = {}
        for answer in sorted((*self.of("predicate"), *self.of("predicate", "vector")), key=self._all.index):
            fit = fit_of(answer.plugin.name, answer.hook, answer.function, answer.row)
            by_plugin.setdefault(id(answer.plugin), []).append(fit)
        scores = sorted((*self.of("node_order"), *self.of("node_order", "vector")), key=self._all.index)
        return Hooks(
            list(by_plugin.values()),
            [score_of(a.plugin.name, a.hook, a.function, a.row) for a in scores],
            [_raw(answer) for answer in self.of("batch_node_order", "raw")],
            [score_of(a.plugin.name, a.hook, a.function, a.row) for a in self.of("batch_node_order", "vector")],
            self._choosers(),
        )

    def _choosers(self) -> Choosers:
        """The hooks that are asked about the candidates of each task."""
        reduces = {id(answer.plugin): answer.function for answer in self.of("node_reduce")}
        return Choosers(
            [Mapped(answer.function, reduces.get(id(answer.plugin))) for answer in self.of("node_map")],
            [answer.function for answer in self.of("batch_node_order")],
            [answer.function for answer in self.of("best_node")],
        )


def _raw(answer: Answer) -> Score:
    score = score_of(answer.plugin.name, answer.hook, answer.function, None)
    score.normalise = answer.normalise
    return score


def guarded(plugin: Plugin, hook: Hook, function: Function, rule: Rule | None) -> Function:
    """``function``, its errors and unusable answers labelled with the plugin's name.

    Our own are left alone, being asked too often.
    """
    if type(plugin).__module__.startswith(OUR_OWN):
        return function
    return labelled(plugin, held_to(rule, hook, function))


def labelled(plugin: Plugin, function: Function) -> Function:
    """``function``, its errors labelled with the plugin's name."""

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except Exception as error:
            raise PluginFailed(plugin.name, error) from error

    return call


def open_plugins(session: Session) -> None:
    """Make and open every plugin of the configuration, in order; a name that nobody knows is told and skipped."""
    for tier, options in enumerate(session.config.tiers):
        for option in options:
            try:
                plugin = session.registry.build(option.name, option.arguments)
            except PluginError as error:
                _missing(session, option, error)
                continue
            session.plugins[option.name] = plugin
            session.opening = (tier, option, plugin)
            session.observer.started("plugin_open", option.name)
            _open(session, tier, option, plugin)
            session.observer.ended("plugin_open", option.name)
    session.opening = None


def _open(session: Session, tier: int, option: PluginOption, plugin: Plugin) -> None:
    for complaint in plugin.complaints:
        if say := session.tells("complaint"):
            say(text=complaint.text)
    try:
        labelled(plugin, plugin.on_session_open)(session)
        session.answers.take(tier, option, plugin, labelled(plugin, lambda: list(plugin.hooks()))())
    except PluginFailed as failure:
        session.put_aside(failure)


def _missing(session: Session, option: PluginOption, error: PluginError) -> None:
    if say := session.tells("plugin_missing"):
        say(name=option.name)
    session.plan.inconsistencies.append(str(error))


def compile_answers(session: Session) -> None:
    """Turn the hooks into ``session.ask``, the orders, the engine's hooks and the handlers."""
    answers = session.answers
    chains: Mapping[str, Any] = {name: answers.chain(name) for name in POINTS}
    guards = {} if session.compat.asks("protections-absolute") else {name: answers.guards(name) for name in POINTS}
    asked = compile_points(chains, restart=session.compat.asks("agree-restart"), guards=guards)
    session.ask = SimpleNamespace(**{**asked, **questions(session)})
    for name in ("job_order", "queue_order", "task_order", "sub_job_order"):
        session.orders[name] = answers.order(name, asked[name])
    session.task_keys = (
        [a.function for a in answers.of("task_order", "key")] if session.orders["task_order"].key else None
    )
    session.manys = {name: answers.many(name) for name in ("allocatable", "job_ready", "sub_job_ready")}
    restart = session.compat.asks("agree-restart")
    session.may = {name: answers.may(name, restart) for name in ("preemptable", "reclaimable")}
    for kind in ("allocate", "deallocate"):
        getattr(session.handlers, kind)[:] = _handlers(answers, f"on_{kind}")


def _handlers(answers: Answers, point: str) -> list[Handler]:
    forms = {id(answer.plugin): answer.function for answer in answers.of(point, "many")}
    ones = [Handler(a.function, forms.pop(id(a.plugin), None)) for a in answers.of(point)]
    return [*ones, *(Handler(None, function) for function in forms.values())]


def tell_opened(session: Session) -> None:
    """Tell that the session is open, and what it holds."""
    if say := session.tells("session_opened"):
        ready = session.snapshot.hyper_nodes_ready
        say(session=session.uid, jobs=len(session.jobs), queues=len(session.queues), hyper_nodes_ready=ready)
