"""Requests: what is tried again, what is not, and how fast."""

from __future__ import annotations

import asyncio
import json
import random

import pytest
from aiohttp import web

from stromboli.errors import ApiError, ManifestError, Unreachable
from stromboli.kube.access import Access
from stromboli.kube.bucket import Bucket
from stromboli.kube.client import Client, Patch, Select
from stromboli.kube.credentials import Fixed, Login, bearer
from stromboli.kube.resources import PODS, RESOURCES, Resource, plain, plural_of
from stromboli.kube.transport import Request, Response
from tests.support.memory_server import MemoryServer, status
from tests.support.virtual import run

POD = {"metadata": {"name": "a", "namespace": "ns"}, "spec": {}}


def once(answer: Response | Exception, when: str = "before", times: int = 1):
    """A fault that strikes ``times`` times."""
    left = [times]

    def fault(_request: Request, moment: str) -> Response | None:
        if moment != when or not left[0]:
            return None
        left[0] -= 1
        if isinstance(answer, Exception):
            raise answer
        return answer

    return fault


class Renewed:
    """A login that differs once it has been refused."""

    def __init__(self) -> None:
        self.number = 0

    async def current(self) -> Login:
        return Login(bearer(f"t{self.number}"))

    def refused(self) -> None:
        self.number += 1


def client_of(server: MemoryServer, **more) -> Client:
    return Client(server, dice=random.Random(1), **more)


BUSY = status(429, "TooManyRequests", retry_after="7")
BROKEN = status(500, "InternalError")
TIMEOUT = Unreachable("no answer within 60 s")

READ = ("get", True)
REPEATABLE = ("patch", True)


async def call(client: Client, verb: str) -> None:
    if verb == "get":
        await client.get(PODS, "a", "ns")
    elif verb == "bind":
        await client.bind("ns", "a", "", "n1")
    elif verb == "create":
        await client.create(PODS, {"metadata": {"name": "b"}}, "ns")
    else:
        await client.patch(PODS, "a", "ns", {"metadata": {"labels": {"x": "y"}}}, again=True)


@pytest.mark.parametrize(
    ("verb", "fault", "tries"),
    [
        ("get", once(BUSY), 2),
        ("create", once(BUSY), 2),
        ("get", once(BROKEN), 2),
        ("get", once(TIMEOUT), 2),
        ("get", once(BROKEN, times=4), 5),
        ("patch", once(BROKEN), 2),
        ("patch", once(TIMEOUT), 2),
        ("get", once(status(401, "Unauthorized")), 2),
        ("bind", once(status(401, "Unauthorized")), 2),
        ("create", once(status(503, "ServiceUnavailable", retry_after="1")), 2),
    ],
)
def test_what_is_tried_again_succeeds(verb, fault, tries) -> None:
    async def main() -> None:
        server = MemoryServer()
        server.put("pods", POD)
        server.faults.append(fault)
        await call(client_of(server), verb)
        assert len(server.requests) == tries

    run(main())


@pytest.mark.parametrize(
    ("verb", "fault", "error"),
    [
        ("bind", once(BUSY), ApiError),  # the scheduler may have lost its lead by then
        ("bind", once(BROKEN), ApiError),
        ("bind", once(TIMEOUT), Unreachable),
        ("bind", once(TIMEOUT, "after"), Unreachable),
        ("bind", once(status(409, "Conflict")), ApiError),
        ("get", once(status(404, "NotFound")), ApiError),
        ("get", once(BROKEN, times=9), ApiError),
        ("get", once(status(401, "Unauthorized"), times=2), ApiError),
    ],
)
def test_what_may_not_be_repeated_is_the_callers(verb, fault, error) -> None:
    async def main() -> None:
        server = MemoryServer()
        server.put("pods", POD)
        server.faults.append(fault)
        with pytest.raises(error):
            await call(client_of(server), verb)

    run(main())


@pytest.mark.parametrize(("asked", "waited"), [("7", 7), ("61", 60), ("86400", 60)])
def test_retry_after_is_waited_for_within_reason(asked: str, waited: float) -> None:
    async def main() -> float:
        server = MemoryServer()
        server.put("pods", POD)
        server.faults.append(once(status(429, "TooManyRequests", retry_after=asked)))
        loop = asyncio.get_running_loop()
        start = loop.time()
        await call(client_of(server), "create")
        return float(loop.time() - start)

    assert run(main()) == waited


def test_a_refused_login_is_renewed_once() -> None:
    async def main() -> list[str]:
        server = MemoryServer()
        server.put("pods", POD)
        server.faults.append(once(status(401, "Unauthorized")))
        await Client(server, Renewed()).get(PODS, "a", "ns")
        return [login.headers["Authorization"] for login in server.logins]

    assert run(main()) == ["Bearer t0", "Bearer t1"]


def test_bucket_lets_a_burst_through_and_then_a_steady_rate() -> None:
    now = [0.0]
    bucket = Bucket(10, 3, lambda: now[0])
    assert [round(bucket.claim(), 3) for _ in range(6)] == [0, 0, 0, 0.1, 0.2, 0.3]
    now[0] = 10.0
    assert [round(bucket.claim(), 3) for _ in range(4)] == [0, 0, 0, 0.1]


def test_a_client_is_held_to_its_rate() -> None:
    async def main() -> float:
        server = MemoryServer()
        server.put("pods", POD)
        client = client_of(server, qps=2, burst=1)
        loop = __import__("asyncio").get_running_loop()
        start = loop.time()
        for _ in range(5):
            await client.get(PODS, "a", "ns")
        return float(loop.time() - start)

    assert run(main()) == pytest.approx(2.0)


def test_lists_come_in_pages_and_as_one() -> None:
    async def main() -> tuple[int, int]:
        server = MemoryServer()
        for number in range(1201):
            server.put("pods", {"metadata": {"name": f"p{number}", "namespace": "ns"}})
        found = await client_of(server).list_all(PODS, select=Select(labels="a=b"))
        assert all(request.params["labelSelector"] == "a=b" for request in server.requests)
        return len(found), len(server.requests)

    assert run(main()) == (1201, 3)


def test_a_list_in_pages_is_of_one_version_though_objects_are_written_meanwhile() -> None:
    """So an object of an earlier page has not gone."""

    async def main() -> set[str]:
        server, versions = MemoryServer(), set[str]()
        for number in range(1201):
            server.put("pods", {"metadata": {"name": f"p{number}", "namespace": "ns"}})
        async for page in client_of(server).pages(PODS):
            versions.add(page.resource_version)
            server.put("pods", {"metadata": {"name": f"late{len(versions)}", "namespace": "ns"}})
        return versions

    assert len(run(main())) == 1


@pytest.mark.parametrize("answer", [b"<html>", b'{"items": 3}', b"\xff"])
def test_an_answer_that_is_no_list_is_an_error_of_ours(answer: bytes) -> None:
    async def main() -> None:
        server = MemoryServer()
        server.faults.append(lambda _request, _when: Response(200, {}, answer))
        with pytest.raises(ManifestError, match="the answer cannot be read"):
            await client_of(server).list_all(PODS)

    run(main())


@pytest.mark.parametrize("resource", [PODS, PODS.read_as(plain)])
def test_an_answer_that_is_no_object_is_an_error_of_ours(resource: Resource) -> None:
    async def main() -> None:
        server = MemoryServer()
        server.faults.append(lambda _request, _when: Response(200, {}, b"<html>"))
        with pytest.raises(ManifestError):
            await client_of(server).get(resource, "a", "ns")

    run(main())


@pytest.mark.parametrize(
    ("kind", "body", "content"),
    [
        (Patch.merge, {"spec": {"a": 1}}, "application/merge-patch+json"),
        (Patch.strategic, {"spec": {"a": 1}}, "application/strategic-merge-patch+json"),
        (Patch.json, [{"op": "add", "path": "/a", "value": 1}], "application/json-patch+json"),
        (Patch.apply, {"kind": "Pod"}, "application/apply-patch+yaml"),
    ],
)
def test_patches_say_their_kind(kind, body, content) -> None:
    async def main() -> Request:
        server = MemoryServer()
        server.faults.append(lambda _request, _when: Response(200, {}, b"{}"))
        await client_of(server).patch(PODS.read_as(plain), "a", "ns", body, kind, "status")
        return server.requests[0]

    sent = run(main())
    assert sent.headers["Content-Type"] == content
    assert sent.path == "/api/v1/namespaces/ns/pods/a/status"
    assert json.loads(sent.body or b"") == body
    assert sent.params.get("force") == ("true" if kind is Patch.apply else None)


def test_bodies_of_binding_eviction_and_deletion() -> None:
    async def main() -> list[tuple[str, str, dict]]:
        server = MemoryServer()
        server.faults.append(lambda _request, _when: Response(200, {}, b"{}"))
        client = client_of(server)
        await client.bind("ns", "a", "u1", "n1", {"k": "v"})
        await client.evict("ns", "a", uid="u1", grace=5)
        await client.delete(PODS, "a", "ns", uid="u1", resource_version="7", grace=0, propagation="Background")
        return [(r.method, r.path, json.loads(r.body or b"")) for r in server.requests]

    bound, evicted, deleted = run(main())
    assert bound[:2] == ("POST", "/api/v1/namespaces/ns/pods/a/binding")
    assert bound[2]["metadata"] == {"name": "a", "namespace": "ns", "uid": "u1", "annotations": {"k": "v"}}
    assert bound[2]["target"]["name"] == "n1"
    assert evicted[:2] == ("POST", "/api/v1/namespaces/ns/pods/a/eviction")
    assert evicted[2]["deleteOptions"]["preconditions"] == {"uid": "u1"}
    assert deleted[:2] == ("DELETE", "/api/v1/namespaces/ns/pods/a")
    assert deleted[2]["preconditions"] == {"uid": "u1", "resourceVersion": "7"}
    assert (deleted[2]["gracePeriodSeconds"], deleted[2]["propagationPolicy"]) == (0, "Background")


def test_an_eviction_that_a_budget_refuses_is_not_waited_for() -> None:
    async def main() -> int:
        server = MemoryServer()
        server.put("pods", POD)
        server.faults.append(once(BUSY, times=9))
        with pytest.raises(ApiError) as refused:
            await client_of(server).evict("ns", "a")
        assert refused.value.retry_after == 7
        return len(server.requests)

    assert run(main()) == 1


def test_errors_carry_what_the_server_said() -> None:
    async def main() -> ApiError:
        with pytest.raises(ApiError) as refused:
            await client_of(MemoryServer()).get(PODS, "gone", "ns")
        return refused.value

    error = run(main())
    assert (error.code, error.reason, error.not_found) == (404, "NotFound", True)
    assert "gone" in str(error)
    assert error.request == "GET /api/v1/namespaces/ns/pods/gone"


@pytest.mark.parametrize(
    ("resource", "namespace", "name", "path"),
    [
        (PODS, "", "", "/api/v1/pods"),
        (PODS, "ns", "a", "/api/v1/namespaces/ns/pods/a"),
        (RESOURCES["Node"], "", "n1", "/api/v1/nodes/n1"),
        (RESOURCES["Queue"], "ignored", "q", "/apis/scheduling.volcano.sh/v1beta1/queues/q"),
        (RESOURCES["PriorityClass"], "", "", "/apis/scheduling.k8s.io/v1/priorityclasses"),
        (Resource("flow.volcano.sh/v1alpha1", "jobflows", "JobFlow", True, plain), "a", "b",
         "/apis/flow.volcano.sh/v1alpha1/namespaces/a/jobflows/b"),
    ],
)  # fmt: skip
def test_paths(resource: Resource, namespace: str, name: str, path: str) -> None:
    assert resource.path(namespace, name) == path


@pytest.mark.parametrize(("kind", "plural"), [("Numatopology", "numatopologies"), ("Job", "jobs")])
def test_plurals(kind: str, plural: str) -> None:
    assert plural_of(kind) == plural


def test_a_silent_stream_ends_and_a_broken_one_says_so() -> None:
    """Over a real socket: of one watch nothing more is heard, of the other the connection breaks."""

    over = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        found = web.StreamResponse()
        await found.prepare(request)
        await found.write(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}\n')
        if "silent" in request.path:
            await over.wait()
        elif request.transport is not None:
            request.transport.abort()
        return found

    async def main() -> None:
        app = web.Application()
        app.router.add_get("/{rest:.*}", answer)
        runner = web.AppRunner(app, shutdown_timeout=0.0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        access = Access(f"http://127.0.0.1:{runner.addresses[0][1]}", Fixed(Login()))
        async with Client.reaching(access) as client:
            events = [event.type async for event in client.watch(PODS, "silent", silence=0.5)]
            assert events == ["BOOKMARK"]
            assert not client.contact.doubts(0.0)
            with pytest.raises(Unreachable):
                assert [event async for event in client.watch(PODS, "broken")] == []
            assert client.contact.lost > client.contact.heard
        over.set()
        await runner.cleanup()

    asyncio.run(main())
