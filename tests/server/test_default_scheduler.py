"""The embedded cluster's default scheduler places pods, and tells of those that it cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from stromboli.cluster.kinds import Object
from stromboli.cluster.objects import from_value
from stromboli.cluster.state import ClusterState
from stromboli.kube.recorder import Regarding
from stromboli.live.up import placing_state
from stromboli.live.up.default_scheduler import DefaultScheduler
from stromboli.live.up.placing_state import PlacingState
from tests.server.browser import Browser

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def browser() -> Iterator[Browser]:
    found = Browser()
    with found.runner:
        yield found


class Told:
    """What would be recorded: reasons and texts by pod."""

    def __init__(self) -> None:
        self.events: dict[str, tuple[str, str]] = {}

    def record(self, about: Regarding, _: str, reason: str, message: str) -> None:
        self.events[about.name] = (reason, message)

    async def run(self) -> None:
        """Nothing is sent."""


MINE = {"schedulerName": "default-scheduler"}
GONE = "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("spec", "status", "metadata", "waits"),
    [
        pytest.param(MINE, {}, {}, True, id="no status yet"),
        pytest.param(MINE, {"phase": "Pending"}, {}, True, id="pending"),
        pytest.param({"schedulerName": "volcano"}, {}, {}, False, id="another scheduler's"),
        pytest.param({}, {}, {}, False, id="no scheduler's"),
        pytest.param({**MINE, "nodeName": "n"}, {}, {}, False, id="it has a node"),
        pytest.param({**MINE, "schedulingGates": [{"name": "g"}]}, {}, {}, False, id="it has a gate"),
        pytest.param({**MINE, "schedulingGates": []}, {}, {}, True, id="it has no gate any more"),
        pytest.param(MINE, {"phase": "Succeeded"}, {}, False, id="it has succeeded"),
        pytest.param(MINE, {"phase": "Failed"}, {}, False, id="it has failed"),
        pytest.param(MINE, {"phase": "Pending"}, {"deletionTimestamp": GONE}, False, id="it is being deleted"),
        pytest.param(MINE, {"phase": "Failed"}, {"deletionTimestamp": GONE}, False, id="both"),
    ],
)
def test_which_pods_wait(spec: dict[str, Any], status: dict[str, Any], metadata: dict[str, Any], waits: bool) -> None:
    assert placing_state.is_waiting({"metadata": {"name": "p", **metadata}, "spec": spec, "status": status}) is waits


def test_a_pod_that_cannot_be_read_is_told_and_keeps_no_other_waiting(browser: Browser) -> None:
    told = Told()
    amounts = {"cpu": "4", "memory": "4Gi", "pods": "10"}
    browser("POST", "/api/v1/nodes", {"metadata": {"name": "n0"}, "status": {"allocatable": amounts}})
    for name, cpu in (("huge", "9e18"), ("usual", "1"), ("large", "100")):
        container = {"name": "c", "image": "one", "resources": {"requests": {"cpu": cpu}}}
        answer = browser("POST", PODS, {"metadata": {"name": name}, "spec": {"containers": [container]}})
        assert answer.code == 201
    recorder: Any = told
    DefaultScheduler(browser.api, recorder).look()
    assert browser("GET", f"{PODS}/usual").body["spec"]["nodeName"] == "n0"
    assert {name: reason for name, (reason, _) in told.events.items()} == {
        "huge": "FailedScheduling", "usual": "Scheduled", "large": "FailedScheduling",
    }  # fmt: skip
    assert "spec.containers[0].resources.requests.cpu: '9e18' is too large" in told.events["huge"][1]
    [condition] = browser("GET", f"{PODS}/large").body["status"]["conditions"]
    assert {key: condition[key] for key in ("type", "status", "reason", "message")} == {
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": told.events["large"][1],
    }  # fmt: skip


def test_pods_of_workloads_are_placed_and_none_is_made_up(browser: Browser) -> None:
    recorder: Any = Told()
    amounts = {"cpu": "2", "memory": "4Gi", "pods": "2"}
    browser("POST", "/api/v1/nodes", {"metadata": {"name": "n0"}, "status": {"allocatable": amounts}})
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "one"}]}}
    spec = {"serviceName": "db", "replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    stored = browser(
        "POST", "/apis/apps/v1/namespaces/default/statefulsets", {"metadata": {"name": "db"}, "spec": spec}
    )
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": stored.body["metadata"]["uid"]}
    for name in ("db-0", "db-1"):
        metadata = {"name": name, "labels": {"a": "b"}, "ownerReferences": [{**owner, "controller": True}]}
        assert browser("POST", PODS, {"metadata": metadata, "spec": template["spec"]}).code == 201
    DefaultScheduler(browser.api, recorder).look()
    assert [browser("GET", f"{PODS}/db-{n}").body["spec"].get("nodeName") for n in (0, 1)] == ["n0", "n0"]


def node(browser: Browser, name: str, cpu: str = "4") -> None:
    amounts = {"cpu": cpu, "memory": "4Gi", "pods": "10"}
    browser("POST", "/api/v1/nodes", {"metadata": {"name": name}, "status": {"allocatable": amounts}})


def pod(browser: Browser, name: str, cpu: str = "1", **spec: Any) -> None:
    container = {"name": "c", "image": "one", "resources": {"requests": {"cpu": cpu}}}
    answer = browser("POST", PODS, {"metadata": {"name": name}, "spec": {"containers": [container], **spec}})
    assert answer.code == 201, answer.content


def test_a_look_reads_what_has_changed_alone(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counting(kind: str, value: object) -> Object:
        read.append(kind)
        return from_value(kind, value)

    monkeypatch.setattr(placing_state, "from_value", counting)
    recorder: Any = Told()
    scheduler = DefaultScheduler(browser.api, recorder)
    for number in range(4):
        node(browser, f"n{number}")
    for number in range(8):
        pod(browser, f"p{number}")
    scheduler.look()
    assert (read.count("Node"), read.count("Pod")) == (4, 8)
    scheduler.look()
    read.clear()
    pod(browser, "late")
    scheduler.look()
    assert browser("GET", f"{PODS}/late").body["spec"]["nodeName"]
    assert (read.count("Node"), read.count("Pod")) == (0, 9), "the pods that were bound, once, and the late one"
    read.clear()
    browser("DELETE", f"{PODS}/late")
    scheduler.look()
    assert read == [], "no pod waits"


def picture(state: ClusterState) -> Any:
    """What counts of a state: tasks, the jobs that wait, idle room, and selectors."""
    jobs = {uid: (job.facts.queue, sorted(job.tasks)) for uid, job in state.jobs.items()}
    tasks = {key: (task.uid, task.job, task.node_name, str(task.status)) for key, task in state.tasks.items()}
    table = state.snapshot().table
    amounts = dict(zip(table.axes.names, (table.alloc - table.used).tolist(), strict=True))
    idle = table.statics.names, {name: row for name, row in amounts.items() if any(row)}
    return tasks, jobs, idle, state.priorities, state.namespace_labels, dict(state.services.items())


@pytest.mark.parametrize("seed", range(6))
def test_what_is_kept_is_what_a_fresh_state_says(browser: Browser, seed: int) -> None:
    draw, recorder = Random(seed), Told()
    told: Any = recorder
    scheduler = DefaultScheduler(browser.api, told)
    node(browser, "n0", "3")
    for made in range(40):
        there = [one["metadata"]["name"] for one in browser("GET", PODS).body["items"]]
        match draw.randrange(7):
            case 0 | 1:
                pod(browser, f"p{made}", draw.choice(("1", "2", "100", "9e18")))
            case 2 if there:
                browser("DELETE", f"{PODS}/{draw.choice(there)}?gracePeriodSeconds={draw.choice((0, 30))}")
            case 3:
                node(browser, name := f"n{draw.randrange(3)}", draw.choice(("1", "3")))
                amounts = {"cpu": draw.choice(("1", "3", "9e18")), "memory": "4Gi", "pods": "10"}
                browser.patch(f"/api/v1/nodes/{name}/status", {"status": {"allocatable": amounts}})
            case 4:
                browser("DELETE", f"/api/v1/nodes/n{draw.randrange(3)}")
            case 5 if there:
                phase = {"status": {"phase": draw.choice(("Succeeded", "Failed", "Running"))}}
                browser.patch(f"{PODS}/{draw.choice(there)}/status", phase)
            case 6:
                services = "/api/v1/namespaces/default/services"
                spec = {"selector": {"a": str(made)}, "ports": [{"port": 1}]}
                browser("POST", services, {"metadata": {"name": f"s{made}"}, "spec": spec})
        if draw.random() < 0.4:
            kept, fresh = scheduler._cluster, PlacingState(browser.api, lambda *_: None)
            browser.api.store.listeners.remove(fresh.note)
            assert kept.waiting == fresh.waiting
            assert picture(kept.caught_up()) == picture(fresh.caught_up())
            scheduler.look()


def test_a_state_that_has_gone_wrong_is_rebuilt(browser: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder: Any = Told()
    scheduler = DefaultScheduler(browser.api, recorder)
    node(browser, "n0")
    pod(browser, "p")
    monkeypatch.setattr(scheduler._cluster._state, "snapshot", lambda: 1 / 0)

    async def until_placed() -> None:
        running = asyncio.create_task(scheduler.run())
        async with asyncio.timeout(20):
            while "p" not in recorder.events:
                browser.now += 1
                await asyncio.sleep(0.01)
        running.cancel()

    browser.runner.run(until_placed())
    assert recorder.events == {"p": ("Scheduled", "Successfully assigned default/p to n0")}
