"""One scheduling cycle: a pure function from a snapshot to a plan."""

from __future__ import annotations

from collections.abc import Mapping

from stromboli.framework.books.plan import Plan
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.framework.extension.action import Action
from stromboli.framework.extension.capabilities import NOTHING
from stromboli.framework.extension.guarded import PluginFailed
from stromboli.framework.session.session import Session
from stromboli.model.snapshot import Snapshot
from stromboli.narration.observe import SILENT, Observer, teller


def run_cycle(
    snapshot: Snapshot,
    config: Config,
    registry: Registry,
    now: float = 0.0,
    seed: int = 0,
    observer: Observer = SILENT,
    capabilities: Mapping[str, object] = NOTHING,
) -> Plan:
    """Decide what to do with the cluster in ``snapshot``.

    ``now`` is the time in seconds since 1970.  Nothing else is read: equal arguments give equal plans.  A plugin that
    raises is put aside and the action begins again without it; what was committed stands.  ``capabilities`` are what a
    live cluster offers to plugins beyond the snapshot; a plan for which one was asked for is not replayable.
    """
    observer.started("cycle", "")
    if say := teller(observer, "cycle_started"):
        say()
    with Session.open(snapshot, config, registry, now, seed, observer, capabilities) as session:
        run_actions(session)
    plan = session.plan
    vars(session).clear()  # it is full of cycles: taken apart it goes now, and not once the garbage collector finds it
    if say := teller(observer, "cycle_ended"):
        say()
    observer.ended("cycle", "")
    return plan


def run_actions(session: Session) -> None:
    """Run every action of the configuration, in order."""
    entered, left = session.tells("action_entered"), session.tells("action_left")
    for number, name in enumerate(session.config.actions, 1):
        session.to_come = session.config.actions[number:]
        action = session.registry.action(name)(session.config.arguments_of(name))
        for complaint in action.complaints:
            session.tell("complaint", text=complaint.text)
        session.narrator.observer.started("action", name)
        if entered:
            entered(action=name.capitalize())
        run_action(session, action)
        if left:
            left(action=name.capitalize())
        session.narrator.observer.ended("action", name)


def run_action(session: Session, action: Action) -> None:
    """Run ``action``, again without the culprit whenever a plugin raises; another error ends the action alone."""
    while True:
        try:
            action.run(session)
        except PluginFailed as failure:
            session.put_aside(failure)
            session.recompile()
            continue
        except Exception as error:  # noqa: BLE001  # one action's failure must not keep the statuses from being written
            session.plan.inconsistencies.append(f"action {action.name} failed: {type(error).__name__}: {error}")
            if say := session.tells("action_failed"):
                say(action=action.name, error=f"{type(error).__name__}: {error}")
        return
