"""tdm: nodes that are lent to batch work for some hours of the day (time-division multiplexing)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stromboli.framework.extension.order import compare
from stromboli.framework.extension.reason import Reason
from stromboli.model.job import FAILED, PENDING, RUNNING, SUCCEEDED, Job
from stromboli.model.names import REVOCABLE_ZONE
from stromboli.model.table import Node, NodeRows
from stromboli.model.task import Task
from stromboli.model.values import duration
from stromboli.plugin import (
    Hook,
    Plugin,
    arg,
    arg_pattern,
    is_duration,
    job_order,
    job_pipelined,
    job_starving,
    node_order,
    predicate,
    preemptable,
    victim_tasks,
)

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

PERMIT, REJECT = 1, -1
MAX_SCORE = 100.0
DAY = 86_400

NOT_ALLOWED = Reason("not allow to dispatch to revocable node", resolvable=False)
CLOSED = Reason("current time beyond revocable zone", resolvable=False)
"""Where so many zones are closed that not every one has a reason of its own."""

MOST_REASONS = 64
EVICTED_WITHOUT_BUDGET = 1

_HOURS = re.compile(r"([0-9]{1,2}):([0-9]{2})-([0-9]{1,2}):([0-9]{2})", re.ASCII)
_PERCENT = re.compile(r"([+-]?[0-9]+)(%?)", re.ASCII)


class Hours(NamedTuple):
    """When a zone is open, in seconds of the day: from ``start`` to ``end``, both included.

    An end that is not after the start means that time of the next day.
    """

    start: int
    end: int

    def hold(self, second: int, wraps: bool) -> bool:
        """Whether the zone is open at ``second`` of the day; without ``wraps`` nothing is open before its start."""
        if self.end > self.start:
            return self.start <= second <= self.end
        return second >= self.start or (wraps and second <= self.end)


def hours_of(written: object) -> Hours | None:
    """The hours that a text such as ``10:00-21:00`` states; None for anything else."""
    match = _HOURS.fullmatch(written.strip()) if isinstance(written, str) else None
    if match is None:
        return None
    start_hour, start_minute, end_hour, end_minute = map(int, match.groups())
    if max(start_hour, end_hour) > 23 or max(start_minute, end_minute) > 59:
        return None
    return Hours(start_hour * 3600 + start_minute * 60, end_hour * 3600 + end_minute * 60)


def unreadable(written: object) -> Iterable[str]:
    """What is to be said of the hours of a zone that never opens."""
    if hours_of(written) is None:
        yield f"revocable zone {written} format error, it stays closed; write e.g. 10:00-21:00"


def zone_of(task: Task) -> bool:
    """Whether the pod may use revocable nodes: all that the plugin's answers per node read of a task."""
    return bool(task.revocable_zone)


class Tdm(Plugin, trusted=True):
    """Lets pods with a revocable zone, and only those, onto the nodes of zones that are open, and clears closed ones.

    A node says with the label ``volcano.sh/revocable-zone`` which zone it belongs to.  A pod may go there with the
    annotation of that name (``*``), or as a preemptable one.  Hours are local time.
    """

    name = "tdm"
    depends_on_time = True
    zones = arg_pattern("tdm.revocable-zone.*", object, None, doubts=unreadable)
    period = arg("tdm.evict.period", str, "1m", is_duration)
    _clears: bool | None = None

    def on_session_open(self, session: ClusterView) -> None:
        """See which zones of the configuration and of the nodes are open now."""
        self.session, self._clears = session, None
        self._second = int(session.now + session.snapshot.utc_offset) % DAY
        self._wraps = not session.compat.asks("zone-over-midnight")
        self._nodes = session.table.statics.label(REVOCABLE_ZONE)
        self._closed = [self.closed(zone) if zone else "" for zone in self._nodes.values]
        self._reasons = self._numbered()
        self.session.tell("tdm_entered")
        self.session.tell("tdm_left")

    def hooks(self) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        """The hooks, the predicate with the reasons of this session's zones."""
        reasons = getattr(self, "_reasons", None)
        for hook, function in super().hooks():
            yield (replace(hook, reasons=tuple(reasons)) if reasons and hook.reasons else hook), function

    # ------------------------------------------------------------------ zones

    def closed(self, zone: str) -> str:
        """Why nothing may be placed in ``zone`` now; empty where it is open."""
        if zone not in self.zones:
            return f"revocable zone {zone} not support"
        written = self.zones[zone]
        hours = hours_of(written)
        if hours is None:
            return f"revocable zone {written} format error"
        if not hours.hold(self._second, self._wraps):
            return f"current time beyond revocable zone {zone}:{written}"
        return ""

    def _numbered(self) -> list[Reason]:
        """The reasons of the predicate by bit, and in ``_bits`` the answer for each zone of a node.

        ``_bits[whether the pod may use zones][number of the node's zone]``; the last number is that of no zone.
        """
        texts = list(dict.fromkeys(text for text in self._closed if text))[: MOST_REASONS - 2]
        bit = {text: 2 + number for number, text in enumerate(texts)}
        open_zone = [0 if text == "" else 1 << bit.get(text, 1) for text in self._closed]
        strict = [1 if zone and not bits else bits for zone, bits in zip(self._nodes.values, open_zone, strict=True)]
        self._bits = (np.array([*strict, 0], dtype=np.uint64), np.array([*open_zone, 0], dtype=np.uint64))
        return [NOT_ALLOWED, CLOSED, *(Reason(text, resolvable=False) for text in texts)]

    def _codes(self, nodes: NodeRows) -> npt.NDArray[np.int32]:
        return self._nodes.codes if nodes.index is None else self._nodes.codes[nodes.index]

    # ------------------------------------------------------------------ nodes

    @predicate.vector(key=zone_of, static=True, reasons=(NOT_ALLOWED,), row="refusal")
    def in_open_zone(self, task: Task, nodes: NodeRows) -> npt.NDArray[np.uint64] | None:
        """One mask a row: nodes outside zones pass, those of open zones for pods that may use zones."""
        if not self._nodes.values:
            return None
        masks: npt.NDArray[np.uint64] = self._bits[zone_of(task)][self._codes(nodes)]
        return masks

    def refusal(self, task: Task, node: Node) -> Reason | None:
        """:meth:`in_open_zone` of one node."""
        zone = node.labels.get(REVOCABLE_ZONE)
        if not zone:
            return None
        why = self.closed(zone)
        if why:
            return next((reason for reason in self._reasons if reason.text == why), CLOSED)
        return None if zone_of(task) else NOT_ALLOWED

    @node_order.vector(key=zone_of, static=True, row="score_of_node")
    def lent_first(self, task: Task, nodes: NodeRows) -> npt.NDArray[np.float64] | None:
        """100 on rows of open zones for pods that may use zones, else 0; nothing to say to other pods."""
        if not self._nodes.values or not zone_of(task):
            return None
        scores = [
            MAX_SCORE if zone and not why else 0.0 for zone, why in zip(self._nodes.values, self._closed, strict=True)
        ]
        return np.array([*scores, 0.0])[self._codes(nodes)]

    def score_of_node(self, task: Task, node: Node) -> float:
        """:meth:`lent_first` of one node."""
        zone = node.labels.get(REVOCABLE_ZONE)
        return MAX_SCORE if zone and zone_of(task) and not self.closed(zone) else 0.0

    # ------------------------------------------------------------------ jobs

    @job_order
    def steady_first(self, left: Job, right: Job) -> int:
        """Jobs that may not be preempted come first."""
        return compare(self.steady_turn(left), self.steady_turn(right))

    @job_order.key(own=True)
    def steady_turn(self, job: Job) -> bool:
        """Whether the job may be preempted."""
        return job.facts.preemptable

    @job_pipelined
    def enough_placed(self, job: Job) -> int:
        """Permit a job whose minimum is placed, reservations included; else reject."""
        return PERMIT if job.is_pipelined() else REJECT

    @job_starving(own=True)
    def steady_and_waiting(self, job: Job) -> bool:
        """Whether a job that may not be preempted has pending tasks."""
        return not job.facts.preemptable and job.number(PENDING) > 0

    @job_starving.many
    def none_waiting_after(self, job: Job, task: Task, k: int) -> int:
        """After how many more tasks, at least 1, none is pending; k + 1 if not within k."""
        return 1 if job.facts.preemptable else min(max(job.number(PENDING), 1), k + 1)

    # ------------------------------------------------------------------ victims

    @preemptable
    def outside_zones(self, preemptor: Task, preemptees: Sequence[Task]) -> list[Task]:
        """Running preemptable tasks on nodes outside zones, as many of each job as its budget lets go.

        No victims for a preemptor that is preemptable itself or may use zones.
        """
        if preemptor.preemptable or zone_of(preemptor):
            self._tell_spared(preemptees, "the preemptor is preemptable itself, or may use revocable zones")
            return []
        by_job: dict[str, list[Task]] = {}
        for task in preemptees:
            if self._outside(task):
                by_job.setdefault(task.job, []).append(task)
            else:
                self._tell_spared([task], "it is not running, not preemptable, or in a revocable zone")
        return [victim for uid, tasks in by_job.items() for victim in self._spare(uid, tasks, {})]

    def _outside(self, task: Task) -> bool:
        """Whether the task is a running preemptable one on a node outside zones."""
        row = self.session.table.statics.row.get(task.node_name)
        return task.preemptable and task.status is RUNNING and row is not None and not self._zone(row)

    @victim_tasks
    def left_in_closed_zones(self, tasks: Sequence[Task]) -> list[Task]:
        """Running preemptable ones of ``tasks`` in zones that have closed, as many of each job as its budget lets go.

        They are looked for in one session a period, the first time at once.
        """
        kept = self.session.memory(self.name)
        if self._clears is None:
            self._clears = "evicted" not in kept or kept["evicted"] + duration.seconds(self.period) <= self.session.now
        if not self._clears:
            self.session.tell("tdm_next", time=kept["evicted"])
            return []
        kept["evicted"] = self.session.now
        separate = self.session.compat.asks("zone-budgets")
        left: dict[str, int] = {}
        victims: list[Task] = []
        for zone in filter(self.closed, self.zones):
            victims += self._in_zone(zone, tasks, {} if separate else left)
        self.session.tell("tdm_victims", count=len(victims))
        return victims

    def _tell_spared(self, tasks: Sequence[Task], why: str) -> None:
        for task in tasks if self.session.tells("spared") else ():
            self.session.tell("spared", plugin=self.name, task=task.key, why=why)

    def _zone(self, row: int) -> str:
        code = int(self._nodes.codes[row])
        return "" if code < 0 else self._nodes.values[code]

    def _in_zone(self, zone: str, tasks: Sequence[Task], left: dict[str, int]) -> Iterator[Task]:
        if zone not in self._nodes.values:
            return
        rows = self.session.table.statics.row
        by_job: dict[str, list[Task]] = {}
        for task in tasks:
            row = rows.get(task.node_name)
            if task.preemptable and task.status is RUNNING and row is not None and self._zone(row) == zone:
                by_job.setdefault(task.job, []).append(task)
        for uid, there in by_job.items():
            yield from self._spare(uid, self.session.tasks_in_turn(there)[::-1], left)

    def _spare(self, uid: str, tasks: list[Task], left: dict[str, int]) -> list[Task]:
        """The first of ``tasks``, as many as ``left`` says that their job can do without; none of a job that is gone.

        What a job can do without is counted down in ``left``, from its budget on.
        """
        job = self.session.jobs.peek_at(uid)
        if job is None:
            return []
        most = left.setdefault(uid, spare_of(job))
        self.session.tell("tdm_budget", job=uid, most=most, potential=len(tasks), count=min(most, len(tasks)))
        taken = tasks[: max(0, most)]
        self._tell_spared(
            tasks[len(taken) :], f"its job can do without {max(0, most)} of {job.number(RUNNING)} running"
        )
        left[uid] -= len(taken)
        return taken


def spare_of(job: Job) -> int:
    """How many of the job's tasks its disruption budget lets go.

    With a maximum of unavailable ones, that less those unavailable now; with a minimum of available ones, the running
    ones above it.  A job without a budget can do without one task, and so can, as in the reference, one that is below
    its minimum.
    """
    least, most = job.facts.budget
    running, tasks = job.number(RUNNING), len(job.tasks)
    if most:
        unavailable = tasks - job.number(SUCCEEDED, FAILED) - running
        return max(0, count_of(most, tasks) - unavailable)
    if least and running >= count_of(least, tasks):
        return running - count_of(least, tasks)
    return EVICTED_WITHOUT_BUDGET


def count_of(written: str, tasks: int) -> int:
    """A number of tasks as written: ``3``, or a percentage of ``tasks`` rounded up; 0 for what is neither."""
    match = _PERCENT.fullmatch(written)
    if match is None:
        return 0
    number = int(match[1])
    return math.ceil(number * tasks / 100) if match[2] else number


__all__ = ["Hours", "Tdm", "count_of", "hours_of", "spare_of"]
