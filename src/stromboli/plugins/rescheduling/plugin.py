"""The rescheduling plugin: strategies that name victims for the action shuffle, at intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stromboli.framework.config.argument import Complaint, nearest
from stromboli.model.names import CPU, MEMORY
from stromboli.model.task import Task
from stromboli.model.usage import PERIOD
from stromboli.model.values import duration
from stromboli.plugin import Hook, Plugin, arg, is_duration, victim_tasks
from stromboli.plugins.rescheduling import low_node_utilization as lnu

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

REFERENCE_PERIOD = "5m"
"""The reference's default of ``metricsPeriod``, for which it collects nothing."""


def doubts_of(strategies: list[object]) -> Iterator[str | Complaint]:
    """What of the listed strategies will be ignored."""
    for entry in strategies:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            yield f"strategy {entry!r} is no mapping with a name"
        elif entry["name"] != lnu.NAME:
            close = nearest(entry["name"], (lnu.NAME,))
            yield f"strategy {entry['name']} is not known" + (f"; did you mean {close!r}?" if close else "")
        elif isinstance(params := entry.get("params") or {}, dict):
            yield from lnu.doubts_of(params)
        else:
            yield f"params of {lnu.NAME} must be a mapping"


class Rescheduling(Plugin, trusted=True):
    """Names running pods that should be elsewhere, once an interval.

    The first interval begins with the scheduler's first session, and a session that is due uses it up whether or not
    the action shuffle runs.  The one strategy is lowNodeUtilization, by loads from the configuration's metrics source.
    """

    name = "rescheduling"
    depends_on_time = True
    interval = arg("interval", str, "5m", is_duration)
    period = arg("metricsPeriod", str, "")
    strategies = arg("strategies", list, [], doubts=doubts_of)

    _due = False

    def on_session_open(self, session: ClusterView) -> None:
        """See whether the interval is over."""
        self.session = session
        self.session.tell("rescheduling_entered")
        kept = session.memory(self.name)
        self._due = kept.setdefault("last", session.now) + duration.seconds(self.interval) < session.now
        if self._due:
            kept["last"] = session.now
        else:
            self.session.tell("rescheduling_early")
        self.session.tell("rescheduling_left")

    def hooks(self) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        """The listed strategies, in a session that is due."""
        return (hooked for hooked in super().hooks() if self._due and self.params_of(lnu.NAME) is not None)

    def params_of(self, strategy: str) -> Mapping[str, object] | None:
        """Parameters of a strategy, those of its last entry; None where it is not listed."""
        if not self.strategies:
            return {}
        named = (entry for entry in self.strategies if isinstance(entry, dict) and entry.get("name") == strategy)
        found: Mapping[str, object] | None = None
        for entry in named:
            found = entry.get("params") or {}
        return found

    # ------------------------------------------------------------------ the strategies

    @victim_tasks
    def low_node_utilization(self, tasks: Sequence[Task]) -> list[Task]:
        """Running pods of loaded nodes, as many as idle nodes can take; none where nodes are all alike."""
        self.session.tell("rescheduling_strategy", name=lnu.NAME)
        params = self.params_of(lnu.NAME)
        if not isinstance(params, dict):
            self.session.tell("utilization_parameters_invalid")
            return []
        limits = lnu.limits_of(params)
        nodes = list(self._nodes(tasks))
        low, high = lnu.grouped(nodes, limits)
        why_not = (
            ("utilization_all_above", not low),
            ("utilization_all_below", len(low) == len(nodes)),
            ("utilization_all_below_target", not high),
        )
        for key, holds in why_not:
            if holds:
                self.session.tell(key)
                return []
        return lnu.victims(low, high, limits, self.session.compat.asks("rescheduling-budget"))

    def _nodes(self, tasks: Sequence[Task]) -> Iterator[lnu.Utilization]:
        """The nodes whose loads are known, with those of ``tasks`` that run there."""
        session, guesses = self.session, self.session.compat.asks("rescheduling-unknown")
        period = self.period or (REFERENCE_PERIOD if session.compat.asks("rescheduling-period") else PERIOD)
        pods = (self._by_name if session.compat.asks("rescheduling-budget") else _by_node)(tasks)
        for spec in session.table.statics.specs:
            sample = session.snapshot.usage.get(spec.name)
            loads = {CPU: sample.cpu.get(period), MEMORY: sample.memory.get(period)} if sample else {}
            known = sample is not None and sample.is_fresh(session.now) and None not in loads.values()
            if known or guesses:
                yield lnu.Utilization(
                    spec, {what: loads.get(what) or 0.0 for what in (CPU, MEMORY)}, pods.get(spec.name, [])
                )

    def _by_name(self, tasks: Sequence[Task]) -> dict[str, list[Task]]:
        """By node, for each pod there the first of ``tasks`` that has its name, wherever that is."""
        named: dict[str, Task] = {}
        for task in tasks:
            named.setdefault(task.name, task)
        found: dict[str, list[Task]] = {}
        for pod, row in self.session.snapshot.pods_on_nodes():
            if pod.name in named:
                found.setdefault(self.session.table.statics.names[row], []).append(named[pod.name])
        return found


def _by_node(tasks: Sequence[Task]) -> dict[str, list[Task]]:
    found: dict[str, list[Task]] = {}
    for task in tasks:
        found.setdefault(task.node_name, []).append(task)
    return found
