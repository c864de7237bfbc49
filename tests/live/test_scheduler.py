"""The live scheduler: what it binds, writes and tells."""

from __future__ import annotations

import asyncio
import itertools
import re
from typing import Any

import pytest

from stromboli.framework.books.plan import Plan
from stromboli.model import names
from stromboli.model.reservation import KEYS
from tests.support.live_world import LiveWorld, gang, pod
from tests.support.virtual import run


def test_a_gang_is_bound_and_its_group_runs() -> None:
    async def main() -> None:
        world = LiveWorld()
        gang(world.server, "job", 5)
        scheduler = world.scheduler()
        world.start(scheduler)
        await asyncio.sleep(5)
        assert world.waiting() == []
        world.check(scheduler)
        status = world.server.get("podgroups", "job", "ns")["status"]
        assert (status["phase"], status["running"]) == ("Running", 5)
        events = {(e["involvedObject"]["kind"], e["reason"], e["message"]) for e in world.server.all("events")}
        assert ("PodGroup", "Scheduled", "pod group is ready") in events
        assert sum(reason == "Scheduled" and kind == "Pod" for kind, reason, _ in events) == 5
        await world.end()

    run(main())


def test_a_queue_that_is_made_is_open_before_the_first_cycle() -> None:
    async def story() -> None:
        world = LiveWorld()
        world.server.drop("queues", "default")
        gang(world.server, "a", 2)
        plans: list[Plan] = []
        scheduler = world.scheduler(when_planned=plans.append)
        world.start(scheduler)
        await world.settled(scheduler)
        assert world.server.get("queues", "default")["status"]["state"] == "Open"
        assert len(plans[0].binds) == 2
        await world.end()

    run(story())


def test_a_pod_that_cannot_be_used_is_told_why() -> None:
    """It would wait for ever, and only the log could tell why."""

    async def main() -> None:
        world = LiveWorld()
        gang(world.server, "job", 2)
        sick = {"name": "main", "resources": {"requests": {"cpu": "9e18"}}}
        for name, scheduler_name in (("sick", "volcano"), ("foreign", "default-scheduler")):
            pod = {
                "metadata": {"name": name, "namespace": "ns"},
                "spec": {"schedulerName": scheduler_name, "containers": [sick]},
            }
            world.server.put("pods", pod)
        scheduler = world.scheduler()
        world.start(scheduler)
        await asyncio.sleep(5)
        told = [one for one in world.server.all("events") if one["involvedObject"]["name"] in ("sick", "foreign")]
        (event,) = told
        assert (event["involvedObject"]["name"], event["type"], event["reason"]) == (
            "sick",
            "Warning",
            "FailedScheduling",
        )
        assert "spec.containers[0].resources.requests.cpu: '9e18' is too large" in event["message"]
        assert sorted(world.waiting()) == ["foreign", "sick"]
        await world.end()

    run(main())


@pytest.mark.parametrize(("taking", "between"), [(0.0, 1.0), (0.7, 1.0), (2.5, 2.5)])
def test_no_cycle_waits_for_what_the_last_one_has_to_write(
    monkeypatch: pytest.MonkeyPatch, taking: float, between: float
) -> None:
    """The second between two cycles counts from the decision; only what takes longer puts the next one off."""

    async def main() -> None:
        world = LiveWorld()
        scheduler = world.scheduler()
        began: list[float] = []
        decide, take_over = scheduler._decide, scheduler.take_over

        def noted(*given: Any) -> Plan:
            began.append(asyncio.get_running_loop().time())
            return decide(*given)

        async def slow(plan: Plan) -> None:
            await asyncio.sleep(taking)
            await take_over(plan)

        monkeypatch.setattr(scheduler, "_decide", noted)
        monkeypatch.setattr(scheduler, "take_over", slow)
        world.start(scheduler)
        await asyncio.sleep(20)
        spans = [after - before for before, after in itertools.pairwise(began)]
        assert spans == pytest.approx([between] * len(spans))
        assert len(spans) >= 6
        await world.end()

    run(main())


ODD = (
    "../../../../api/v1/secrets",
    "a/../../nodes/n0",
    "x?dryRun=All#",
    "\r\nHost: elsewhere",
    "é\u202e\x00",
    "{" * 5_000,
)
ITS_OWN = re.compile(
    r"/api/v1/namespaces/ns/(pods/(odd|fine)-\d(/binding|/status)?|events(/[-.\w]+)?)"
    r"|/apis/scheduling\.volcano\.sh/v1beta1/(namespaces/ns/podgroups/[-\w]+(/status)?|queues(/default|/root)?(/status)?)"
)


def test_whatever_a_pod_says_the_scheduler_writes_to_nothing_but_it_and_what_is_about_it() -> None:
    async def story() -> None:
        world = LiveWorld()
        gang(world.server, "fine", 2)
        gang(world.server, "odd", 0)
        for number, text in enumerate(ODD):
            said = pod(f"odd-{number}", nodeSelector={text: text}, priorityClassName=text)
            said["metadata"]["annotations"] = dict.fromkeys((names.GROUP_NAME, names.QUEUE_NAME, *KEYS, text), text)
            if number % 2:
                said["metadata"]["annotations"][names.GROUP_NAME] = "odd"
            said["status"]["nominatedNodeName"] = text
            world.server.put("pods", said)
        scheduler = world.scheduler(gates={"PipelinedStatePersistence": True})
        running = world.start(scheduler)
        await asyncio.sleep(5)
        assert not running.done()
        assert {name for name, node in world.pods().items() if node} >= {"fine-0", "fine-1"}
        written = {request.path for request in world.server.requests if request.method != "GET"}
        assert {"/api/v1/namespaces/ns/pods/odd-1/status", "/api/v1/namespaces/ns/pods/odd-3/status"} <= written
        assert [path for path in written if not ITS_OWN.fullmatch(path)] == []
        await world.end()

    run(story())
