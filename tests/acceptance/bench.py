"""What the acceptance tests are made with: a cluster over several cycles, small plugins and actions from functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import StringIO
from typing import Any

from stromboli.builtin import builtin_registry
from stromboli.cluster.events import Deleted, Modified
from stromboli.cluster.objects import from_value
from stromboli.cycle import run_action, run_cycle
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.config import Config, load_config
from stromboli.framework.config.registry import Registry
from stromboli.framework.extension.action import Action
from stromboli.framework.extension.plugin import Plugin
from stromboli.framework.session.session import Session
from stromboli.metrics.logs import LogObserver
from stromboli.model.snapshot import Snapshot
from stromboli.model.task import Task
from stromboli.narration.observe import SILENT, Observer
from stromboli.sim.between import apply_plan
from stromboli.testing.builders import Manifest, state

GPU = "nvidia.com/gpu"
NOW = 1_000_000.0


class Workshop(Registry):
    """Everything built in, with plugins and actions of the test's own."""

    def __init__(self, *extra: type[Plugin] | type[Action]) -> None:
        known = builtin_registry()
        super().__init__(known._plugins, known._actions)  # type: ignore[arg-type]
        self.own = {each.name: each for each in extra if issubclass(each, Action)}
        for plugin in extra:
            if issubclass(plugin, Plugin):
                self.add(plugin)

    @property
    def action_names(self) -> tuple[str, ...]:
        return (*super().action_names, *self.own)

    def action(self, name: str) -> type[Action]:
        return self.own.get(name) or super().action(name)


def answering(plugin: str, **points: Callable[..., Any]) -> type[Plugin]:
    """A plugin that answers points with functions, registered as the session opens."""

    def on_session_open(_self: Plugin, session: Session) -> None:
        for point, function in points.items():
            session.register(point, plugin, function)

    return type(plugin, (Plugin,), {"name": plugin, "on_session_open": on_session_open})


def acting(action: str, execute: Callable[[Session], object]) -> type[Action]:
    """An action that does what a function does."""
    return type(action, (Action,), {"name": action, "execute": lambda _self, session: execute(session)})


def conf(*tiers: str, actions: str = "allocate, backfill", more: str = "") -> str:
    """The text of a configuration; a tier is its plugins with blanks between them, or YAML where it needs arguments."""
    lines = [f'actions: "{actions}"', "tiers:"]
    for tier in tiers:
        plugins = tier if tier.startswith("[") else f"[{', '.join(f'{{name: {name}}}' for name in tier.split())}]"
        lines.append(f"- plugins: {plugins}")
    return "\n".join([*lines, more])


def loaded(text: str, registry: Registry, **options: Any) -> Config:
    return load_config(
        text, source="conf", known_plugins=registry.plugin_names, known_actions=registry.action_names, **options
    )


class Bench:
    """A cluster and a configuration; :meth:`cycle` runs one cycle and lets its plan come true."""

    def __init__(
        self, objects: list[Manifest], text: str = "", *extra: type[Plugin] | type[Action], compat: bool = False
    ) -> None:
        self.state = state(*objects)
        self.registry = Workshop(*extra)
        self.config = loaded(text or conf("gang priority", "predicates proportion"), self.registry, compat=compat)
        self.plan = Plan()

    def snapshot(self) -> Snapshot:
        return self.state.snapshot()

    def open(self, observer: Observer = SILENT, now: float = NOW) -> Session:
        """A session on the cluster as it stands; use it in a ``with`` block."""
        return Session.open(self.snapshot(), self.config, self.registry, now, 0, observer)

    def cycle(self, observer: Observer = SILENT, now: float = NOW) -> Plan:
        self.plan = run_cycle(self.snapshot(), self.config, self.registry, now, 0, observer)
        apply_plan(self.state, self.plan)
        return self.plan

    def logged(self, level: int = 5, now: float = NOW) -> list[str]:
        """The lines that one cycle logs, without their heads."""
        stream = StringIO()
        observer = LogObserver(stream, level)
        self.cycle(observer, now)
        observer.flush()
        return [line.partition("] ")[2] for line in stream.getvalue().splitlines()]

    def act(self, session: Session, *actions: str) -> None:
        """Run actions in an open session."""
        for name in actions:
            run_action(session, self.registry.action(name)())

    def tell(self, *objects: Manifest, gone: bool = False) -> None:
        """Let objects appear or change, or go."""
        for each in objects:
            event = Deleted if gone else Modified
            self.state.apply(event(each["kind"], from_value(each["kind"], each)))


def binds(plan: Plan) -> dict[str, str]:
    """The node of each bound pod, by the pods' names."""
    return {bind.key.partition("/")[2]: bind.node for bind in plan.binds}


def task_of(session: Session, name: str) -> Task:
    """The session's own record of the task of a pod in a job."""
    found = next(task for job in session.jobs.peek() for task in job.tasks.values() if task.name == name)
    return session.jobs[found.job].tasks[found.uid]


def phases(plan: Plan) -> Mapping[str, str]:
    """New phases of the PodGroups that are written."""
    return {update.key.partition("/")[2]: update.phase for update in plan.pod_groups}


def messages(plan: Plan, key: str) -> list[str]:
    """Messages of the events on an object."""
    return [event.message for event in plan.events if event.key == key]
