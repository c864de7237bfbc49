"""The webhook server over TLS: each rule by a real AdmissionReview, its certificate, its configurations, its end."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import jsonpatch
import msgspec
import pytest

from stromboli.api.kinds import NAMESPACES, QUEUES
from stromboli.crds import admission
from stromboli.crds.admission import Settings
from stromboli.crds.admission.paths import ALL_PATHS
from stromboli.crds.admission.resource_groups import parse_groups
from stromboli.kube.transport import Request, Response
from stromboli.live.proofs.permissions import REVIEWING, WEBHOOKS_OWN
from stromboli.live.webhooks.sight import REST
from stromboli.live.webhooks.sources import ROTATE
from stromboli.live.webhooks.webhook_server import LONGEST_BODY
from tests.support.access import used
from tests.support.admission_cases import CASES, CONTAINER, WORLD, Case, job, task
from tests.support.faulty import status
from tests.support.webhook_world import NAMESPACE, SECRET, Json, Replica, WebhookWorld, encoded, review

GATE = "scheduling.volcano.sh/queue-allocation-gate"


@dataclass
class Asked:
    """The server under test, in a loop of its own."""

    runner: asyncio.Runner
    world: WebhookWorld
    replica: Replica
    session: aiohttp.ClientSession

    def post(self, path: str, body: bytes, content: str = "application/json") -> tuple[int, bytes]:
        return self.runner.run(self.world.post(self.replica, path, body, self.session, content=content))

    def ask(self, path: str, found: Json) -> Json:
        status, body = self.post(path, encoded(found))
        assert status == 200, body
        answer = msgspec.json.decode(body)
        assert (answer["apiVersion"], answer["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
        assert answer["response"]["uid"] == found["request"]["uid"]
        response: Json = answer["response"]
        return response

    def patched(self, path: str, value: Json) -> Any:
        response = self.ask(path, review(path, "CREATE", value))
        assert response["allowed"]
        if "patch" not in response:
            return value
        assert response["patchType"] == "JSONPatch"
        return jsonpatch.apply_patch(value, msgspec.json.decode(base64.b64decode(response["patch"])))


async def opened(world: WebhookWorld) -> tuple[Replica, aiohttp.ClientSession]:
    for found in (*WORLD.list(QUEUES), *WORLD.list(NAMESPACES)):
        world.api.put("queues" if "spec" in found else "namespaces", dict(found))
    world.register()
    replica = world.start()
    await replica.ready()
    async with asyncio.timeout(60):
        while not all(world.bundle(path) for path in ALL_PATHS):
            await asyncio.sleep(0.01)
    return replica, aiohttp.ClientSession()


@pytest.fixture(scope="module")
def server() -> Iterator[Asked]:
    with asyncio.Runner() as runner:

        async def begin() -> Asked:
            world = WebhookWorld()
            return Asked(runner, world, *await opened(world))

        found = runner.run(begin())
        yield found

        async def end() -> None:
            await found.session.close()
            await found.world.end()

        runner.run(end())


def run(story: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner() as runner:
        runner.run(story)


# ---------------------------------------------------------------------- rules


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_every_rule_by_a_review(server: Asked, case: Case) -> None:
    server.world.settings = case.settings
    path = f"/{case.resource.partition('.')[0]}/validate"
    kept = (ALL_PATHS[path].operations, case.operation)
    if case.operation not in ALL_PATHS[path].operations:
        pytest.fail(f"a case of an operation that is never asked about: {kept}")
    response = server.ask(path, review(path, case.operation, case.value, case.old))
    assert response["allowed"] is (not case.text)
    if case.text:
        assert response["status"] == {"message": case.text}


def test_jobs_are_filled_in_by_a_patch(server: Asked) -> None:
    server.world.settings = Settings(scheduler_names=("mine", "other"))
    bare = {"metadata": {"name": "j", "namespace": "ns"}, "spec": {
        "plugins": {"mpi": ["--master=m"]},
        "tasks": [{"replicas": 3, "template": {"spec": {"hostNetwork": True, "newField": [1.5]}}}, {"name": "m"}],
    }}  # fmt: skip
    found = server.patched("/jobs/mutate", bare)
    spec = found["spec"]
    assert found == admission.default("jobs.batch.volcano.sh", bare, WORLD, server.world.settings)
    assert (spec["schedulerName"], spec["queue"], spec["minAvailable"], spec["plugins"]["svc"]) == (
        "mine", "default", 3, [],
    )  # fmt: skip
    assert spec["tasks"][0]["template"]["spec"]["newField"] == [1.5]
    whole = server.patched("/jobs/mutate", found)
    assert whole is found, "nothing to do has no patch"
    assert server.ask("/jobs/mutate", review("/jobs/mutate", "UPDATE", bare, found))["patch"]


def test_queues_and_pod_groups_are_filled_in(server: Asked) -> None:
    path, weights = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
    value = {"metadata": {"name": "q", "annotations": {path: "a/b", weights: "1/2"}}, "spec": {}}
    found = server.patched("/queues/mutate", value)
    assert found["spec"] == {"weight": 1, "reclaimable": True}
    assert found["metadata"]["annotations"] == {path: "root/a/b", weights: "1/1/2"}
    group: Json = {"metadata": {"name": "g", "namespace": "team"}, "spec": {"queue": "default"}}
    assert server.patched("/podgroups/mutate", group)["spec"]["queue"] == "low"
    del group["metadata"]["namespace"]
    response = server.ask("/podgroups/mutate", review("/podgroups/mutate", "CREATE", group, namespace="team"))
    assert msgspec.json.decode(base64.b64decode(response["patch"]))[-1]["value"] == "low"
    assert server.patched("/podgroups/mutate", {**group, "metadata": {"name": "g", "namespace": "ns"}}) == {
        **group, "metadata": {"name": "g", "namespace": "ns"},
    }  # fmt: skip


GROUPS = """
resourceGroups:
- resourceGroup: cpu
  object: {key: namespace, value: [ns]}
  schedulerName: volcano
  labels: {pool: cpu}
  tolerations: [{key: pool, operator: Equal, value: cpu, effect: NoSchedule}]
- resourceGroup: gpu
  object: {key: annotation, value: ["pool: gpu", "pool: other"]}
  affinity: '{"nodeAffinity": {}}'
- resourceGroup: named
  labels: {pool: named}
- {resourceGroup: never, object: {key: label, value: [a]}, schedulerName: never}
"""


def pod(namespace: str = "elsewhere", annotations: Json | None = None, **spec: Any) -> Json:
    metadata = {"name": "p", "namespace": namespace, "annotations": annotations or {}}
    return {"metadata": metadata, "spec": {"schedulerName": "default-scheduler", "containers": [CONTAINER], **spec}}


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        (pod("ns", nodeSelector={"pool": "x", "disk": "ssd"}, tolerations=[{"key": "a"}]),
         {"schedulerName": "volcano", "nodeSelector": {"pool": "cpu", "disk": "ssd"}, "tolerations": [
             {"key": "a"}, {"key": "pool", "operator": "Equal", "value": "cpu", "effect": "NoSchedule"}]}),
        (pod("ns", {"pool": "gpu"}),
         {"schedulerName": "volcano", "nodeSelector": {"pool": "cpu"}, "tolerations": [
             {"key": "pool", "operator": "Equal", "value": "cpu", "effect": "NoSchedule"}]}),
        (pod(annotations={"pool": "gpu"}), {"affinity": {"nodeAffinity": {}}}),
        (pod(annotations={"pool": "gpu"}, affinity={"podAffinity": {}}), {}),
        (pod(annotations={"pool": "other"}), {}),  # the first definition of a key counts
        (pod(annotations={"volcano.sh/resource-group": "named"}), {"nodeSelector": {"pool": "named"}}),
        (pod(annotations={"volcano.sh/resource-group": "gpu"}), {}),
        (pod(), {}),
        (pod(annotations={GATE: "true"}), {"schedulingGates": [{"name": GATE}]}),
        (pod(annotations={GATE: "yes"}), {}),
        (pod(annotations={GATE: "true"}, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]),
         {"schedulingGates": [{"name": "kueue.x-k8s.io/admission"}, {"name": GATE}]}),
        (pod(annotations={GATE: "true"}, schedulingGates=[{"name": GATE}]), {}),
    ],
)  # fmt: skip
def test_pods_get_their_gate_and_what_their_group_says(server: Asked, given: Json, changed: Json) -> None:
    server.world.settings = Settings(gates_pods=True, resource_groups=parse_groups(GROUPS))
    assert server.patched("/pods/mutate", given) == {**given, "spec": {**given["spec"], **changed}}
    server.world.settings = Settings()
    assert server.patched("/pods/mutate", given) is given


# ---------------------------------------------------------------------- the protocol


@pytest.mark.parametrize(
    ("path", "operation", "message"),
    [
        ("/jobs/mutate", "DELETE", "expect operation to be 'CREATE' "),
        ("/pods/mutate", "UPDATE", "expect operation to be 'CREATE' "),
        ("/pods/validate", "UPDATE", "expect operation to be 'CREATE'"),
        ("/queues/mutate", "UPDATE", "invalid operation `UPDATE`, expect operation to be `CREATE`"),
        ("/podgroups/mutate", "DELETE", "invalid operation `DELETE`, expect operation to be `CREATE`"),
        ("/podgroups/validate", "UPDATE", "unsupported operation UPDATE"),
        ("/cronjobs/validate", "DELETE", "expect operation to be 'CREATE' or 'UPDATE'"),
        ("/jobflows/validate", "DELETE", "expect operation to be 'CREATE' or 'UPDATE'"),
    ],
)
def test_operations_that_a_path_is_not_for_are_refused(server: Asked, path: str, operation: str, message: str) -> None:
    response = server.ask(path, review(path, operation, {"metadata": {"name": "x"}}, {"metadata": {"name": "x"}}))
    assert (response["allowed"], response["status"]["message"]) == (False, message)


def test_resources_that_a_path_is_not_for_are_refused(server: Asked) -> None:
    response = server.ask("/jobs/validate", review("/queues/validate", "CREATE", {}))
    assert response["status"]["message"] == "expect resource to be {batch.volcano.sh v1alpha1 jobs}"
    assert server.ask("/pods/validate", review("/jobs/validate", "CREATE", {}))["status"]["message"] == (
        "expect resource to be { v1 pods}"
    )


def test_what_is_no_review_is_an_error_and_not_an_answer(server: Asked) -> None:
    good = review("/jobs/validate", "CREATE", job())
    old = encoded({**good, "apiVersion": "admission.k8s.io/v1beta1"})
    status, body = server.post("/jobs/validate", old)
    assert (status, b"admission.k8s.io/v1 AdmissionReview" in body) == (400, True)
    assert server.post("/jobs/validate", b"{")[0] == 400
    assert server.post("/jobs/validate", encoded({**good, "request": None}))[0] == 400
    assert server.post("/jobs/validate", encoded(good), content="text/plain")[0] == 415
    assert server.post("/jobs/validate", b" " * (LONGEST_BODY + 1)) == (413, b"request body too large")


def test_what_is_read_wrongly_is_refused_by_field(server: Asked) -> None:
    value = {"metadata": {"name": "q"}, "spec": {"weight": "1"}}
    response = server.ask("/queues/validate", review("/queues/validate", "CREATE", value))
    assert response["status"]["message"] == "Queue q, spec.weight: expected a whole number, got a text"


def test_a_queue_that_is_newer_than_what_has_been_heard_counts() -> None:
    async def story() -> None:
        world = WebhookWorld()
        async with aiohttp.ClientSession() as session:
            replica, other = await opened(world)
            await other.close()
            world.api.cut()
            replica.sight._queues._end_watch()
            replica.sight._queues.store.pop(("", "default"))
            found = encoded(review("/jobs/validate", "CREATE", job()))
            answers = await asyncio.gather(*(world.post(replica, "/jobs/validate", found, session) for _ in range(8)))
            assert all(msgspec.json.decode(body)["response"]["allowed"] for _, body in answers)
            await world.end()

    run(story())


def test_refusals_do_not_become_requests() -> None:
    """A client that creates refused jobs as fast as it can has queues listed only now and then."""

    async def story() -> None:
        world = WebhookWorld()
        async with aiohttp.ClientSession() as session:
            replica, other = await opened(world)
            await other.close()
            found = encoded(review("/jobs/validate", "CREATE", job(queue="nowhere")))
            before = lists(world)
            began = asyncio.get_running_loop().time()
            for _ in range(10):
                answers = await asyncio.gather(
                    *(world.post(replica, "/jobs/validate", found, session) for _ in range(8))
                )
                assert not any(msgspec.json.decode(body)["response"]["allowed"] for _, body in answers)
            lasted = asyncio.get_running_loop().time() - began
            assert 2 <= lists(world) - before <= 2 + lasted / REST
            await world.end()

    run(story())


def lists(world: WebhookWorld) -> int:
    """How often queues have been listed."""
    return sum("/queues" in one.path and "watch" not in one.params for one in world.api.requests)


# ---------------------------------------------------------------------- certificate and configurations


def test_configurations_get_the_authorities_and_get_them_back(server: Asked) -> None:
    world = server.world
    bundle = world.bundle("/jobs/validate")
    assert b"BEGIN CERTIFICATE" in bundle
    assert {world.bundle(path) for path in ALL_PATHS} == {bundle}
    name = ALL_PATHS["/jobs/validate"].configuration
    kind = "validatingwebhookconfigurations"
    found = world.api.get(kind, name)

    async def spoil() -> None:
        (hook,) = found["webhooks"]
        spoilt = {**hook, "clientConfig": {**hook["clientConfig"], "caBundle": ""}}
        world.api.put(kind, {**found, "webhooks": [spoilt]})
        async with asyncio.timeout(30):
            while world.bundle("/jobs/validate") != bundle:
                await asyncio.sleep(0.01)

    server.runner.run(spoil())


def test_what_cert_manager_injects_stays_and_what_is_missing_is_told_once() -> None:
    async def story() -> None:
        world = WebhookWorld(look=0.05)
        paths = [ALL_PATHS[path] for path in ("/jobs/validate", "/queues/validate")]
        world.register([paths[0], ALL_PATHS["/jobs/mutate"]])
        kind = "validatingwebhookconfigurations"
        found = world.api.get(kind, paths[0].configuration)
        note = {"cert-manager.io/inject-ca-from": "a/b"}
        world.api.put(kind, {**found, "metadata": {**found["metadata"], "annotations": note}})
        replica = world.start(paths)
        await replica.ready()
        await asyncio.sleep(0.3)
        assert world.bundle("/jobs/validate") == b""
        told = [(key, fields["path"]) for key, fields in replica.told.lines if "path" in fields]
        assert sorted(told) == [("configuration_missing", "/queues/validate"), ("path_not_served", "/jobs/mutate")]
        await world.end()

    run(story())


def test_replicas_share_one_certificate_and_restore_a_secret_that_is_deleted() -> None:
    async def story() -> None:
        world = WebhookWorld(look=0.05)
        world.register()
        one, other = world.start(), world.start()
        await asyncio.gather(one.ready(), other.ready())
        assert one.server.certificate.shown == other.server.certificate.shown
        shown = one.server.certificate.shown
        world.api.drop("secrets", SECRET, NAMESPACE)
        async with asyncio.timeout(60):
            while not any(found["metadata"]["name"] == SECRET for found in world.api.all("secrets")):
                await asyncio.sleep(0.01)
        assert world.secret["tls.crt"] == shown == one.server.certificate.shown
        await world.end()

    run(story())


@pytest.mark.parametrize(
    "spoilt", [{"tls.key": b"none"}, {"tls.crt": b"none"}, {"since": b"yesterday"}, {"ca.crt": b""}], ids=str
)
def test_a_secret_that_cannot_be_used_is_restored_without_notice(spoilt: dict[str, bytes]) -> None:
    async def story() -> None:
        world = WebhookWorld(look=0.05)
        world.register()
        one = world.start()
        await one.ready()
        while not (bundle := world.bundle("/jobs/validate")):
            await asyncio.sleep(0.01)
        shown, found = one.server.certificate.shown, world.api.get("secrets", SECRET, NAMESPACE)
        data = {**found["data"], **{name: base64.b64encode(text).decode() for name, text in spoilt.items()}}
        world.api.put("secrets", {**found, "data": data})
        await asyncio.sleep(0.5)
        assert world.secret["tls.crt"] == shown == one.server.certificate.shown
        assert world.secret["tls.key"].startswith(b"-----BEGIN PRIVATE KEY")
        assert world.bundle("/jobs/validate") == bundle
        assert one.told.keys.count("certificate_unusable") == ("since" not in spoilt)
        assert one.server.unready() == ""
        await world.end()

    run(story())


@pytest.mark.parametrize("spoilt", [{"tls.key": b"none"}, {"tls.crt": b""}], ids=str)
def test_a_wish_for_a_new_certificate_outlives_a_secret_that_cannot_be_used(spoilt: dict[str, bytes]) -> None:
    async def story() -> None:
        world = WebhookWorld(look=0.05)
        world.register()
        one = world.start()
        await one.ready()
        shown = one.server.certificate.shown
        found = world.api.get("secrets", SECRET, NAMESPACE)
        data = {**found["data"], **{name: base64.b64encode(text).decode() for name, text in spoilt.items()}}
        metadata = {**found["metadata"], "annotations": {ROTATE: "now"}}
        world.api.put("secrets", {**found, "metadata": metadata, "data": data})
        async with asyncio.timeout(60):
            while "certificate_unusable" not in one.told.keys:
                await asyncio.sleep(0.01)
            assert world.secret["tls.crt"] == shown
            world.ahead += 301
            while "next.crt" not in world.secret:
                await asyncio.sleep(0.01)
        assert ROTATE not in (world.api.get("secrets", SECRET, NAMESPACE)["metadata"].get("annotations") or {})
        await world.end()

    run(story())


def test_a_secret_that_cannot_be_used_is_said_to_be_written_again_once_it_is() -> None:
    async def story() -> None:
        world = WebhookWorld(look=0.02)
        world.register()
        one = world.start()
        await one.ready()
        found = world.api.get("secrets", SECRET, NAMESPACE)
        refused: list[Request] = []

        def refuse(request: Request, when: str) -> Response | None:
            if when == "before" and request.method == "PUT" and "/secrets/" in request.path:
                refused.append(request)
                return status(403, "Forbidden")
            return None

        world.api.faults.append(refuse)
        world.api.put("secrets", {**found, "data": {**found["data"], "tls.key": ""}})
        async with asyncio.timeout(60):
            while len(refused) < 3:
                await asyncio.sleep(0.01)
            assert one.told.keys.count("certificate_unusable") == 0
            assert one.told.keys.count("certificate_trouble") == 1
            world.api.faults.clear()
            while "certificate_unusable" not in one.told.keys:
                await asyncio.sleep(0.01)
        assert world.secret["tls.crt"] == one.server.certificate.shown
        await world.end()

    run(story())


def test_a_certificate_is_replaced_while_reviews_go_on() -> None:
    """Each review comes over a connection of its own, and trusts what the configuration says at that moment."""

    async def story() -> None:
        world = WebhookWorld(look=0.05)
        for found in WORLD.list(QUEUES):
            world.api.put("queues", dict(found))
        world.register()
        replicas = [world.start(), world.start()]
        await asyncio.gather(*(one.ready() for one in replicas))
        seen: list[tuple[bytes, bytes]] = []

        async def until(authorities: int, shown: bytes) -> None:
            """Ask both replicas until the configuration has so many authorities, and both show a certificate."""
            found = encoded(review("/jobs/validate", "CREATE", job()))
            async with asyncio.timeout(60):
                while True:
                    bundle = world.bundle("/jobs/validate")
                    ready = all(one.server.certificate.shown == shown for one in replicas)
                    for replica in replicas if bundle else ():
                        async with aiohttp.ClientSession() as session:
                            status, body = await world.post(replica, "/jobs/validate", found, session, bundle)
                            assert (status, msgspec.json.decode(body)["response"]["allowed"]) == (200, True)
                    if ready and bundle.count(b"BEGIN") == authorities:
                        seen.append((shown, bundle))
                        return
                    await asyncio.sleep(0.01)

        first = world.secret["tls.crt"]
        await until(1, first)
        secret = world.api.get("secrets", SECRET, NAMESPACE)
        world.ahead += 301
        world.api.put("secrets", {**secret, "metadata": {**secret["metadata"], "annotations": {ROTATE: "now"}}})
        await until(2, first)  # a pair is made, but not served yet
        following = world.secret["next.crt"]
        world.ahead += 301
        await until(2, following)
        world.ahead += 301
        await until(1, following)
        assert len(set(seen)) == 4
        assert ROTATE not in (world.api.get("secrets", SECRET, NAMESPACE)["metadata"].get("annotations") or {})
        await world.end()

    run(story())


def test_what_is_requested_is_granted_and_what_is_granted_is_requested() -> None:
    async def story() -> set[tuple[str, str, str]]:
        world = WebhookWorld(look=0.05)
        replica, session = await opened(world)
        async with session:
            group = {"metadata": {"name": "g", "namespace": "unheard-of"}, "spec": {"queue": "default"}}
            found = encoded(review("/podgroups/mutate", "CREATE", group))
            await world.post(replica, "/podgroups/mutate", found, session)
            secret = world.api.get("secrets", SECRET, NAMESPACE)
            world.ahead += 301
            world.api.put("secrets", {**secret, "metadata": {**secret["metadata"], "annotations": {ROTATE: ""}}})
            async with asyncio.timeout(60):
                while "next.crt" not in world.secret:
                    await asyncio.sleep(0.01)
        await world.end()
        return used(world.api.requests)

    with asyncio.Runner() as runner:
        requested = runner.run(story())
    grants = (*REVIEWING, *WEBHOOKS_OWN)
    assert requested == {(one.group, one.resource, verb) for one in grants for verb in one.verbs}


def test_a_server_that_is_told_to_stop_answers_clients_that_have_not_noticed() -> None:
    async def story() -> None:
        world = WebhookWorld()
        replica, session = await opened(world)
        found = encoded(review("/jobs/validate", "CREATE", job(task())))
        async with session:
            assert (await world.post(replica, "/jobs/validate", found, session))[0] == 200
            assert replica.server.unready() == ""
            replica.server.stop()
            assert replica.server.unready() == "it is stopping"
            assert (await world.post(replica, "/jobs/validate", found, session))[0] == 200
            await replica.task
            with pytest.raises(aiohttp.ClientConnectionError):
                await world.post(replica, "/jobs/validate", found, session)
        assert ("/jobs/validate", "allowed") in replica.counted

    run(story())
