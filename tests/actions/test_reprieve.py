"""Which victims of a statement are reprieved: what the queue, filters and handlers say of those that wait."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.preemption.reprieve import Reprieve
from stromboli.testing.builders import node, pod, pod_group, queue
from tests.acceptance.bench import Bench, answering, conf, task_of
from tests.acceptance.stories import with_port

WEB = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
    {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}]}}}  # fmt: skip


def reprieved(
    *, victims: int = 1, cpu: int = 4, asks: dict[str, Any] | None = None, has: dict[str, Any] | None = None,
    quota: bool = False, most: int = 9, extra: Any = None, units: bool = False,
) -> tuple[list[str], str, bool]:  # fmt: skip
    """The victims that still go from n1 for x-0, where x-0 waits, and whether pods go for it."""
    objects = [
        node("n1", cpu=cpu), queue("q", capability={"cpu": most}), pod_group("v", queue="q", min_member=0),
        *(pod(f"v-{number}", group="v", on="n1", cpu=1, **(has or {})) for number in range(victims)),
        pod_group("x", queue="q"), pod("x-0", group="x", cpu=1, **(asks or {})),
    ]  # fmt: skip
    text = conf(f"gang priority {'objects' if extra else ''}", "predicates capacity", actions="preempt")
    with Bench(objects, text, *([extra] if extra else [])).open() as session, session.statement() as plan:
        gone = [task_of(session, f"v-{number}") for number in range(victims)]
        for victim in gone:
            plan.evict(victim, "test")
        waiting = task_of(session, "x-0")
        plan.pipeline(waiting, "n1", True)
        found = [gone] if units else [[victim] for victim in gone]
        Reprieve(session, session.jobs["default/x"], plan, quota=quota).run(found, lambda: True)
        return [task.name for task in plan.evicted], waiting.node_name, waiting.eviction_occurred


CASES = [
    pytest.param({}, [], id="there is room for both"),
    pytest.param({"most": 1}, [], id="the queue is not asked"),
    pytest.param({"most": 1, "quota": True}, ["v-0"], id="the queue may have one of them"),
    pytest.param({"most": 2, "quota": True}, [], id="the queue may have both"),
    pytest.param({"cpu": 1}, ["v-0"], id="there is room for one of them"),
    pytest.param({"asks": with_port(), "has": with_port()}, ["v-0"], id="it holds the port of the pod that waits"),
    pytest.param({"asks": WEB, "has": {"labels": {"app": "web"}}}, ["v-0"], id="the pod that waits keeps away from it"),
    pytest.param({"asks": {"nodeSelector": {"no": "where"}}}, [], id="filters refuse the node whichever pods go"),
    pytest.param({"victims": 3, "cpu": 3}, ["v-0"], id="the last ones that were added, as far as there is room"),
    pytest.param({"victims": 2, "cpu": 2, "units": True}, ["v-0", "v-1"], id="of two that go together both or none"),
    pytest.param({"victims": 2, "cpu": 3, "units": True}, [], id="there is room for two that go together"),
]


@pytest.mark.parametrize(("options", "gone"), CASES)
def test_reprieve_keeps_victims_that_need_not_go(options: dict[str, Any], gone: list[str]) -> None:
    assert reprieved(**options) == (gone, "n1", bool(gone))


@pytest.mark.parametrize("objects_to", ["", "x-0"])
def test_where_a_handler_objects_to_the_pod_that_waits_all_stays_as_it_was(objects_to: str) -> None:
    """It objects while a victim is there, to which the pod that waits says nothing."""
    here = {"v-0", "v-1"}

    def leave(event: Any) -> None:
        here.discard(event.task.name)

    def come(event: Any) -> None:
        if event.task.name == objects_to and here:
            event.err = "not next to it"
        here.update({event.task.name} & {"v-0", "v-1"})

    gone = ["v-0", "v-1"] if objects_to else []
    spy = answering("objects", on_allocate=come, on_deallocate=leave)
    assert reprieved(victims=2, extra=spy) == (gone, "n1", bool(gone))
