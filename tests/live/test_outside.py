"""What a live cluster offers to plugins: a plugin from a file uses all of it, and its plans say that it did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from aiohttp import web

from stromboli.builtin import full_registry
from stromboli.errors import ApiError, CapabilityMissing, ExtenderError, LostLease, NotFoundError, Unreachable
from stromboli.framework.books.plan import GateRemoval, Plan
from stromboli.framework.config.gates import ADMISSION
from stromboli.kube.access import from_kubeconfig
from stromboli.kube.client import Client
from stromboli.kube.lease import Election, Terms
from stromboli.kube.recorder import Recorder
from stromboli.kube.resources import Resource, plain
from stromboli.kube.transport import Request, Response
from stromboli.live.process.events import Telling
from stromboli.live.scheduler import extenders
from stromboli.live.scheduler.configuration import Source
from stromboli.live.scheduler.options import Options
from stromboli.live.scheduler.outside import Outside
from stromboli.live.scheduler.scheduler import LiveScheduler
from stromboli.live.up.up import Setup, up
from stromboli.model.names import QUEUE_ALLOCATION_GATE
from stromboli.narration.observe import Counting
from stromboli.server.kubelet.shapes import nodes_of
from stromboli.server.verbs.writing import Options as Writing
from stromboli.sim.planning import Planning, Settings, config_of
from tests.cli import manifests
from tests.filters.builders import task
from tests.support.memory_server import MemoryServer, status

PLUGIN = '''
from stromboli.kube.resources import Resource, plain
from stromboli.plugin import Plugin, Reason, StatusCode, predicate

MAPS = Resource("v1", "configmaps", "ConfigMap", True, plain)


class Guided(Plugin):
    """Places pods on the node that a ConfigMap names, and says so on the ConfigMap and in an event."""

    name = "guided"

    def on_session_open(self, session):
        self.node = session.informers[MAPS].get("guide", "default")["data"]["node"]
        client = session.kube_client
        assert client.get("Node", self.node)["metadata"]["name"] == self.node
        assert len(client.all("Node")) == len(session.informers["Node"].all()) == 2
        assert session.client_config.server.startswith("https://")
        for job in session.jobs.peek():
            session.recorder.record("PodGroup", job.uid, "Normal", "Guided", f"to {self.node}")
            session.vc_client.patch("PodGroup", job.name, {"metadata": {"labels": {"guided": "yes"}}}, job.namespace)

    @predicate
    def is_the_node(self, task, node):
        return None if node.name == self.node else Reason("guided elsewhere", StatusCode.UNSCHEDULABLE)
'''
MAPS = Resource("v1", "configmaps", "ConfigMap", True, plain)
CONF = 'actions: "enqueue, allocate"\ntiers:\n- plugins: [{name: gang}, {name: guided}, {name: predicates}]\n'
POD = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
    "spec": {"schedulerName": "volcano", "containers": [
        {"name": "main", "image": "i", "resources": {"requests": {"cpu": "1"}}},
    ]},
}  # fmt: skip
GUIDE = {
    "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "guide", "namespace": "default"},
    "data": {"node": "node-2"},
}  # fmt: skip


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """A configuration that names the plugin, in the same folder as the plugin's module."""
    (tmp_path / "guided.py").write_text(PLUGIN)
    (tmp_path / "scheduler.conf").write_text(CONF)
    return tmp_path / "scheduler.conf"


def test_S0_39_a_plugin_reaches_client_informers_and_recorder_on_a_live_cluster(conf: Path) -> None:
    plans: list[Plan] = []

    async def story() -> tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
        async with up(Setup(nodes_of(["2x4cpu,8Gi"]), scheduler=False)) as cluster:
            api = cluster.serving.api
            for body in (GUIDE, POD):
                resource = api.catalogue.of_kind("v1", str(body["kind"]))
                assert resource is not None
                api.writer.create(resource, "default", body, Writing())
            access = from_kubeconfig([str(cluster.serving.access.kubeconfig)])
            async with Client.reaching(access, qps=0, burst=0) as client:
                source = Source(str(conf), plugins=str(conf.parent))
                scheduler = LiveScheduler(client, Options(schedule_period=0.05), source, when_planned=plans.append)
                running = asyncio.create_task(scheduler.run())
                async with asyncio.timeout(30):
                    while not plans or not (events := said(api)) or (not plans[-1].binds and not bound(api)):
                        await asyncio.sleep(0.05)
                scheduler.stop()
                await running
            (group,) = api.bodies("scheduling.volcano.sh", "podgroups", "default")
            (pod,) = api.bodies("", "pods", "default")
            return pod, group, events

    pod, group, events = asyncio.run(story())
    assert pod["spec"]["nodeName"] == "node-2"
    assert group["metadata"]["labels"]["guided"] == "yes"
    assert events[0]["involvedObject"]["name"] == group["metadata"]["name"]
    assert [text for plan in plans for text in plan.inconsistencies] == []
    assert {plan.replayable for plan in plans} == {False}


def bound(api: Any) -> bool:
    return all(body["spec"].get("nodeName") for body in api.bodies("", "pods", "default"))


def said(api: Any) -> list[dict[str, Any]]:
    return [event for event in api.bodies("", "events", "default") if event.get("reason") == "Guided"]


def test_S0_39_a_plan_refuses_it_and_stays_replayable(conf: Path, tmp_path: Path) -> None:
    registry = full_registry(str(conf.parent))
    planning = Planning(config_of(Settings(config=str(conf)), registry), registry, now=1_800_000_000.0)
    planning.load([manifests.write(tmp_path, [manifests.node("n1"), *manifests.gang("j", 1)])])
    planning.run()
    (plan,) = planning.plans
    expected = "plugin guided asks for informers, which a plan run does not offer; use it only against a live cluster"
    assert any(expected in text for text in plan.inconsistencies)
    assert (plan.replayable, len(plan.binds)) == (True, 1)


def test_a_plan_without_such_questions_is_replayable_on_a_live_cluster(tmp_path: Path) -> None:
    plans: list[Plan] = []

    async def story() -> None:
        async with up(Setup(nodes_of(["1x4cpu,8Gi"]), scheduler=False)) as cluster:
            access = from_kubeconfig([str(cluster.serving.access.kubeconfig)])
            async with Client.reaching(access, qps=0, burst=0) as client:
                scheduler = LiveScheduler(client, Options(schedule_period=0.05), when_planned=plans.append)
                running = asyncio.create_task(scheduler.run())
                async with asyncio.timeout(30):
                    while not plans:
                        await asyncio.sleep(0.05)
                scheduler.stop()
                await running

    asyncio.run(story())
    assert {plan.replayable for plan in plans} == {True}


def test_what_is_asked_in_vain_is_told() -> None:
    """Errors of the server, kinds that are not known, writing without the Lease, and asking when all is over."""
    leads = True

    async def story() -> None:
        nonlocal leads
        client = Client(MemoryServer())
        outside = Outside(client, Recorder(client, "volcano"), lambda: leads)
        running = asyncio.create_task(outside.run())
        await asyncio.sleep(0)
        offered: Any = outside.offered()
        calls, recorder = offered["kube_client"], offered["recorder"]
        with pytest.raises(ApiError, match="not found"):
            await asyncio.to_thread(calls.get, "Pod", "missing", "default")
        with pytest.raises(NotFoundError, match="kind Thing is not known"):
            await asyncio.to_thread(calls.all, "Thing")
        things = Resource("example.com/v1", "things", "Thing", True, plain)
        with pytest.raises(ApiError, match="not found"):
            await asyncio.to_thread(calls.get, things, "missing", "default")
        leads = False
        for call in (lambda: calls.create("Pod", POD, "default"), lambda: calls.delete("Pod", "p", "default"),
                     lambda: calls.patch("Pod", "p", {}, "default"),
                     lambda: recorder.record("Pod", "default/p", "Normal", "R", "m")):  # fmt: skip
            with pytest.raises(LostLease):
                await asyncio.to_thread(call)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        with pytest.raises(Unreachable, match="the scheduler ends"):
            await asyncio.to_thread(calls.get, "Pod", "p", "default")

    asyncio.run(story())


def test_a_candidate_may_be_asked_from_the_thread_of_a_cycle() -> None:
    """Plugins write from there, and the holder of the Lease may."""

    async def story() -> None:
        server = MemoryServer()
        client = Client(server)
        election = Election(client, Terms("home", "volcano", "me"))
        outside = Outside(client, Recorder(client, "volcano"), lambda: election.leads)
        running = asyncio.create_task(outside.run())
        await asyncio.sleep(0)
        calls: Any = outside.offered()["kube_client"]
        with pytest.raises(LostLease):
            await asyncio.to_thread(calls.create, "Pod", POD, "default")
        await election.win()
        await asyncio.to_thread(calls.create, "Pod", POD, "default")
        assert [pod["metadata"]["name"] for pod in server.all("pods")] == ["p"]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(story())


def test_a_plugin_that_waits_when_the_scheduler_ends_is_told() -> None:
    async def story() -> None:
        server = MemoryServer()
        server.faults.append(lambda request, at: status(503, "ServiceUnavailable", "later"))
        client = Client(server)
        outside = Outside(client, Recorder(client, "volcano"), lambda: True)
        running = asyncio.create_task(outside.run())
        await asyncio.sleep(0)
        informers: Any = outside.offered()["informers"]
        asking = asyncio.create_task(asyncio.to_thread(lambda: informers["Pod"]))
        await asyncio.sleep(0.3)
        running.cancel()
        with pytest.raises(Unreachable, match="the scheduler ends"):
            await asking

    asyncio.run(story())


class Asking(NamedTuple):
    """What plugins are offered on ``server``, and what is logged meanwhile; ``leads`` may be changed."""

    server: MemoryServer
    offered: Any
    told: Counting
    leads: list[bool]
    gates: list[GateRemoval]


@asynccontextmanager
async def asking() -> AsyncIterator[Asking]:
    """The offers of a live cluster, without a scheduler; the loop's time is virtual."""
    server, told, leads, gates = MemoryServer(), Counting(keep=100), [True], list[GateRemoval]()
    client = Client(server)
    outside = Outside(
        client, Recorder(client, "volcano"), lambda: leads[0], tell=Telling(told), remove_gate=gates.append
    )
    running = asyncio.create_task(outside.run())
    await asyncio.sleep(0)
    yield Asking(server, outside.offered({ADMISSION}), told, leads, gates)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def refused(code: int, part: str) -> Callable[[Request, str], Response | None]:
    """A fault: requests of paths with ``part`` in them are refused."""
    return lambda request, when: status(code, "Refused", "not for you") if part in request.path else None


def test_a_kind_that_several_threads_ask_for_at_once_is_followed_once() -> None:
    async def story() -> None:
        async with asking() as found:
            await asyncio.gather(*(asyncio.to_thread(lambda: found.offered["informers"][MAPS]) for _ in range(3)))
            watches = [one for one in found.server.requests if "/configmaps" in one.path and "watch" in one.params]
            assert len(watches) == 1

    asyncio.run(story())


def test_a_kind_is_followed_no_longer_once_the_scheduler_has_ended() -> None:
    async def story() -> None:
        async with asking() as found:
            await asyncio.to_thread(lambda: found.offered["informers"][MAPS])
            assert len(asyncio.all_tasks()) > 2
        await asyncio.sleep(0.01)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(story())


@pytest.mark.parametrize("code", [401, 403, 404])
def test_a_kind_that_may_not_be_listed_is_refused_at_once_and_not_asked_for_again_in_between(code: int) -> None:
    async def story() -> None:
        async with asking() as found:
            found.server.faults.append(refused(code, "/configmaps"))
            for _ in range(5):
                with pytest.raises(ApiError, match="not for you"):
                    await asyncio.to_thread(lambda: found.offered["informers"][MAPS])
            asked = [request for request in found.server.requests if "/configmaps" in request.path]
            assert len(asked) == (2 if code == 401 else 1), "a 401 is tried again with a fresh login"
            assert len(found.told.of("lister_refused")) == 1

    asyncio.run(story())


def test_a_refused_kind_is_asked_for_again_after_a_while_and_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stromboli.live.scheduler.outside.REFUSED_FOR", 0.0)

    async def story() -> None:
        async with asking() as found:
            found.server.put("configmaps", GUIDE)
            found.server.faults.append(refused(403, "/configmaps"))
            for _ in range(3):
                with pytest.raises(ApiError, match="not for you"):
                    await asyncio.to_thread(lambda: found.offered["informers"][MAPS])
            assert len(found.told.of("lister_refused")) == 1
            found.server.faults.clear()
            lister = await asyncio.to_thread(lambda: found.offered["informers"][MAPS])
            assert [one["metadata"]["name"] for one in await asyncio.to_thread(lister.all)] == ["guide"]

    asyncio.run(story())


def test_leadership_is_asked_for_right_before_each_attempt_is_sent() -> None:
    async def story() -> None:
        async with asking() as found:

            def loses(request: Request, when: str) -> Response | None:
                found.leads[0] = False
                return status(429, "TooManyRequests", "later")

            found.server.faults.append(loses)
            with pytest.raises(LostLease):
                await asyncio.to_thread(found.offered["kube_client"].create, "Pod", POD, "default")
            assert len(found.server.requests) == 1
            found.server.faults.clear()
            assert await asyncio.to_thread(found.offered["kube_client"].all, "Pod") == []

    asyncio.run(story())


@pytest.mark.parametrize("versions", [("v1/",), ("v1/", "v1beta2/")])
def test_a_version_that_is_refused_is_not_looked_for_in_another(versions: tuple[str, ...]) -> None:
    """Only a version that the server does not have is; each is asked for one object."""
    code = 403 if len(versions) == 1 else 404

    async def story() -> None:
        async with asking() as found:
            found.server.faults += [refused(code, f"resource.k8s.io/{version}") for version in versions]
            with pytest.raises(ApiError, match="not for you"):
                await asyncio.to_thread(lambda: found.offered["shared_dra_manager"].resource_claims)
            sent = [request for request in found.server.requests if "/resourceclaims" in request.path]
            assert [request.path.split("/")[3] + "/" for request in sent] == list(versions)
            assert {request.params["limit"] for request in sent} == {"1"}

    asyncio.run(story())


def test_of_several_versions_the_first_is_read() -> None:
    async def story() -> None:
        async with asking() as found:
            await asyncio.to_thread(lambda: found.offered["shared_dra_manager"].resource_claims)
            asked = {request.path for request in found.server.requests}
            assert asked == {"/apis/resource.k8s.io/v1/resourceclaims"}

    asyncio.run(story())


def test_a_write_that_takes_too_long_is_no_longer_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stromboli.live.scheduler.outside.PATIENCE", 0.02)

    async def story() -> None:
        async with asking() as found:
            found.server.latency = 0.1
            with pytest.raises(Unreachable, match=r"no answer within 0\.02 s"):
                await asyncio.to_thread(found.offered["kube_client"].create, "Pod", POD, "default")
            await asyncio.sleep(0.2)
            assert found.server.all("pods") == []

    asyncio.run(story())


def test_a_followed_kind_in_trouble_is_told_and_doubted_after_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    """A watch that has said nothing since requests got no answer begins again."""
    monkeypatch.setattr("stromboli.live.scheduler.outside.DOUBT_EVERY", 0.01)
    out: list[bool] = []

    def fault(request: Request, when: str) -> Response | None:
        if "/configmaps" in request.path and out:
            raise Unreachable("no route", request=str(request))
        return None

    async def story() -> None:
        async with asking() as found:
            found.server.faults.append(fault)
            await asyncio.to_thread(lambda: found.offered["informers"][MAPS])
            out.append(True)
            calls = found.offered["kube_client"]
            with monkeypatch.context() as short:
                short.setattr("stromboli.live.scheduler.outside.PATIENCE", 0.02)
                with pytest.raises(Unreachable):
                    await asyncio.to_thread(calls.get, MAPS, "guide", "default")
            await asyncio.to_thread(calls.all, "Pod")
            async with asyncio.timeout(5):
                while not found.told.of("following_trouble"):
                    await asyncio.sleep(0.01)
            assert {row["kind"] for row in found.told.of("following_trouble")} == {"ConfigMap"}

    asyncio.run(story())


def test_S0_39_devices_are_read_in_the_version_that_the_server_has() -> None:
    async def story() -> None:
        async with asking() as found:
            found.server.put("resourceclaims", {"metadata": {"name": "gpu", "namespace": "ns"}})
            found.server.put("deviceclasses", {"metadata": {"name": "gpus"}})
            found.server.faults.append(refused(404, "resource.k8s.io/v1/"))
            devices = found.offered["shared_dra_manager"]

            def read() -> tuple[list[str], list[str], list[Any]]:
                claims, classes = devices.resource_claims, devices.device_classes
                names = [[one["metadata"]["name"] for one in lister.all()] for lister in (claims, classes)]
                assert claims.get("gpu", "ns") is not None
                return names[0], names[1], devices.resource_slices.all()

            assert await asyncio.to_thread(read) == (["gpu"], ["gpus"], [])
            paths = {request.path for request in found.server.requests}
            assert "/apis/resource.k8s.io/v1beta2/resourceclaims" in paths

    asyncio.run(story())


def test_S0_39_the_gate_manager_takes_the_queues_gate_off_pods_that_have_no_other() -> None:
    async def story() -> None:
        async with asking() as found:
            enqueue = found.offered["gate_manager"].enqueue
            ours = task(name="p", gates=(QUEUE_ALLOCATION_GATE,))
            for gates in ((), ("other",), (QUEUE_ALLOCATION_GATE, "other")):
                assert await asyncio.to_thread(enqueue, task(name="q", gates=gates)) is False
            assert await asyncio.to_thread(enqueue, ours) is True
            await asyncio.sleep(0)
            assert found.gates == [GateRemoval(ours.uid, ours.key)]
            found.leads[0] = False
            with pytest.raises(LostLease):
                await asyncio.to_thread(enqueue, ours)

    asyncio.run(story())


def test_S0_39_without_its_feature_the_gate_manager_is_refused_by_the_name_of_the_feature() -> None:
    client = Client(MemoryServer())
    assert "gate_manager" not in Outside(client, Recorder(client, "volcano"), lambda: True).offered()
    missing = CapabilityMissing("gate_manager", "p", "live")
    assert str(missing).endswith("does not offer unless the feature gate SchedulingGatesQueueAdmission is on")


def test_what_no_run_has_is_refused_without_advice() -> None:
    assert "use it only" not in str(CapabilityMissing("gate_manager", "p", "live"))


def test_extenders_are_asked_in_the_event_loop_for_a_bounded_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extenders, "LARGEST", 10)

    async def answer(request: web.Request) -> web.StreamResponse:
        found = (await request.json())["say"]
        if found == "nothing":
            await over.wait()
        if found == "elsewhere":  # nothing is sent where no configuration says
            raise web.HTTPTemporaryRedirect("/x/other")
        return web.Response(text=found, status=500 if found == "500" else 200)

    over = asyncio.Event()

    async def story() -> list[str]:
        app = web.Application()
        app.router.add_post("/x/verb", answer)
        runner = web.AppRunner(app, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        client = Client(MemoryServer())
        outside = Outside(client, Recorder(client, "volcano"), lambda: True)
        running = asyncio.create_task(outside.run())
        await asyncio.sleep(0)
        found = []
        for say, limit, at in (
            ("yes", 30, port),
            ("ten bytes!", 30, port),
            ("long" * 3, 30, port),
            ("elsewhere", 30, port),
            ("500", 30, port),
            ("nothing", 0.01, port),
            ("", 30, 1),
        ):
            try:
                _, body = await asyncio.to_thread(
                    outside.extenders.post, f"http://127.0.0.1:{at}/x/verb", b'{"say": "%s"}' % say.encode(), limit
                )
                found.append(body.decode())
            except ExtenderError as error:
                found.append(error.problem.partition(":")[0])
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        over.set()
        await runner.cleanup()
        return found

    assert asyncio.run(story()) == [
        *("yes", "ten bytes!", "the answer is larger than 10 bytes", "answered with code 307"),
        *("answered with code 500", "no answer within 0.01 s"),
        "ClientConnectorError",
    ]
