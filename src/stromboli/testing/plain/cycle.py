"""A whole cycle with the plain evaluation in the engine's place."""

from __future__ import annotations

from stromboli.cycle import run_action
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.config import Config
from stromboli.framework.config.registry import Registry
from stromboli.framework.session.session import Session
from stromboli.model.snapshot import Snapshot
from stromboli.narration.observe import SILENT, Observer
from stromboli.testing.plain.placer import PlainPlacer


class PlainSession(Session):
    """A session that places tasks by the plain evaluation, also after a plugin was put aside."""

    def recompile(self) -> None:
        """Ask only the plugins that are still in, plainly."""
        draws = self.placer.draws if isinstance(self.placer, PlainPlacer) else 0
        super().recompile()
        self.placer = PlainPlacer(self, draws)


def run_plain_cycle(
    snapshot: Snapshot,
    config: Config,
    registry: Registry,
    now: float = 0.0,
    seed: int = 0,
    observer: Observer = SILENT,
) -> Plan:
    """The plan that :func:`~stromboli.cycle.run_cycle` must give for the same arguments."""
    with PlainSession.open(snapshot, config, registry, now, seed, observer) as session:
        session.placer = PlainPlacer(session)
        for name in config.actions:
            run_action(session, registry.action(name)(config.arguments_of(name)))
    return session.plan
