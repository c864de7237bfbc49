"""A plugin on trial: a session that has this plugin alone, and how its flaws are told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn

import msgspec

from stromboli.framework.config.config import Config, PluginOption
from stromboli.framework.config.registry import Registry
from stromboli.framework.extension.answers import Answer
from stromboli.framework.extension.hook import Hook
from stromboli.framework.extension.plugin import Plugin
from stromboli.framework.extension.points import SWITCHES
from stromboli.framework.session.session import Session
from stromboli.model.status import TaskStatus
from stromboli.model.task import Task
from stromboli.testing.builders import Manifest, cluster
from stromboli.testing.moves import Move

NOW = 1_000_000.0
"""When examples are looked at, in seconds since 1970."""
MOST = 6
"""So many tasks, jobs or nodes of an example are looked at."""


class Trial:
    """One example: a cluster, and moves of its tasks.  ``session`` is open with every switch of the plugin on."""

    def __init__(
        self,
        plugin_class: type[Plugin],
        arguments: Mapping[str, object],
        objects: Sequence[Manifest],
        moves: Sequence[Move] = (),
    ) -> None:
        self.plugin_class, self.arguments, self.objects, self.moves = plugin_class, arguments, objects, moves
        self.session = self.open()

    @property
    def option(self) -> PluginOption:
        """The plugin's entry in a configuration."""
        return PluginOption.filled(self.plugin_class.name, self.arguments, **dict.fromkeys(SWITCHES, True))

    def open(self) -> Session:
        """Another session on the same cluster."""
        registry = Registry({}, {})
        registry.add(self.plugin_class)
        name = self.plugin_class.name
        session = Session.open(cluster(*self.objects), Config((), ((self.option,),)), registry, now=NOW)
        if name in session.plugins and session.plugins[name].complaints:
            self.fail("arguments", session.plugins[name].complaints[0].text)
        if session.plan.inconsistencies:
            self.fail("on_session_open", session.plan.inconsistencies[0])
        return session

    @cached_property
    def waiting(self) -> list[Task]:
        """Some of the tasks that wait for a node."""
        tasks = (task for job in self.session.jobs.values() for task in job.tasks.values())
        return [task for task in tasks if task.status is TaskStatus.Pending][:MOST]

    def answers(self, point: str, *forms: str) -> list[Answer]:
        """The plugin's hooks of one point."""
        return [answer for form in forms for answer in self.session.hooks.answers.of(point, form)]

    def ask(self, hook: Hook, function: Callable[..., Any], *arguments: Any) -> Any:
        """What ``function`` of a hook answers; an exception is a flaw."""
        try:
            return function(*arguments)
        except Exception as error:
            raise self.flaw(hook.name, f"raised {error.__cause__ or error!r} for {_list(arguments)}") from error

    def fail(self, hook: str, flaw: str) -> NoReturn:
        """Raise :meth:`flaw`."""
        raise self.flaw(hook, flaw)

    def flaw(self, hook: str, flaw: str) -> AssertionError:
        """A flaw of the plugin, told with plugin, hook and the example."""
        where = "for example in this cluster:" if self.objects else "even in an empty cluster"
        lines = [f"plugin {self.plugin_class.name}, {hook}: {flaw}", where]
        lines += [msgspec.json.encode(each).decode() for each in self.objects]
        lines += [f"after {move}" for move in self.moves]
        return AssertionError("\n".join(lines))


def _list(arguments: Sequence[object]) -> str:
    return ", ".join(map(repr, arguments))
