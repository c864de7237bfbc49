"""predicates as configurations name it: the filters of nodes, after them the one of claimed devices, and scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stromboli.filters import scores
from stromboli.filters.columns import Floats, Masks
from stromboli.filters.volumes.scoring import shape_problem
from stromboli.framework.config.argument import Complaint
from stromboli.model.table import Ints, NodeRows
from stromboli.model.task import Task
from stromboli.plugin import Hook, Reason, arg, batch_node_order, predicate
from stromboli.plugins.predicates.claims import REFUSALS, ClaimFilters
from stromboli.plugins.predicates.plugin import NodeFilters

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView
    from stromboli.framework.extension.handlers import TaskEvent


def _without_effect(keys: list[str], why: str) -> list[Complaint]:
    """A complaint about each of the arguments."""
    text = "argument {} of predicates is accepted, but has no effect here: {}"
    return [Complaint("tolerated", text.format(key, why), "predicates", key) for key in keys]


class Predicates(NodeFilters, trusted=True):
    """Kubernetes' filters; DynamicResources is the last of them."""

    _claims_enable = arg("predicate.DynamicResourceAllocationEnable", bool, True)
    _storage_weight = arg("volumebinding.weight", int, 1)
    _storage_shape = arg("volumebinding.shape", list, [], shape_problem)

    def __init__(self, arguments: Mapping[str, object] | None = None) -> None:
        """See :class:`~stromboli.plugin.Plugin`; a weight without a shape is told."""
        super().__init__(arguments)
        self._written = [key for key in ("volumebinding.weight", "volumebinding.shape") if key in (arguments or {})]
        if not self._storage_shape:
            self.complaints.extend(_without_effect(self._written, "storage is scored only with volumebinding.shape"))

    def on_session_open(self, session: ClusterView) -> None:
        """See what claims have; what is derived from devices is made when first needed."""
        super().on_session_open(session)
        if self._storage_shape and session.compat.asks("storage-scores"):
            for one in _without_effect(self._written, "with compat: volcano no volumes are scored"):
                self.complaints.append(one)
                session.tell("complaint", text=one.text)
        self._claims = ClaimFilters(session, self._claims_enable)

    def hooks(self) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        """The hooks that have a question in this session."""
        claims = self._claims
        keys = {"_device_claims": claims.wanted, "_alternatives": claims.wanted, "_claim_errors": claims.named}
        for hook, function in super().hooks():
            name = function.__name__
            if name == "_storage":
                if self._scores_storage:
                    yield replace(hook, key=self._volumes.wanted), function
            elif name == "_claim_errors" and claims.used and claims.errors:
                yield replace(hook, key=keys[name], reasons=claims.errors), function
            elif name not in keys:
                yield hook, function
            elif name != "_claim_errors" and claims.used:
                yield replace(hook, key=keys[name]), function

    @property
    def _scores_storage(self) -> bool:
        """Whether volumes are a reason to prefer nodes: a shape is given, as where Kubernetes' feature gate is on."""
        on = self.volume_binding_enable and self._storage_weight > 0 and bool(self._storage_shape)
        return on and self._volumes.used and not self._session.compat.asks("storage-scores")

    @property
    def _counts_placements(self) -> bool:
        return super()._counts_placements or self._claims.used

    @property
    def _looks_at_pods(self) -> bool:
        return super()._looks_at_pods or self._claims.used

    def pre_filter(self, task: Task) -> Reason | None:
        """What rules out every node at once."""
        found = super().pre_filter(task)
        return found or (self._claims.problem(task) if self._claims.used else None)

    @predicate.vector(reads=("cluster",), reasons=REFUSALS)
    def _device_claims(self, task: Task, nodes: NodeRows) -> Masks | None:
        """Rows whose devices the pod's claims can have, or have; None for a pod without."""
        return self._claims.refusals(task, nodes)

    @predicate.vector(reads=("cluster",), reasons=REFUSALS)
    def _claim_errors(self, task: Task, nodes: NodeRows) -> Masks | None:
        """Rows on which an expression of the pod's claims fails; None for a pod without."""
        return self._claims.failures(task, nodes)

    @batch_node_order.raw(reads=("cluster",), normalise="_share_of_best")
    def _alternatives(self, task: Task, nodes: NodeRows) -> Ints | None:
        """How early the alternatives stand that the pod's claims get on a row; None for a pod without a choice."""
        return self._claims.scores(task, nodes)

    @batch_node_order.vector(reads=("cluster",))
    def _storage(self, task: Task, nodes: NodeRows) -> Floats:
        """The score of ``volumebinding.shape`` for the volumes that the pod would get on a row, times the weight."""
        found = self._volumes.scores(task, nodes, self._storage_shape)
        weighted: Floats = np.zeros(len(nodes)) if found is None else found * np.float64(self._storage_weight)
        return weighted

    def _share_of_best(self, _task: Task, raw: Floats, _low: float, high: float) -> Floats:
        """The node with the best alternatives gets 100."""
        return scores.share_of_greatest(raw.astype(np.int64), int(high)).astype(np.float64)

    def placed(self, event: TaskEvent) -> None:
        """Give a pod that is placed what its claims lack."""
        super().placed(event)
        if not event.err:
            self._claims.placed(event)

    def removed(self, event: TaskEvent) -> None:
        """Take back what a pod was given that is removed."""
        self._claims.removed(event.task)
        super().removed(event)
