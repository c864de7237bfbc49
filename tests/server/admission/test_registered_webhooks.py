"""Webhooks that users register with the embedded server are asked, over TLS on this machine, and their answers hold."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from stromboli.server.admission import registered
from stromboli.server.controllers.workloads.room import Workloads
from tests.server.browser import MERGE, Answer, Browser, pod
from tests.support.certificates import Authority

HOOKS = "/apis/admissionregistration.k8s.io/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
Json = dict[str, Any]
AUTHORITY = Authority()
SERVICE_NAME = "hook.default.svc"


class Webhook:
    """A webhook on loopback, in the loop of the server under test; ``answer`` makes the response to a request."""

    def __init__(self, runner: asyncio.Runner, folder: Path) -> None:
        self.runner, self.asked = runner, list[Json]()
        self.answer: Callable[[Json], Json] = lambda request: {"allowed": True}
        certificate, key = AUTHORITY.issue("127.0.0.1", SERVICE_NAME, server=True)
        (folder / "both.pem").write_bytes(certificate + key)
        self.trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.trust.load_cert_chain(folder / "both.pem")
        self.site = web.AppRunner(self._app())
        runner.run(self._start())
        self.browser = Browser()
        self.browser.runner = runner

    def _app(self) -> web.Application:
        app = web.Application()
        app.router.add_post("/{path:.*}", self._serve)
        return app

    async def _start(self) -> None:
        await self.site.setup()
        await web.TCPSite(self.site, "127.0.0.1", 0, ssl_context=self.trust).start()

    async def _serve(self, request: web.Request) -> web.Response:
        review = await request.json()
        self.asked.append(review["request"])
        found = self.answer(review["request"])
        response = {"uid": review["request"]["uid"], **found}
        return web.json_response({**review, "request": None, "response": response})

    @property
    def port(self) -> int:
        return int(self.site.addresses[0][1])

    def end(self) -> None:
        self.runner.run(self.site.cleanup())


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhook]:
    with asyncio.Runner() as runner:
        found = Webhook(runner, tmp_path_factory.mktemp("webhook"))
        yield found
        found.end()


@pytest.fixture
def webhook(shared: Webhook) -> Webhook:
    shared.asked.clear()
    shared.answer = lambda request: {"allowed": True}
    return shared


def served(webhook: Webhook) -> Browser:
    """The one server, without what tests have left there."""
    store = webhook.browser.api.store
    for name in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations", "configmaps", "pods"):
        collection = ("" if name in ("configmaps", "pods") else "admissionregistration.k8s.io", name)
        for key in [key for key in store.of(collection).entries if key[1] != "kube-root-ca.crt"]:
            store.drop(collection, key)
    webhook.browser.settle()
    return webhook.browser


def register(browser: Browser, webhook: Webhook, kind: str = "Validating", name: str = "h", **fields: Any) -> Answer:
    ca = base64.b64encode(AUTHORITY.certificate).decode()
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
    hook = {
        "name": "check.example.com", "clientConfig": {"url": f"https://127.0.0.1:{webhook.port}/x", "caBundle": ca},
        "rules": [rule], "sideEffects": "None", "admissionReviewVersions": ["v1"], **fields,
    }  # fmt: skip
    if "service" in hook["clientConfig"]:
        hook["clientConfig"]["caBundle"] = ca
    body = {"metadata": {"name": name}, "webhooks": [hook]}
    return browser("POST", f"{HOOKS}/{kind.lower()}webhookconfigurations", body)


def made(browser: Browser, name: str = "m", labels: Json | None = None, query: str = "") -> Answer:
    return browser("POST", MAPS + query, {"metadata": {"name": name, "labels": labels or {}}, "data": {"a": "1"}})


def patch(*operations: Json) -> Json:
    text = base64.b64encode(msgspec.json.encode(operations)).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": text}


def warnings(answer: Answer) -> str:
    return " ".join(text for name, text in answer.headers if name.lower() == "warning")


def test_a_configuration_is_stored_with_defaults_and_shown(webhook: Webhook) -> None:
    browser = served(webhook)
    answer = register(browser, webhook)
    assert answer.code == 201, answer.body
    (hook,) = answer.body["webhooks"]
    assert {key: hook[key] for key in ("failurePolicy", "matchPolicy", "timeoutSeconds")} == {
        "failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"clientConfig": {"url": "http://127.0.0.1/x"}}, "must be an https address"),
        ({"clientConfig": {}}, "exactly one of url or service"),
        ({"timeoutSeconds": 31}, "between 1 and 30"),
        ({"objectSelector": {"matchLabels": {"a": 1}}}, "objectSelector"),
    ],
)
def test_what_cannot_be_asked_is_refused(webhook: Webhook, fields: Json, told: str) -> None:
    answer = register(served(webhook), webhook, **fields)
    assert answer.code in (400, 422)
    assert told in answer.text


def test_the_review_names_the_object_the_operation_and_the_user(webhook: Webhook) -> None:
    browser = served(webhook)
    register(browser, webhook)
    assert made(browser).code == 201
    assert browser("PATCH", f"{MAPS}/m", {"data": {"a": "2"}}, MERGE).code == 200
    assert browser("DELETE", f"{MAPS}/m").code == 200
    assert [one["operation"] for one in webhook.asked] == ["CREATE", "UPDATE", "DELETE"]
    create, update, delete = webhook.asked
    assert create["kind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert create["resource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert (create["name"], create["namespace"], create["dryRun"]) == ("m", "default", False)
    assert create["userInfo"]["username"] == "stromboli-admin"
    assert (create["object"]["data"], create["oldObject"]) == ({"a": "1"}, None)
    assert (update["object"]["data"], update["oldObject"]["data"]) == ({"a": "2"}, {"a": "1"})
    assert (delete["object"], delete["oldObject"]["data"]) == (None, {"a": "2"})


def test_a_refusal_is_told_and_nothing_is_stored(webhook: Webhook) -> None:
    browser = served(webhook)
    register(browser, webhook)
    webhook.answer = lambda request: {"allowed": False, "status": {"message": "no maps today", "code": 403}}
    answer = made(browser)
    assert (answer.code, answer.text) == (
        403,
        'admission webhook "check.example.com" denied the request: no maps today',
    )
    assert browser("GET", f"{MAPS}/m").code == 404
    webhook.answer = lambda request: {"allowed": False}
    assert made(browser).text == 'admission webhook "check.example.com" denied the request without explanation'


def test_a_mutating_webhook_changes_what_is_stored_and_what_validating_ones_see(webhook: Webhook) -> None:
    browser = served(webhook)
    register(browser, webhook, "Mutating", "first")
    register(browser, webhook, "Validating", "second")
    change = patch(
        {"op": "add", "path": "/data/b", "value": "2"}, {"op": "replace", "path": "/metadata/name", "value": "x"}
    )
    webhook.answer = lambda request: change if len(webhook.asked) == 1 else {"allowed": True, "warnings": ["mind it"]}
    answer = made(browser)
    assert answer.code == 201, answer.body
    assert (answer.body["metadata"]["name"], answer.body["data"]) == ("m", {"a": "1", "b": "2"})
    assert [one["object"]["data"] for one in webhook.asked] == [{"a": "1"}, {"a": "1", "b": "2"}]
    assert "mind it" in warnings(answer)


def test_a_generated_name_and_uid_are_those_that_the_webhook_saw(webhook: Webhook) -> None:
    browser = served(webhook)
    register(browser, webhook)
    answer = browser("POST", MAPS, {"metadata": {"generateName": "m-"}})
    (seen,) = webhook.asked
    assert answer.body["metadata"]["uid"] == seen["object"]["metadata"]["uid"]
    assert answer.body["metadata"]["name"] == seen["name"]
    assert made(browser, "twice").code == 201
    assert made(browser, "twice").code == 409


@pytest.mark.parametrize(
    ("fields", "asked"),
    [
        ({"objectSelector": {"matchLabels": {"team": "a"}}}, 1),
        ({"objectSelector": {"matchLabels": {"team": "b"}}}, 0),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, 1),
        ({"namespaceSelector": {"matchExpressions": [{"key": "off", "operator": "Exists"}]}}, 0),
        ({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["*/*"]}]}, 1),
        ({"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": ["*"]}]}, 0),
        ({"rules": [{"apiGroups": [""], "apiVersions": ["v2"], "operations": ["*"], "resources": ["*"]}]}, 0),
        ({"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["*"],
                     "scope": "Cluster"}]}, 0),
        ({"rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["*"]}]}, 0),
    ],
)  # fmt: skip
def test_rules_and_selectors_say_which_writes_it_is_asked_about(webhook: Webhook, fields: Json, asked: int) -> None:
    browser = served(webhook)
    assert register(browser, webhook, **fields).code == 201
    assert made(browser, labels={"team": "a"}).code == 201
    assert len(webhook.asked) == asked


@pytest.mark.parametrize(("policy", "versions"), [("Equivalent", ["v1beta1"]), ("Exact", [])])
def test_a_rule_about_another_version_matches_by_its_policy(webhook: Webhook, policy: str, versions: list[str]) -> None:
    browser = served(webhook)
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    rows = [{"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1", "v1beta1")]
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": rows,
    }
    definition = {"metadata": {"name": "things.example.com"}, "spec": spec}
    assert browser("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).code in (201, 409)
    rule = {"apiGroups": ["example.com"], "apiVersions": ["v1beta1"], "operations": ["*"], "resources": ["things"]}
    register(browser, webhook, rules=[rule], matchPolicy=policy)
    thing = {"metadata": {"name": "t"}, "spec": {"a": 1}}
    assert browser("POST", "/apis/example.com/v1/namespaces/default/things", thing).code == 201
    browser("DELETE", "/apis/example.com/v1/namespaces/default/things/t")
    webhook.asked[:] = [one for one in webhook.asked if one["operation"] == "CREATE"]
    assert [one["kind"]["version"] for one in webhook.asked] == versions
    assert [one["object"]["apiVersion"] for one in webhook.asked] == [f"example.com/{one}" for one in versions]
    assert [one["requestKind"]["version"] for one in webhook.asked] == ["v1"] * len(versions)


BROKEN = {"patchType": "JSONPatch", "patch": "!", "allowed": True}


@pytest.mark.parametrize(
    ("fields", "reply", "told"),
    [
        ({"clientConfig": {"url": "https://127.0.0.1:1/x"}}, {}, "failed calling webhook"),
        ({"clientConfig": {"url": "https://192.0.2.1/x"}}, {}, "is no address of this machine"),
        (
            {"clientConfig": {"service": {"name": "nosuch", "namespace": "default"}}},
            {},
            "has no address on this machine",
        ),
        ({}, {"uid": "other"}, "no AdmissionReview with a response"),
        ({}, BROKEN, "its patch cannot be used"),
    ],
)
@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
def test_a_webhook_that_fails_stops_the_write_unless_failures_are_ignored(
    webhook: Webhook, policy: str, fields: Json, reply: Json, told: str
) -> None:
    browser = served(webhook)
    webhook.answer = lambda request: reply
    assert register(browser, webhook, "Mutating", failurePolicy=policy, **fields).code == 201
    answer = made(browser)
    if policy == "Fail":
        assert (answer.code, answer.body["reason"]) == (500, "InternalError")
        assert told in answer.text
    else:
        assert answer.code == 201
        assert "was passed over" in warnings(answer)


def test_an_authority_that_did_not_sign_is_not_believed(webhook: Webhook) -> None:
    browser = served(webhook)
    other = base64.b64encode(Authority().certificate).decode()
    where = {"url": f"https://127.0.0.1:{webhook.port}/", "caBundle": other}
    register(browser, webhook, clientConfig=where)
    assert "certificate verify failed" in made(browser).text.lower()
    assert not webhook.asked


def test_a_service_is_asked_at_an_endpoint_of_this_machine_by_its_own_name(webhook: Webhook) -> None:
    browser = served(webhook)
    service = {"metadata": {"name": "hook"}, "spec": {"ports": [{"name": "https", "port": 443}]}}
    assert browser("POST", "/api/v1/namespaces/default/services", service).code == 201
    subset = {"addresses": [{"ip": "127.0.0.1"}], "ports": [{"name": "https", "port": webhook.port}]}
    ends = {"metadata": {"name": "hook"}, "subsets": [subset]}
    assert browser("POST", "/api/v1/namespaces/default/endpoints", ends).code == 201
    register(browser, webhook, clientConfig={"service": {"name": "hook", "namespace": "default", "path": "/validate"}})
    answer = made(browser)
    assert answer.code == 201, answer.body
    assert len(webhook.asked) == 1


def test_a_dry_run_asks_only_what_has_no_side_effects(webhook: Webhook) -> None:
    browser = served(webhook)
    register(browser, webhook)
    assert made(browser, query="?dryRun=All").code == 201
    assert [one["dryRun"] for one in webhook.asked] == [True]
    register(browser, webhook, name="other", sideEffects="NoneOnDryRun")
    assert made(browser, "n", query="?dryRun=All").code == 201
    assert browser("GET", f"{MAPS}/n").code == 404


def test_a_webhook_is_asked_again_if_others_changed_the_object_and_it_wants_that(webhook: Webhook) -> None:
    browser = served(webhook)
    register(browser, webhook, "Mutating", "a", reinvocationPolicy="IfNeeded")
    register(browser, webhook, "Mutating", "b")
    change = patch({"op": "add", "path": "/data/b", "value": "2"})
    webhook.answer = lambda request: change if len(webhook.asked) == 2 else {"allowed": True}
    assert made(browser).code == 201
    assert [one["object"]["data"] for one in webhook.asked] == [{"a": "1"}, {"a": "1"}, {"a": "1", "b": "2"}]


def test_one_write_passes_a_bounded_number(webhook: Webhook, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = served(webhook)
    monkeypatch.setattr(registered, "MOST_ASKED", 1)
    register(browser, webhook, name="a")
    register(browser, webhook, name="b")
    assert "has passed 1 webhooks already" in made(browser).text


@pytest.mark.parametrize(
    ("expression", "policy", "code", "asked"),
    [
        pytest.param("object.metadata.name == 'm'", "Fail", 201, 1, id="holds"),
        pytest.param("object.metadata.name == 'other'", "Fail", 201, 0, id="does not hold"),
        pytest.param("object.data.b == '1'", "Fail", 500, 0, id="fails the write"),
        pytest.param("object.data.b == '1'", "Ignore", 201, 0, id="fails and is passed over"),
    ],
)
def test_conditions_of_a_webhook(webhook: Webhook, expression: str, policy: str, code: int, asked: int) -> None:
    browser = served(webhook)
    register(browser, webhook, matchConditions=[{"name": "c", "expression": expression}], failurePolicy=policy)
    answer = made(browser)
    assert (answer.code, len(webhook.asked)) == (code, asked)
    assert code == 201 or "match conditions cannot be evaluated" in answer.text


def test_a_condition_that_cannot_be_evaluated_is_told_and_counts_as_true(webhook: Webhook) -> None:
    browser = served(webhook)
    answer = register(browser, webhook, matchConditions=[{"name": "c", "expression": "authorizer.x()"}])
    assert "matchConditions[0] is not evaluated: authorizer is not known here" in warnings(answer)
    assert made(browser).code == 201
    assert len(webhook.asked) == 1


@pytest.mark.parametrize("subresource", ["", "/status"])
def test_what_no_request_changes_no_webhook_changes_either(webhook: Webhook, subresource: str) -> None:
    browser = served(webhook)
    path, name = "/api/v1/namespaces/default/pods", f"kept{len(subresource)}"
    before = browser.post(path, pod(name, containers=[{"name": "c", "image": "i"}])).body["metadata"]
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": [f"pods{subresource}"]}
    register(browser, webhook, "Mutating", rules=[rule])
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "o"}
    changes: Json = {"deletionTimestamp": "2020-01-01T00:00:00Z", "generation": 99, "labels": {"seen": "yes"}}
    changes |= {"ownerReferences": [owner]} if subresource else {}
    operations = [{"op": "add", "path": f"/metadata/{field}", "value": value} for field, value in changes.items()]
    webhook.answer = lambda request: patch(*operations)
    written = {"status": {"message": "m"}} if subresource else {"metadata": {"annotations": {"a": "b"}}}
    answer = browser.patch(f"{path}/{name}{subresource}", written)
    assert (answer.code, len(webhook.asked)) == (200, 1), answer.body
    after = browser.get(f"{path}/{name}").body["metadata"]
    kept = ("uid", "deletionTimestamp", "generation", "ownerReferences")
    assert {field: after.get(field) for field in kept} == {field: before.get(field) for field in kept}
    assert after["labels"] == {"seen": "yes"}


def test_pods_of_workloads_pass_webhooks_too_and_each_is_made_once(webhook: Webhook) -> None:
    browser = served(webhook)
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    register(browser, webhook, "Mutating", rules=[rule])
    webhook.answer = lambda request: patch({"op": "add", "path": "/metadata/labels/seen", "value": request["name"]})
    template = {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "w"}}, "template": template}
    browser("POST", "/apis/apps/v1/namespaces/default/replicasets", {"metadata": {"name": "w"}, "spec": spec})

    async def main() -> None:
        task = asyncio.create_task(Workloads(browser.api).run())
        while len(list(browser.api.bodies("", "pods"))) < 3:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    webhook.runner.run(main())
    pods = list(browser.api.bodies("", "pods"))
    assert [pod["metadata"]["labels"]["seen"] for pod in pods] == [pod["metadata"]["name"] for pod in pods]
    assert len(pods) == len(webhook.asked) == 3
