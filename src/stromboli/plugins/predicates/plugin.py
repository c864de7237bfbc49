"""predicates: Kubernetes' own filters, and how many pods a node may hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from stromboli.filters import proportions, selectors, taints
from stromboli.filters.columns import Bools, Masks, picked
from stromboli.filters.interpod import InterPod
from stromboli.filters.lines import FilterLines
from stromboli.filters.pod_terms import Surroundings
from stromboli.filters.pods_on_nodes import Event
from stromboli.filters.ports import PortsInUse
from stromboli.filters.proportions import Proportion, keeps_too_little, takes_devices
from stromboli.filters.spread import Spread
from stromboli.model.claims import CLAIM_SECONDS
from stromboli.model.job import PENDING
from stromboli.model.names import TEMPLATE_UID
from stromboli.model.objects.storage import VOLUME_SECONDS
from stromboli.model.resources.axes import PODS
from stromboli.model.spec import PodSpec
from stromboli.model.table import Node, NodeRows
from stromboli.model.task import Task
from stromboli.plugin import (
    Hook,
    Limit,
    Plugin,
    Reason,
    arg,
    arg_pattern,
    by_template,
    on_allocate,
    on_deallocate,
    pre_predicate,
    predicate,
    simulate_add_task,
    simulate_predicate,
    simulate_remove_task,
)
from stromboli.plugins.predicates.reasons import (
    CACHED,
    CORDONED,
    NAMES_CONFLICT,
    NODE_AFFINITY,
    POD_AFFINITY,
    POD_NUMBER,
    PORTS_TAKEN,
    PROPORTION,
    SIDECARS_OFF,
    SKEWED,
    TAINTED,
    UNLABELLED,
)
from stromboli.plugins.predicates.volumes import BINDING, HOOKS, IN_USE, LIMIT, ZONE, VolumeFilters, not_before

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView
    from stromboli.framework.books.cycle_state import CycleState
    from stromboli.framework.extension.handlers import TaskEvent

TRIED = "PreFilterInterPodAffinity"
"""Key of the cycle state under which pods are kept that are tried on, or off, their nodes."""

STABLE = ("cordon", "node_affinity", "taint_toleration")
"""The hooks whose common answer the equivalence cache keeps."""


class NodeFilters(Plugin, trusted=True):
    """Kubernetes' filters in the reference's order, all but the last: the one of claimed devices.

    Plain refusals add up; one that no eviction could cure ends the evaluation of the node.
    ``sidecar_containers`` is Kubernetes' feature gate SidecarContainers.
    """

    name = "predicates"
    node_affinity_enable = arg("predicate.NodeAffinityEnable", bool, True)
    node_ports_enable = arg("predicate.NodePortsEnable", bool, True)
    taint_toleration_enable = arg("predicate.TaintTolerationEnable", bool, True)
    pod_affinity_enable = arg("predicate.PodAffinityEnable", bool, True)
    topology_spread_enable = arg("predicate.PodTopologySpreadEnable", bool, True)
    volume_limits_enable = arg("predicate.NodeVolumeLimitsEnable", bool, True)
    volume_zone_enable = arg("predicate.VolumeZoneEnable", bool, True)
    volume_binding_enable = arg("predicate.VolumeBindingEnable", bool, True)
    _volume_seconds = arg("volumebinding.bindTimeoutSeconds", int, VOLUME_SECONDS, not_before)
    _claim_seconds = arg("dynamicresources.bindingTimeoutSeconds", int, CLAIM_SECONDS, not_before)
    cache_enable = arg("predicate.CacheEnable", bool, False)
    proportional_enable = arg("predicate.ProportionalEnable", bool, False)
    resources = arg("predicate.resources", str, "")
    rates = arg_pattern("predicate.resources.*", float, 1.0, proportions.not_negative)

    sidecar_containers: bool = True

    def on_session_open(self, session: ClusterView) -> None:
        """See which pods say something of others; what is derived from pods on nodes is made when first needed."""
        self._session, self._table = session, session.table
        self._around = Surroundings.of(
            session.table,
            session.snapshot.pods_on_nodes,
            session.ledger.log,
            lambda: (task for job in session.active_jobs() for task in job.of(PENDING)),
            session.snapshot.namespace_labels,
            session.compat.asks("placed-terms"),
            session.snapshot.all_templates(),
        )
        self._inter_pod, self._spread = InterPod(self._around), Spread(self._around, self._taints)
        self._asked: tuple[PodSpec | None, Reason | None] = None, None
        self._of_volumes = self._asked_of_volumes()
        session.ledger.volume_seconds, session.ledger.claim_seconds = self._volume_seconds, self._claim_seconds
        self._volumes = VolumeFilters(session, self._of_volumes)
        self._lines = FilterLines(session.tells, session.table.statics.names)
        self._verdicts: dict[str, Masks] = {}
        self._first: dict[str, str] = {}

    def hooks(self) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        """The hooks that the arguments leave enabled, with what they read of a task in this session."""
        switches = {
            **dict.fromkeys(STABLE, not self.cache_enable),
            **{name: False for name, on in self._filters.items() if not on},
            "cached": self.cache_enable,
            **dict.fromkeys(("placed", "removed"), self._counts_placements),
            "proportional": self.proportional_enable and bool(self._proportions),
        }
        for hook, function in super().hooks():
            if switches.get(function.__name__, True):
                own = self._particulars(function.__name__)
                yield replace(hook, **own) if own else hook, function

    @property
    def _counts_placements(self) -> bool:
        return self._lines.events or self._volumes.used

    @property
    def _looks_at_pods(self) -> bool:
        """Whether :meth:`pre_filter` looks at more than a pod's template, or reports of each pod."""
        return self._lines.wants_skipped or self._volumes.used

    def _particulars(self, hook: str) -> dict[str, Any]:
        """What only this instance knows of a hook."""
        if hook == "proportional":
            return {"reasons": tuple(PROPORTION.of(resource=each.name) for each in self._proportions)}
        if hook == "pre_filter" and not self._looks_at_pods:
            return {"key": by_template}
        if hook == "pod_number" and self._lines.wants_full:
            return {"amounts": False}
        keys = {
            "cached": self._cache_key,
            "pod_affinity": self._around.identity,
            "topology_spread": self._around.identity,
            **dict.fromkeys(HOOKS, self._volumes.wanted),
        }
        return {"key": keys[hook]} if hook in keys else {}

    @property
    def _filters(self) -> dict[str, bool]:
        """Which of the filters that have a switch are on, and have a question in this session."""
        pod_affinity = self.pod_affinity_enable and self._inter_pod.refusing
        return {
            "node_affinity": self.node_affinity_enable,
            "taint_toleration": self.taint_toleration_enable,
            "ports": self.node_ports_enable,
            "topology_spread": self.topology_spread_enable and self._spread.refusing,
            **{name: self._volumes.used and on in self._of_volumes for name, on in HOOKS.items()},
            **dict.fromkeys(("pod_affinity", "simulate_add", "simulate_remove", "simulate_fit"), pod_affinity),
        }

    def _asked_of_volumes(self) -> frozenset[str]:
        """The filters of volumes that are on, by their names in Kubernetes."""
        switches = {
            "NodeVolumeLimits": self.volume_limits_enable,
            "VolumeZone": self.volume_zone_enable,
            "VolumeBinding": self.volume_binding_enable,
            "VolumeRestrictions": not self._session.compat.asks("read-write-once-pod"),
        }
        return frozenset(name for name, on in switches.items() if on)

    @pre_predicate
    def pre_filter(self, task: Task) -> Reason | None:
        """What rules out every node at once."""
        if self._lines.wants_skipped:  # this is asked of every task
            self._lines.skipped(task, self._skipped(task))
        if task.spec is not self._asked[0]:  # those of one template come one after the other
            self._asked = task.spec, self._problem_of(task.spec)
        if self._asked[1] is not None or not task.volumes:
            return self._asked[1]
        return self._volumes.problem(task, "VolumeZone") or self._volumes.problem(task, "VolumeBinding")

    def _problem_of(self, spec: PodSpec) -> Reason | None:
        """What rules out every node for all pods of a template."""
        if not self.sidecar_containers and any(each.restart_policy == "Always" for each in spec.init_containers):
            return SIDECARS_OFF
        if self.node_affinity_enable and selectors.names_conflict(spec):
            return NAMES_CONFLICT
        return None

    def _skipped(self, task: Task) -> Iterator[str]:
        """Filters that are on and have nothing to ask of the task, by their names in Kubernetes."""
        asks = {
            "NodeAffinity": self.node_affinity_enable and not selectors.selects_nodes(task.spec),
            "NodePorts": self.node_ports_enable and not task.template.host_ports,
            "InterPodAffinity": self.pod_affinity_enable and not self._inter_pod.may_refuse(task),
        }
        return (name for name, skips in asks.items() if skips)

    # -- Pods of a node ----------------------------------------------------------------------------------------------

    @predicate.vector(key=by_template, reasons=(POD_NUMBER,), row="pod_number_of_node", amounts=True)
    def pod_number(self, task: Task, nodes: NodeRows) -> Bools:
        """Rows that may hold another pod, shape (rows,)."""
        room: Bools = nodes.alloc[PODS] > nodes.requested[PODS]
        self._lines.pod_number(task, nodes, room)
        return room

    def pod_number_of_node(self, _task: Task, node: Node) -> Reason | None:
        """:meth:`pod_number` of one node."""
        return None if node.table.alloc[PODS, node.row] > node.table.requested[PODS, node.row] else POD_NUMBER

    # -- Stable filters ----------------------------------------------------------------------------------------------

    @predicate.vector(key=by_template, static=True, reasons=(CORDONED,))
    def cordon(self, task: Task, nodes: NodeRows) -> Bools | None:
        """Rows that are not cordoned; None for a pod that doesn't mind."""
        if taints.ignores_cordons(task.spec.tolerations):
            return None
        return self._table.statics.derived(taints.cordon_column).where(nodes, lambda cordoned: not cordoned)

    @predicate.vector(key=by_template, static=True, reasons=(NODE_AFFINITY,))
    def node_affinity(self, task: Task, nodes: NodeRows) -> Bools | None:
        """Rows that satisfy nodeSelector and required node affinity; None for a pod with neither."""
        return selectors.rows_suiting(task.spec, nodes) if selectors.selects_nodes(task.spec) else None

    @predicate.vector(key=by_template, static=True, reasons=(TAINTED,))
    def taint_toleration(self, task: Task, nodes: NodeRows) -> Bools:
        """Rows whose NoSchedule and NoExecute taints the pod tolerates."""
        return taints.admitting_rows(task.spec.tolerations, self._taints, nodes)

    @predicate.vector(static=True, reasons=(CORDONED, NODE_AFFINITY, TAINTED, CACHED))
    def cached(self, task: Task, nodes: NodeRows) -> Masks:
        """The stable filters where ``predicate.CacheEnable`` is on, instead of one hook for each.

        Of the tasks with one template (by annotation) the first gets the filters' own reasons, the others only its yes
        or no, whatever their own specs say.
        """
        template = task.annotations.get(TEMPLATE_UID, "")
        if not template:
            self._lines.uncached(task)
            return self._stable(task, nodes)
        masks = self._verdicts.get(template)
        if masks is None:
            masks = self._verdicts[template] = self._stable(task, self._table.view())
        own = picked(masks, nodes)
        self._lines.cached(task, nodes, own)
        return own if self._is_first(task, template) else np.where(own, np.uint64(8), np.uint64(0))

    def _cache_key(self, task: Task) -> tuple[str, bool]:
        template = task.annotations.get(TEMPLATE_UID, "")
        return template, self._is_first(task, template)

    def _is_first(self, task: Task, template: str) -> bool:
        return self._first.setdefault(template, task.uid) == task.uid

    def _stable(self, task: Task, nodes: NodeRows) -> Masks:
        """The first refusal among the stable filters: bit 0, 1 or 2."""
        masks = np.zeros(len(nodes), dtype=np.uint64)
        for bit, name in enumerate(STABLE):
            fits: Bools | None = getattr(self, name)(task, nodes) if self._filters.get(name, True) else None
            if fits is not None:
                masks[~fits & (masks == 0)] = 1 << bit
        return masks

    @cached_property
    def _taints(self) -> taints.TaintColumn:
        return self._table.statics.derived(taints.taint_column)

    # -- Host ports --------------------------------------------------------------------------------------------------

    @predicate.vector(key=by_template, reads=("cluster",), reasons=(PORTS_TAKEN,), row="ports_of_node")
    def ports(self, task: Task, nodes: NodeRows) -> Bools | None:
        """Rows where the pod's host ports are free; None for a pod without any."""
        wanted = task.template.host_ports
        return self._ports.free_rows(wanted, nodes) if wanted else None

    def ports_of_node(self, task: Task, node: Node) -> Reason | None:
        """:meth:`ports` of one node."""
        return None if self._ports.free_row(task.template.host_ports, node.row) else PORTS_TAKEN

    @cached_property
    def _ports(self) -> PortsInUse:
        return PortsInUse(self._around.pods, len(self._table))

    # -- Other pods --------------------------------------------------------------------------------------------------

    @predicate.vector(reads=("cluster",), reasons=POD_AFFINITY, limit="_apart")
    def pod_affinity(self, task: Task, nodes: NodeRows) -> Masks | None:
        """Required affinity and anti-affinity, of the pod and of pods on nodes; None where no term could refuse it."""
        return self._inter_pod.refusals(task, nodes) if self._inter_pod.may_refuse(task) else None

    def _apart(self, task: Task) -> Limit | None:
        """How pods that exclude each other refuse nodes."""
        return self._inter_pod.limit(task)

    @simulate_add_task
    def simulate_add(self, state: CycleState, _task_to_schedule: Task, task: Task, node: Node) -> None:
        """Count ``task`` on the node when pod affinity is tried."""
        state.write(TRIED, (*_tried(state), (task, node.row, 1)))

    @simulate_remove_task
    def simulate_remove(self, state: CycleState, _task_to_schedule: Task, task: Task, node: Node) -> None:
        """Count ``task`` on the node no longer when pod affinity is tried."""
        state.write(TRIED, (*_tried(state), (task, node.row, -1)))

    @simulate_predicate
    def simulate_fit(self, state: CycleState, task: Task, node: Node) -> Reason | None:
        """Pod affinity alone under what is tried; the other filters are not asked again, as in the reference."""
        if not self._inter_pod.may_refuse(task):
            return None
        number = self._inter_pod.refusal_after(task, node.row, _tried(state))
        if number is None:
            return None
        reason = POD_AFFINITY[number]
        return replace(reason, text=f"failed to filter pod on node {node.name}: {reason.text}")

    # -- Volumes -----------------------------------------------------------------------------------------------------

    @predicate.vector(reads=("cluster",), reasons=(LIMIT,))
    def volume_limits(self, task: Task, nodes: NodeRows) -> Bools | None:
        """Rows whose CSI drivers can attach the pod's volumes, too; None where no limit concerns them."""
        return self._volumes.attachable(task, nodes)

    @predicate.vector(static=True, reasons=(ZONE,))
    def volume_zone(self, task: Task, nodes: NodeRows) -> Bools | None:
        """Rows in the zones of the pod's volumes; None where these name none."""
        return self._volumes.in_zone(task, nodes)

    @predicate.vector(reads=("cluster",), reasons=(UNLABELLED, SKEWED), limit="_evenly")
    def topology_spread(self, task: Task, nodes: NodeRows) -> Masks | None:
        """The pod's constraints that must hold; None for a pod without any."""
        return self._spread.refusals(task, nodes)

    def _evenly(self, task: Task) -> Limit | None:
        """How a constraint refuses nodes as its own pods are placed."""
        return self._spread.limit(task)

    @predicate.vector(reads=("cluster",), reasons=(IN_USE,))
    def volume_restrictions(self, task: Task, nodes: NodeRows) -> Bools | None:
        """No row while another pod has a claim of the pod that is for one pod at a time."""
        return self._volumes.is_alone(task, nodes)

    @predicate.vector(reads=("cluster",), reasons=BINDING)
    def volume_binding(self, task: Task, nodes: NodeRows) -> Masks | None:
        """Rows that reach the pod's volumes, and those where it can get what it lacks; None for a pod without."""
        return self._volumes.binding(task, nodes)

    # -- Proportions -------------------------------------------------------------------------------------------------

    @predicate.vector(key=by_template, reasons=(PROPORTION,), row="proportional_of_node")
    def proportional(self, task: Task, nodes: NodeRows) -> Masks | None:
        """Whether each row keeps enough cpu and memory for its idle devices; None for a pod that asks for a device."""
        if takes_devices(task, self._proportions):
            return None
        masks = np.zeros(len(nodes), dtype=np.uint64)
        for bit, each in enumerate(self._proportions):
            masks[keeps_too_little(task, nodes, each) & (masks == 0)] = 1 << bit
        self._lines.proportional(task, nodes, masks)
        return masks

    def proportional_of_node(self, task: Task, node: Node) -> Reason | None:
        """:meth:`proportional` of one node."""
        masks = self.proportional(task, node.table.view(np.array([node.row], dtype=np.intp)))
        bit = 0 if masks is None else int(masks[0])
        return PROPORTION.of(resource=self._proportions[bit.bit_length() - 1].name) if bit else None

    @cached_property
    def _proportions(self) -> list[Proportion]:
        """In the order of ``predicate.resources``."""
        return proportions.read(self.resources, self.rates)

    # -- Placements --------------------------------------------------------------------------------------------------

    @on_allocate
    def placed(self, event: TaskEvent) -> None:
        """Give a pod that is placed what its claims lack; report it where an observer wants that."""
        self._volumes.placed(event)
        if self._lines.events:
            self._lines.came(event.task)

    @on_deallocate
    def removed(self, event: TaskEvent) -> None:
        """Take back what a pod was given that is removed; report it where an observer wants that."""
        self._volumes.removed(event.task)
        if self._lines.events:
            self._lines.left(event.task)


def _tried(state: CycleState) -> tuple[Event, ...]:
    return cast("tuple[Event, ...]", state.get(TRIED, ()))
