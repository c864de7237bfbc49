"""binpack: fills nodes up, so that whole nodes stay free."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from stromboli.model.names import CPU, MEMORY
from stromboli.model.table import Ints, Node, NodeRows
from stromboli.model.task import PodTemplate, Task
from stromboli.plugin import Plugin, arg, arg_pattern, by_template, node_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from stromboli.framework.books.cluster_view import ClusterView
    from stromboli.plugin import Hook

MAX_SCORE = 100


def not_negative(weight: int) -> str:
    """Refuse weights below 0."""
    return "" if weight >= 0 else f"weight {weight} of a resource is negative; 1 counts instead"


class Share(NamedTuple):
    """A resource that counts for a pod: its column, the pod's request, and its weight."""

    column: int
    request: int
    weight: int


class Binpack(Plugin, trusted=True):
    """Scores a node by how full it would be with the task on it.

    100 x ``binpack.weight`` x the weighted mean of (used + request) / offered over the resources that the task requests
    and that have a weight; 0 where one of them would not fit.  ``used`` counts running and allocated tasks and those
    that are ending, not pipelined ones.  A resource that the node does not offer adds its weight and nothing else.
    """

    name = "binpack"
    weight = arg("binpack.weight", int, 1)
    cpu = arg("binpack.cpu", int, 1, not_negative)
    memory = arg("binpack.memory", int, 1, not_negative)
    resources = arg("binpack.resources", str, "")
    resource_weights = arg_pattern("binpack.resources.*", int, 1, not_negative)

    def on_session_open(self, session: ClusterView) -> None:
        """Number the weighted resources; they stand in the order in which shortages are reported."""
        axes = session.table.axes
        weights = self.weights()
        named = ((column, axes.names[column]) for column in axes.order)
        self._columns = [(column, weights[name]) for column, name in named if name in weights]
        self._shares: dict[PodTemplate, list[Share]] = {}

    def hooks(self) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        """The plugin's hook; none at all with ``binpack.weight`` 0."""
        return super().hooks() if self.weight else iter(())

    def weights(self) -> dict[str, int]:
        """Weight by resource name: those listed in ``binpack.resources`` (1 each unless stated), cpu and memory."""
        names = (name.strip() for name in self.resources.split(","))
        listed = {name: self.resource_weights.get(name, 1) for name in names if name}
        return {**listed, CPU: self.cpu, MEMORY: self.memory}

    @node_order.vector(key=by_template, row="score_of_node", amounts=True)
    def score(self, task: Task, nodes: NodeRows) -> npt.NDArray[np.float64]:
        """How full each row would be, shape (rows,)."""
        total, fits = np.zeros(len(nodes)), np.ones(len(nodes), dtype=bool)
        shares = self._shares_of(task.template)
        for share in shares:
            if share.weight:
                offered: Ints = nodes.alloc[share.column]
                after = nodes.used[share.column] + share.request
                fits &= (after <= offered) | (offered == 0)
                total += np.where(offered == 0, 0.0, after * float(share.weight) / np.maximum(offered, 1))
        return np.where(fits, self._scaled(total, shares), 0.0)

    def score_of_node(self, task: Task, node: Node) -> float:
        """:meth:`score` of one node."""
        offers, used = node.table.alloc[:, node.row].tolist(), node.table.used[:, node.row].tolist()
        total = 0.0
        shares = self._shares_of(task.template)
        for column, request, weight in shares:
            offered, after = offers[column], used[column] + request
            if offered and weight:
                if after > offered:
                    return 0.0
                total += after * float(weight) / offered
        return float(self._scaled(total, shares))

    def _scaled(self, total: float | npt.NDArray[np.float64], shares: list[Share]) -> npt.NDArray[np.float64] | float:
        weights = sum(share.weight for share in shares)
        return (total / float(weights) if weights else total) * float(MAX_SCORE * self.weight)

    def _shares_of(self, template: PodTemplate) -> list[Share]:
        shares = self._shares.get(template)
        if shares is None:
            asked = dict(enumerate(template.vector))
            every = (Share(column, asked.get(column, 0), weight) for column, weight in self._columns)
            shares = self._shares[template] = [share for share in every if share.request > 0]
        return shares
