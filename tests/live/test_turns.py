"""No part keeps the event loop for long: large amounts of work are done in slices."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

from stromboli.allocation.pending_tasks import Worksheet
from stromboli.cluster.events import Added, Deleted
from stromboli.cluster.objects import from_value
from stromboli.cluster.state import COUNTED_AT_ONCE, ClusterState
from stromboli.cycle import run_cycle
from stromboli.fairness.tree import QueueNode
from stromboli.framework.books.plan import Bind, Plan
from stromboli.framework.session.session import Session
from stromboli.kube.collecting import GENERATIONS, GROWN, SETTLED, holding_a_cluster, not_collecting, tidy
from stromboli.live.process.events import Telling
from stromboli.live.scheduler.configuration import Configuration, Source
from stromboli.live.scheduler.plan_stream import AT_ONCE, Handover, Inbox
from stromboli.model.job import Job
from stromboli.narration.observe import SILENT
from stromboli.plugins.capacity.accounts import Account
from tests.support.live_world import group, node, pod, queue


def not_expected(error: Exception) -> None:
    raise error


def test_a_call_that_fails_is_told_and_those_after_it_are_made() -> None:
    async def story() -> tuple[list[int], list[str]]:
        made: list[int] = []
        failed: list[str] = []
        inbox = Inbox(lambda error: failed.append(str(error)))
        for number in (1, 0, 2):
            inbox.later(lambda number: made.append(1 // number), number)
        inbox.end()
        await inbox.run()
        return made, failed

    assert asyncio.run(story()) == ([1, 0], ["integer division or modulo by zero"])


def test_calls_from_a_thread_are_made_in_order_and_others_have_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stromboli.kube.turns.SLICE", -1.0)  # every call has used up its slice
    made: list[int] = []
    turns: list[int] = []

    async def others() -> None:
        while True:
            turns.append(len(made))
            await asyncio.sleep(0)

    async def story() -> None:
        inbox = Inbox(not_expected)

        def ask() -> None:
            for number in range(50):
                inbox.later(made.append, number)

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        beside = asyncio.create_task(others())
        inbox.end()
        await inbox.run()
        beside.cancel()

    asyncio.run(story())
    assert made == list(range(50))
    assert len(set(turns)) > 25


def test_calls_that_come_later_are_waited_for_until_the_end_is_told() -> None:
    async def story() -> list[str]:
        made: list[str] = []
        inbox = Inbox(not_expected)
        running = asyncio.create_task(inbox.run())
        await asyncio.sleep(0.01)
        inbox.later(made.append, "late")
        await asyncio.sleep(0.01)
        assert made == ["late"]
        assert not running.done()
        inbox.later(made.append, "last")
        inbox.end()
        await running
        return made

    assert asyncio.run(story()) == ["late", "last"]


def test_a_large_gang_is_handed_over_in_parts() -> None:
    parts: list[list[str]] = []

    class Taking:
        def bind(self, binds: Any) -> None:
            parts.append([bind.key for bind in binds])

        def evict(self, evictions: Any) -> None:
            raise AssertionError("nothing is evicted")

        def finish(self, plan: Plan) -> None:
            raise AssertionError("not here")

    binds = [Bind(f"u{number}", f"ns/p{number}", "ns/job", "n1") for number in range(2 * AT_ONCE + 1)]
    Handover(Taking(), lambda call, *arguments: call(*arguments)).rest(Plan(session="s", binds=binds))
    assert [len(part) for part in parts] == [AT_ONCE, AT_ONCE, 1]
    assert [key for part in parts for key in part] == [bind.key for bind in binds]


# ---------------------------------------------------------------------- snapshots


def state(jobs: int, nodes: int = 3) -> ClusterState:
    found = ClusterState()
    for kind, made in [
        ("Queue", queue()),
        *(("Node", node(f"n{number}", 8)) for number in range(nodes)),
        *((kind, made) for number in range(jobs) for kind, made in single(number)),
    ]:
        found.apply(Added(kind, from_value(kind, made)))
    return found


def single(number: int) -> list[tuple[str, Any]]:
    return [("PodGroup", group(f"j{number}", 1)), ("Pod", pod(f"p{number}", f"j{number}"))]


def test_counting_in_steps_gives_the_same_sums_whatever_happens_in_between() -> None:
    jobs = 2 * COUNTED_AT_ONCE + 10
    found, plain = state(jobs), state(jobs)
    steps = 0
    for _ in found.catching_up():
        steps += 1
        for one in (found, plain):
            one.apply(Deleted("Pod", from_value("Pod", pod(f"p{steps}", f"j{steps}"))))
            one.apply(Deleted("PodGroup", from_value("PodGroup", group(f"j{steps}", 1))))
    assert steps == 2
    assert len(found.sums.dirty) <= COUNTED_AT_ONCE
    sums, wanted = (one.snapshot().queue_sums["default"] for one in (found, plain))
    assert (sums.jobs, sums.request) == (wanted.jobs, wanted.request)
    assert (sums.jobs, sums.request[0]) == (jobs - 2, (jobs - 2) * 1000)


def test_nodes_that_come_change_and_go_leave_the_table_as_if_it_were_rebuilt() -> None:
    found = state(0, 12)
    for number in range(12):
        found.apply(Added("Pod", from_value("Pod", pod(f"p{number}", nodeName=f"n{number}"))))
    first = found.snapshot()
    before = first.table.alloc.copy()
    found.apply(Added("Node", from_value("Node", node("n3", 16, zone="b"))))
    found.apply(Deleted("Node", from_value("Node", node("n5"))))
    found.apply(Added("Node", from_value("Node", node("n4a", 2))))
    found.apply(Added("Pod", from_value("Pod", pod("more", nodeName="n4a"))))
    second = found.snapshot()
    assert (first.table.alloc == before).all()
    names = second.table.statics.names
    assert names == ["n0", "n1", "n2", "n3", "n4", "n4a", "n6", "n7", "n8", "n9", "n10", "n11"]
    assert second.table.alloc[0].tolist() == [{"n3": 16000, "n4a": 2000}.get(name, 8000) for name in names]
    assert second.table.used[0].tolist() == [1000] * 12
    assert second.table.statics.specs[3].labels == {"zone": "b"}
    found.apply(Added("Node", from_value("Node", node("n5", 4))))
    third = found.snapshot()
    assert third.table.alloc[0, third.table.row("n5")] == 4000
    assert third.table.used[0].tolist() == [1000] * 13


def test_rows_are_renewed_in_steps_whatever_happens_in_between() -> None:
    nodes = 2 * COUNTED_AT_ONCE + 10
    found, plain = state(0, nodes), state(0, nodes)
    one, other = found.snapshot(), plain.snapshot()
    for known in (found, plain):
        for number in range(nodes):
            known.apply(Added("Pod", from_value("Pod", pod(f"p{number}", nodeName=f"n{number}"))))
    steps = 0
    for _ in found.catching_up():
        steps += 1
        for known in (found, plain):
            known.apply(Deleted("Pod", from_value("Pod", pod(f"p{steps}", nodeName=f"n{steps}"))))
            known.apply(Added("Pod", from_value("Pod", pod(f"q{steps}", nodeName=f"n{nodes - steps}"))))
    assert steps == 2
    assert one.table.used.sum() == other.table.used.sum() == 0
    one, other = found.snapshot(), plain.snapshot()
    assert one.table.used[0].sum() == nodes * 1000
    assert (one.table.used == other.table.used).all()
    found.apply(Added("Node", from_value("Node", node("n1a", 2))))
    for number in range(nodes):
        found.apply(Deleted("Pod", from_value("Pod", pod(f"p{number}", nodeName=f"n{number}"))))
    assert len(list(found.catching_up())) == 2
    assert found.snapshot().table.used[0].sum() == 2 * 1000


# ---------------------------------------------------------------------- the garbage collector


EVERYTHING = """\
actions: "enqueue, allocate, preempt, reclaim, gangpreempt, gangreclaim, shuffle, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: pdb}, {name: sla}, {name: tdm}, {name: cdp}]
- plugins:
  - name: overcommit
  - name: drf
    enableHierarchy: SHARES
  - name: predicates
QUEUES  - name: nodeorder
  - name: binpack
  - name: resourcequota
  - name: usage
  - name: rescheduling
"""


@pytest.mark.parametrize("queues", ["", "  - {name: capacity, enableHierarchy: true}\n"])
def test_a_session_goes_with_its_cycle_without_the_garbage_collector(queues: str, tmp_path: Path) -> None:
    """One that waited for it would be frozen before it is looked at, and stay for ever."""
    file = tmp_path / "volcano-scheduler.conf"
    file.write_text(EVERYTHING.replace("QUEUES", queues).replace("SHARES", "false" if queues else "true"))
    configuration = Configuration(Source(str(file), strict=True), Telling(SILENT))
    found = state(20, 15)
    found.apply(Added("Queue", from_value("Queue", queue("root"))))
    spec = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}]}}  # fmt: skip
    found.apply(Added("Pod", from_value("Pod", pod("apart", "j0", affinity=spec))))
    for kind, made in [("PodGroup", group("large", 1)), ("Pod", pod("large", "large", 100))]:
        found.apply(Added(kind, from_value(kind, made)))
    snapshot = found.snapshot()
    of_sessions = (Session, Job, Worksheet, Account, QueueNode)
    gc.collect()
    gc.disable()
    try:
        before = [one for one in gc.get_objects() if isinstance(one, of_sessions)]  # other tests' among them
        plan = run_cycle(snapshot, configuration.current, configuration.source.registry)
        assert plan.binds
        del plan, snapshot
        known = {id(one) for one in before}
        assert not [one for one in gc.get_objects() if isinstance(one, of_sessions) and id(one) not in known]
    finally:
        gc.enable()


@pytest.mark.usefixtures("freezing")
def test_a_process_that_holds_a_cluster_collects_old_objects_between_cycles_alone() -> None:
    before = gc.get_threshold()
    with holding_a_cluster():
        assert gc.get_threshold() == GENERATIONS
        gc.collect(1)
        frozen = gc.get_freeze_count()
        kept = [[number] for number in range(1000)]
        with not_collecting():
            assert not gc.isenabled()
        assert gc.isenabled()
        assert gc.get_freeze_count() >= frozen + len(kept)
        kept += [[number] for number in range(1000)]
        gc.collect(1)
        tidy()
        assert gc.get_count()[2] == 0
        kept += [[number] for number in range(SETTLED)]
        gc.collect(1)
        tidy()
        assert gc.get_freeze_count() >= frozen + len(kept)
        assert gc.get_count()[2] == 0
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0


class Cyclic:
    """An object that refers to itself, like an exception with a traceback that holds the frame that caught it."""

    def __init__(self) -> None:
        self.itself = self


def begun() -> tuple[Cyclic, weakref.ref[Cyclic]]:
    found = Cyclic()
    return found, weakref.ref(found)


@pytest.mark.usefixtures("freezing")
def test_what_was_under_way_between_two_cycles_is_not_kept_for_ever() -> None:
    seen = []
    with holding_a_cluster():
        for _ in range(20):
            request, seen_as = begun()
            seen.append(seen_as)
            gc.collect(1)
            tidy()
            del request
        assert len([one for one in seen if one() is not None]) <= 1


@pytest.mark.usefixtures("freezing")
def test_what_was_under_way_when_all_was_frozen_goes_once_much_has_come() -> None:
    with holding_a_cluster():
        request, seen_as = begun()
        with not_collecting():
            kept = [[number] for number in range(100)]
        del request
        gc.collect()
        assert seen_as() is not None, "it is frozen"
        kept += [[number] for number in range(GROWN + SETTLED + gc.get_freeze_count() // 2)]
        gc.collect(1)
        tidy()
        assert seen_as() is None
