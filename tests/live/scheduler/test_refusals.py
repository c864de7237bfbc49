"""Objects that cannot be read, or are refused for good, are reported in words, without other consequences."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from types import SimpleNamespace
from typing import Any, cast

import pytest

from stromboli.api.batch import Job
from stromboli.api.kinds import QUEUES
from stromboli.builtin import builtin_registry
from stromboli.cluster.kinds import ResourceClaim
from stromboli.cluster.objects import from_value
from stromboli.controllers.changes import Read
from stromboli.crds.admission.paths import ALL_PATHS
from stromboli.errors import ApiError, ManifestError, MeasurementError, Unreachable
from stromboli.framework.config.config import load_config
from stromboli.kube.client import Client
from stromboli.kube.informers import Informers
from stromboli.kube.transport import Request, Response
from stromboli.live.controllers.controlled import decoder
from stromboli.live.controllers.owner_reading import read_owner
from stromboli.live.installation.settings import _of_parts
from stromboli.live.process.events import Telling
from stromboli.live.process.leading import Leadership
from stromboli.live.proofs.keys import _read as read_keys
from stromboli.live.scheduler.closeness import may_keep_close
from stromboli.live.scheduler.usage_poller import LONGEST, UsagePoller
from stromboli.live.scheduler.usage_sources import CustomMetrics
from stromboli.live.webhooks.bundles import Bundles
from stromboli.live.webhooks.sight import Sight, Together
from stromboli.live.webhooks.sources import _held
from stromboli.live.webhooks.tls import _no_password
from stromboli.live.writing.claims import allocated_at
from stromboli.narration.observe import Counting
from tests.support.live_world import KEY, key_secret, queue
from tests.support.virtual import run


class Answering:
    """An API server that gives one answer to everything."""

    def __init__(self, code: int, body: Any) -> None:
        self.response = Response(code, {}, json.dumps(body).encode())
        self.asked = list[str]()

    async def send(self, request: Request, _login: object) -> Response:
        self.asked.append(request.path)
        return self.response

    async def close(self) -> None:
        """Nothing is held."""


def client(code: int = 200, body: Any = None) -> Client:
    return Client(cast(Any, Answering(code, body or {})))


# -- What is read ----------------------------------------------------------------------------------------------------


def test_objects_of_ours_are_read_with_nulls_and_refused_where_they_are_no_json() -> None:
    read = decoder(Job)
    assert read(b'{"metadata": {"name": "j"}, "spec": {"tasks": null}}').spec.tasks == ()
    assert read(b'{"metadata": {"name": "j"}}').metadata.name == "j"
    for raw in (b"{", b'{"metadata": 1}'):
        with pytest.raises(ManifestError, match="Job"):
            read(raw)


@pytest.mark.parametrize(
    ("code", "reads", "why"),
    [(200, True, ""), (403, False, "no"), (404, False, "no"), (405, False, "no"), (400, False, "no"), (422, None, "")],
)
def test_an_owner_that_is_refused_for_good_is_an_answer(code: int, reads: bool | None, why: str) -> None:
    body = {"kind": "ReplicaSet"} if code == 200 else {"message": "no", "reason": "R", "code": code}
    wanted, found = Read("apps/v1", "ReplicaSet", "replicasets", "ns", "o"), client(code, body)
    if reads is None:
        with pytest.raises(ApiError):
            asyncio.run(read_owner(found, wanted))
    else:
        owner, text = asyncio.run(read_owner(found, wanted))
        assert (owner is not None, why in text, bool(text)) == (reads, True, bool(why))


@pytest.mark.parametrize(
    ("items", "problem"),
    [
        ({}, "KeyError"),
        ({"items": 3}, "TypeError"),
        ({"items": [{"describedObject": {"name": "n"}, "value": "much", "timestamp": "2027-01-15T08:00:00Z"}]}, "much"),
        ({"items": [{"describedObject": {}, "value": "1", "timestamp": "2027-01-15T08:00:00Z"}]}, "KeyError"),
    ],
)
def test_custom_metrics_of_another_form_are_an_error(items: Any, problem: str) -> None:
    with pytest.raises(MeasurementError, match=f"custom metrics.*the answer is not of its form.*{problem}"):
        asyncio.run(CustomMetrics(client(200, items)).sample(["n"]))


@pytest.mark.parametrize(("code", "versions"), [(404, ["v1beta2", "v1beta1"]), (403, ["v1beta2"])])
def test_custom_metrics_are_asked_for_in_an_older_version_where_there_is_no_newer(
    code: int, versions: list[str]
) -> None:
    server = Answering(code, {"message": "no", "reason": "R", "code": code})
    with pytest.raises(ApiError) as caught:
        asyncio.run(CustomMetrics(Client(cast(Any, server))).sample(["n"]))
    assert caught.value.code == code
    assert [path.split("/")[3] for path in server.asked][: len(versions)] == versions
    assert {path.split("/")[3] for path in server.asked} == set(versions)


def test_a_source_of_loads_that_never_answers_is_given_up_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told, taken = list[tuple[str, str]](), list[Any]()

    class Silent:
        async def sample(self, _: Any) -> Any:
            await asyncio.Event().wait()

        async def close(self) -> None:
            """Nothing is held."""

    async def story() -> float:
        poller = UsagePoller(dict, list, taken.append, lambda key, **fields: told.append((key, str(fields["error"]))))

        async def current() -> Any:
            return Silent()

        monkeypatch.setattr(poller, "_current", current)
        began = asyncio.get_running_loop().time()
        await poller.once()
        return asyncio.get_running_loop().time() - began

    assert run(story()) == pytest.approx(LONGEST)
    [(key, text)] = told
    assert (key, f"no answer within {LONGEST:g} s" in text, taken) == ("node_metrics_failed", True, [])


@pytest.mark.parametrize(
    ("name", "text", "path"),
    [("key", "no base64!", "data.key"), ("previous", "no base64!", "data.previous"), ("key", "", "data.key")],
)
def test_a_key_that_is_no_base64_is_refused_without_its_text(name: str, text: str, path: str) -> None:
    secret = key_secret(KEY)
    secret["data"][name] = text
    with pytest.raises(ManifestError) as caught:
        read_keys(secret)
    assert (caught.value.path, text in str(caught.value) and bool(text)) == (path, False)
    assert read_keys(key_secret(KEY, KEY)).keys == (KEY, KEY)


@pytest.mark.parametrize(("text", "found"), [("2027-01-15T08:00:00Z", 1_800_000_000), ("soon", 0), (None, 0)])
def test_when_devices_were_allocated_is_0_where_it_is_not_known(text: str | None, found: float) -> None:
    allocation = {"devices": {"results": []}, **({"allocationTimestamp": text} if text else {})}
    claim = from_value("ResourceClaim", {"metadata": {"name": "c"}, "status": {"allocation": allocation}})
    assert isinstance(claim, ResourceClaim)
    assert allocated_at(claim) == found
    assert allocated_at(ResourceClaim(claim.metadata)) == 0


def test_settings_of_programs_have_a_default_each_only_where_all_have_one() -> None:
    path = re.compile(r"custom\.(\w+)_log_level")
    found = _of_parts("log_level", cast(Any, None), 3, "help")
    names = [match[1] for one in found if (match := path.fullmatch(one.path))]
    assert (len(names), {one.default for one in found}) == (len(found), {3})
    each = {name: number for number, name in enumerate(names)}
    assert [one.default for one in _of_parts("log_level", cast(Any, None), each, "help")] == [*range(len(names))]
    del each[names[0]]
    assert all(one.default == each for one in _of_parts("log_level", cast(Any, None), each, "help"))


def test_a_plugin_that_is_not_there_keeps_no_jobs_close() -> None:
    for name, close in (("nowhere", False), ("network-topology-aware", True)):
        text, registry = f"actions: allocate\ntiers:\n- plugins: [{{name: {name}}}]\n", builtin_registry()
        config = load_config(text, source="c", known_plugins={name}, known_actions=registry.action_names)
        assert may_keep_close(config, registry) is close


# -- Webhook servers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["tls.crt", "tls.key", "ca.crt"])
def test_a_part_of_a_certificate_that_is_no_base64_is_refused_by_name(key: str) -> None:
    names = {"tls.crt": "c", "tls.key": "k", "ca.crt": "a"}
    data = {name: base64.b64encode(text.encode()).decode() for name, text in names.items()}
    found = {"metadata": {"name": "s"}, "data": {**data, key: "no base64!"}}
    with pytest.raises(ManifestError) as caught:
        _held(found, "ns/s")
    assert str(caught.value) == f"Secret ns/s, data.{key}: is no base64"


def test_an_encrypted_key_asks_for_no_password() -> None:
    with pytest.raises(ValueError, match="the key is encrypted"):
        _no_password()


def test_what_keeps_webhook_servers_from_following_is_told() -> None:
    told, informers = Counting(), Informers()
    sight = Sight(client(), ALL_PATHS.values(), informers, Telling(told))
    bundles = Bundles(client(), ALL_PATHS.values(), informers, Telling(told))
    for one in (sight, bundles):
        one._troubled(Unreachable("away"))
    kinds = [fields["kind"] for fields in told.of("following_trouble")]
    assert kinds == ["queues and namespaces", "webhook configurations"]


def test_bundles_are_written_to_all_configurations_before_an_error_is_raised() -> None:
    informers, server = Informers(), Answering(500, {"message": "broken", "reason": "InternalError", "code": 500})
    bundles = Bundles(Client(cast(Any, server)), ALL_PATHS.values(), informers, Telling(Counting()))
    for path in ALL_PATHS.values():
        hook = {"name": "h", "clientConfig": {"caBundle": "old"}}
        body = {"metadata": {"name": path.configuration, "uid": "u", "resourceVersion": "1"}, "webhooks": [hook]}
        bundles._informers[path.is_mutating].store["", path.configuration] = cast(Any, SimpleNamespace(object=body))
    with pytest.raises(ApiError, match="broken"):
        run(bundles.keep(b"new"))
    assert {path.rpartition("/")[2] for path in server.asked} == {one.configuration for one in ALL_PATHS.values()}


def test_a_world_of_two_has_what_either_has_and_lists_the_first() -> None:
    first: Any = SimpleNamespace(get=lambda *_: None, list=lambda resource: [resource])
    both: Any = Together(first, {QUEUES: [cast(Any, queue("q"))]})
    assert both.get(QUEUES, "q") == queue("q")
    assert (both.get(QUEUES, "none"), list(both.list(QUEUES))) == (None, [QUEUES])
    first.get = lambda *_: "first"
    assert both.get(QUEUES, "q") == "first"


# -- Leading ---------------------------------------------------------------------------------------------------------


def test_without_a_lease_there_is_nothing_to_give_back() -> None:
    leadership, given = Leadership(), list[str]()
    asyncio.run(leadership.release())
    assert leadership.leads()

    class Election:
        leads = False

        async def release(self) -> None:
            given.append("back")

    leadership.election = cast(Any, Election())
    asyncio.run(leadership.release())
    assert (given, leadership.leads()) == (["back"], False)
