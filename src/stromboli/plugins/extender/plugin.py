"""The plugin: each configured verb is a hook that asks the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from stromboli.errors import ExtenderError
from stromboli.framework.books.jobs import QueueInfo
from stromboli.framework.extension.handlers import TaskEvent
from stromboli.framework.extension.reason import StatusCode
from stromboli.model.job import Job
from stromboli.model.table import Node
from stromboli.model.task import Task
from stromboli.model.values import duration
from stromboli.plugin import (
    Hook,
    Plugin,
    Reason,
    arg,
    batch_node_order,
    is_duration,
    job_enqueueable,
    job_enqueued,
    job_ready,
    on_allocate,
    on_deallocate,
    overused,
    pre_predicate,
    predicate,
    preemptable,
    reclaimable,
)
from stromboli.plugins.extender import messages as say
from stromboli.plugins.extender.calls import Calls

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

T = TypeVar("T")

PERMIT, REJECT = 1, -1
SECOND, LONGEST = 1.0, 30.0
"""Seconds that an answer may take unless the configuration says otherwise, and at most."""

VERBS: Final = {
    "predicate": "predicate_verb",
    "pre_predicate": "prioritize_verb",
    "batch_node_order": "prioritize_verb",
    "preemptable": "preemptable_verb",
    "reclaimable": "reclaimable_verb",
    "overused": "overused_verb",
    "job_enqueueable": "enqueueable_verb",
    "job_enqueued": "enqueued_verb",
    "job_ready": "ready_verb",
    "on_allocate": "allocate_verb",
    "on_deallocate": "deallocate_verb",
}
"""By point, the argument without which the plugin does not answer it."""


class Extender(Plugin):
    """Asks an HTTP server at ``extender.urlPrefix``, once for each question under a configured verb.

    A call that fails is passed over where ``extender.ignorable`` says so, and otherwise counts against what was asked
    for.  ``extender.managedResources`` limits questions about pods to those that ask for one of these.
    """

    name = "extender"
    url = arg("extender.urlPrefix", str, "")
    timeout = arg("extender.httpTimeout", str, "1s", is_duration)
    ignorable = arg("extender.ignorable", bool, False)
    managed = arg("extender.managedResources", list, [])
    open_verb = arg("extender.onSessionOpenVerb", str, "")
    close_verb = arg("extender.onSessionCloseVerb", str, "")
    predicate_verb = arg("extender.predicateVerb", str, "")
    prioritize_verb = arg("extender.prioritizeVerb", str, "")
    preemptable_verb = arg("extender.preemptableVerb", str, "")
    reclaimable_verb = arg("extender.reclaimableVerb", str, "")
    overused_verb = arg("extender.queueOverusedVerb", str, "")
    enqueueable_verb = arg("extender.jobEnqueueableVerb", str, "")
    enqueued_verb = arg("extender.jobEnqueuedVerb", str, "")
    ready_verb = arg("extender.jobReadyVerb", str, "")
    allocate_verb = arg("extender.allocateFuncVerb", str, "")
    deallocate_verb = arg("extender.deallocateFuncVerb", str, "")

    def on_session_open(self, session: ClusterView) -> None:
        """Send the cluster; where that fails and may not be ignored, or without a verb, nothing is asked."""
        self.session, self._names = session, dict.fromkeys(map(str, self.managed))
        self._asks = any((self.open_verb, self.close_verb, *(getattr(self, verb) for verb in VERBS.values())))
        if not self._asks:
            return
        seconds = duration.seconds(self.timeout)
        timeout = min(seconds if seconds > 0 else SECOND, LONGEST)
        self._calls = Calls(cast("Any", session).extender, self.url, timeout, session.plan)
        self._unscored = ""
        if self.open_verb:
            opened = self._ask(self.open_verb, say.session_body(session), say.Ignored)
            self._asks = opened is not None or self.ignorable

    def on_session_close(self, session: ClusterView) -> None:
        """Say that the session is over."""
        if self.close_verb:
            self._ask(self.close_verb, {}, say.Ignored)

    def hooks(self) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        """Those whose verbs are configured."""
        if self._asks:
            yield from (found for found in super().hooks() if getattr(self, VERBS[found[0].point.name]))

    def _ask(self, verb: str, body: object, answer: type[T]) -> T | None:
        """The answer; None where the call failed, which is told."""
        try:
            return self._calls.ask(verb, body, answer)
        except ExtenderError as error:
            self._problem = str(error)
            self.session.tell("extender_failed", verb=verb, error=error)
            return None

    def _concerns(self, task: Task) -> bool:
        return say.is_managed(task, self._names)

    # ------------------------------------------------------------------ nodes

    @predicate(key=lambda task: task.uid)
    def fits(self, task: Task, node: Node) -> Reason | None:
        """Whether the server lets the task go there."""
        if not self._concerns(task):
            return None
        body = {"task": say.task_body(task), "node": say.node_body(node)}
        found = self._ask(self.predicate_verb, body, say.Fit)
        if found is None:
            return None if self.ignorable else Reason(self._problem, code=StatusCode.ERROR)
        return Reason(found.status[:MOST_SAID], code=_code(found.code)) if found.status else None

    @pre_predicate
    def was_scored(self, task: Task) -> Reason | None:
        """Refuse further tasks once scores have failed that may not be ignored."""
        return Reason(self._unscored, code=StatusCode.ERROR) if self._unscored and self._concerns(task) else None

    @batch_node_order
    def prioritize(self, task: Task, nodes: Sequence[Node]) -> Mapping[str, float]:
        """The server's scores as they are."""
        if not self._concerns(task):
            return {}
        body = {"task": say.task_body(task), "nodes": [say.node_body(node) for node in nodes]}
        found = self._ask(self.prioritize_verb, body, say.Scores)
        if found is not None and found.node_score is not None and not found.error_message:
            here = {node.name for node in nodes}
            return {name: score for name, score in found.node_score.items() if name in here}
        if not self.ignorable:
            self._unscored = (found.error_message or "no scores") if found is not None else self._problem
        return {}

    # ------------------------------------------------------------------ victims

    @preemptable
    def may_be_preempted(self, preemptor: Task, preemptees: Sequence[Task]) -> list[Task] | None:
        """Those that the server names."""
        return self._victims(self.preemptable_verb, preemptor, preemptees)

    @reclaimable
    def may_be_reclaimed(self, reclaimer: Task, reclaimees: Sequence[Task]) -> list[Task] | None:
        """Those that the server names."""
        return self._victims(self.reclaimable_verb, reclaimer, reclaimees)

    def _victims(self, verb: str, evictor: Task, evictees: Sequence[Task]) -> list[Task] | None:
        if not self._concerns(evictor):
            return None
        body = {"evictor": say.task_body(evictor), "evictees": say.tasks_body(evictees)}
        found = self._ask(verb, body, say.Victims)
        if found is None:
            return []
        named = {victim.uid for victim in found.victims or ()}
        return [task for task in evictees if task.uid in named] if found.status else None

    # ------------------------------------------------------------------ queues and jobs

    @overused
    def is_overused(self, queue: QueueInfo) -> bool:
        """Whether the server says that the queue has more than its share."""
        found = self._ask(self.overused_verb, {"queue": say.queue_body(queue)}, say.Overused)
        return not self.ignorable if found is None else found.overused

    @job_enqueueable
    def may_enter(self, job: Job) -> int:
        """The server's vote."""
        found = self._ask(self.enqueueable_verb, {"job": say.job_body(job)}, say.Vote)
        if found is None:
            return PERMIT if self.ignorable else REJECT
        return max(REJECT, min(found.status, PERMIT))

    @job_enqueued
    def entered(self, job: Job) -> None:
        """Say that a job has entered its queue."""
        self._ask(self.enqueued_verb, {"job": say.job_body(job)}, say.Ignored)

    @job_ready
    def is_ready(self, job: Job) -> bool:
        """Whether the server says that the job is ready; without an answer as the reference has it."""
        found = self._ask(self.ready_verb, {"job": say.job_body(job)}, say.Ready)
        return not self.ignorable if found is None else found.status

    # ------------------------------------------------------------------ placements

    @on_allocate
    def placed(self, event: TaskEvent) -> None:
        """Tell of a placement, to which the server may object."""
        self._tell_of(self.allocate_verb, event)

    @on_deallocate
    def taken_back(self, event: TaskEvent) -> None:
        """Tell of a placement that ends."""
        self._tell_of(self.deallocate_verb, event)

    def _tell_of(self, verb: str, event: TaskEvent) -> None:
        if not self._concerns(event.task):
            return
        found = self._ask(verb, {"task": say.task_body(event.task)}, say.Objection)
        problem = ("" if self.ignorable else self._problem) if found is None else found.error_message
        if problem:
            event.err = problem[:MOST_SAID]


MOST_SAID: Final = 1024
"""Characters of a server's text that are kept."""


def _code(number: int) -> StatusCode:
    """Kubernetes' code of a refusal; anything else is an error."""
    return StatusCode(number) if number in {*StatusCode} - {StatusCode.SUCCESS} else StatusCode.ERROR
