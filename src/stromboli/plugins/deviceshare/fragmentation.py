"""fragmentation: scores nodes by how much of their cards would be left in parts that pods cannot use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from stromboli.framework.extension.handlers import TaskEvent
from stromboli.model.names import CPU
from stromboli.model.table import Ints, NodeRows
from stromboli.model.task import Task
from stromboli.plugin import Hook, Plugin, arg, node_order, on_allocate, on_deallocate
from stromboli.plugins.deviceshare.kind import MOST_CARDS, THOUSAND, Need
from stromboli.plugins.deviceshare.plugin import DeviceShare

if TYPE_CHECKING:
    from stromboli.framework.books.cluster_view import ClusterView

GRADIENT, BEST_FIT = "gradient", "best-fit"
MAX_SCORE: Final = 100
SCALE: Final = 3 * THOUSAND
"""Thousandths by which a gain is divided: coarser than the published 1000, so that more nodes tie and fill in turn."""
STEP, TOP = 10, 250
"""By how many sorts of pods the typical ones grow, and how many are looked at at most."""


def _known(policy: str) -> str:
    known = (GRADIENT, BEST_FIT)
    return "" if policy in known else f"unknown policy {policy}; known are {' and '.join(known)}"


def _percentage(value: int) -> str:
    return "" if 0 < value <= 100 else f"{value} is no percentage from 1 to 100"


class Pods(NamedTuple):
    """Typical pods as columns: cores, cards, thousandths of each (as a position in ``shares``), and how many ask so."""

    cpu: Ints
    cards: Ints
    share: Ints
    shares: Ints
    weight: Ints


class Fragmentation(Plugin, trusted=True):
    """Scores a node by how a pod on it would change what pods can use of the node's cards.

    ``gradient``: fragmentation gradient descent, Q. Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing
    Workloads with Fragmentation Gradient Descent", USENIX ATC 2023, sections 3 and 4.  For a typical pod m, the
    fragment F(m) of a node is what is free on its cards and of no use to m: all of it where m asks for no card or does
    not fit by cores or cards, otherwise what is free on cards with less than m's share.  F is the mean of F(m) over the
    typical pods, in thousandths of a card.  The score is floor(100 / (1 + exp((F after - F before) / 3000))); the pod
    is thought to get the cards with the least room that suffices, as ``deviceshare.SchedulePolicy: binpack`` gives.
    Typical pods are the most frequent sorts of the pods that run or wait, as many tens of sorts as it takes for
    ``fragmentation.typical`` percent of the pods.

    ``best-fit``: 100 x (1 - (free cores / most cores of a node + free cards / most cards of a node) / 2), rounded
    down, with the pod on the node.
    """

    name = "fragmentation"
    weight = arg("fragmentation.weight", int, 1)
    policy = arg("fragmentation.policy", str, GRADIENT, _known)
    typical = arg("fragmentation.typical", int, 95, _percentage)

    def on_session_open(self, session: ClusterView) -> None:
        """Nothing is read before a score is asked for: deviceshare may open later."""
        self.session = session
        self._cpu = session.table.axes.index[CPU]
        self._free: Ints | None = None
        """Thousandths that are free, shape (nodes, cards); None before the first question."""
        self._changed: set[str] = set()
        self._pods: dict[int, Pods] = {}

    def hooks(self) -> Iterator[tuple[Hook, Callable[..., Any]]]:
        """The plugin's hooks; none without deviceshare's cards, or with the weight 0."""
        shares = self.session.plugins.get(DeviceShare.name)
        if not isinstance(shares, DeviceShare) or not shares.has_cards_anywhere or not self.weight:
            return
        self._shares = shares
        for hook, function in super().hooks():
            yield (replace(hook, key=self._key) if hook.point.per_node else hook), function

    def _key(self, task: Task) -> Hashable:
        return task.template, self._shares.demands_of(task)

    @on_allocate
    def come(self, event: TaskEvent) -> None:
        """The cards of a node are used otherwise."""
        self._changed.add(event.task.node_name)

    @on_deallocate
    def leave(self, event: TaskEvent) -> None:
        """The cards of a node are used otherwise."""
        self._changed.add(event.task.node_name)

    @node_order.vector
    def score(self, task: Task, nodes: NodeRows) -> npt.NDArray[np.float64]:
        """The score of each row by the policy, times the weight."""
        free = self._rooms()[nodes.rows]
        idle, wanted = nodes.alloc[self._cpu] - nodes.used[self._cpu], task.template.vector[self._cpu]
        need = self._shares.need_of(task)
        score = np.zeros(len(nodes))
        for size in np.unique(self._sizes[nodes.rows]).tolist():
            rows = np.flatnonzero(self._sizes[nodes.rows] == size)
            after = free[rows] if need is None else _without(free[rows], need.cards, need.share(size))
            if self.policy == BEST_FIT:
                score[rows] = self._tightness(idle[rows] - wanted, after)
            else:
                pods = self._typical(size)
                gain = fragments(idle[rows], free[rows], pods) - fragments(idle[rows] - wanted, after, pods)
                score[rows] = MAX_SCORE / (1.0 + np.exp(-gain / float(pods.weight.sum() * SCALE)))
        floored: npt.NDArray[np.float64] = np.floor(score) * self.weight
        return floored

    def _tightness(self, idle: Ints, free: Ints) -> npt.NDArray[np.float64]:
        loose = idle / max(int(self.session.table.alloc[self._cpu].max()), 1) + free.sum(axis=1) / self._most
        return np.asarray(MAX_SCORE * (1.0 - loose / 2.0))

    def _rooms(self) -> Ints:
        """What is free on the cards of all nodes, brought up to date."""
        names = self.session.table.statics.names
        if self._free is None:
            every = [[card for pool in self._shares.pools_of(name) for card in pool.cards()] for name in names]
            widest = min(max(map(len, every)), MOST_CARDS)
            self._free = np.zeros((len(names), widest), dtype=np.int64)
            self._sizes = np.array([max((card.memory for card in cards), default=0) for cards in every])
            self._most = max(THOUSAND * widest, 1)
            self._changed.update(name for name, cards in zip(names, every, strict=True) if cards)
        for name in self._changed:
            row = self.session.table.statics.row[name]
            free = [card.free for pool in self._shares.pools_of(name) for card in pool.cards()]
            self._free[row, : len(free)] = free[: self._free.shape[1]]
        self._changed.clear()
        return self._free

    def _typical(self, size: int) -> Pods:
        """The most frequent pods, measured in cards of ``size`` MB."""
        found = self._pods.get(size)
        if found is None:
            found = self._pods[size] = columns(self._most_frequent(), size)
        return found

    def _most_frequent(self) -> list[tuple[tuple[int, Need], int]]:
        tasks = (task for job in self.session.jobs.peek() for task in job.tasks.values())
        counts = Counter((task.template.vector[self._cpu], self._shares.need_of(task) or Need(0, 0)) for task in tasks)
        ranked = sorted(counts.items(), key=lambda each: (-each[1], repr(each[0])))
        chosen = 0
        while chosen < TOP and 100 * sum(count for _, count in ranked[:chosen]) < self.typical * counts.total():
            chosen += STEP
        return ranked[:chosen]


def columns(pods: list[tuple[tuple[int, Need], int]], size: int) -> Pods:
    """Pods of some cores and a need, and how many alike, measured in cards of ``size`` MB."""
    wanted = [need.share(size) for (_, need), _ in pods]
    shares = sorted(set(wanted))
    rows = [
        (cpu, min(need.cards, MOST_CARDS + 1), shares.index(share), count)
        for ((cpu, need), count), share in zip(pods, wanted, strict=True)
    ]  # fmt: skip
    cpu, cards, share, count = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return Pods(cpu, cards, share, np.array(shares, dtype=np.int64), count)


def fragments(idle: Ints, free: Ints, pods: Pods) -> Ints:
    """What is free on the cards of each node and of no use to a pod, summed over ``pods``, in thousandths of a card.

    ``idle`` are cores, shape (nodes,), ``free`` thousandths, shape (nodes, cards).
    """
    suits = free[:, None, :] >= pods.shares[:, None]
    enough = suits.sum(axis=2)[:, pods.share] >= pods.cards
    small = np.where(suits, 0, free[:, None, :]).sum(axis=2)[:, pods.share]
    useful = enough & (idle[:, None] >= pods.cpu) & (pods.cards > 0)
    lost: Ints = (np.where(useful, small, free.sum(axis=1)[:, None]) * pods.weight).sum(axis=1)
    return lost


def _without(free: Ints, cards: int, share: int) -> Ints:
    """``free`` with a share less on those ``cards`` cards of each row that have the least room which suffices."""
    rank = np.argsort(np.where(free >= share, free, THOUSAND + 1), axis=1, kind="stable")[:, :cards]
    after = free.copy()
    np.put_along_axis(after, rank, np.maximum(np.take_along_axis(free, rank, axis=1) - share, 0), axis=1)
    return after
