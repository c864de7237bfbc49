"""Clusters over many cycles in which victims take their time: what tests of reservations are made with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stromboli.cycle import run_cycle
from stromboli.framework.books.plan import Plan
from stromboli.framework.config.gates import PIPELINED_STATE, switched_on
from stromboli.framework.extension.action import Action
from stromboli.framework.extension.plugin import Plugin
from stromboli.model.reservation import Held, read, stated
from stromboli.narration.observe import Counting
from stromboli.sim.between import apply_plan
from stromboli.testing.builders import Manifest, node, pod, pod_group, queue
from tests.acceptance.bench import NOW, Bench, conf
from tests.acceptance.fights import CLASSES, waiting

TIERS = ("conformance gang priority", "predicates proportion drf")
ALL = conf(*TIERS, actions="allocate, preempt, reclaim, backfill")
ALLOCATE = conf(*TIERS, actions="allocate, backfill")
NO_QUEUES = conf("conformance gang priority", "predicates", actions="allocate, preempt")
"""Without a queue plugin, so that room alone decides."""
NO_VICTIMS = conf("conformance gang priority", "predicates", actions="allocate")
"""The same without evictions."""
TWO_QUEUES = [queue("q1"), queue("q2")]
MINUTE = 60.0


class Story(Bench):
    """A cluster whose evicted pods stay, marked, until the test says that they are gone; the test sets the time.

    Without the ``gate`` a reservation ends with its session.
    """

    def __init__(
        self, *objects: Sequence[Manifest], text: str = ALL, nodes: int = 1, cpu: Any = 4,
        extra: Sequence[type[Plugin] | type[Action]] = (), compat: bool = False, gate: bool = True,
    ) -> None:  # fmt: skip
        machines = [node(f"n{i + 1}", cpu=cpu) for i in range(nodes)]
        super().__init__(
            [*machines, *CLASSES, *(each for group in objects for each in group)], text, *extra, compat=compat
        )
        self.config = replace(self.config, features=switched_on({PIPELINED_STATE: gate}))
        self.state.set_gates(self.config.gates)
        self.counts = Counting()

    def cycle(self, observer: Any = None, now: float = NOW) -> Plan:
        self.plan = run_cycle(self.snapshot(), self.config, self.registry, now, 0, observer or self.counts)
        apply_plan(self.state, self.plan, evicted_become="terminating")
        return self.plan

    def gone(self, *names: str) -> None:
        """The pods have ended."""
        for name in names:
            self.state.remove_task(self.state.tasks[f"default/{name}"])

    def restart(self) -> None:
        """What only memory holds is lost."""
        self.state.memory.clear()

    def held(self) -> dict[str, Held]:
        """What pods state, by their names."""
        found = {task.name: read(task.annotations) for task in self.state.tasks.values()}
        return {name: held for name, held in found.items() if held is not None}

    def nodes_held(self) -> dict[str, str]:
        """The nodes on which pods state that they hold room."""
        return {name: held.node for name, held in self.held().items()}

    def told(self, key: str) -> list[dict[str, object]]:
        """What was told under ``key``, in order."""
        return [fields for other, fields in self.counts.told if other == key]


def written(plan: Plan) -> dict[str, Held | None]:
    """What pods are to state from now on, by their names."""
    return {wish.key.partition("/")[2]: wish.held for wish in plan.annotations}


def with_port(port: int = 80) -> dict[str, Any]:
    """What a pod says that listens on a port of its node: no two of them share a node, not even while one ends."""
    return {"container": {"ports": [{"containerPort": port, "hostPort": port}]}}


def ending(name: str, on: str, cpu: Any = 4) -> list[Manifest]:
    """A pod that is being deleted and still has its room."""
    return [pod_group(name, phase="Running"), pod(f"{name}-0", group=name, on=on, cpu=cpu, memory=0, deleting=True)]


def gang(name: str = "g", **fields: Any) -> list[Manifest]:
    """Four pods that need a node each."""
    return waiting(name, 4, cpu=4, **fields)


def half_free(**more: Any) -> Story:
    """A gang of four; two nodes are free, two will be."""
    return Story(ending("a", "n3"), ending("b", "n4"), gang(), nodes=4, text=ALLOCATE, **more)


def held_on(node_name: str, evicted: bool = False) -> dict[str, str]:
    return stated(Held(node_name, evicted))


def holder(*, group: dict[str, Any] | None = None, **fields: Any) -> list[Manifest]:
    """A job of one pod that holds all of n1."""
    return [
        pod_group("h", **(group or {})),
        pod("h-0", group="h", cpu=4, memory=0, annotations=held_on("n1"), **fields),
    ]


def reserved_pod(**fields: Any) -> list[Manifest]:
    """A job of one pod that holds half of n2."""
    return [pod_group("h"), pod("h-0", group="h", cpu=2, memory=0, annotations=held_on("n2"), **fields)]
