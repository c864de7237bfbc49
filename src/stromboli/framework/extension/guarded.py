"""Hooks of plugins with their errors labelled by the name of the plugin."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from stromboli.framework.extension.contract import Rule, held_to
from stromboli.framework.extension.hook import Hook
from stromboli.framework.extension.plugin import Plugin

Function = Callable[..., Any]
Answer = TypeVar("Answer")


class PluginFailed(Exception):
    """A plugin raised; carries its name.  It never leaves the cycle."""

    def __init__(self, plugin: str, error: Exception) -> None:
        super().__init__(f"{plugin}: {type(error).__name__}: {error}")
        self.plugin = plugin


def guarded(plugin: Plugin, hook: Hook, function: Function, rule_of: Callable[[Hook], Rule | None]) -> Function:
    """``function``, its errors and unusable answers labelled with the plugin's name; ``rule_of`` says what is usable.

    Functions of trusted plugins are left as they are: they are asked too often.
    """
    return function if plugin.trusted else labelled(plugin, held_to(rule_of(hook), hook, function))


def asked(plugin: Plugin, function: Callable[..., Answer], *arguments: object) -> Answer:
    """What ``function`` answers.  Raises PluginFailed, which names the plugin, for any error."""
    try:
        return function(*arguments)
    except Exception as error:
        raise PluginFailed(plugin.name, error) from error


def labelled(plugin: Plugin, function: Function) -> Function:
    """``function``, its errors labelled with the plugin's name."""

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except Exception as error:
            raise PluginFailed(plugin.name, error) from error

    return call
