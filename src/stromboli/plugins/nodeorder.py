"""nodeorder: Kubernetes' own scores, each with a weight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from stromboli.errors import PluginError
from stromboli.filters import scores, selectors, taints
from stromboli.filters.images import ImageIndex, images_by_arrival, images_by_holders
from stromboli.filters.interpod import InterPod
from stromboli.filters.kept_evenness import KeptEvenness
from stromboli.filters.pod_terms import Surroundings
from stromboli.filters.spread import Spread
from stromboli.model.job import PENDING
from stromboli.model.names import GPU
from stromboli.model.resources.axes import CPU, MEMORY
from stromboli.model.table import Ints, Node, NodeRows
from stromboli.model.task import PodTemplate, Task
from stromboli.plugin import Hook, Plugin, arg, batch_node_order, by_template, node_order

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView
    from stromboli.narration.observe import Teller

Scores = npt.NDArray[np.float64]


class Demand(NamedTuple):
    """What a pod adds to a node: cpu and memory with stand-ins, and plainly the amounts of ``columns``.

    ``column`` is ``nonzero`` with shape (2, 1), to be added to rows.
    """

    nonzero: tuple[int, int]
    column: Ints
    columns: tuple[int, ...]
    asked: tuple[int, ...]


SCORE_LINES = ("strategy_score", "total_score", "batch_total_score", "plugin_score")


class ScoreLines(NamedTuple):
    """Tellers of :data:`SCORE_LINES`: one strategy on a node, a node alone, all candidates, one strategy on all."""

    strategy: Teller | None
    total: Teller | None
    batch: Teller | None
    plugin: Teller | None

    @property
    def wanted(self) -> bool:
        """Whether an observer wants any of them."""
        return any(self)


LARGEST_WEIGHT = 10**12
"""Up to here, scores added up stay whole numbers that float64 holds exactly."""


def _exact(weight: int) -> str:
    fine = abs(weight) <= LARGEST_WEIGHT
    return "" if fine else f"weight {weight} is beyond 10^12, where scores are no longer exact; the default counts"


class NodeOrder(Plugin, trusted=True):
    """Adds up to eight scores of 0 to 100, each times its weight; weight 0 leaves one out, negative ones count too.

    Image locality is a score of the node alone.  The others belong to the batch of candidates: the reference adds them
    up apart and last, and sums of fractions depend on the order.
    """

    name = "nodeorder"
    least_requested = arg("leastrequested.weight", int, 1, _exact)
    most_requested = arg("mostrequested.weight", int, 0, _exact)
    balanced_resource = arg("balancedresource.weight", int, 1, _exact)
    node_affinity = arg("nodeaffinity.weight", int, 2, _exact)
    taint_toleration = arg("tainttoleration.weight", int, 3, _exact)
    image_locality = arg("imagelocality.weight", int, 1, _exact)
    pod_affinity = arg("podaffinity.weight", int, 2, _exact)
    pod_topology_spread = arg("podtopologyspread.weight", int, 2, _exact)

    def on_session_open(self, session: ClusterView) -> None:
        """See which pods say something of others; what is derived from nodes and pods is made when first needed."""
        self._session, self._table, self._evenness = session, session.table, KeptEvenness(session.table)
        self._tells = ScoreLines(*(session.tells(key) for key in SCORE_LINES))

        def pending() -> Iterator[Task]:
            return (task for job in session.active_jobs() for task in job.of(PENDING))

        around = Surroundings.of(
            session.table,
            session.snapshot.pods_on_nodes,
            session.ledger.log if session.ledger.follows_placements else (),
            pending,
            session.snapshot.namespace_labels,
            session.compat.asks("placed-terms"),
            session.snapshot.all_templates(),
        )
        self._images_by_arrival = session.compat.asks("image-counts")
        self._inter_pod = InterPod(around)
        self._spread = Spread(around, self._taints, session.snapshot.spread_selector)
        others = pending() if session.snapshot.services else ()  # pods with constraints of their own are speakers
        self._spreads = any(map(self._spread.wishes, chain(around.speakers, others)))
        self._demands: dict[PodTemplate, Demand] = {}
        self._least_preferences: dict[PodTemplate, str] = {}

    def hooks(self) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        """The hooks that have a weight and, as far as they look at other pods, a question in this session."""
        asked = {
            "attraction": (bool(self.pod_affinity) and self._inter_pod.scoring, self._inter_pod.identity),
            "report": (self._tells.wanted, None),
            "evenness": (bool(self.pod_topology_spread) and self._spreads, self._spread.score_identity),
        }
        for hook, function in super().hooks():
            on, key = asked.get(function.__name__, (True, hook.key))
            if on:
                yield hook if key is hook.key else replace(hook, key=key), function

    # -- Image locality ----------------------------------------------------------------------------------------------

    @node_order.vector(key=by_template, static=True)
    def images(self, task: Task, nodes: NodeRows) -> Scores | None:
        """The more of the pod's images a row holds, the better; nothing to say where no node holds any of them."""
        images = task.template.images
        if not self.image_locality or not self._images.knows(images):
            return None
        return _weighted(self._images.score_rows(images, nodes), self.image_locality)

    @cached_property
    def _images(self) -> ImageIndex:
        return self._table.statics.derived(images_by_arrival if self._images_by_arrival else images_by_holders)

    # -- Amounts -----------------------------------------------------------------------------------------------------

    @batch_node_order.vector(key=by_template, row="usage_of_node", amounts=True)
    def usage(self, task: Task, nodes: NodeRows) -> Scores | None:
        """Free room, fullness and balance of cpu and memory, each with its weight; shape (rows,)."""
        if not (self.least_requested or self.most_requested or self.balanced_resource):
            return None
        total: Ints | int = 0
        if self.least_requested:
            total = self.least_requested * self._amounts(scores.least_allocated_rows, task, nodes)
        if self.most_requested:
            total = total + self.most_requested * self._amounts(scores.most_allocated_rows, task, nodes)
        if self.balanced_resource and (balance := self._balance(task, nodes)) is not None:
            total = total + self.balanced_resource * balance
        return total.astype(np.float64) if isinstance(total, np.ndarray) else np.zeros(len(nodes))

    def usage_of_node(self, task: Task, node: Node) -> float:
        """:meth:`usage` of one node."""
        table, row, demand = node.table, node.row, self._demand(task.template)
        offers, requested = table.alloc[:, row].tolist(), table.requested[:, row].tolist()
        offered = offers[: MEMORY + 1]
        wanted = [have + more for have, more in zip(table.nonzero[:, row].tolist(), demand.nonzero, strict=True)]
        total = 0
        if self.least_requested:
            total += self.least_requested * scores.least_allocated(offered, wanted)
        if self.most_requested:
            total += self.most_requested * scores.most_allocated(offered, wanted)
        if self.balanced_resource and any(demand.asked):
            amounts = [offers[c] for c in demand.columns], [requested[c] for c in demand.columns]
            before = self._evenness.of_node(demand.columns, node)
            total += self.balanced_resource * scores.balanced_allocation(*amounts, demand.asked, before)
        return float(total)

    def _demand(self, template: PodTemplate) -> Demand:
        demand = self._demands.get(template)
        if demand is None:
            demand = self._demands[template] = self._measure(template)
        return demand

    def _measure(self, template: PodTemplate) -> Demand:
        """Cpu and memory, and GPUs where the pod asks for some."""
        vector = template.vector
        gpu = self._table.axes.index.get(GPU, len(vector))
        columns = (CPU, MEMORY, gpu) if gpu < len(vector) and vector[gpu] else (CPU, MEMORY)
        column = np.array(template.scored, dtype=np.int64)[:, None]
        return Demand(template.scored, column, columns, tuple(vector[column] for column in columns))

    # -- Node affinity and taints ------------------------------------------------------------------------------------

    @batch_node_order.raw(key=by_template, static=True, normalise="share_of_preferences")
    def preferences(self, task: Task, nodes: NodeRows) -> Ints | None:
        """Weights of the pod's preferred node affinity that a row earns; None for a pod without any."""
        if not self.node_affinity or not selectors.preferences(task.spec):
            return None
        raw = selectors.preference_rows(task.spec, nodes)
        if raw.min(initial=0) < 0:
            worst = int(nodes.rows[int(raw.argmin())])
            self._least_preferences[task.template] = self._table.statics.names[worst]
        return raw

    def share_of_preferences(self, task: Task, raw: Scores, low: float, high: float) -> Scores:
        """The most preferred candidate gets 100; PluginError where a weight below 0 makes a score negative."""
        if low < 0:
            score = int(scores.share_of_greatest(np.array([int(low)]), max(int(high), 0))[0])
            node = self._least_preferences[task.template]
            error = PluginError(self.name, f"NodeAffinity returns an invalid score {score} for node {node}")
            if say := self._session.tells("strategy_failed"):
                say(node=node, strategy="NodeAffinity", error=error)
            raise error
        return _weighted(scores.share_of_greatest(_whole(raw), int(high)), self.node_affinity)

    @batch_node_order.raw(key=by_template, static=True, normalise="rest_of_reluctance")
    def reluctance(self, task: Task, nodes: NodeRows) -> Ints | None:
        """How many PreferNoSchedule taints of a row the pod does not tolerate."""
        if not self.taint_toleration:
            return None
        return taints.reluctance_rows(task.spec.tolerations, self._taints, nodes)

    def rest_of_reluctance(self, _task: Task, raw: Scores, _low: float, high: float) -> Scores:
        """100 without such taints, 0 for the candidate with most of them."""
        return _weighted(scores.rest_of_greatest(_whole(raw), int(high)), self.taint_toleration)

    # -- Other pods --------------------------------------------------------------------------------------------------

    @batch_node_order.raw(reads=("cluster",), normalise="attraction_between_extremes")
    def attraction(self, task: Task, nodes: NodeRows) -> Ints | None:
        """Weights of preferred pod affinity, the pod's own and that of pods on nodes; None where none could count."""
        return self._inter_pod.scores(task, nodes) if self._inter_pod.may_score(task) else None

    def attraction_between_extremes(self, _task: Task, raw: Scores, low: float, high: float) -> Scores:
        """0 for the least attractive candidate, 100 for the most attractive one; 0 for all if they are equal."""
        return _weighted(scores.between_extremes(_whole(raw), int(low), int(high)), self.pod_affinity)

    @batch_node_order.raw(reads=("cluster", "candidates"), normalise="evenness_weighted")
    def evenness(self, task: Task, nodes: NodeRows) -> Ints | None:
        """How evenly the pods would be spread, 0 to 100 already: how much a domain counts depends on the candidates."""
        return self._spread.scores(task, nodes)

    def evenness_weighted(self, _task: Task, raw: Scores, _low: float, _high: float) -> Scores:
        """The score times its weight."""
        return _weighted(_whole(raw), self.pod_topology_spread)

    # -- Telling -----------------------------------------------------------------------------------------------------

    @batch_node_order
    def report(self, task: Task, nodes: NodeRows) -> Mapping[str, float]:
        """Report what every strategy says of the candidates, and add nothing; asked only while an observer wants it."""
        names = [self._table.statics.names[row] for row in nodes.rows.tolist()]
        alone, batch = np.zeros(len(names), dtype=np.int64), np.zeros(len(names), dtype=np.int64)
        for strategy, weight, raw in self._strategies(task, nodes):
            into = alone if strategy == "ImageLocality" else batch
            into += raw * weight
            if say := self._tells.strategy:
                for node, score in zip(names, raw.tolist(), strict=True):
                    say(node=node, task=task, strategy=strategy, weight=weight, raw=score, score=score * weight)
            if into is batch and (say := self._tells.plugin):
                say(plugin=strategy, task=task, scores=dict(zip(names, (raw * weight).tolist(), strict=True)))
        if say := self._tells.total:
            for node, score in zip(names, alone.tolist(), strict=True):
                say(task=task, node=node, score=score)
        if say := self._tells.batch:
            say(task=task, scores=dict(zip(names, batch.tolist(), strict=True)))
        return {}

    def _strategies(self, task: Task, nodes: NodeRows) -> Iterator[tuple[str, int, Ints]]:
        """Name, weight and scores of 0 to 100 of every strategy that has a weight and something to say."""
        stated: tuple[tuple[str, int, Callable[[Task, NodeRows], Ints | None]], ...] = (
            (
                "ImageLocality",
                self.image_locality,
                lambda task, rows: self._images.score_rows(task.template.images, rows),
            ),
            ("NodeResourcesLeastAllocated", self.least_requested, partial(self._amounts, scores.least_allocated_rows)),
            ("NodeResourcesMostAllocated", self.most_requested, partial(self._amounts, scores.most_allocated_rows)),
            ("NodeResourcesBalancedAllocation", self.balanced_resource, self._balance),
            ("NodeAffinity", self.node_affinity, self._preferred),
            ("TaintToleration", self.taint_toleration, self._tolerated),
            ("InterPodAffinity", self.pod_affinity, self._attracted),
            ("PodTopologySpread", self.pod_topology_spread, self._spread.scores),
        )
        for name, weight, ask in stated:
            if weight and (raw := ask(task, nodes)) is not None:
                yield name, weight, raw

    def _amounts(self, share: Callable[[Ints, Ints], Ints], task: Task, nodes: NodeRows) -> Ints:
        return share(nodes.alloc[: MEMORY + 1], nodes.nonzero + self._demand(task.template).column)

    def _balance(self, task: Task, nodes: NodeRows) -> Ints | None:
        demand = self._demand(task.template)
        if not any(demand.asked):
            return None
        columns = slice(0, MEMORY + 1) if demand.columns == (CPU, MEMORY) else list(demand.columns)
        before = self._evenness.of_rows(demand.columns, nodes)
        return scores.balanced_allocation_rows(nodes.alloc[columns], nodes.requested[columns], demand.asked, before)

    def _preferred(self, task: Task, nodes: NodeRows) -> Ints | None:
        raw = selectors.preference_rows(task.spec, nodes) if selectors.preferences(task.spec) else None
        return None if raw is None else scores.share_of_greatest(raw, max(int(raw.max()), 0))

    def _tolerated(self, task: Task, nodes: NodeRows) -> Ints:
        raw = taints.reluctance_rows(task.spec.tolerations, self._taints, nodes)
        return scores.rest_of_greatest(raw, int(raw.max()))

    def _attracted(self, task: Task, nodes: NodeRows) -> Ints | None:
        raw = self._inter_pod.scores(task, nodes) if self._inter_pod.may_score(task) else None
        return None if raw is None else scores.between_extremes(raw, int(raw.min()), int(raw.max()))

    @cached_property
    def _taints(self) -> taints.TaintColumn:
        return self._table.statics.derived(taints.taint_column)


def _weighted(each: Ints, weight: int) -> Scores:
    return (each * weight).astype(np.float64)


def _whole(raw: Scores) -> Ints:
    return raw.astype(np.int64)
