"""The controller of jobs: from what has happened to what is to be done, one job at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stromboli.api.batch import COMMAND_ISSUED, Job
from stromboli.api.bus import SYNC_JOB, TERMINATE_JOB
from stromboli.controllers.changes import Outcome, normal, warning
from stromboli.controllers.jobs.groups import Groups
from stromboli.controllers.jobs.look import Look, about
from stromboli.controllers.jobs.plugins import Plugins
from stromboli.controllers.jobs.requests import Choice, Request, choose
from stromboli.controllers.jobs.status import Obstacle, OutdatedCounts, status_change
from stromboli.controllers.jobs.timers import Timers
from stromboli.controllers.world import Key, World, key_of
from stromboli.job_plugins.registry import JobPlugins
from stromboli.model.values.duration import format_duration

NANOSECONDS = 10**9


class JobController:
    """Looks at jobs.

    ``timers`` are the actions that policies have put off; ``endings`` count by job, queue and final phase how often
    jobs that are still there have ended.
    """

    def __init__(self, world: World, plugins: JobPlugins) -> None:
        self._world = world
        self._groups = Groups()
        self._plugins = Plugins(plugins)
        self._outdated = OutdatedCounts()
        self.timers = Timers()
        self.endings: dict[Key, Counter[tuple[str, str]]] = {}
        self._ending: dict[Key, str] = {}

    def look(self, key: Key, requests: Sequence[Request], now: float) -> tuple[Outcome, Sequence[Request]]:
        """What ``requests`` about the job ``key`` lead to, and those that wait for the job's new status.

        All that ask for nothing special become one look; the first that asks for an action gets it, and the rest is
        judged again after it.
        """
        job = self._world.jobs.get(*key)
        if job is None:
            return Outcome(), ()
        told = Outcome()
        for number, request in enumerate(requests):
            self.timers.heard(key, request)
            choice = choose(job, request)
            if choice.delay:
                self._put_off(job, request, choice, now, told)
            elif choice.action != SYNC_JOB:
                self.timers.done(key, choice.action, request)
                return self._look(job, choice.action, request, now, told), requests[number + 1 :]
        return self._look(job, SYNC_JOB, Request(), now, told), ()

    def _put_off(self, job: Job, request: Request, choice: Choice, now: float, told: Outcome) -> None:
        if self.timers.add(key_of(job), request, choice.action, now + choice.delay):
            after = format_duration(int(choice.delay * NANOSECONDS))
            text = f"Execute action {choice.action} after {after}"
            told.then(normal(about(job), "ExecuteAction", text, happened=True))

    def _look(self, job: Job, action: str, request: Request, now: float, told: Outcome) -> Outcome:
        look = Look(job, self._world, self._groups, self._plugins.of(job), self._outdated, now)
        outcome = look.outcome(action, request)
        if look.ending:
            self._ending[key_of(job)] = look.ending
        outcome.batches[:0] = told.batches
        return outcome

    def given_up(self, job: Job, action: str) -> tuple[Outcome, Request]:
        """What is done when ``action`` has failed too often: an event, and the job is terminated."""
        text = f"Job failed on action {action} for retry limit reached"
        return Outcome().then(warning(about(job), action, text)), Request(COMMAND_ISSUED, TERMINATE_JOB)

    def hindered(self, key: Key, reason: str, message: str, now: float) -> Outcome:
        """The API server refuses what ``key`` needs: its status says so, and is written only if it did not yet."""
        job = self._world.jobs.get(*key)
        return Outcome() if job is None else Outcome().then(*status_change(job, Obstacle(reason, message), now))

    def seen(self, job: Job) -> None:
        """A job is seen as it stands: if it has the final phase that a look of ours meant, it has ended.

        Whether our write was answered makes no difference to that.
        """
        key, phase = key_of(job), job.status.state.phase
        if self._ending.get(key) == phase:
            del self._ending[key]
            self.endings.setdefault(key, Counter())[job.spec.queue, phase] += 1

    def forget(self, job: Job) -> None:
        """A job is gone."""
        self.endings.pop(key_of(job), None)
        self._ending.pop(key_of(job), None)
        self._groups.forget(job.metadata.uid)
        self._plugins.forget(job.metadata.uid)
        self._outdated.forget(job.metadata.uid)
        self._world.kept.forget(job.metadata.uid)
        self.timers.forget(key_of(job))
