"""One scheduling cycle: a pure function from a snapshot to a plan."""

from __future__ import annotations

from stromboli.framework.action import Action
from stromboli.framework.config import Config
from stromboli.framework.observe import SILENT, Observer
from stromboli.framework.opening import PluginFailed
from stromboli.framework.plan import Plan
from stromboli.framework.registry import Registry
from stromboli.framework.session import Session
from stromboli.model.snapshot import Snapshot


def run_cycle(
    snapshot: Snapshot,
    config: Config,
    registry: Registry,
    now: float = 0.0,
    seed: int = 0,
    observer: Observer = SILENT,
) -> Plan:
    """Decide what to do with the cluster in ``snapshot``.

    ``now`` is the time in seconds since 1970.  Nothing else is read: equal arguments give equal plans.  A plugin that
    raises is put aside and the action begins again without it; what was committed stands.
    """
    observer.started("cycle", "")
    with Session.open(snapshot, config, registry, now, seed, observer) as session:
        run_actions(session)
    plan = session.plan
    vars(session).clear()  # it is full of cycles: taken apart it goes now, and not once the garbage collector finds it
    observer.ended("cycle", "")
    return plan


def run_actions(session: Session) -> None:
    """Run every action of the configuration, in order."""
    entered, left = session.tells("action_entered"), session.tells("action_left")
    for name in session.config.actions:
        action = session.registry.action(name)(session.config.arguments_of(name))
        session.observer.started("action", name)
        if entered:
            entered(action=name.capitalize())
        run_action(session, action)
        if left:
            left(action=name.capitalize())
        session.observer.ended("action", name)


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
