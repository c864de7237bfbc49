"""The enabled plugins of a session as predicates and scores of single nodes.

``predicates``, ``nodeorder`` and ``binpack`` stand here as formulas; every other plugin is asked through its own hooks,
one node at a time: in the scalar form where it has one, else in the vector form with a view of that node alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from stromboli.framework.config.config import PluginOption
from stromboli.framework.extension.answers import Answer, Function
from stromboli.framework.extension.plugin import Plugin
from stromboli.framework.extension.points import POINTS
from stromboli.framework.extension.reason import Reason
from stromboli.framework.session.session import Session
from stromboli.model.table import Node, NodeRows
from stromboli.model.task import Task
from stromboli.testing.plain import filters, scores
from stromboli.testing.plain.scores import Scores
from stromboli.testing.plain.world import PlainWorld, Site

Reasons = tuple[Reason, ...]
Verdict = Callable[[Site], Reasons]
"""What one predicate says of a node."""
Fit = Callable[[PlainWorld, Task], Verdict]
"""A predicate, made for a task; then asked for each node."""


@dataclass(slots=True)
class Rules:
    """What one plugin says of nodes: predicates, and scores in the three groups in which they are added up."""

    fits: list[Fit] = field(default_factory=list)
    alone: list[Scores] = field(default_factory=list)
    batch: list[Scores] = field(default_factory=list)
    compared: list[Scores] = field(default_factory=list)


def session_rules(session: Session) -> list[Rules]:
    """The rules of every enabled plugin in the order of the configuration."""
    options = (option for tier in session.config.tiers for option in tier if option.name in session.plugins)
    return [plugin_rules(session, option, session.plugins[option.name]) for option in options]


def plugin_rules(session: Session, option: PluginOption, plugin: Plugin) -> Rules:
    """The rules of one plugin: its formulas where they stand here, else its own hooks."""
    own = FORMULAS.get(".".join(type(plugin).__module__.split(".")[:3]))
    if own is None:
        return asked_rules(session, plugin)
    rules = own({argument.key: getattr(plugin, name) for name, argument in plugin.arguments.items()})
    scored = option.enabled(POINTS["node_order"])
    return Rules(
        rules.fits if option.enabled(POINTS["predicate"]) else [],
        *((rules.alone, rules.batch, rules.compared) if scored else ()),
    )


# -- Formulas --------------------------------------------------------------------------------------------------------


def predicates_rules(settings: filters.Settings) -> Rules:
    """The plugin ``predicates``."""
    return Rules([partial(_as_fit, each) for each in filters.predicates(settings)])


def _as_fit(made: filters.Filter, world: PlainWorld, task: Task) -> Callable[[Site], Reasons]:
    verdict = made(world, task)
    return lambda site: () if (reason := verdict(site)) is None else (reason,)


def nodeorder_rules(settings: filters.Settings) -> Rules:
    """The plugin ``nodeorder``."""
    return Rules(
        alone=[scores.weighted(scores.IMAGES, settings)],
        batch=[scores.weighted(scores.USAGE, settings)],
        compared=[scores.weighted({key: score}, settings) for key, score in scores.COMPARED.items()],
    )


def binpack_rules(settings: filters.Settings) -> Rules:
    """The plugin ``binpack``; weight 0 switches it off."""
    return Rules(alone=[scores.binpack(settings)] if settings["binpack.weight"] else [])


FORMULAS: dict[str, Callable[[filters.Settings], Rules]] = {
    "stromboli.plugins.predicates": predicates_rules,
    "stromboli.plugins.nodeorder": nodeorder_rules,
    "stromboli.plugins.binpack": binpack_rules,
}
"""Plugins that stand here as formulas, by the module or package that their class comes from."""


# -- Other plugins, asked --------------------------------------------------------------------------------------------


def asked_rules(session: Session, plugin: Plugin) -> Rules:
    """What a plugin's own hooks say, one node at a time."""
    return Rules(
        [partial(_asked_fit, session, each) for each in _hooks(session, plugin, "predicate", "scalar", "vector")],
        [partial(_asked_score, session, each) for each in _hooks(session, plugin, "node_order", "scalar", "vector")],
        [partial(_asked_score, session, each) for each in _hooks(session, plugin, "batch_node_order", "vector")],
        [partial(_asked_raw, session, each) for each in _hooks(session, plugin, "batch_node_order", "raw")],
    )


def _hooks(session: Session, plugin: Plugin, point: str, *forms: str) -> Iterator[Answer]:
    """The plugin's enabled hooks of one point: functions that it registered first, then methods as defined."""
    found = [each for form in forms for each in session.hooks.answers.of(point, form) if each.plugin is plugin]
    methods = [method for _, method in plugin.hooks()]

    def turn(answer: Answer) -> int:
        same = (answer.function, getattr(answer.function, "__wrapped__", None))
        return next((place for place, method in enumerate(methods) if method in same), -1)

    yield from sorted(found, key=turn)


def _row_form(answer: Answer) -> Function | None:
    """The hook's form for one node, if it has one."""
    return answer.function if answer.hook.form == "scalar" else answer.row


def _view(session: Session, sites: Sequence[Site]) -> NodeRows:
    table = session.table
    return table.view(table.view().rows[[site.row for site in sites]])


def _asked_fit(session: Session, answer: Answer, _world: PlainWorld, task: Task) -> Callable[[Site], Reasons]:
    one = _row_form(answer)
    name = answer.plugin.name

    def verdict(site: Site) -> Reasons:
        if one is not None:
            said = one(task, Node(session.table, site.row))
        else:
            said = _spelled_out(answer.hook.reasons, answer.function(task, _view(session, [site])))
        reasons = said if isinstance(said, tuple) else () if said is None else (said,)
        return tuple(reason.said_by(name) for reason in reasons)

    return verdict


def _spelled_out(reasons: Reasons, answer: Any) -> Reasons:
    """The reasons in a vector hook's answer for one node."""
    if answer is None:
        return ()
    said: bool | int = answer[0].item()
    if isinstance(said, bool):
        return () if said else reasons[:1]
    return tuple(reason for bit, reason in enumerate(reasons) if said >> bit & 1)


def _asked_score(
    session: Session, answer: Answer, _world: PlainWorld, task: Task, sites: Sequence[Site]
) -> Sequence[float]:
    one = _row_form(answer)
    if one is not None:
        return [float(one(task, Node(session.table, site.row))) for site in sites]
    return [0.0 if each is None else float(each) for each in _numbers(session, answer, task, sites)]


def _asked_raw(
    session: Session, answer: Answer, _world: PlainWorld, task: Task, sites: Sequence[Site]
) -> Sequence[float]:
    normalise = answer.normalise
    raw = [each for each in _numbers(session, answer, task, sites) if each is not None]
    if not raw:
        return [0.0] * len(sites)
    low, high = float(min(raw)), float(max(raw))
    return [float(normalise(task, each.reshape(1).astype(float), low, high)[0]) for each in raw]


def _numbers(session: Session, answer: Answer, task: Task, sites: Sequence[Site]) -> list[Any]:
    """The numbers that a vector hook gives the sites; None where it has nothing to say about the task.

    A hook that reads the candidates gets all of them at once, any other one each by itself.
    """
    if "candidates" in answer.hook.reads:
        found = answer.function(task, _view(session, sites))
        return [None] * len(sites) if found is None else list(found)
    each = (answer.function(task, _view(session, [site])) for site in sites)
    return [None if found is None else found[0] for found in each]
