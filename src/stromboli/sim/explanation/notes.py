"""What happened to each job in a cycle, noted as it happens: skipped, tried or refused, with the numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from stromboli.model.job import Job
from stromboli.narration.observe import SILENT, Observer, Passing, Silent


class Refused(NamedTuple):
    """A queue may have no more: ``numbers`` are what the queue plugin said, ``state`` is that of a closed queue."""

    queue: str
    plugin: str
    numbers: Mapping[str, Any]
    state: str = ""


class Turn(NamedTuple):
    """The last turn that a job had: the tasks (by name) that its queue had no quota for."""

    refused: dict[str, Refused | None]


_REFUSALS: Final = {"proportion_refused": "proportion", "capacity_refused": "capacity"}
_OVERUSED: Final = {"proportion_overused": "proportion"}


class Hearing(Silent):
    """Wants the keys of :attr:`hears` and calls, for each, what stands there with the fields."""

    hears: Mapping[str, Callable[[Mapping[str, Any]], None]]

    def wants(self, key: str) -> bool:
        """Whether :attr:`hears` has it."""
        return key in self.hears

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        """Call what stands there."""
        self.hears[key](fields)


class Notes(Hearing):
    """An observer that keeps, of the last cycle, what explains why jobs wait.

    ``invalid`` (reason, message) and ``skipped`` (reason) are by job, ``overused`` by queue, ``turns`` by job that
    allocate tried.  ``then`` is called with the name of every action that has ended.
    """

    def __init__(self, then: Callable[[str], None] | None = None) -> None:
        self.invalid: dict[str, tuple[str, str]] = {}
        self.skipped: dict[str, str] = {}
        self.overused: dict[str, Refused | None] = {}
        self.turns: dict[str, Turn] = {}
        self.then = then
        self._action = ""
        self._turn = Turn({})
        self._said: Refused | None = None
        self.hears = {
            "allocate_job": self._tried,
            "allocate_topology_job": self._tried,
            "allocate_job_invalid": self._found_invalid,
            "backfill_job_invalid": self._found_invalid,
            "allocate_job_skipped": self._was_skipped,
            "queue_overused": self._queue_overused,
            "queue_overused_task": self._task_refused,
            "queue_closed_allocate": self._closed,
            **{key: self._refusal(plugin) for key, plugin in (*_REFUSALS.items(), *_OVERUSED.items())},
        }

    def started(self, kind: str, name: str) -> None:
        """Remember which action runs."""
        if kind == "action":
            self._action = name

    def ended(self, kind: str, name: str) -> None:
        """Let ``then`` look at the session as the action left it."""
        if kind == "action" and self.then is not None:
            self.then(name)

    # ------------------------------------------------------------------ what is heard

    def _tried(self, fields: Mapping[str, Any]) -> None:
        self._turn = self.turns[str(fields["job"])] = Turn({})
        self._said = None

    def _found_invalid(self, fields: Mapping[str, Any]) -> None:
        self.invalid[_uid(fields["job"])] = (str(fields["reason"]), str(fields["message"]))

    def _was_skipped(self, fields: Mapping[str, Any]) -> None:
        self.skipped[_uid(fields["job"])] = str(fields["reason"])

    def _queue_overused(self, fields: Mapping[str, Any]) -> None:
        if self._action == "allocate":
            self.overused[str(fields["queue"])] = self._taken(str(fields["queue"]))

    def _task_refused(self, fields: Mapping[str, Any]) -> None:
        # a queue above may be the one that refused, so whatever was said in this turn counts
        self._turn.refused[str(fields["name"])], self._said = self._said, None

    def _closed(self, fields: Mapping[str, Any]) -> None:
        self._said = Refused(str(fields["queue"]), "", {}, str(fields["state"]))

    def _refusal(self, plugin: str) -> Callable[[Mapping[str, Any]], None]:
        def said(fields: Mapping[str, Any]) -> None:
            self._said = Refused(str(fields["queue"]), plugin, fields)

        return said

    def _taken(self, queue: str) -> Refused | None:
        """What a plugin has just said of ``queue``, if it said anything."""
        said, self._said = self._said, None
        return said if said is not None and said.queue == queue else None


class Hushed(Passing):
    """Passes on to another observer what happens while it is not ``quiet``."""

    def __init__(self, observer: Observer = SILENT) -> None:
        super().__init__(observer)
        self.quiet = False

    def tell(self, key: str, fields: Mapping[str, object]) -> None:
        """Pass it on unless quiet."""
        if not self.quiet:
            self.observer.tell(key, fields)


def _uid(job: object) -> str:
    return job.uid if isinstance(job, Job) else str(job)
