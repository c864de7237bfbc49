"""One object's trouble is reported by its name, and everything else goes on: nothing unforeseen ends the scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from stromboli.cluster import sums
from stromboli.cluster.events import Added
from stromboli.cluster.mirror import Mirror
from stromboli.cluster.objects import from_value
from stromboli.cluster.state import ClusterState
from stromboli.cluster.sums import Share
from stromboli.controllers.manager import Manager
from stromboli.framework.books.plan import Bind, Eviction, Plan, PodConditionUpdate, PodGroupUpdate
from stromboli.kube.informer import Informer
from stromboli.kube.resources import PODS
from stromboli.kube.transport import Request, Response
from stromboli.live.process import duties
from stromboli.live.process.events import Telling
from stromboli.live.scheduler.scheduler import CHECK_EVERY, FEW, TOO_LONG, LiveScheduler
from stromboli.model.job import Job
from stromboli.narration.observe import Counting
from tests.support.controller_world import ControllerWorld, job
from tests.support.live_world import Directed, LiveWorld, gang, pod, queue, uid
from tests.support.memory_server import status
from tests.support.virtual import run


def failing(original: Callable[..., Any], name: str, at: int = -1) -> Callable[..., Any]:
    """``original``, but it raises for whatever bears ``name``."""

    def fails(*given: Any) -> Any:
        if getattr(given[at], "key", "") == name or getattr(given[at], "uid", "") == name:
            raise KeyError(f"about {name}")
        return original(*given)

    return fails


# ---------------------------------------------------------------------- decisions


@pytest.mark.parametrize("in_thread", [False, True])
def test_a_bind_that_fails_in_our_hands_is_named_and_the_others_are_carried_out(
    in_thread: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Mirror, "assume_bound", failing(Mirror.assume_bound, "ns/job-1"))

    async def story() -> None:
        world = LiveWorld()
        gang(world.server, "job", 4, least=1)
        scheduler = world.scheduler(in_thread=in_thread)
        if in_thread:
            scheduler.clock = lambda: 1_800_000_000.0  # the world's own is of the event loop's thread
        running = world.start(scheduler)
        async with asyncio.timeout(20):
            while len(world.waiting()) > 1:
                await asyncio.sleep(0.05)
        assert world.waiting() == ["job-1"]
        assert not running.done()
        told = world.told.of("decision_failed")
        assert told[0] == {"what": "ns/job-1", "error": "KeyError: 'about ns/job-1'"}
        assert not world.told.of("cycle_failed")
        await world.end()

    asyncio.run(story()) if in_thread else run(story())


def test_an_eviction_that_fails_in_our_hands_is_named_and_the_others_are_carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Mirror, "assume_evicted", failing(Mirror.assume_evicted, "ns/a"))

    async def story() -> None:
        world = Directed()
        for name in ("a", "b"):
            world.server.put("pods", {**pod(name, nodeName="n1"), "status": {"phase": "Running"}})
        scheduler = await world.directed(tmp_path)
        evictions = [Eviction(uid(world, name), f"ns/{name}", "ns/x", "n1", "preempt") for name in ("a", "b")]
        scheduler.executor.evict(evictions)
        await asyncio.sleep(2)
        assert [fields["what"] for fields in world.told.of("decision_failed")] == ["ns/a"]
        assert "deletionTimestamp" not in world.server.get("pods", "a", "ns")["metadata"]
        assert scheduler.executor.evictor.evicted == 1
        await world.end()

    run(story())


def test_the_rest_of_a_plan_is_carried_out_whatever_part_of_it_fails(tmp_path: Path) -> None:
    async def story() -> None:
        world = Directed()
        gang(world.server, "job", 2)
        scheduler = await world.directed(tmp_path)
        updater = scheduler.executor._own
        updater.update_pod_group = failing(updater.update_pod_group, "ns/job")  # type: ignore[method-assign]
        condition = PodConditionUpdate(uid(world, "job-0"), "ns/job-0", "Unschedulable", "why")
        group = PodGroupUpdate("ns/job", "Pending")
        await scheduler.take_over(Plan(session="s", pod_groups=[group], pod_conditions=[condition]))
        await asyncio.sleep(1)
        assert [fields["what"] for fields in world.told.of("decision_failed")] == ["ns/job"]
        (said,) = world.server.get("pods", "job-0", "ns")["status"]["conditions"]
        assert said["message"] == "why"
        await world.end()

    run(story())


def test_a_bind_beyond_what_can_be_counted_leaves_the_pod_as_it_was(tmp_path: Path) -> None:
    """It was lost to the state before: taken off it, and put nowhere."""

    async def story() -> None:
        world = Directed()
        huge = {"name": "c", "resources": {"requests": {"memory": str(1 << 55)}}}
        for number in range(256):
            full = pod(f"full-{number}", nodeName="n1", containers=[huge])
            world.server.put("pods", {**full, "status": {"phase": "Running"}})
        world.server.put("pods", pod("more", containers=[huge]))
        scheduler = await world.directed(tmp_path)
        scheduler.executor.bind([Bind(uid(world, "more"), "ns/more", "ns/x", "n1")])
        await asyncio.sleep(1)
        (told,) = world.told.of("decision_failed")
        assert told["what"] == "ns/more"
        assert "exceed 64 bits" in str(told["error"])
        assert scheduler.state.tasks["ns/more"].own_node == ""
        assert not scheduler.mirror.assumed
        await world.end()

    run(story())


# ---------------------------------------------------------------------- each in its place


def broken(holder: Any, name: str, about: str = "") -> None:
    """Let a function of ``holder`` fail with an unforeseen error for every argument that mentions ``about``."""
    original = getattr(holder, name)

    def fails(*given: Any, **more: Any) -> Any:
        if about in "".join(map(repr, given)):
            raise ZeroDivisionError("an unforeseen error")
        return original(*given, **more)

    holder.__dict__[name] = fails


class Place(NamedTuple):
    """Where something breaks, the key and text that report it, and which of the pods bad-0 and good-… then waits."""

    breaks: Callable[[LiveScheduler], object]
    key: str
    told: str
    waits: tuple[str, ...] = ()


PLACES = {
    "reading": Place(
        lambda one: one.informers.by_kind.update(Pod=reading_badly(one.informers.by_kind["Pod"])),
        "object_refused", "Pod ns/bad-0: cannot be read: ZeroDivisionError", ("bad-0",),
    ),
    "taking in": Place(
        lambda one: broken(one.mirror, "take", "'bad-0'"), "object_refused",
        "Pod ns/bad-0: cannot be taken in: ZeroDivisionError", ("bad-0",),
    ),
    "deciding": Place(
        lambda one: broken(one.mirror, "assume_bound", "ns/bad-0"), "decision_failed", "ns/bad-0", ("bad-0",)
    ),
    "binding": Place(lambda one: broken(one.client, "bind", "bad-0"), "bind_failed", "ns/bad-0", ("bad-0",)),
    "an event": Place(lambda one: broken(one.client, "create", "ns/bad-0"), "bind_ok", ""),
    "the audit": Place(lambda one: broken(one.audit, "run"), "duty_failed", "an unforeseen error"),
    "strays": Place(lambda one: broken(one.strays, "look"), "duty_failed", "an unforeseen error"),
    "overdue pods": Place(
        lambda one: broken(one.executor, "ask_for_overdue"), "duty_failed", "an unforeseen error"
    ),
    "the keys of reservations": Place(
        lambda one: broken(one.proving, "refresh"), "duty_failed", "an unforeseen error"
    ),
    "loads of nodes": Place(lambda one: broken(one.usage, "_current"), "node_metrics_failed", "an unforeseen error"),
}  # fmt: skip


def reading_badly(informer: Informer[Any]) -> Informer[Any]:
    """The informer, which cannot read pods of that name."""

    def reads(raw: Any) -> Any:
        if b'"bad-0"' in bytes(raw):
            raise ZeroDivisionError("an unforeseen error")
        return PODS.decode(raw)

    informer.resource = PODS.read_as(reads)
    return informer


@pytest.mark.parametrize("place", PLACES)
def test_an_unexpected_failure_is_told_and_everything_else_goes_on(place: str) -> None:
    breaks, key, told, waits = PLACES[place]

    async def story() -> None:
        world = LiveWorld()
        gang(world.server, "bad", 1)
        gang(world.server, "good", 3)
        scheduler = world.scheduler(audit_period=5.0)
        breaks(scheduler)
        running = world.start(scheduler)
        await asyncio.sleep(12)
        assert (tuple(world.waiting()), running.done()) == (waits, False)
        assert told in str(world.told.of(key)[0])
        assert (scheduler.recorder.dropped > 0) is (place == "an event")
        await world.end()

    run(story())


def test_failed_duties_are_tried_again_and_each_kind_of_failure_shows_one_traceback() -> None:
    async def story() -> None:
        world = LiveWorld()
        scheduler = world.scheduler()
        broken(scheduler.strays, "look")
        world.start(scheduler)
        await asyncio.sleep(4.5 * CHECK_EVERY)
        told = world.told.of("duty_failed")
        assert [fields["times"] for fields in told] == [1, 2, 3, 4]
        assert "Traceback" in str(told[0]["trace"])
        assert [fields["trace"] for fields in told[1:]] == ["", "", ""]
        assert scheduler.duties.failures == {"looking for pods that no cycle looks at": 4}
        await world.end()

    run(story())


def test_so_many_tracebacks_are_told_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duties, "TRACED", 2)
    told, ready = Counting(keep=10), asyncio.Event()

    def fails(kind: type[Exception]) -> None:
        raise kind("an unforeseen error")

    async def story() -> None:
        some = duties.Duties(ready, Telling(told))
        for kind in (KeyError, TypeError, OSError, KeyError):
            await some.once("it", partial(fails, kind))

    run(story())
    assert [bool(fields["trace"]) for fields in told.of("duty_failed")] == [True, True, False, False]


# ---------------------------------------------------------------------- audits


def refusing(part: str, **params: str) -> Callable[[Request, str], Response | None]:
    """A fault: reads of what the path ends in are answered by errors."""

    def fault(request: Request, when: str) -> Response | None:
        meant = request.method == "GET" and request.path.endswith(part) and params.items() <= request.params.items()
        return status(500, "InternalError", "odd") if meant and when == "before" else None

    return fault


@pytest.mark.parametrize("trouble", ["a list", "a repair", "a watch that is behind"])
def test_an_audit_tells_what_it_cannot_compare_or_repair_and_does_the_rest(trouble: str, tmp_path: Path) -> None:
    async def story() -> None:
        world = Directed()
        for name in ("bad", "good"):
            world.server.put("pods", pod(name, nodeName="n1"))
        scheduler = await world.directed(tmp_path)
        for name in ("bad", "good"):
            del world.server.objects["pods"]["ns", name]  # no watch tells it
        if trouble == "a list":
            world.server.faults.append(refusing("/nodes", limit="500"))
        elif trouble == "a repair":
            world.server.faults.append(refusing("/pods/bad"))
        else:
            world.server.faults.append(refusing("/nodes", watch="1"))
            world.server.cut()
            world.server.put("queues", queue("other"))
        found = await scheduler.audit.run()
        assert {(one.kind, one.name) for one in found} == {("Pod", "bad"), ("Pod", "good")}
        assert set(scheduler.state.tasks) == ({"ns/bad"} if trouble == "a repair" else set())
        (told,) = world.told.of("audit_failed")
        assert told["what"] == ("Pod ns/bad" if trouble == "a repair" else "Node")
        assert ("odd" in str(told["error"])) is (trouble != "a watch that is behind")
        assert (scheduler.audit.runs, scheduler.audit.found, scheduler.audit.failed) == (1, 2, 1)
        await world.end()

    run(story())


def test_what_is_overdue_is_asked_for_while_an_audit_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        world = Directed()
        scheduler = world.scheduler(audit_period=CHECK_EVERY)
        monkeypatch.setattr(scheduler.audit, "run", lambda: asyncio.sleep(600))
        asked: list[float] = []
        monkeypatch.setattr(scheduler.executor, "ask_for_overdue", lambda: asked.append(world.clock()))
        world.start(scheduler)
        await asyncio.sleep(10 * CHECK_EVERY)
        assert len(asked) >= 9
        await world.end()

    run(story())


# ---------------------------------------------------------------------- writes


def test_a_binding_that_breaks_gives_its_room_back_and_all_others_go_on() -> None:
    async def story() -> None:
        world = LiveWorld(nodes=1)
        gang(world.server, "job", 4, least=1)
        scheduler = world.scheduler()
        broken(scheduler.client, "bind", "'job-1'")
        running = world.start(scheduler)
        await asyncio.sleep(5)
        assert (world.waiting(), running.done(), scheduler.executor.binder.failed > 0) == (["job-1"], False, True)
        assert {fields["task"] for fields in world.told.of("bind_failed")} == {"ns/job-1"}
        (said, *_) = world.server.get("pods", "job-1", "ns")["status"]["conditions"]
        assert said["message"].endswith("failed to bind to node n0: an unforeseen error")
        world.server.drop("pods", "job-1", "ns")
        world.server.put("pods", pod("other", "job"))
        await world.settled(scheduler)
        world.check(scheduler)
        await world.end()

    run(story())


def test_an_eviction_that_breaks_leaves_its_pod_and_all_others_go(tmp_path: Path) -> None:
    async def story() -> None:
        world = Directed()
        for name in ("a", "b"):
            world.server.put("pods", {**pod(name, nodeName="n1"), "status": {"phase": "Running"}})
        scheduler = await world.directed(tmp_path)
        broken(scheduler.client, "delete", "'a'")
        evictions = [Eviction(uid(world, name), f"ns/{name}", "ns/x", "n1", "preempt") for name in ("a", "b")]
        scheduler.executor.evict(evictions)
        await asyncio.sleep(2)
        assert [fields["task"] for fields in world.told.of("evict_pod_failed")] == ["ns/a"]
        assert (scheduler.executor.evictor.evicted, scheduler.executor.in_flight) == (1, 0)
        assert "ns/a" not in scheduler.mirror.assumed
        await world.end()

    run(story())


def test_a_status_that_breaks_is_told_and_a_newer_one_is_said(tmp_path: Path) -> None:
    async def story() -> None:
        world = Directed()
        gang(world.server, "job", 1)
        scheduler = await world.directed(tmp_path)
        world.server.latency = 1.0
        writes, said = scheduler.executor._own.writes, []

        async def breaks() -> None:
            await asyncio.sleep(1)
            raise ZeroDivisionError("an unforeseen error")

        async def says() -> None:
            said.append("newer")

        writes.want("PodGroup ns/job", "first", breaks)
        await asyncio.sleep(0.5)
        writes.want("PodGroup ns/job", "second", says)
        await asyncio.sleep(3)
        (told,) = world.told.of("write_failed")
        assert (told["what"], said) == ("PodGroup ns/job", ["newer"])
        await world.end()

    run(story())


# ---------------------------------------------------------------------- news and sums


def test_news_that_controllers_cannot_take_in_is_named_and_all_other_news_is(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Manager.seen_job

    def fails(manager: Manager, found: Any) -> None:
        if found.metadata.name == "bad":
            raise ZeroDivisionError("an unforeseen error")
        seen(manager, found)

    monkeypatch.setattr(Manager, "seen_job", fails)

    async def story() -> None:
        world = ControllerWorld()
        running = await world.go()
        for name in ("bad", "good"):
            world.server.put("jobs", job(name, 2))
        await asyncio.sleep(6)
        assert (world.phase("good"), world.phase("bad"), running.done()) == ("Running", "", False)
        told = str(world.told.of("object_refused")[0]["error"])
        assert told == "Job ns/bad: cannot be taken in: ZeroDivisionError: an unforeseen error"
        await world.end()

    run(story())


def test_a_job_that_cannot_be_counted_is_left_out_by_name_until_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    share = sums.share_of
    sick = ["ns/bad"]

    def fails(job: Job) -> Share:
        if job.uid in sick:
            raise ValueError("odd sums")
        return share(job)

    monkeypatch.setattr(sums, "share_of", fails)

    async def story() -> None:
        world = LiveWorld()
        gang(world.server, "bad", 2)
        gang(world.server, "job", 3)
        scheduler = world.scheduler()
        world.start(scheduler)
        await asyncio.sleep(5)
        assert sorted(world.waiting()) == ["bad-0", "bad-1"]
        told = [fields["text"] for fields in world.told.of("inconsistency")]
        assert told == ["job ns/bad cannot be counted: ValueError: odd sums"]
        assert world.told.of("metric.inconsistencies")[-1] == {"count": 1}
        sick.clear()
        world.server.put("pods", pod("bad-2", "bad"))
        await asyncio.sleep(3)
        assert world.waiting() == []
        assert world.told.of("metric.inconsistencies")[-1] == {"count": 0}
        world.check(scheduler)
        scheduler.state.snapshot()
        fresh = world.fresh()
        fresh.snapshot()
        assert scheduler.state.sums.of("default").allocated == fresh.sums.of("default").allocated
        await world.end()

    run(story())


def test_a_cycle_that_goes_on_for_too_long_makes_the_process_sick_whatever_the_clock_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def forever(*_: Any) -> None:
        await asyncio.sleep(10 * TOO_LONG)

    async def story() -> None:
        world = LiveWorld()
        scheduler = world.scheduler()
        world.start(scheduler)
        await asyncio.sleep(TOO_LONG + 100)
        assert scheduler.stuck() == ""
        monkeypatch.setattr(scheduler, "_plan_for", forever)
        await asyncio.sleep(TOO_LONG / 2)
        world.clock.jump = 2 * TOO_LONG
        assert scheduler.stuck() == ""
        await asyncio.sleep(TOO_LONG)
        assert scheduler.stuck().startswith("a cycle has gone on for 9")
        await world.end()

    run(story())


# ---------------------------------------------------------------------- a state that cannot be counted


def spoil(scheduler: LiveScheduler) -> None:
    """A job that is noted as changed, and not there."""
    scheduler.state.sums.dirty["ns/missing"] = None


def test_a_state_that_cannot_be_counted_is_rebuilt_and_scheduling_goes_on() -> None:
    async def story() -> None:
        world = LiveWorld(kubelet=False)
        gang(world.server, "first", 3)
        scheduler = world.scheduler()
        running = world.start(scheduler)
        await world.settled(scheduler)
        spoil(scheduler)
        gang(world.server, "second", 4)
        await world.settled(scheduler)
        assert not running.done()
        assert "KeyError: 'ns/missing'" in str(world.told.of("cycle_failed")[0]["error"])
        assert world.told.of("read_anew") == [{"times": 1}]
        assert scheduler.stuck() == ""
        world.check(scheduler)
        await world.end()

    run(story())


def test_what_was_decided_about_a_pod_that_is_gone_by_the_end_of_reading_is_void() -> None:
    """No news of its end can come any more: it would be asked for, and count as on its way, for ever."""

    async def story() -> None:
        world = LiveWorld()
        gang(world.server, "job", 2)
        state = world.fresh()
        mirror = Mirror(state)
        for name in ("job-0", "job-1"):
            bind = Bind(uid(world, name), f"ns/{name}", "ns/job", "n1")
            assert mirror.assume_bound(bind)
            mirror.carried_out(bind.key, bind.uid, 30.0)
        mirror.begin_anew()
        assert (mirror.state.tasks, len(mirror.assumed)) == ({}, 2)
        mirror.forget("ns/none", "")
        mirror.take(Added("Pod", from_value("Pod", world.server.get("pods", "job-0", "ns"))))
        mirror.all_told()
        assert list(mirror.assumed) == ["ns/job-0"]
        assert mirror.state.tasks["ns/job-0"].node_name == "n1"

    run(story())


@pytest.mark.parametrize("moment", [0.0, 0.25, 0.55, 1.0])
def test_what_is_being_bound_while_the_state_is_rebuilt_is_bound_once(moment: float) -> None:
    """Decisions under way stand, or are taken back; a pod that goes meanwhile is not waited for."""

    async def story() -> None:
        world = LiveWorld(nodes=30)
        scheduler = world.scheduler()
        world.start(scheduler)
        await asyncio.sleep(2)
        world.server.latency = 0.5
        gang(world.server, "job", 60)
        while not scheduler.mirror.assumed:
            await asyncio.sleep(0.05)
        await asyncio.sleep(moment)
        gone = next(iter(scheduler.mirror.assumed), "ns/job-0")
        spoil(scheduler)
        while not world.told.of("read_anew"):
            await asyncio.sleep(0.01)
        world.server.drop("pods", gone.partition("/")[2], "ns")
        world.server.latency = 0.01
        await world.settled(scheduler)
        assert gone not in scheduler.mirror.assumed
        world.check(scheduler)
        await world.end()

    run(story())


def test_a_state_that_never_can_be_counted_is_tried_seldom_and_the_process_says_that_it_is_sick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(_: ClusterState) -> None:
        raise ValueError("never")

    monkeypatch.setattr(ClusterState, "snapshot", fails)

    async def story() -> None:
        world = LiveWorld()
        scheduler = world.scheduler()
        running = world.start(scheduler)
        await asyncio.sleep(600)
        times = len(world.told.of("read_anew"))
        assert FEW < times < 60
        assert scheduler.stuck().startswith("the state could not be counted ")
        scheduler.stop()
        await running

    run(story())
