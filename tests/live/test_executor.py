"""What the executor writes: evictions, conditions, statuses, events; and that it writes nothing twice."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from stromboli.api.scheduling import PodGroupCondition
from stromboli.framework.books.plan import (
    Bind,
    Event,
    Eviction,
    GateRemoval,
    Plan,
    PodConditionUpdate,
    PodGroupUpdate,
    QueueUpdate,
)
from stromboli.framework.config.config import DEFAULT_CONFIG
from stromboli.kube.client import Client
from stromboli.kube.recorder import COMBINED, Recorder, Regarding
from stromboli.kube.transport import Request, Response
from stromboli.live.scheduler.plan_stream import Handover
from stromboli.live.writing.binds import FIRST_GUESS, MORE_COME
from stromboli.model.values import times
from tests.support.live_world import PREEMPTING, Directed, LiveWorld, gang, group, pod, uid
from tests.support.memory_server import MemoryServer, status
from tests.support.virtual import run


def sent(world: LiveWorld, method: str, *, events: bool = False) -> list[str]:
    """Paths of requests so far."""
    return [r.path for r in world.server.requests if r.method == method and ("/events" in r.path) is events]


def events_of(world: LiveWorld, kind: str) -> list[tuple[str, str, str]]:
    found = [e for e in world.server.all("events") if e["involvedObject"]["kind"] == kind]
    return [(e["type"], e["reason"], e["message"]) for e in found]


# ---------------------------------------------------------------------- evictions


def running(world: LiveWorld, name: str, job: str, node: str) -> None:
    made = pod(name, job, nodeName=node)
    made["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    world.server.put("pods", made)


def test_evictions_of_a_gangs_pods_are_counted_on_its_group(tmp_path: Path) -> None:
    async def story() -> None:
        world = Directed()
        world.server.put("podgroups", group("job", 1))
        for number in range(3):
            running(world, f"job-{number}", "job", "n1")
        scheduler = await world.directed(tmp_path)
        for name in ("job-0", "job-1", "job-2"):
            scheduler.executor.evict([Eviction(uid(world, name), f"ns/{name}", "ns/job", "n1", "preempt")])
            await asyncio.sleep(1)
        await asyncio.sleep(5)
        told = [event for event in world.server.all("events") if event["involvedObject"]["kind"] == "PodGroup"]
        assert [event["count"] for event in told if event["reason"] == "Evict"] == [3]
        await world.end()

    run(story())


def test_S0_37_an_evicted_pod_is_told_why_and_deleted(tmp_path: Path) -> None:
    async def story() -> None:
        world = Directed()
        world.server.put("podgroups", group("job", 1))
        running(world, "job-0", "job", "n1")
        scheduler = await world.directed(tmp_path)
        scheduler.executor.evict([Eviction(uid(world, "job-0"), "ns/job-0", "ns/job", "n1", "preempt")])
        assert scheduler.state.tasks["ns/job-0"].status.name == "Releasing"
        await asyncio.sleep(2)
        found = world.server.get("pods", "job-0", "ns")
        assert found["metadata"]["deletionTimestamp"]
        told = {c["type"]: (c["status"], c["reason"], c["message"]) for c in found["status"]["conditions"]}
        assert told == {
            "Ready": ("False", "Evict", "Pod is evicted, because of preempt"),
            "DisruptionTarget": (
                "True", "PreemptionByScheduler", "volcano: preempting to accommodate a higher priority pod",
            ),
        }  # fmt: skip
        assert events_of(world, "Pod") == [("Warning", "Evict", "Pod is evicted, because of preempt")]
        assert ("Normal", "Evict", "preempt") in events_of(world, "PodGroup")
        (deletion,) = (json.loads(r.body or b"") for r in world.server.requests if r.method == "DELETE")
        assert deletion["preconditions"]["uid"] == uid(world, "job-0")
        assert "gracePeriodSeconds" not in deletion
        assert scheduler.mirror.assumed == {}
        await world.end()

    run(story())


def test_an_eviction_that_is_refused_leaves_the_pod_as_it_was(tmp_path: Path) -> None:
    async def story() -> None:
        world = Directed()
        world.server.put("podgroups", group("job", 1))
        running(world, "job-0", "job", "n1")
        scheduler = await world.directed(tmp_path)

        def refuse(request: Request, when: str) -> Response | None:
            return status(403, "Forbidden") if request.method == "DELETE" else None

        world.server.faults.append(refuse)
        scheduler.executor.evict([Eviction(uid(world, "job-0"), "ns/job-0", "ns/job", "n1", "reclaim")])
        await asyncio.sleep(2)
        assert scheduler.state.tasks["ns/job-0"].status.name == "Running"
        assert scheduler.executor.evictor.failed == 1
        assert world.told.of("evict_pod_failed")
        await world.end()

    run(story())


def test_preemption_through_the_server(tmp_path: Path) -> None:
    async def story() -> None:
        world = LiveWorld(nodes=1, cpu=2)
        world.server.put("priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
        conf = tmp_path / "conf"
        conf.write_text(PREEMPTING)
        gang(world.server, "low", 2, least=1)
        scheduler = world.scheduler(str(conf))
        world.start(scheduler)
        await asyncio.sleep(3)
        world.server.put("podgroups", group("high", 1, priorityClassName="high"))
        world.server.put("pods", pod("high-0", "high", priority=1000, priorityClassName="high"))
        await asyncio.sleep(3)
        going = [p for p in world.server.all("pods") if "deletionTimestamp" in p["metadata"]]
        assert [p["metadata"]["name"][:3] for p in going] == ["low"]
        assert world.server.get("pods", "high-0", "ns")["status"]["nominatedNodeName"] == "n0"
        world.server.drop("pods", going[0]["metadata"]["name"], "ns")
        await asyncio.sleep(3)
        assert world.pods()["high-0"] == "n0"
        world.check(scheduler)
        await world.end()

    run(story())


# ---------------------------------------------------------------------- statuses


def plan_of(**parts: Any) -> Plan:
    return Plan(session="s", **parts)


def test_S0_21_one_write_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    async def story() -> None:
        world = Directed()
        for name in ("a", "b", "c"):
            world.server.put("podgroups", group(name, 1))
        scheduler = await world.directed(tmp_path)

        def refuse(request: Request, when: str) -> Response | None:
            return status(422, "Invalid") if request.method == "PATCH" and request.path.endswith("/b") else None

        world.server.faults.append(refuse)
        condition = PodGroupCondition("Scheduled", "True", "s", "2026-01-01T00:00:00Z", "ready", "")
        updates = [PodGroupUpdate(f"ns/{name}", "Running", (condition,), 1) for name in ("a", "b", "c")]
        scheduler.executor.finish(plan_of(pod_groups=updates))
        await asyncio.sleep(2)
        phases = {name: world.server.get("podgroups", name, "ns")["status"]["phase"] for name in ("a", "b", "c")}
        assert phases == {"a": "Running", "b": "Inqueue", "c": "Running"}
        assert {uid: job.phase for uid, job in scheduler.state.jobs.items()} == {
            "ns/a": "Running", "ns/b": "Inqueue", "ns/c": "Running",
        }  # fmt: skip
        shown = world.server.get("podgroups", "a", "ns")["status"]["conditions"][0]
        assert shown["transitionID"] == "s"
        await world.end()

    run(story())


@pytest.mark.parametrize(("seconds", "phase"), [(4.0, "Running"), (400.0, "Inqueue")])
def test_a_server_that_has_just_begun_and_allows_nothing_yet_is_asked_again(
    tmp_path: Path, seconds: float, phase: str
) -> None:
    """It gets the status once it allows the write; one that goes on forbidding it does not, which is reported."""

    async def story() -> None:
        world = Directed()
        world.server.put("podgroups", group("a", 1))
        scheduler = await world.directed(tmp_path)
        allowed = asyncio.get_running_loop().time() + seconds

        def forbid(request: Request, when: str) -> Response | None:
            early = asyncio.get_running_loop().time() < allowed
            return status(403, "Forbidden") if early and request.method == "PATCH" else None

        world.server.faults.append(forbid)
        scheduler.executor.finish(plan_of(pod_groups=[PodGroupUpdate("ns/a", "Running", running=1)]))
        await asyncio.sleep(60)
        assert world.server.get("podgroups", "a", "ns")["status"]["phase"] == phase
        assert scheduler.state.jobs["ns/a"].phase == phase
        assert bool(world.told.of("write_failed")) is (phase == "Inqueue")
        await world.end()

    run(story())


def test_amounts_that_a_queue_no_longer_has_disappear(tmp_path: Path) -> None:
    async def story() -> None:
        world = Directed()
        old = world.server.get("queues", "default")
        allocated = {"cpu": "2", "nvidia.com/gpu": "1"}
        world.server.put("queues", {**old, "status": {"state": "Open", "allocated": allocated}})
        scheduler = await world.directed(tmp_path)
        scheduler.executor.finish(plan_of(queues=[QueueUpdate("default", {"cpu": "1", "memory": "0"})]))
        await asyncio.sleep(1)
        status_now = world.server.get("queues", "default")["status"]
        assert status_now == {"state": "Open", "allocated": {"cpu": "1", "memory": "0"}}
        assert sent(world, "PATCH") == ["/apis/scheduling.volcano.sh/v1beta1/queues/default/status"]
        await world.end()

    run(story())


def test_a_fault_that_the_server_drops_is_not_written_again_with_equal_amounts(tmp_path: Path) -> None:
    """A definition of Queues that is not ours does not have the field."""

    async def story() -> None:
        world = Directed()

        def drop(request: Request, when: str) -> Response | None:
            if when == "before" and request.method == "PATCH" and b'"fault"' in (request.body or b""):
                found = json.loads(request.body or b"")["status"]
                written.append((found["allocated"]["cpu"], found["fault"]))
            return None

        written: list[tuple[str, str | None]] = []
        world.server.faults.append(drop)
        scheduler = await world.directed(tmp_path)
        for amount, fault in (("1", "broken"), ("1", "broken"), ("2", "broken"), ("2", "worse"), ("2", "")):
            scheduler.executor.finish(plan_of(queues=[QueueUpdate("default", {"cpu": amount}, fault)]))
            await asyncio.sleep(1)
            kept = world.server.get("queues", "default")
            shown = {name: text for name, text in kept["status"].items() if name != "fault"}
            world.server.put("queues", {**kept, "status": shown})
            await asyncio.sleep(1)
        assert written == [("1", "broken"), ("2", "broken"), ("2", "worse")]
        await world.end()

    run(story())


def test_a_gate_is_taken_off(tmp_path: Path) -> None:
    async def story() -> None:
        world = Directed()
        world.server.put("podgroups", group("job", 1))
        world.server.put("pods", pod("job-0", "job"))
        scheduler = await world.directed(tmp_path)
        scheduler.executor.finish(plan_of(gates=[GateRemoval(uid(world, "job-0"), "ns/job-0")]))
        await asyncio.sleep(1)
        (request,) = (r for r in world.server.requests if r.method == "PATCH")
        body = json.loads(request.body or b"")
        noted = body["metadata"]["annotations"]["scheduling.volcano.sh/queue-allocation-gate-removed"]
        assert times.seconds(noted, "annotation") > 0
        gone = body["spec"]["schedulingGates"]
        assert gone == [{"$patch": "delete", "name": "scheduling.volcano.sh/queue-allocation-gate"}]
        assert "strategic" in request.headers["Content-Type"]
        await world.end()

    run(story())


def test_a_condition_is_written_once_and_its_time_stays(tmp_path: Path) -> None:
    async def story() -> None:
        world = Directed()
        world.server.put("podgroups", group("job", 1))
        world.server.put("pods", pod("job-0", "job"))
        scheduler = await world.directed(tmp_path)

        def say(message: str, nominated: str = "") -> None:
            update = PodConditionUpdate(uid(world, "job-0"), "ns/job-0", "Unschedulable", message, nominated)
            scheduler.executor.finish(plan_of(pod_conditions=[update]))

        say("no room")
        say("no room")
        await asyncio.sleep(1)
        assert len(sent(world, "PATCH")) == 1
        first = world.server.get("pods", "job-0", "ns")["status"]["conditions"][0]
        assert (first["type"], first["status"], first["reason"]) == ("PodScheduled", "False", "Unschedulable")
        await asyncio.sleep(100)
        say("still no room", "n1")
        await asyncio.sleep(1)
        (request,) = [r for r in world.server.requests if r.method == "PATCH"][1:]
        body = json.loads(request.body or b"")
        assert "lastTransitionTime" not in body["status"]["conditions"][0]
        assert body["status"]["nominatedNodeName"] == "n1"
        await world.end()

    run(story())


def test_only_the_newest_word_is_said(tmp_path: Path) -> None:
    async def story() -> None:
        world = Directed()
        world.server.put("podgroups", group("job", 5))
        scheduler = await world.directed(tmp_path)
        world.server.latency = 1.0
        for number in range(10):
            update = PodGroupUpdate("ns/job", "Inqueue", running=number)
            scheduler.executor.finish(plan_of(pod_groups=[update]))
            await asyncio.sleep(0.01)
        await asyncio.sleep(4)
        assert len(sent(world, "PATCH")) == 2
        assert world.server.get("podgroups", "job", "ns")["status"]["running"] == 9
        await world.end()

    run(story())


def test_a_cluster_at_rest_is_not_written_to() -> None:
    async def story() -> None:
        world = LiveWorld()
        gang(world.server, "runs", 3)
        gang(world.server, "waits", 18)
        scheduler = world.scheduler(schedule_period=20.0)
        world.start(scheduler)
        await asyncio.sleep(50)
        world.server.requests.clear()
        cycles = scheduler.cycles
        await asyncio.sleep(200)
        assert scheduler.cycles >= cycles + 9
        assert [r for r in world.server.requests if r.method != "GET"] == []
        await asyncio.sleep(200)
        assert {r.method for r in world.server.requests} == {"GET", "PATCH"}  # events are repeated after five minutes
        assert len(sent(world, "PATCH", events=True)) == len([r for r in world.server.requests if r.method == "PATCH"])
        await world.end()

    run(story())


# ---------------------------------------------------------------------- binds


def test_decisions_are_handed_over_while_the_cycle_goes_on() -> None:
    taken: list[tuple[str, list[str]]] = []

    class Taking:
        def bind(self, binds: Any) -> None:
            taken.append(("bind", [bind.key for bind in binds]))

        def evict(self, evictions: Any) -> None:
            taken.append(("evict", [eviction.key for eviction in evictions]))

        def finish(self, plan: Plan) -> None:
            raise AssertionError("not by the observer")

    handover = Handover(Taking(), lambda call, *arguments: call(*arguments))
    plan = Plan(binds=[Bind("1", "a", "j", "n")])
    handover.tell("plan.committed", {"plan": plan})
    plan.binds.append(Bind("2", "b", "j", "n"))
    plan.evictions.append(Eviction("3", "c", "j", "n", "preempt"))
    handover.rest(plan)
    handover.rest(plan)
    assert taken == [("bind", ["a"]), ("evict", ["c"]), ("bind", ["b"])]


# ---------------------------------------------------------------------- events


def telling(server: MemoryServer, now: list[float]) -> tuple[Recorder, Callable[[str], None]]:
    """A recorder, and a way to say something of one pod."""
    recorder = Recorder(Client(server), "volcano", lambda: now[0])
    about = Regarding("v1", "Pod", "ns", "a", "u1")
    return recorder, partial(recorder.record, about, "Warning", "FailedScheduling")


def test_events_are_repeated_when_the_text_changes_or_after_five_minutes() -> None:
    async def story() -> None:
        server, now = MemoryServer(), [1000.0]
        recorder, tell = telling(server, now)
        task = asyncio.create_task(recorder.run())

        async def say(message: str, after: float = 1.0) -> list[tuple[str, int]]:
            now[0] += after
            tell(message)
            await recorder.drain()
            return [(e["message"], e["count"]) for e in server.all("events")]

        assert await say("one") == [("one", 1)]
        assert await say("one") == [("one", 1)]
        assert await say("two") == [("one", 1), ("two", 1)]
        assert await say("one", 400.0) == [("one", 3), ("two", 1)]
        server.drop("events", server.all("events")[0]["metadata"]["name"], "ns")
        assert await say("one", 400.0) == [("two", 1), ("one", 4)]
        for number in range(20):
            found = await say(f"text {number}")
        assert sum(message.startswith(COMBINED) for message, _ in found) == 1
        assert len(found) <= 13
        task.cancel()

    run(story())


def test_texts_of_a_flood_that_repeat_are_not_told_each_cycle() -> None:
    async def story() -> None:
        server, now = MemoryServer(), [1000.0]
        recorder, tell = telling(server, now)
        task = asyncio.create_task(recorder.run())

        async def cycle(texts: int) -> None:
            now[0] += 1.0
            for number in range(texts):
                tell(f"text {number}")
            await recorder.drain()

        for _ in range(50):
            await cycle(13)
        assert recorder.written == 13
        now[0] += 400.0
        await cycle(13)
        assert (recorder.written, len(server.all("events"))) == (10 + 3 + 10 + 1, 11)
        task.cancel()

    run(story())


@pytest.mark.parametrize("end", ["x", ".", "-", "-.", ".-."])
def test_an_event_of_the_longest_name_has_one_that_a_server_takes(end: str) -> None:
    """What is cut may end where no part of a name can."""

    async def story() -> str:
        server = MemoryServer()
        recorder = Recorder(Client(server), "volcano", lambda: 1_800_000_000.0)
        long = "a" * (220 - len(end)) + end + "a" * 33
        await recorder.write(Regarding("v1", "Pod", "ns", long), "Normal", "Scheduled", "text")
        (event,) = server.all("events")
        return str(event["metadata"]["name"])

    name = run(story())
    assert len(name) <= 253
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*", name)


def test_events_of_many_jobs_that_wait_are_not_told_each_cycle() -> None:
    recorder = Recorder(Client(MemoryServer()), "volcano", lambda: 1000.0)
    for _ in range(2):
        for number in range(20_000):
            recorder.record(Regarding("v1", "PodGroup", "ns", f"job-{number}"), "Warning", "Unschedulable", "no room")
    assert recorder.held == 20_000


def test_events_of_long_ago_are_forgotten() -> None:
    now = [1000.0]
    recorder = Recorder(Client(MemoryServer()), "volcano", lambda: now[0])
    for number in range(100):
        recorder.record(Regarding("v1", "Pod", "ns", f"pod-{number}"), "Normal", "Scheduled", "bound")
        now[0] += 60.0
    assert len(recorder._told) <= 31
    assert len(recorder._texts) <= 31


def test_events_give_way_to_binds_that_are_under_way(tmp_path: Path) -> None:
    async def story() -> list[bool]:
        world = Directed()
        scheduler = await world.directed(tmp_path)
        found = [scheduler.recorder.gives_way_to()]
        scheduler.executor.binder.pool.put("a bind", partial(asyncio.sleep, 1.0), lambda error: None)
        for _ in range(2):
            found.append(scheduler.recorder.gives_way_to())
            await asyncio.sleep(0.5)
        await scheduler.executor.quiet()
        found.append(scheduler.recorder.gives_way_to())
        await world.end()
        return [seconds > 0 for seconds in found]

    assert run(story()) == [False, True, True, False]


def test_refusals_which_come_soon_do_not_let_events_give_way_for_less(tmp_path: Path) -> None:
    """A server that has too much to do turns bindings away at once."""

    async def story() -> float:
        world = Directed(nodes=1, cpu=200)
        gang(world.server, "job", 100)
        scheduler = await world.directed(tmp_path)
        world.server.faults.append(
            lambda request, _: status(404, "NotFound", "gone") if request.path.endswith("/binding") else None
        )
        names = [f"job-{number}" for number in range(100)]
        scheduler.executor.bind([Bind(uid(world, name), f"ns/{name}", "ns/job", "n0") for name in names])
        await asyncio.sleep(1)
        found = scheduler.recorder.gives_way_to()
        await world.end()
        return found

    assert run(story()) == FIRST_GUESS


@pytest.mark.parametrize("takes", [0.02, 0.8])
def test_events_give_way_for_as_long_as_the_server_takes_for_a_binding(tmp_path: Path, takes: float) -> None:
    async def story() -> list[float]:
        world = Directed(nodes=1, cpu=200)
        gang(world.server, "job", 100)
        scheduler = await world.directed(tmp_path)
        world.server.latency = takes
        names = [f"job-{number}" for number in range(100)]
        scheduler.executor.bind([Bind(uid(world, name), f"ns/{name}", "ns/job", "n0") for name in names])
        while scheduler.executor.binder.bound < 96:
            await asyncio.sleep(takes / 4)
        found = [scheduler.recorder.gives_way_to()]
        await scheduler.executor.quiet()
        for pause in (0.9 * MORE_COME, 0.2 * MORE_COME):
            await asyncio.sleep(pause)
            found.append(scheduler.recorder.gives_way_to())
        await world.end()
        return found

    assert run(story()) == pytest.approx([takes, takes, 0.0], rel=0.05)


def test_a_plans_events_name_their_objects(tmp_path: Path) -> None:
    async def story() -> None:
        world = Directed()
        world.server.put("podgroups", group("job", 1))
        world.server.put("pods", pod("job-0", "job"))
        scheduler = await world.directed(tmp_path)
        known = {e["metadata"]["name"] for e in world.server.all("events")}
        told = [
            Event("Pod", "ns/job-0", "Warning", "FailedScheduling", "no"),
            Event("Queue", "default", "Normal", "A", "b"),
        ]
        scheduler.executor.finish(plan_of(events=told))
        await asyncio.sleep(1)
        new = [e for e in world.server.all("events") if e["metadata"]["name"] not in known]
        one, other = sorted(new, key=lambda e: e["reason"], reverse=True)
        assert one["involvedObject"]["uid"] == uid(world, "job-0")
        assert one["source"] == {"component": "volcano"}
        assert (other["metadata"]["namespace"], other["involvedObject"]["apiVersion"]) == (
            "default", "scheduling.volcano.sh/v1beta1",
        )  # fmt: skip
        await world.end()

    run(story())


def test_of_what_happens_once_to_a_pod_nothing_is_remembered() -> None:
    async def story() -> None:
        world = LiveWorld(nodes=8)
        gang(world.server, "job", 20)
        scheduler = world.scheduler()
        world.start(scheduler)
        await asyncio.sleep(5)
        told = [
            event["involvedObject"]["kind"] for event in world.server.all("events") if event["reason"] == "Scheduled"
        ]
        assert sorted(told) == [*["Pod"] * 20, "PodGroup"]
        names = [event["metadata"]["name"] for event in world.server.all("events")]
        assert len(set(names)) == len(names)
        remembered = {one.name for one in scheduler.recorder._told.values()}
        assert not [name for name in remembered if name.startswith("job-")]
        await world.end()

    run(story())


@pytest.mark.parametrize("compat", ["", "compat: volcano\n"])
def test_a_group_that_is_being_bound_is_no_news_but_in_compat_mode(tmp_path: Path, compat: str) -> None:
    async def story() -> None:
        world = LiveWorld(kubelet=False)
        gang(world.server, "job", 3)
        world.server.faults.append(
            lambda request, when: status(500, "InternalError") if request.path.endswith("/binding") else None
        )
        conf = tmp_path / "conf"
        conf.write_text(DEFAULT_CONFIG + compat)
        scheduler = world.scheduler(str(conf))
        world.start(scheduler)
        await asyncio.sleep(4)
        assert len(scheduler.mirror.assumed) == 3
        texts = [event["message"] for event in world.server.all("events") if event["reason"] == "Unschedulable"]
        assert (["3 Binding" in text for text in texts] == [True]) is bool(compat), texts
        await world.end()

    run(story())
