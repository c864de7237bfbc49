"""Objects of job plugins on a server: each request for each object fails once, in every way that servers fail."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any, Final

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from stromboli.api.kinds import PODS
from stromboli.controllers.changes import Create, Drop, Keep, Target
from stromboli.controllers.jobs.kept import FRESH, KeptObjects
from stromboli.controllers.manager import Manager
from stromboli.errors import ApiError
from stromboli.job_plugins.wanted import SSH_KEYS, config_map, secret
from stromboli.kube.client import Client
from stromboli.kube.transport import Request, Response
from stromboli.live.controllers.controlled import writable
from stromboli.live.controllers.keeper import Keeper
from stromboli.live.controllers.ssh_keys import completed_keys
from stromboli.live.controllers.writer import WRITES_AT_ONCE, Writer
from tests.support.controller_world import ControllerWorld, job
from tests.support.memory_server import merged, status
from tests.support.virtual import run

Json = dict[str, Any]
KEYS: Final = ["--ssh-private-key=a", "--ssh-public-key=b"]
PLUGINS: Final[dict[str, list[str]]] = {"svc": [], "ssh": KEYS, "env": []}
OBJECTS: Final = {"configmaps": "j-svc", "services": "j", "networkpolicies": "j", "secrets": "j-ssh"}
EDITS: Final[dict[str, Json]] = {
    "configmaps": {"data": {"t.host": "elsewhere"}}, "services": {"spec": {"selector": {"app": "web"}}},
    "networkpolicies": {"spec": {"ingress": None}}, "secrets": {"data": {"config": "eA=="}},
}  # fmt: skip
ANSWERS: Final = {409: "Conflict", 422: "Invalid", 429: "TooManyRequests", 500: "InternalError"}


class World(ControllerWorld):
    """Controllers alone; whenever a pod is made, what is there is looked at.

    Each request of a ``method`` for an object of a ``collection`` is refused so many ``times``.
    """

    def __init__(self, code: int = 0, times: int = 1, methods: str = "", only: str = "") -> None:
        super().__init__()
        self.missing: list[str] = []
        self.left = {(kind, verb): times for kind in OBJECTS for verb in methods.split() if only in kind}

        def fault(request: Request, when: str) -> Response | None:
            if when == "before" and request.method == "POST" and request.path.endswith("/pods"):
                self.missing += sorted(OBJECTS.keys() - self.there())
            asked = next((key for key in self.left if f"/{key[0]}" in request.path and key[1] == request.method), None)
            if when == "after" or asked is None or not self.left[asked]:
                return None
            self.left[asked] -= 1
            headers = {"Retry_After": "1"} if code == 429 else {}
            return status(code, ANSWERS[code], "out of order", **headers)

        self.server.faults.append(fault)

    def there(self) -> set[str]:
        names = {kind: [one["metadata"]["name"] for one in self.server.all(kind)] for kind in OBJECTS}
        return {kind for kind, name in OBJECTS.items() if name in names[kind]}

    async def begin(self, **plugins: list[str]) -> asyncio.Task[None]:
        """Start the controllers, and a job once the queue is open."""
        task = await self.go(scheduling=False)
        self.server.put("jobs", job("j", 2, plugins=plugins or PLUGINS))
        await self.admit()
        return task

    async def admit(self) -> None:
        """The scheduler lets the job in, and its pods run."""
        await asyncio.sleep(12)
        for group in self.server.all("podgroups"):
            self.server.put("podgroups", merged(group, {"status": {"phase": "Running"}}))
        await asyncio.sleep(5)
        for pod in self.server.all("pods"):
            self.server.put("pods", merged(pod, {"status": {"phase": "Running"}}))
        await asyncio.sleep(2)

    def messages(self) -> list[str]:
        """What events say of plugins."""
        return [one["message"] for one in self.server.all("events") if one["reason"] == "PluginError"]


@pytest.mark.parametrize("code", ANSWERS)
def test_each_request_for_each_object_may_fail_once(code: int) -> None:
    async def main() -> None:
        world = World(code, methods="POST GET PATCH DELETE")
        await world.begin()
        assert (world.missing, world.there()) == ([], set(OBJECTS))
        assert (world.phase("j"), len(world.server.all("pods"))) == ("Running", 2)
        told = {(code != 429, any("out of order" in text for text in world.messages()))}
        assert told <= {(True, True), (False, False)}, "429 is waited for"
        assert "message" not in world.server.get("jobs", "j", "ns")["status"]["state"]
        found = {kind: world.server.get(kind, name, "ns") for kind, name in OBJECTS.items()}
        for kind, part in EDITS.items():
            world.server.put(kind, merged(found[kind], part))
        await asyncio.sleep(FRESH)
        world.server.put("pods", merged(world.server.all("pods")[0], {"metadata": {"labels": {"x": "y"}}}))
        await asyncio.sleep(20)
        for kind, part in EDITS.items():
            [changed] = part
            assert world.server.get(kind, OBJECTS[kind], "ns")[changed] == found[kind][changed]
        world.command("AbortJob", "Job", "j")
        await asyncio.sleep(20)
        assert (world.there(), world.phase("j")) == (set(), "Aborted")
        assert set(world.left.values()) == {0}, "each has failed"
        await world.end()

    run(main())


def test_a_job_whose_object_is_always_refused_says_so_gets_no_pods_and_is_given_up() -> None:
    async def main() -> None:
        world = World(422, times=1000, methods="POST", only="services")
        world.controllers = world.controlling(max_requeue=3)
        await world.begin()
        assert world.server.all("pods") == []
        found = world.server.get("jobs", "j", "ns")["status"]
        assert all(text.startswith("Execute plugin when job add failed, err: ") for text in world.messages())
        assert any("out of order" in text for text in world.messages())
        assert any("retry limit reached" in one["message"] for one in world.server.all("events"))
        assert found["state"]["phase"] == "Terminated"
        assert world.there() == set(), "what had been made is gone"
        await world.end()

    run(main())


def test_an_object_of_another_owner_holds_the_job_for_as_long_as_it_is_there() -> None:
    async def main() -> None:
        world = World()
        world.controllers = world.controlling(max_requeue=2)
        foreign = {"metadata": {"name": "j", "namespace": "ns"}, "spec": {"selector": {"app": "web"}}}
        world.server.put("services", foreign)
        await world.begin()
        state = world.server.get("jobs", "j", "ns")["status"]["state"]
        assert (world.phase("j"), state["reason"], world.server.all("pods")) == ("Pending", "PluginError", [])
        assert "delete or rename it" in state["message"]
        assert world.server.get("services", "j", "ns")["spec"] == {"selector": {"app": "web"}}
        world.server.drop("services", "j", "ns")
        await world.admit()
        assert (world.phase("j"), world.missing) == ("Running", [])
        await world.end()

    run(main())


def test_restarted_controllers_repair_what_changed_meanwhile_and_make_no_second_key() -> None:
    async def main() -> None:
        world = World()
        first = await world.begin(svc=[], ssh=[])
        keys = world.server.get("secrets", "j-ssh", "ns")["data"]
        world.controllers.stop()
        await first
        world.server.drop("networkpolicies", "j", "ns")
        second = world.controlling()
        world.tasks.append(asyncio.create_task(second.run()))
        await asyncio.sleep(10)
        assert world.there() == set(OBJECTS)
        assert world.server.get("secrets", "j-ssh", "ns")["data"] == keys
        await world.end()

    run(main())


# ---------------------------------------------------------------------- keys


def text_of(data: dict[str, str], name: str) -> bytes:
    return base64.b64decode(data[name])


def test_keys_have_the_form_that_ssh_reads() -> None:
    made = completed_keys({})
    private = text_of(made, "id_rsa")
    assert private.startswith(b"-----BEGIN RSA PRIVATE KEY-----\n")
    key = serialization.load_pem_private_key(private, None)
    assert isinstance(key, rsa.RSAPrivateKey)
    assert key.key_size == 2048
    public = text_of(made, "id_rsa.pub")
    head, _, rest = public.partition(b" ")
    assert (head, rest[-1:], rest.count(b" ")) == (b"ssh-rsa", b"\n", 0)
    assert made["authorized_keys"] == made["id_rsa.pub"]
    loaded = serialization.load_ssh_public_key(public)
    assert isinstance(loaded, rsa.RSAPublicKey)
    assert loaded.public_numbers() == key.public_key().public_numbers()
    assert completed_keys(made) == made, "what is sound stays"
    assert completed_keys({"id_rsa": made["id_rsa"]}) == made, "what is missing follows"


def test_a_key_that_is_no_base64_to_the_letter_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other readers, such as kubelets, would refuse it."""
    known, other = rsa.generate_private_key(65537, 2048), rsa.generate_private_key(65537, 2048)
    monkeypatch.setattr(rsa, "generate_private_key", lambda *_: known)
    made = completed_keys({})
    monkeypatch.setattr(rsa, "generate_private_key", lambda *_: other)
    assert completed_keys({"id_rsa": made["id_rsa"]}) == made
    assert completed_keys({"id_rsa": f"{made['id_rsa'][:80]}%{made['id_rsa'][80:]}"}) != made


@pytest.mark.parametrize("spoilt", ["%", "eA==", "é"])
def test_what_is_no_key_is_replaced_by_one(spoilt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = rsa.generate_private_key(65537, 2048)
    monkeypatch.setattr(rsa, "generate_private_key", lambda *_: known)
    made = completed_keys({"id_rsa": spoilt})
    key = serialization.load_pem_private_key(text_of(made, "id_rsa"), None)
    assert isinstance(key, rsa.RSAPrivateKey)
    assert key.private_numbers() == known.private_numbers()
    assert json.dumps(made)


def test_keys_that_are_being_made_keep_no_other_write_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story() -> None:
        made = asyncio.Event()

        async def slow(_keeper: Keeper, _change: Keep) -> None:
            await made.wait()

        async def answers(_target: Target) -> bool:
            return True

        monkeypatch.setattr(Keeper, "keep", slow)
        world = World()
        writer = Writer(Client(world.server), Manager(), {}, world.clock, answers)
        keep = Keep("ssh", "ns", secret("j-ssh", {}, SSH_KEYS), {"uid": "u"})
        keys = [asyncio.create_task(writer.carry_out(keep)) for _ in range(2 * WRITES_AT_ONCE)]
        await asyncio.sleep(1)
        async with asyncio.timeout(10):
            await writer.carry_out(Drop("secrets", "ns", "other", "u"))
        made.set()
        await asyncio.gather(*keys)

    run(story())


def test_pods_that_are_being_made_keep_no_other_write_waiting() -> None:
    """Else the status of a job would tell of its pods only when those of all other jobs have been made."""

    async def story() -> None:
        world = World()
        made = asyncio.Event()

        async def answers(_target: Target) -> bool:
            return True

        class Slow(Client):
            async def create(self, *given: Any, **more: Any) -> Any:
                await made.wait()
                return await super().create(*given, **more)

        writer = Writer(Slow(world.server), Manager(), writable(("volcano",)), world.clock, answers)
        creates = [Create(PODS, "ns", {"metadata": {"name": f"p{n}", "namespace": "ns"}}) for n in range(100)]
        pods = [asyncio.create_task(writer.carry_out(create)) for create in creates]
        await asyncio.sleep(1)
        async with asyncio.timeout(10):
            await writer.carry_out(Drop("secrets", "ns", "other", "u"))
        assert world.server.all("pods") == []
        made.set()
        await asyncio.gather(*pods)
        assert len(world.server.all("pods")) == len(creates)

    run(story())


def test_an_object_goes_and_its_replacement_by_a_user_is_left_alone() -> None:
    """At first it is taken for the job's own, whose uid it lacks; then no deletion asks for that uid any more."""

    async def story() -> None:
        world, kept = World(), KeptObjects()
        keeper = Keeper(Client(world.server), kept, world.clock)
        owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
        keep, drop = Keep("svc", "ns", config_map("j-svc", {"a": "b"}), owner), Drop("configmaps", "ns", "j-svc", "u")
        await keeper.keep(keep)
        await keeper.drop(drop)
        assert (world.server.all("configmaps"), kept.of("u")) == ([], {})
        await keeper.keep(keep)
        world.server.drop("configmaps", "j-svc", "ns")
        other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "j-svc", "namespace": "ns", "uid": "x"}}
        world.server.put("configmaps", other)
        with pytest.raises(ApiError, match="Conflict"):
            await keeper.drop(drop)
        assert kept.of("u") == {}
        await keeper.drop(drop)
        assert [one["metadata"]["uid"] for one in world.server.all("configmaps")] == ["x"]

    run(story())
