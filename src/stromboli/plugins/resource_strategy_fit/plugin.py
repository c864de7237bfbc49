"""The plugin: scores by strategies and scarcity, and the filter that keeps devices usable."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stromboli.filters import proportions
from stromboli.filters.columns import Bools, Masks, picked
from stromboli.filters.proportions import keeps_too_little, takes_devices
from stromboli.framework.extension.reason import Reason
from stromboli.model.table import Node, NodeRows
from stromboli.model.task import PodTemplate, Task
from stromboli.plugin import Hook, Plugin, arg, arg_section, by_template, node_order, predicate
from stromboli.plugins.resource_strategy_fit import strategy
from stromboli.plugins.resource_strategy_fit.strategy import TYPE, WEIGHT, Floats, Share

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

REASON = Reason("proportional of resource {resource} check failed", resolvable=False)

MAX_SCORE = 100

MOST_PROPORTIONS = 64
"""So many resources may have a reason of their own; further ones are not looked at."""


def not_negative(number: int) -> str:
    """Refuse numbers below 0."""
    return "" if number >= 0 else f"{number} is negative; the default counts instead"


def bad_patterns(written: Mapping[str, object]) -> Iterator[str]:
    """What is wrong with the names of resources, which are left out then."""
    yield from filter(None, (strategy.pattern_problem(str(name)) for name in written))


def numbers(written: Mapping[str, object]) -> dict[str, float]:
    """Those entries that are numbers."""
    return {
        name: value
        for name, value in written.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


class ResourceStrategyFit(Plugin, trusted=True):
    """Scores nodes resource by resource: as full, or as empty, as they would be; a pod may have a strategy of its own.

    ``sra`` prefers nodes that lack scarce resources; ``proportional`` refuses nodes that would keep too little cpu and
    memory for their idle devices.
    """

    name = "resource-strategy-fit"
    weight = arg("resourceStrategyFitWeight", int, 10, not_negative)
    resources = arg("resources", dict, {}, doubts=bad_patterns)
    sra = arg_section(
        "sra", arg("enable", bool, False), arg("resources", str, ""), arg("weight", int, 0),
        arg("resourceWeight", dict, {}),
    )  # fmt: skip
    proportional = arg_section(
        "proportional", arg("enable", bool, False), arg("resources", str, ""), arg("resourceProportion", dict, {})
    )

    def on_session_open(self, session: ClusterView) -> None:
        """Number the resources that count."""
        self._axes = session.axes
        self._strategies = strategy.read(self.resources)
        self._shares: dict[Hashable, list[Share]] = {}
        tasks = (task for job in session.active_jobs() for task in job.tasks.values())
        self._any_own = any(TYPE in task.annotations for task in tasks)
        self._scarce = self._weights_of_scarce()
        self._proportions = self._kept()
        specs = session.table.statics.specs
        self._offered: list[Bools] = [
            np.fromiter((each.name in spec.allocatable for spec in specs), dtype=bool, count=len(specs))
            for each in self._proportions
        ]

    def _weights_of_scarce(self) -> dict[str, int]:
        names = (name.strip() for name in self.sra["resources"].split(","))
        weights = numbers(self.sra["resourceWeight"])
        found = {name: int(weights.get(name, 1)) for name in names if name}
        return {name: weight if weight >= 0 else 1 for name, weight in found.items()}

    def _kept(self) -> list[proportions.Proportion]:
        if not self.proportional["enable"]:
            return []
        rates = numbers(self.proportional["resourceProportion"])
        return proportions.read(self.proportional["resources"], rates)[:MOST_PROPORTIONS]

    @property
    def _avoids(self) -> bool:
        return bool(self.sra["enable"]) and self.sra["weight"] > 0

    def hooks(self) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        """The hooks that the arguments leave enabled; refusals name the resources that are listed."""
        for hook, function in super().hooks():
            if hook.point.name == "predicate" and self._proportions:
                yield (
                    replace(hook, reasons=tuple(REASON.of(resource=each.name) for each in self._proportions)),
                    function,
                )
            elif hook.point.name == "node_order" and (self.weight or self._avoids):
                yield replace(hook, key=self._kind if self._any_own else by_template), function

    # ------------------------------------------------------------------ scores

    def _kind(self, task: Task) -> tuple[PodTemplate, str, str]:
        return task.template, task.annotations.get(TYPE, ""), task.annotations.get(WEIGHT, "")

    @node_order.vector(row="score_of_node", amounts=True)
    def score(self, task: Task, nodes: NodeRows) -> Floats:
        """How well each row suits the task by its strategies, and how little of scarce resources it has."""
        found = strategy.score(self._shares_of(task), nodes) * float(MAX_SCORE * self.weight)
        if self._avoids:
            index, requested = self._axes.index, enumerate(task.template.vector)
            known = {index[name]: weight for name, weight in self._scarce.items() if name in index}
            asked = [column for column, amount in requested if amount > 0]
            weights = {column: weight for column, weight in known.items() if column < len(nodes.alloc)}
            scarcity = strategy.scarcity(asked, weights, sum(self._scarce.values()), nodes)
            found = found + scarcity * float(MAX_SCORE * self.sra["weight"])
        return found

    def score_of_node(self, task: Task, node: Node) -> float:
        """:meth:`score` of one node."""
        return float(self.score(task, node.table.view(np.array([node.row], dtype=np.intp)))[0])

    def _shares_of(self, task: Task) -> list[Share]:
        key = self._kind(task)
        found = self._shares.get(key)
        if found is None:
            own = strategy.of_pod(task.annotations)
            chosen = self._strategies if own is None else own
            found = self._shares[key] = strategy.shares(task, self._axes, chosen, patterns=own is None)
        return found

    # ------------------------------------------------------------------ the filter

    @predicate.vector(key=by_template, reasons=(REASON,), row="refusal")
    def keeps_devices_usable(self, task: Task, nodes: NodeRows) -> Masks | None:
        """Whether each row keeps enough for its idle devices; None for a pod that asks for a device."""
        if takes_devices(task, self._proportions):
            return None
        masks = np.zeros(len(nodes), dtype=np.uint64)
        for bit, (each, offered) in enumerate(zip(self._proportions, self._offered, strict=True)):
            short = keeps_too_little(task, nodes, each) & picked(offered, nodes)
            masks[short & (masks == 0)] = 1 << bit
        return masks

    def refusal(self, task: Task, node: Node) -> Reason | None:
        """:meth:`keeps_devices_usable` of one node."""
        masks = self.keeps_devices_usable(task, node.table.view(np.array([node.row], dtype=np.intp)))
        bit = 0 if masks is None else int(masks[0])
        return REASON.of(resource=self._proportions[bit.bit_length() - 1].name) if bit else None
