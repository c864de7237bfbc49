"""shuffle: evicts the running tasks that plugins want elsewhere, such as those on overloaded nodes."""

from __future__ import annotations

from stromboli.errors import PlacementError
from stromboli.framework.extension.action import Action
from stromboli.framework.session.session import Session
from stromboli.model.job import RUNNING


class Shuffle(Action):
    """Asks the plugins once about all running tasks, and evicts those that they name, one at a time."""

    name = "shuffle"

    def execute(self, session: Session) -> None:
        """Evict the victims; one that cannot be evicted does not keep the others."""
        running = [task for job in session.jobs.peek() for task in job.of(RUNNING)]
        said, failed = session.tells("shuffle_victim"), session.tells("shuffle_failed")
        for victim in session.ask.victim_tasks(running):
            if said:
                said(name=victim.name, namespace=victim.namespace, job=victim.job)
            try:
                with session.statement() as statement:
                    statement.evict(victim, self.name)
                    statement.commit()
            except PlacementError as error:
                if failed:
                    failed(task=victim.key, error=error)
