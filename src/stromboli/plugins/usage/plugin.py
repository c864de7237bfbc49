"""The usage plugin: a filter by measured load, and a score by measured and expected load."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from stromboli.errors import DurationError, QuantityError
from stromboli.framework.extension.handlers import TaskEvent
from stromboli.framework.extension.reason import Reason
from stromboli.model.job import ALLOCATED, BINDING, BOUND, PIPELINED, RUNNING
from stromboli.model.resources import quantity
from stromboli.model.table import Node, NodeRows
from stromboli.model.task import Task
from stromboli.model.usage import FRESH, PERIOD, NodeUsage
from stromboli.model.values import duration
from stromboli.plugin import Plugin, arg, arg_section, node_order, on_allocate, on_deallocate, predicate
from stromboli.plugins.usage.load import Estimator, Expected, Floats, Pair, Weights, capacities, load, score

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

CPU_LOADED = Reason("the CPU load of the node exceeds the upper limit.", resolvable=False)
MEMORY_LOADED = Reason("the memory load of the node exceeds the upper limit.", resolvable=False)

INTERVAL = 30.0
"""Seconds until a pod shows in the measurements, where the configuration's metrics state no interval."""

MEBIBYTE = 1 << 20


def not_negative(weight: int) -> str:
    """Refuse a negative weight."""
    return "" if weight >= 0 else f"{weight} must not be negative"


def percentage(threshold: int) -> str:
    """Refuse what is no percentage."""
    return "" if 0 <= threshold <= 100 else f"{threshold} must be from 0 to 100"


def ratio(part: float) -> str:
    """Refuse what is not from 0 to 1."""
    return "" if 0.0 <= part <= 1.0 else f"{part} must be from 0 to 1"


def factor(number: float) -> str:
    """Refuse what would make a guess smaller."""
    return "" if number >= 1.0 else f"{number} must not be below 1"


def amount(written: object) -> str:
    """Refuse what is neither a quantity of 0 or more nor such a whole number."""
    problem = f"{written!r} is neither a quantity such as 250m nor a whole number, of 0 or more"
    if isinstance(written, str):
        try:
            return "" if quantity.parse(written) >= 0 else problem
        except QuantityError:
            return problem
    return "" if isinstance(written, int) and not isinstance(written, bool) and written >= 0 else problem


def any_task(_task: Task) -> None:
    """The key of answers that are the same for all tasks."""


class Usage(Plugin, trusted=True):
    """Refuses nodes whose measured load is above a threshold, and prefers idle ones.

    Loads are averages over ten minutes from the configuration's metrics source.  A sample older than five minutes
    counts as none: such a node passes, and scores 0.  The score also counts what pods are expected to use that came
    after the last measurement.
    """

    name = "usage"
    depends_on_time = True
    weight = arg("usage.weight", int, 5, not_negative)
    cpu_weight = arg("cpu.weight", int, 1, not_negative)
    memory_weight = arg("memory.weight", int, 1, not_negative)
    thresholds = arg_section("thresholds", arg("cpu", int, 80, percentage), arg("mem", int, 80, percentage))
    estimator = arg_section(
        "estimator",
        arg("request_ratio", float, 0.7, ratio),
        arg("burst_ratio", float, 0.0, ratio),
        arg("risk_threshold", float, 0.6, ratio),
        arg("risk_factor", float, 1.2, factor),
        arg("be_cpu", object, "250m", amount),
        arg("be_mem", object, "200Mi", amount),
    )

    def on_session_open(self, session: ClusterView) -> None:
        """Lay the samples out by row, and count the pods that they cannot show."""
        self.session, self._table = session, session.table
        self.session.tell("usage_entered")
        self._weights = Weights(self.cpu_weight, self.memory_weight)
        self._estimator = self._read_estimator()
        samples = [session.snapshot.usage.get(name) for name in session.table.statics.names]
        self.cpu, self.memory = (self._column(samples, name) for name in ("cpu", "memory"))
        fresh = (sample is not None and sample.is_fresh(session.now) for sample in samples)
        self._fresh = np.fromiter(fresh, dtype=bool, count=len(samples))
        self._known = self._fresh & self._whole(samples)
        self._refused = self._exceeding()
        self._capacity = capacities(session.table)
        self.expected = Expected(len(samples))
        self._set_aside: dict[str, tuple[int, Pair | None]] = {}
        self._holds = session.config.keeps_reservations
        self._count_young()
        self._tell_figures(samples)
        self.session.tell("usage_left")

    # ------------------------------------------------------------------ what was measured

    @staticmethod
    def _column(samples: list[NodeUsage | None], name: str) -> Floats:
        """Percentages by row; where none was measured 0, which counts only in the reference's way."""
        found = (0.0 if sample is None else getattr(sample, name).get(PERIOD, 0.0) for sample in samples)
        return np.fromiter(found, dtype=np.float64, count=len(samples))

    def _whole(self, samples: list[NodeUsage | None]) -> npt.NDArray[np.bool_]:
        """Which rows have a sample with the period that is asked for, of cpu and of memory."""
        gaps = self.session.compat.asks("usage-missing")
        whole = (
            gaps or (sample is not None and PERIOD in sample.cpu and PERIOD in sample.memory) for sample in samples
        )
        return np.fromiter(whole, dtype=bool, count=len(samples))

    def _exceeding(self) -> npt.NDArray[np.uint64]:
        """One mask a row: the bit of cpu, or else that of memory, where the load is above its threshold.

        One that was not measured is above none, and keeps the other from nothing.
        """
        cpu = self._fresh & (self.cpu > self.thresholds["cpu"])
        memory = self._fresh & (self.memory > self.thresholds["mem"])
        return np.where(cpu, 1, np.where(memory, 2, 0)).astype(np.uint64)

    def _tell_figures(self, samples: list[NodeUsage | None]) -> None:
        say = self.session.tells("usage_figures")
        if say is None:
            return
        for row, (name, sample) in enumerate(zip(self._table.statics.names, samples, strict=True)):
            guess = self.expected.of(row)
            cpu, memory = (sample.cpu, sample.memory) if sample else ({}, {})
            taken = self._when(row)
            say(node=name, cpu=cpu, memory=memory, time=taken, cpu_guess=guess.cpu, memory_guess=guess.memory)

    def _when(self, row: int) -> str:
        sample = self.session.snapshot.usage.get(self._table.statics.names[row])
        return "never" if sample is None else datetime.fromtimestamp(sample.time, UTC).isoformat()

    # ------------------------------------------------------------------ the filter

    @predicate.vector(key=any_task, static=True, reasons=(CPU_LOADED, MEMORY_LOADED), row="refusal")
    def not_loaded(self, task: Task, nodes: NodeRows) -> npt.NDArray[np.uint64]:
        """One mask a row, by measured load alone."""
        self._tell_filter(task, nodes)
        return self._refused if nodes.index is None else self._refused[nodes.index]

    def refusal(self, task: Task, node: Node) -> Reason | None:
        """:meth:`not_loaded` of one node."""
        return (None, CPU_LOADED, MEMORY_LOADED)[int(self._refused[node.row])]

    def _tell_filter(self, task: Task, nodes: NodeRows) -> None:
        keys = ("usage_cpu_exceeded", "usage_memory_exceeded", "usage_filter_stale", "usage_filter_passed")
        tellers = {key: say for key in keys if (say := self.session.tells(key))}
        for row in nodes.rows.tolist() if tellers else ():
            key, fields = self._verdict(task, row)
            if say := tellers.get(key):
                say(node=self._table.statics.names[row], **fields)

    def _verdict(self, task: Task, row: int) -> tuple[str, dict[str, object]]:
        """The line that says what the filter made of the node, and its fields."""
        refused = int(self._refused[row])
        if refused:
            what, load = (("cpu", self.cpu), ("memory", self.memory))[refused - 1]
            threshold = self.thresholds[("cpu", "mem")[refused - 1]]
            return f"usage_{what}_exceeded", {"usage": f"{load[row]:f}", "threshold": f"{threshold:f}"}
        if not self._known[row]:
            stale = {"period": PERIOD, "minutes": FRESH / 60, "task": task.key, "time": self._when(row)}
            return "usage_filter_stale", stale
        return "usage_filter_passed", {"task": task.key}

    # ------------------------------------------------------------------ the score

    @node_order.vector(key=any_task, row="score_of_node")
    def idle_first(self, task: Task, nodes: NodeRows) -> Floats:
        """The idler the better, up to 100 times ``usage.weight``; 0 where nothing is known.  Shape (rows,)."""
        self._tell_unknown(task, nodes)
        pick = slice(None) if nodes.index is None else nodes.index
        cpu = load(self.cpu[pick], self.expected.cpu[pick], self._capacity[0][pick])
        memory = load(self.memory[pick], self.expected.memory[pick], self._capacity[1][pick])
        return np.where(self._known[pick], score((cpu, memory), self._weights, self.weight), 0.0)

    def _tell_unknown(self, task: Task, nodes: NodeRows) -> None:
        if (say := self.session.tells("usage_score_stale")) is None:
            return
        for row in nodes.rows.tolist():
            if not self._known[row]:
                node = self._table.statics.names[row]
                say(period=PERIOD, minutes=FRESH / 60, task=task.key, node=node, time=self._when(row))

    def score_of_node(self, task: Task, node: Node) -> float:
        """:meth:`idle_first` of one node."""
        return float(score(self.loads(node.row), self._weights, self.weight)) if self._known[node.row] else 0.0

    def loads(self, row: int) -> tuple[float, float]:
        """Loads of cpu and memory of one node, from 0 to 1, with the pods that no measurement shows."""
        guess = self.expected.of(row)
        cpu = load(float(self.cpu[row]), guess.cpu, float(self._capacity[0][row]))
        return cpu, load(float(self.memory[row]), guess.memory, float(self._capacity[1][row]))

    # ------------------------------------------------------------------ pods that no measurement shows

    def _read_estimator(self) -> Estimator:
        given = self.estimator
        cpu, memory = given["be_cpu"], given["be_mem"]
        idle_pod = Pair(
            float(quantity.milli(cpu) if isinstance(cpu, str) else cpu),
            float(quantity.whole(memory) if isinstance(memory, str) else memory * MEBIBYTE),
        )
        return Estimator(
            given["request_ratio"], given["burst_ratio"], given["risk_threshold"], given["risk_factor"], idle_pod
        )

    def _count_young(self) -> None:
        window = interval_of(self.session.config.metrics.get("interval", ""))
        for task, row in self.session.snapshot.pods_on_nodes():
            if is_young(task, self.session.now, window):
                self._count(task, row)

    def _count(self, task: Task, row: int) -> None:
        load_now = self._weights.mean(self.loads(row))
        self.expected.put(task.uid, row, self._estimator.guess(task.template, self._estimator.factor(load_now)))

    @on_allocate
    def came(self, event: TaskEvent) -> None:
        """Expect the task's load on its node; one that has its place again counts as it did before."""
        task = event.task
        row = self._table.row(task.node_name)
        before, guess = self._set_aside.pop(task.uid, (-1, None))
        if not (task.status is RUNNING or (self._holds and task.status is PIPELINED and row == before)):
            self._count(task, row)
        elif guess is not None:
            self.expected.put(task.uid, row, guess)

    @on_deallocate
    def left(self, event: TaskEvent) -> None:
        """Expect the task's load no longer."""
        row = self._table.statics.row.get(event.task.node_name, -1)
        self._set_aside[event.task.uid] = row, self.expected.take(event.task.uid)


def interval_of(written: str) -> float:
    """Seconds between two measurements as the configuration states it; the default for anything but a duration."""
    try:
        return seconds if (seconds := duration.seconds(written)) > 0 else INTERVAL
    except DurationError:
        return INTERVAL


def is_young(task: Task, now: float, window: float) -> bool:
    """Whether a pod on a node has no part in the measurements yet; running without a start time counts as young."""
    if task.status in (ALLOCATED, BINDING, BOUND):
        return True
    return task.status is RUNNING and (not task.start_time or now - task.start_time < window)
