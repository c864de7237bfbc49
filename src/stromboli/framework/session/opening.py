"""Opening a session: plugins are made and asked for their hooks, and the hooks become the session's questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from stromboli.errors import PluginError
from stromboli.framework.config.config import PluginOption
from stromboli.framework.engine.timed_engine import engine_of
from stromboli.framework.extension.guarded import PluginFailed, asked
from stromboli.framework.extension.plugin import Plugin
from stromboli.framework.extension.questions import Ask
from stromboli.framework.statement.session_ops import questions

if TYPE_CHECKING:
    from stromboli.framework.session.session import Session


def open_plugins(session: Session) -> None:
    """Make and open every plugin of the configuration, in order; an unknown name is reported and skipped."""
    for tier, options in enumerate(session.config.tiers):
        for option in options:
            try:
                plugin = session.registry.build(option.name, option.arguments)
            except PluginError as error:
                _missing(session, option, error)
                continue
            session.plugins[option.name] = plugin
            session.hooks.opening = (tier, option, plugin)
            session.narrator.observer.started("plugin_open", option.name)
            _open(session, tier, option, plugin)
            session.narrator.observer.ended("plugin_open", option.name)
    session.hooks.opening = None


def _open(session: Session, tier: int, option: PluginOption, plugin: Plugin) -> None:
    for complaint in plugin.complaints:
        if say := session.tells("complaint"):
            say(text=complaint.text)
    try:
        asked(plugin, plugin.on_session_open, session)
        session.hooks.answers.take(tier, option, plugin, asked(plugin, lambda: list(plugin.hooks())))
    except PluginFailed as failure:
        session.put_aside(failure)


def _missing(session: Session, option: PluginOption, error: PluginError) -> None:
    if say := session.tells("plugin_missing"):
        say(name=option.name)
    session.plan.inconsistencies.append(str(error))


def compile_answers(session: Session) -> None:
    """Turn the hooks into ``session.ask`` and the engine."""
    asked = session.hooks.compile(session.compat)
    vars(asked).update(questions(session))
    session.ask = cast(Ask, asked)
    session.placer = engine_of(session, session.hooks.answers, session.ties)
