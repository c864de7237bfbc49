"""Pods that no cycle looks at get the reason as a condition, on a live cluster and on the embedded one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from stromboli.kube import turns
from stromboli.live.scheduler import strays
from stromboli.live.up.strangers import LOOK_EVERY
from stromboli.live.up.up import Setup, up
from stromboli.server.kubelet.shapes import nodes_of
from tests.support.live_world import Json, LiveWorld, group, pod, queue
from tests.support.virtual import run


def events(world: LiveWorld, name: str) -> list[str]:
    return [one["message"] for one in world.server.all("events") if one["involvedObject"]["name"] == name]


def condition(world: LiveWorld, name: str) -> tuple[str, str]:
    found = world.server.get("pods", name, "ns")["status"].get("conditions", [])
    return next(((one["reason"], one["message"]) for one in found if one["type"] == "PodScheduled"), ("", ""))


@pytest.mark.parametrize(
    ("named", "queue_of_group", "text"),
    [
        (
            "g",
            None,
            "there is no PodGroup ns/g, which the annotation scheduling.k8s.io/group-name names; the pod waits",
        ),
        ("", None, "the pod has no PodGroup yet; the controllers make one: do they run (stromboli controllers), or"),
        ("g", "nowhere", "queue nowhere of PodGroup ns/g does not exist"),
    ],
)
def test_a_pod_that_no_cycle_looks_at_is_told_once_and_bound_when_it_can_be(
    named: str, queue_of_group: str | None, text: str
) -> None:
    async def main() -> None:
        world = LiveWorld()
        if queue_of_group:
            world.server.put("podgroups", {**group("g", 1, queue=queue_of_group), "status": {"phase": "Pending"}})
        world.server.put("pods", pod("p", named))
        world.start(world.scheduler())
        await asyncio.sleep(4)
        assert events(world, "p") == [], "objects come in any order"
        await asyncio.sleep(60)
        (told,) = events(world, "p")
        assert told.startswith(text)
        assert condition(world, "p") == ("SchedulerError", told)
        if queue_of_group:
            (mark,) = world.server.get("podgroups", "g", "ns")["status"]["conditions"]
            assert (mark["type"], mark["message"]) == ("NotAdmitted", f"not admitted: {text}")
            assert events(world, "g") == [text]
            world.server.put("queues", queue(queue_of_group))
        elif named:
            world.server.put("podgroups", group("g", 1))
        else:
            world.server.drop("pods", "p", "ns")
            world.server.put("podgroups", group("g", 1))
            world.server.put("pods", pod("p", "g"))
        await asyncio.sleep(10)
        assert world.server.get("pods", "p", "ns")["spec"].get("nodeName")
        found = world.server.get("podgroups", "g", "ns")["status"].get("conditions", [])
        assert "NotAdmitted" not in {one["type"] for one in found}
        await world.end()

    run(main())


QUEUE_NAME = "scheduling.volcano.sh/queue-name"


@pytest.mark.parametrize(
    ("of_pod", "of_namespace", "text"),
    [
        ("nowhere", "", f"queue nowhere does not exist, which the pod's annotation {QUEUE_NAME} names"),
        ("nowhere", "elsewhere", "queue nowhere does not exist, which the pod's"),
        ("default", "elsewhere", "queue elsewhere does not exist, which the namespace's"),
        ("", "elsewhere", "queue elsewhere does not exist, which the namespace's"),
        ("default", "default", "the pod has no PodGroup yet"),
    ],
)
def test_a_pod_without_a_group_is_told_that_its_queue_does_not_exist(of_pod: str, of_namespace: str, text: str) -> None:
    async def main() -> None:
        world = LiveWorld()
        notes = {QUEUE_NAME: of_namespace} if of_namespace else {}
        world.server.put("namespaces", {"metadata": {"name": "ns", "annotations": notes}})
        asked = pod("p")
        asked["metadata"]["annotations"] = {QUEUE_NAME: of_pod} if of_pod else {}
        world.server.put("pods", asked)
        world.start(world.scheduler())
        await asyncio.sleep(60)
        (told,) = events(world, "p")
        assert told.startswith(text)
        await world.end()

    run(main())


def test_so_many_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strays, "MOST", 2)

    async def main() -> None:
        world = LiveWorld()
        for number in range(5):
            world.server.put("pods", pod(f"p{number}", "g"))
        world.start(world.scheduler())
        counts = set()
        for _ in range(60):
            await asyncio.sleep(0.5)
            counts.add(sum(len(events(world, f"p{number}")) for number in range(5)))
        assert {2, 4, 5} <= counts <= {0, 1, 2, 3, 4, 5}
        await world.end()

    run(main())


def test_the_loop_has_its_turn_during_a_look_and_what_changes_meanwhile_is_not_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(strays, "AT_ONCE", 1)
    monkeypatch.setattr(turns, "SLICE", -1.0)

    async def main() -> None:
        world = LiveWorld()
        for number in range(10):
            world.server.put("pods", pod(f"p{number}", "g"))
        scheduler = world.scheduler()
        world.start(scheduler)
        await scheduler.ready.wait()
        await asyncio.sleep(1)
        await scheduler.strays.look()
        looking, number = asyncio.create_task(scheduler.strays.look()), 0
        while not looking.done():
            await asyncio.sleep(0)
            if number == 5:
                scheduler.state.remove_task(scheduler.state.tasks["ns/p0"])
            number += 1
        assert number >= 10
        await scheduler.recorder.drain()
        assert {name for name in (f"p{n}" for n in range(10)) if events(world, name)} == {f"p{n}" for n in range(1, 10)}
        await world.end()

    run(main())


def test_a_scheduler_that_does_not_lead_writes_no_events() -> None:
    async def main() -> None:
        world = LiveWorld()
        world.server.put("pods", pod("p", "g"))
        world.start(world.scheduler(may_write=lambda: False))
        await asyncio.sleep(30)
        assert world.server.all("events") == []
        await world.end()

    run(main())


def of_scheduler(name: str, scheduler: str) -> Json:
    container = {"name": "c", "image": "busybox"}
    spec = {"containers": [container], **({"schedulerName": scheduler} if scheduler else {})}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def test_the_embedded_cluster_tells_pods_whose_scheduler_does_not_run() -> None:
    async def main() -> dict[str, list[Any]]:
        pods = [of_scheduler("ours", "volcano"), of_scheduler("other", "kueue"), of_scheduler("plain", "")]
        async with up(Setup(nodes=nodes_of(["1x4cpu"]), examples=pods)) as cluster:
            await asyncio.sleep(3 * LOOK_EVERY)
            found: dict[str, list[Any]] = {}
            for event in cluster.serving.api.bodies("", "events", "default"):
                if event["reason"] == "FailedScheduling":
                    found.setdefault(event["involvedObject"]["name"], []).append(event["message"])
            return found

    text = "no scheduler kueue runs on this cluster, so the pod waits for ever; set spec.schedulerName to volcano"
    assert asyncio.run(main()) == {"other": [f"{text} or default-scheduler"]}
