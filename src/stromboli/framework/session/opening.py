"""Opening a session: plugins are made and asked for their hooks, and the hooks become the session's questions."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from stromboli.errors import PluginError
from stromboli.framework.config.config import PluginOption
from stromboli.framework.extension.answers import Answers
from stromboli.framework.extension.ask import compile_points
from stromboli.framework.extension.guarded import PluginFailed, labelled
from stromboli.framework.extension.handlers import Handler
from stromboli.framework.extension.plugin import Plugin
from stromboli.framework.extension.points import POINTS
from stromboli.framework.extension.questions import Ask
from stromboli.framework.statement.session_ops import questions

if TYPE_CHECKING:
    from stromboli.framework.session.session import Session


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
    session.ask = cast(Ask, SimpleNamespace(**{**asked, **questions(session)}))
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
