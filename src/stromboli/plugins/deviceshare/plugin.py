"""The plugin deviceshare: asks the kinds of device that its arguments switch on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

from stromboli.errors import ConfigError
from stromboli.framework.extension.handlers import TaskEvent
from stromboli.framework.extension.reason import Reason
from stromboli.model.resources.axes import amount_at
from stromboli.model.resources.device_settings import DEFAULTS, DEVICE_CONFIG, DEVICE_CONFIG_NAMESPACE, DeviceSettings
from stromboli.model.snapshot import Snapshot
from stromboli.model.status import TaskStatus
from stromboli.model.table import Node
from stromboli.model.task import Task
from stromboli.plugin import Hook, Plugin, arg, batch_node_order, node_order, on_allocate, on_deallocate, predicate
from stromboli.plugins.deviceshare.figures import amounts_of, card_figures
from stromboli.plugins.deviceshare.gpushare import GpuShare
from stromboli.plugins.deviceshare.kind import THOUSAND, Kind, Need, Pool, remember
from stromboli.plugins.deviceshare.locks import LOCKED, LOCKED_FOR, is_fresh
from stromboli.plugins.deviceshare.mind_cluster import ChipPool, MindCluster, reports_in, scores
from stromboli.plugins.deviceshare.mind_cluster import Demand as ChipDemand
from stromboli.plugins.deviceshare.npu import AscendNpu
from stromboli.plugins.deviceshare.vgpu import VGpu, VGpuPool

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView


class DeviceShare(Plugin, trusted=True):
    """Lets pods share the cards of a node, and tells the node's device plugin by annotations which each pod gets."""

    name = "deviceshare"
    depends_on_time = True
    memory_shares = arg("deviceshare.GPUSharingEnable", bool, False)
    whole_cards = arg("deviceshare.GPUNumberEnable", bool, False)
    vgpu = arg("deviceshare.VGPUEnable", bool, False)
    npu = arg("deviceshare.AscendHAMiVNPUEnable", bool, False)
    mind_cluster = arg("deviceshare.AscendMindClusterVNPUEnable", bool, False)
    settings_name = arg("deviceshare.KnownGeometriesCMName", str, DEVICE_CONFIG)
    settings_namespace = arg("deviceshare.KnownGeometriesCMNamespace", str, DEVICE_CONFIG_NAMESPACE)
    locks = arg("deviceshare.NodeLockEnable", bool, False)
    policy = arg("deviceshare.SchedulePolicy", str, "")
    weight = arg("deviceshare.ScheduleWeight", int, 0)
    exclusive = arg("deviceshare.GPUExclusiveRules", list, [])

    def on_session_open(self, session: ClusterView) -> None:
        """Read the cards of all nodes, and what the pods on them hold.  Raises ConfigError for kinds that clash."""
        self.session = session
        self._demands: dict[str, tuple[Hashable | None, ...]] = {}
        self._check()
        self._kinds = list(self.kinds(session.snapshot.device_settings, session.compat.asks))
        self._pools: dict[str, tuple[Pool[Any] | None, ...]] = {}
        self._refusals: dict[str, dict[Hashable, Reason | None]] = {}
        """What pools have answered, by node and demand, until their cards change."""
        self._locked = self._locked_before()
        self._leaving: dict[str, dict[str, Task]] = {}
        """Terminating pods by node: their cards are free for what may wait for them."""
        self._waiting: dict[str, Task] = {}
        """Pods that have been promised cards of terminating ones."""
        self._running: dict[str, Task] = {}
        """Pods that hold cards by their annotations."""
        offers = [not kind.offered or kind.offered in session.table.axes.index for kind in self._kinds]
        for spec in session.table.statics.specs if any(offers) else ():
            pools = tuple(kind.pool_of(spec) if on else None for kind, on in zip(self._kinds, offers, strict=True))
            if any(pools):
                self._pools[spec.name] = pools
        for task, row in session.snapshot.pods_on_nodes() if self._pools else ():
            node = session.table.statics.names[row]
            if task.status is TaskStatus.Releasing:
                self._leaving.setdefault(node, {})[task.uid] = task
            else:
                self._running[task.uid] = task
                for pool in self.pools_of(node):
                    pool.restore(task)

    def kinds_read(self) -> tuple[str, ...]:
        """MindCluster's reports are in ConfigMaps, of which there are two for each node."""
        return ("NpuReport",) if self.mind_cluster else ()

    def _check(self) -> None:
        if self.memory_shares and self.whole_cards:
            raise ConfigError("can not define true in both gpu sharing and gpu number")
        if (self.memory_shares or self.whole_cards) and self.vgpu:
            raise ConfigError("gpu-share and vgpu can't be used together")

    def kinds(self, said: Mapping[str, DeviceSettings], asks: Callable[[str], bool]) -> Iterator[Kind[Any]]:
        """The kinds that are switched on; ``asks`` says which differences from the reference are wanted.

        ``said`` is what ConfigMaps say, by namespace and name.
        """
        settings = said.get(f"{self.settings_namespace}/{self.settings_name}", DEFAULTS)
        if self.memory_shares or self.whole_cards:
            yield GpuShare(whole=self.whole_cards)
        if self.vgpu:
            rules = [rule for rule in self.exclusive if isinstance(rule, dict)]
            yield VGpu(
                self.policy, rules, settings.nvidia,
                spread_scores=not asks("vgpu-spread"), started_only=asks("vgpu-mig-sizes"),
                same_slots=asks("vgpu-mig-slots"), any_health=asks("vgpu-health"),
            )  # fmt: skip
        for chip in settings.vnpus.configs if self.npu else ():
            soft = settings.vnpus.hami_vnpu_core
            yield AscendNpu(chip, self.policy, soft=soft, over_capacity=asks("npu-memory"))
        if self.mind_cluster:
            yield MindCluster(reports_in(said))

    def _locked_before(self) -> dict[str, str]:
        """Nodes on which a pod is about to start, or was in compat mode within five minutes."""
        if not self.locks:
            return {}
        if self.session.compat.asks("vgpu-lock"):
            kept = self.session.memory(self.name).items()
            return {node: "" for node, since in kept if self.session.now - since < LOCKED_FOR}
        names = self.session.table.statics.names
        placed = self.session.snapshot.pods_on_nodes()
        starting = (row for task, row in placed if task.status is TaskStatus.Binding and any(self.demands_of(task)))
        return {names[row]: "" for row in starting}

    def on_session_close(self, session: ClusterView) -> None:
        """Tell what is taken of vGPU cards, and keep the locks that the reference leaves on nodes."""
        session.ledger.beyond = self._beyond_requests()
        if say := session.tells("metric.vgpu_devices"):
            self._as_held()
            pools = [pool for node in self._pools for pool in self.pools_of(node) if isinstance(pool, VGpuPool)]
            say(figures=partial(card_figures, pools))
        if self.locks and session.compat.asks("vgpu-lock"):
            session.memory(self.name).update(dict.fromkeys(self._locked, session.now))

    def _beyond_requests(self) -> dict[str, list[int]]:
        """What pods have of vGPU cards beyond what they ask for: all of a card's memory where they name none."""
        index, jobs = self.session.axes.index, self.session.snapshot.jobs
        found: dict[str, list[int]] = {}
        for uid, task in self._running.items():
            for pool in self.pools_of(task.node_name) if task.job in jobs else ():
                for name, amount in amounts_of(pool, uid).items() if isinstance(pool, VGpuPool) else ():
                    total = found.setdefault(jobs[task.job].queue, [0] * len(index))
                    total[index[name]] += THOUSAND * amount - amount_at(task.template.vector, index[name])
        return found

    def _as_held(self) -> None:
        """Cards are as pods hold them at the end: terminating pods still do, those that wait for cards do not yet."""
        for task in self._waiting.values():
            for pool in self.pools_of(task.node_name):
                pool.release(task)
        for node, tasks in self._leaving.items():
            for task, pool in product(tasks.values(), tuple(self.pools_of(node))):
                pool.restore(task)

    @property
    def has_cards_anywhere(self) -> bool:
        """Whether any node has cards of a kind that is switched on."""
        return bool(self._pools)

    def pools_of(self, node: str) -> Iterator[Pool[Any]]:
        """The cards of a node, kind by kind."""
        return (pool for pool in self._pools.get(node, ()) if pool is not None)

    def need_of(self, task: Task) -> Need | None:
        """The measure of what a pod asks for; None for nothing."""
        asked = zip(self._kinds, self.demands_of(task), strict=True)
        return next((kind.need(demand) for kind, demand in asked if demand is not None), None)

    def shortages(self, task: Task) -> Iterator[tuple[str, str]]:
        """The nodes whose cards do not suffice for a pod, each with what its cards have left."""
        for node in self._pools:
            lacking = (pool.shortage(demand) for pool, demand in self._asked(task, node) if pool.refusal(demand))
            if text := "; ".join(lacking):
                yield node, text

    def demands_of(self, task: Task) -> tuple[Hashable | None, ...]:
        """What a pod asks for, kind by kind."""
        found = self._demands.get(task.uid)
        if found is None:
            found = self._demands[task.uid] = tuple(kind.demand_of(task) for kind in self._kinds)
        return found

    def _asked(self, task: Task, node: str) -> Iterator[tuple[Pool[Any], Hashable]]:
        """The pools of a node that have what a pod asks for, each with its demand."""
        for pool, demand in zip(self._pools.get(node, ()), self.demands_of(task), strict=False):
            if pool is not None and demand is not None:
                yield pool, demand

    def hooks(self) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        """The hooks, shared by pods that ask alike; none where no node has cards."""
        for hook, function in super().hooks() if self._pools else ():
            if hook.point.name == "batch_node_order" and not (self.mind_cluster and self.weight > 0):
                continue
            yield (replace(hook, key=self.demands_of) if hook.point.per_node else hook), function

    @predicate()
    def has_cards(self, task: Task, node: Node) -> Reason | None:
        """Whether each pool of the node has what the pod asks for; a node without cards is left to its amounts."""
        if node.name not in self._pools:
            return None
        demands, known = self.demands_of(task), self._refusals.setdefault(node.name, {})
        if demands not in known:
            asked = self._asked(task, node.name)
            remember(known, demands, next((why for pool, demand in asked if (why := pool.refusal(demand))), None))
        return known[demands]

    @node_order()
    def suits(self, task: Task, node: Node) -> float:
        """How well the pod suits the cards, times the weight."""
        if self.weight <= 0:
            return 0.0
        return float(round(sum(pool.score(demand) for pool, demand in self._asked(task, node.name))) * self.weight)

    @batch_node_order
    def by_free_cores(self, task: Task, nodes: Sequence[Node]) -> Mapping[str, float]:
        """Scores of nodes with MindCluster's NPUs, times the weight."""
        asked = [each for node in nodes for each in self._asked(task, node.name)]
        chips = [pool for pool, _ in asked if isinstance(pool, ChipPool)]
        wanted = next((demand for pool, demand in asked if isinstance(demand, ChipDemand)), None)
        found = {} if wanted is None else scores(chips, wanted)
        return {name: score * self.weight for name, score in found.items()}

    @on_allocate
    def come(self, event: TaskEvent) -> None:
        """A pod has been placed: it gets its cards, those that it had before if it is back."""
        task, annotations = event.task, dict[str, str]()
        self._refusals.pop(task.node_name, None)
        is_back = bool(task.own_node) and self._is_back(task)
        for pool, demand in self._asked(task, task.node_name):
            if is_back:
                self._leaving.get(task.node_name, {}).pop(task.uid, None)
                self._running[task.uid] = task
                pool.restore(task)
            elif self.locks and not self._lock(task):
                event.err = LOCKED.format(node=task.node_name)
            elif (given := self._assigned(pool, task, demand)) is None:
                event.err = f"the node {task.node_name} can't place the pod {task.name} in ns {task.namespace}"
            else:
                annotations.update(given)
        if annotations and task.status is TaskStatus.Pipelined:
            self._waiting[task.uid] = task
        if annotations:
            self.session.ledger.bind_annotations[task.uid] = annotations
            if self.locks:
                self.session.ledger.bind_locks[task.uid] = self._locks_of(task)

    @on_deallocate
    def leave(self, event: TaskEvent) -> None:
        """A pod has left its place, or is about to: its cards are free."""
        task = event.task
        self._refusals.pop(task.node_name, None)
        self._waiting.pop(task.uid, None)
        self._running.pop(task.uid, None)
        for pool in self.pools_of(task.node_name):
            pool.release(task)
        if task.status is TaskStatus.Releasing and self._pools:
            self._leaving.setdefault(task.node_name, {})[task.uid] = task
        self.session.ledger.bind_annotations.pop(task.uid, None)
        self.session.ledger.bind_locks.pop(task.uid, None)
        if self._locked.get(task.node_name) == task.uid and not self.session.compat.asks("vgpu-lock"):
            del self._locked[task.node_name]

    def _assigned(self, pool: Pool[Any], task: Task, demand: Hashable) -> Mapping[str, str] | None:
        """The annotations of a pod that gets its cards; None where they do not suffice.

        A pod that is bound now must not share what terminating pods still use, as only their cards' sum is known to
        the node's amounts.
        """
        waits = task.status is TaskStatus.Pipelined or self.session.compat.asks("vgpu-terminating")
        leaving = () if waits else tuple(self._leaving.get(task.node_name, {}).values())
        for other in leaving:
            pool.restore(other)
        given = pool.assign(task, demand, self.session.now) if pool.refusal(demand) is None else None
        for other in leaving:
            pool.release(other)
        return given

    def _lock(self, task: Task) -> bool:
        """Lock the node for a pod that starts there; whether that could be done."""
        keys = [kind.lock for kind in self._kinds if kind.lock]
        if not keys:
            return True
        row = self.session.table.statics.row[task.node_name]
        notes = self.session.table.statics.specs[row].annotations
        fresh = any(is_fresh(notes.get(key, ""), self.session.now) for key in keys)
        if fresh or task.node_name in self._locked:
            return False
        self._locked[task.node_name] = task.uid
        return True

    def _locks_of(self, task: Task) -> tuple[str, ...]:
        """The locks of the kinds that a pod has cards of on its node; the binder writes them."""
        asked = zip(self._kinds, self._pools.get(task.node_name, ()), self.demands_of(task), strict=False)
        locks = (kind.lock for kind, pool, demand in asked if pool is not None and demand is not None)
        return tuple(dict.fromkeys(lock for lock in locks if lock))

    def _is_back(self, task: Task) -> bool:
        """Whether an eviction was undone: the pod runs where the snapshot has it."""
        row = self.session.table.statics.row.get(task.node_name)
        return row is not None and task.key in self.session.snapshot.node_tasks[row]


def idle_cards(plugin: DeviceShare, snapshot: Snapshot) -> Iterator[tuple[Kind[Any], list[Pool[Any]]]]:
    """Each kind that the plugin's arguments switch on, with its cards on every node as if no pod held any."""
    for kind in plugin.kinds(snapshot.device_settings, lambda _: False):
        found = (kind.pool_of(spec) for spec in snapshot.table.statics.specs)
        yield kind, [pool for pool in found if pool is not None]
