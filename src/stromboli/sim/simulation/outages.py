"""Nodes that fail and come back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from random import Random

from stromboli.cluster.body import Body, meta, with_meta
from stromboli.sim.world import SimWorld


class Outages:
    """Take nodes from a world, one at a time, and bring each back after ``mttr`` seconds, until ``over`` says so.

    What changes of a node meanwhile (:meth:`changed`) shows when it comes back; one that has gone for good stays away.

    The time between failures is exponentially distributed, its mean for a node ``mtbf`` seconds.  ``losing`` is true
    while a node goes with its pods.
    """

    def __init__(self, world: SimWorld, mtbf: float, mttr: float, seed: int, over: Callable[[], bool]) -> None:
        self._world, self._mtbf, self._mttr, self._over = world, mtbf, mttr, over
        self._dice = Random(f"{seed} nodes")
        self._nodes = len(list(world.all("Node")))
        self._down: dict[str, tuple[int, Body]] = {}
        self._numbers = count()
        self.losing = False
        self._wait()

    def _wait(self) -> None:
        if self._mtbf and self._nodes:
            self._world.timeline.after(self._dice.expovariate(self._nodes / self._mtbf), self._fail)

    def _fail(self) -> None:
        if self._over():
            return
        up = {str(meta(node)["name"]): node for node in self._world.all("Node")}
        if up:
            name = self._dice.choice(sorted(up))
            number = next(self._numbers)
            self._down[name] = number, with_meta(up[name], uid=None, resourceVersion=None, creationTimestamp=None)
            self.losing = True
            self._world.remove("Node", name)
            self.losing = False
            self._world.timeline.after(self._mttr, partial(self._back, name, number))
        self._wait()

    def changed(self, node: Body, *, stays: bool) -> bool:
        """Note that a node changes, or goes for good; False for one that is not down."""
        name = str(meta(node)["name"])
        if name not in self._down:
            return False
        if stays:
            self._down[name] = self._down[name][0], node
        else:
            del self._down[name]
        return True

    def _back(self, name: str, number: int) -> None:
        """End outage ``number`` of a node; not a later one, if the node has gone for good and come again since."""
        outage, body = self._down.get(name, (None, {}))
        if outage == number:
            del self._down[name]
            self._world.create(body)
