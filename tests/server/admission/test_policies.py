"""ValidatingAdmissionPolicies on the embedded server: what they deny, warn of and let pass, and how they are bound."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from stromboli.crds.cel.policies import POLICIES, policies
from stromboli.server.admission.webhooks import OwnKinds
from tests.server.browser import Answer, Browser
from tests.support.admission_cases import CASES
from tests.support.admission_writes import ONE_WRITE, furnishing, said_to, unlike_its_webhook

Json = dict[str, Any]
GROUP = "admissionregistration.k8s.io"
POLICY, BINDING = "validatingadmissionpolicies", "validatingadmissionpolicybindings"
HOOKS = f"/apis/{GROUP}/v1"
MAPS = "/api/v1/namespaces/default/configmaps"
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
FALSE = {"expression": "object.data.a == '2'"}


@pytest.fixture(scope="module")
def shared() -> Iterator[Browser]:
    browser = Browser()
    yield browser
    browser.runner.close()


@pytest.fixture
def empty(shared: Browser) -> Browser:
    """The server without what tests have left there."""
    for collection in (("", "configmaps"), ("", "secrets"), (GROUP, POLICY), (GROUP, BINDING)):
        store = shared.api.store
        for key in [key for key in store.of(collection).entries if key[1] != "kube-root-ca.crt"]:
            store.drop(collection, key)
    shared.settle()
    return shared


def served(browser: Browser, *validations: Json, bound: Json | None = None, **spec: Any) -> Browser:
    """The server with one policy on ConfigMaps and its binding."""
    constraints = {"resourceRules": [RULE], **spec.pop("matchConstraints", {})}
    policy = {"matchConstraints": constraints, "validations": [*validations], **spec}
    created(browser, POLICY, "p", policy)
    binding = {"policyName": "p", "validationActions": ["Deny"], **(bound or {})}
    created(browser, BINDING, "b", binding)
    return browser


def created(browser: Browser, plural: str, name: str, spec: Json) -> Answer:
    answer = browser("POST", f"{HOOKS}/{plural}", {"metadata": {"name": name}, "spec": spec})
    assert answer.code == 201, answer.body
    return answer


def made(browser: Browser, name: str = "m", **fields: Any) -> Answer:
    return browser("POST", MAPS, {"metadata": {"name": name, **fields}, "data": {"a": "1"}})


def warnings(answer: Answer) -> str:
    return " ".join(value for name, value in answer.headers if name.lower() == "warning")


def test_our_own_policies_refuse_what_our_webhooks_refuse(monkeypatch: pytest.MonkeyPatch, empty: Browser) -> None:
    """As on a real API server: the same cases, and the same that the policies say they do not check."""
    monkeypatch.setattr(OwnKinds, "admit", lambda self, resource, body, old, world: body)
    monkeypatch.setattr(OwnKinds, "admit_deletion", lambda self, resource, body, world: None)
    browser = empty
    for method, path, body, media in furnishing():
        assert browser(method, path, body, media).code < 400
    for policy in policies(POLICIES):
        kind = str(policy["kind"])
        plural = POLICY if kind.endswith("Policy") else BINDING
        answer = browser("POST", f"{HOOKS}/{plural}", policy)
        assert (answer.code, warnings(answer)) == (201, "")

    def call(method: str, path: str, body: Json | None, media: str) -> tuple[int, Json]:
        answer = browser(method, path, body, media)
        return answer.code, answer.body

    wrong = [one for case in ONE_WRITE if (one := unlike_its_webhook(case, said_to(case, call)))]
    assert not wrong, "\n".join(wrong)
    assert "denied request" in said_to(CASES["job minimum"], call)


@pytest.mark.parametrize(
    ("validation", "code", "said"),
    [
        pytest.param({"expression": "object.data.a == '1'"}, 201, "", id="holds"),
        pytest.param(FALSE, 422, "failed expression: object.data.a == '2'", id="without a message"),
        pytest.param({**FALSE, "message": "no"}, 422, "denied request: no", id="message"),
        pytest.param(
            {**FALSE, "message": "no", "messageExpression": "'a is ' + object.data.a"},
            422,
            "request: a is 1",
            id="made",
        ),
        pytest.param(
            {**FALSE, "message": "no", "messageExpression": "object.data.x"}, 422, "request: no", id="cannot be made"
        ),
        pytest.param({**FALSE, "reason": "Forbidden"}, 403, "denied request", id="reason"),
        pytest.param({"expression": "object.data.b == '1'"}, 422, "no such key: b", id="error"),
        pytest.param({"expression": "1 + 1"}, 422, "no bool", id="no bool"),
        pytest.param({"expression": "request.userInfo.username == 'x'"}, 422, "failed expression", id="user"),
        pytest.param({"expression": "namespaceObject.metadata.name == 'default'"}, 201, "", id="namespace"),
        pytest.param({"expression": "oldObject == null && request.operation == 'CREATE'"}, 201, "", id="creation"),
        pytest.param({"expression": "quantity('1k').isGreaterThan(quantity('999'))"}, 201, "", id="quantities"),
        pytest.param({"expression": "'a,b'.split(',').size() == 2 && [1, 2].sum() == 3"}, 201, "", id="functions"),
    ],
)
def test_validations(empty: Browser, validation: Json, code: int, said: str) -> None:
    answer = made(served(empty, validation))
    assert answer.code == code, answer.body
    if said:
        assert said in answer.text
        assert "ValidatingAdmissionPolicy 'p' with binding 'b' denied request" in answer.text


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        pytest.param({"failurePolicy": "Ignore"}, 422, id="false is no failure"),
        pytest.param(
            {"matchConditions": [{"name": "c", "expression": "object.metadata.name == 'other'"}]}, 201, id="no"
        ),
        pytest.param({"matchConditions": [{"name": "c", "expression": "object.metadata.name == 'm'"}]}, 422, id="yes"),
        pytest.param({"matchConditions": [{"name": "c", "expression": "object.x.y"}]}, 422, id="condition fails"),
        pytest.param(
            {"failurePolicy": "Ignore", "matchConditions": [{"name": "c", "expression": "object.x.y"}]},
            201,
            id="passed",
        ),
        pytest.param({"matchConstraints": {"excludeResourceRules": [RULE]}}, 201, id="excepted"),
        pytest.param({"matchConstraints": {"resourceRules": [{**RULE, "resourceNames": ["n"]}]}}, 201, id="other name"),
        pytest.param({"matchConstraints": {"resourceRules": [{**RULE, "resourceNames": ["m"]}]}}, 422, id="its name"),
        pytest.param({"matchConstraints": {"resourceRules": [{**RULE, "operations": ["UPDATE"]}]}}, 201, id="updates"),
        pytest.param({"matchConstraints": {"objectSelector": {"matchLabels": {"a": "b"}}}}, 201, id="labels"),
    ],
)
def test_what_a_policy_is_about(empty: Browser, spec: Json, code: int) -> None:
    assert made(served(empty, FALSE, **spec)).code == code


@pytest.mark.parametrize(
    ("bound", "code", "warned"),
    [
        ({"validationActions": ["Warn"]}, 201, "Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b'"),
        ({"validationActions": ["Audit"]}, 201, ""),
        ({"policyName": "none"}, 201, ""),
        ({"matchResources": {"namespaceSelector": {"matchLabels": {"a": "b"}}}}, 201, ""),
        ({"matchResources": {"resourceRules": [{**RULE, "resources": ["secrets"]}]}}, 201, ""),
        ({"matchResources": {"resourceRules": [RULE]}}, 422, ""),
    ],
)
def test_bindings(empty: Browser, bound: Json, code: int, warned: str) -> None:
    answer = made(served(empty, FALSE, bound=bound))
    assert answer.code == code
    assert warned in warnings(answer)
    assert bool(warned) == bool(warnings(answer))


def test_a_binding_does_not_both_deny_and_warn(empty: Browser) -> None:
    spec = {"policyName": "p", "validationActions": ["Deny", "Warn"]}
    answer = empty("POST", f"{HOOKS}/{BINDING}", {"metadata": {"name": "b"}, "spec": spec})
    assert (answer.code, "must not contain both Deny and Warn" in answer.text) == (422, True)


def test_each_validation_that_fails_is_warned_of(empty: Browser) -> None:
    first, second = {"expression": "false", "message": "first"}, {"expression": "false", "message": "second"}
    told = warnings(made(served(empty, first, second, bound={"validationActions": ["Warn"]})))
    assert "first" in told
    assert "second" in told


def test_errors_pass_where_the_policy_ignores_them(empty: Browser) -> None:
    assert made(served(empty, {"expression": "object.data.b == '1'"}, failurePolicy="Ignore")).code == 201


@pytest.mark.parametrize(
    ("expression", "code", "said"),
    [("variables.twice == '11'", 201, ""), ("variables.bad", 422, "no such key: bad")],
)
def test_variables_are_known_to_those_after_them_and_fail_only_their_users(
    empty: Browser, expression: str, code: int, said: str
) -> None:
    variables = [
        {"name": "bad", "expression": "object.x.y"},
        {"name": "a", "expression": "object.data.a"},
        {"name": "twice", "expression": "variables.a + variables.a"},
    ]
    answer = made(served(empty, {"expression": expression}, variables=variables))
    assert answer.code == code
    assert not said or said in answer.text


@pytest.mark.parametrize(
    ("wanted", "found", "code"),
    [
        ({"name": "limits", "parameterNotFoundAction": "Deny"}, True, 422),
        ({"name": "limits", "parameterNotFoundAction": "Deny"}, False, 403),
        ({"name": "limits", "parameterNotFoundAction": "Allow"}, False, 201),
        ({"selector": {"matchLabels": {"a": "b"}}, "parameterNotFoundAction": "Deny"}, True, 422),
        ({"selector": {"matchLabels": {"a": "c"}}, "parameterNotFoundAction": "Allow"}, True, 201),
    ],
)
def test_parameters(empty: Browser, wanted: Json, found: bool, code: int) -> None:
    kind = {"apiVersion": "v1", "kind": "Secret"}
    validation = {"expression": "object.data.a == params.metadata.labels.a"}
    browser = served(empty, validation, paramKind=kind, bound={"paramRef": wanted})
    if found:
        secret = {"metadata": {"name": "limits", "labels": {"a": "b"}}}
        assert browser("POST", "/api/v1/namespaces/default/secrets", secret).code == 201
    assert made(browser).code == code


@pytest.mark.parametrize(
    ("policy", "actions", "code"),
    [("Fail", ["Deny"], 403), ("Fail", ["Warn"], 403), ("Ignore", ["Deny"], 201)],
)
def test_missing_parameters_follow_the_failure_policy(
    empty: Browser, policy: str, actions: list[str], code: int
) -> None:
    kind = {"apiVersion": "v1", "kind": "Secret"}
    bound = {"paramRef": {"name": "limits", "parameterNotFoundAction": "Deny"}, "validationActions": actions}
    assert made(served(empty, FALSE, paramKind=kind, bound=bound, failurePolicy=policy)).code == code


def test_more_parameters_than_are_looked_at_are_told(empty: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stromboli.server.admission.policies.MOST_PARAMS", 1)
    wanted = {"selector": {}, "parameterNotFoundAction": "Allow"}
    kind = {"apiVersion": "v1", "kind": "Secret"}
    browser = served(empty, {"expression": "true"}, paramKind=kind, bound={"paramRef": wanted})
    for name in ("a", "b"):
        assert browser("POST", "/api/v1/namespaces/default/secrets", {"metadata": {"name": name}}).code == 201
    assert "selects 2 parameters, more than 1" in made(browser).text


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"validations": [{}]}, "spec.validations[0].expression"),
        ({"validations": [{"expression": "object.a =="}]}, "spec.validations[0].expression"),
        ({"validations": [{"expression": "true", "messageExpression": "'"}]}, "spec.validations[0].messageExpression"),
        ({"matchConditions": [{"name": "c"}]}, "spec.matchConditions[0].expression"),
        ({"matchConditions": [{"expression": "true"}]}, "spec.matchConditions[0].name"),
        ({"variables": [{"expression": "1"}]}, "spec.variables[0].name"),
    ],
)
def test_a_policy_that_could_never_be_evaluated_is_refused(empty: Browser, spec: Json, field: str) -> None:
    answer = empty("POST", f"{HOOKS}/{POLICY}", {"metadata": {"name": "p"}, "spec": spec})
    assert answer.code == 422
    assert [one["field"] for one in answer.body["details"]["causes"]] == [field]


def test_what_uses_a_variable_that_cannot_be_evaluated_counts_as_holding(empty: Browser) -> None:
    variables = [{"name": "v", "expression": "authorizer.x()"}, {"name": "w", "expression": "variables.v"}]
    assert made(served(empty, {"expression": "variables.w == 1"}, variables=variables)).code == 201


def test_an_answer_bears_so_many_warnings(empty: Browser) -> None:
    spec = {"validations": [{"expression": "authorizer.x()"}] * 40}
    answer = created(empty, POLICY, "p", spec)
    assert len([name for name, _ in answer.headers if name.lower() == "warning"]) == 16


def test_a_deletion_shows_what_is_deleted(empty: Browser) -> None:
    browser = served(empty, {"expression": "request.operation != 'DELETE' || oldObject.data.a == '2'"})
    assert made(browser).code == 201
    answer = browser("DELETE", f"{MAPS}/m")
    assert (answer.code, "denied request" in answer.text) == (422, True)


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("object.?data.a.orValue('') == '2'", "unsupported syntax"),
        ("authorizer.group('').resource('pods').check('create').allowed()", "authorizer is not known here"),
        ("isURL(object.data.a)", "isURL is not known here"),
    ],
)
def test_what_cannot_be_evaluated_is_stored_told_and_not_enforced(empty: Browser, expression: str, why: str) -> None:
    spec = {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": expression}]}
    answer = created(empty, POLICY, "p", spec)
    assert "spec.validations[0].expression is not evaluated" in warnings(answer)
    assert why in warnings(answer)
    created(empty, BINDING, "b", {"policyName": "p", "validationActions": ["Deny"]})
    assert made(empty).code == 201


def test_a_long_list_in_an_object_costs_no_more_than_so_much(empty: Browser) -> None:
    names = {f"k{number}": "" for number in range(2000)}
    expression = "object.data.all(a, object.data.all(b, object.data.all(c, a != b || b != c)))"
    browser = served(empty, {"expression": expression})
    answer = browser("POST", MAPS, {"metadata": {"name": "m"}, "data": names})
    assert answer.code == 422
    assert "cost budget" in answer.text


# ---------------------------------------------------------------------- statuses

PODS = "/api/v1/namespaces/default/pods"
STATUS_IS_FINE = {
    "expression": "!has(object.status.message) || object.status.message != 'bad'",
    "messageExpression": "request.operation + ' ' + request.resource.resource + '/' + request.subResource",
}
UNLABELLED = {"expression": "!has(object.metadata.labels)"}


def policed(browser: Browser, validation: Json, *resources: str) -> Browser:
    """The server with a pod ``p`` and a policy about ``resources``."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["UPDATE"], "resources": [*resources]}
    served(browser, validation, matchConstraints={"resourceRules": [rule]})
    browser("DELETE", f"{PODS}/p?gracePeriodSeconds=0")
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    assert browser("POST", PODS, pod).code == 201
    return browser


ABOUT = {
    "pods": (False, True), "*": (False, True), "pods/status": (True, False), "*/status": (True, False),
    "pods/*": (True, True), "*/*": (True, True), "pods/scale": (False, False), "secrets/*": (False, False),
}  # fmt: skip
"""Whether a rule about these resources is about the statuses of pods, and about pods; as a kube-apiserver has it."""


@pytest.mark.parametrize("resource", ABOUT)
def test_rules_about_statuses(empty: Browser, resource: str) -> None:
    statuses, _ = ABOUT[resource]
    browser = policed(empty, STATUS_IS_FINE, resource)
    answer = browser.patch(f"{PODS}/p/status", {"status": {"message": "bad"}})
    assert answer.code == (422 if statuses else 200), answer.body
    if statuses:
        assert answer.text.endswith("with binding 'b' denied request: UPDATE pods/status")
        assert browser.get(f"{PODS}/p").body["status"].get("message") is None


@pytest.mark.parametrize("resource", ABOUT)
def test_rules_about_statuses_and_what_bears_them(empty: Browser, resource: str) -> None:
    _, pods = ABOUT[resource]
    browser = policed(empty, UNLABELLED, resource)
    assert browser.patch(f"{PODS}/p", {"metadata": {"labels": {"a": "b"}}}).code == (422 if pods else 200)


def test_a_policy_about_statuses_sees_both_and_leaves_others_alone(empty: Browser) -> None:
    grows = {"expression": "oldObject.status.phase != 'Running' || object.status.phase != 'Pending'"}
    browser = policed(empty, grows, "*/status")
    for phase, code in (("Running", 200), ("Pending", 422), ("Succeeded", 200), ("Pending", 200)):
        assert browser.patch(f"{PODS}/p/status", {"status": {"phase": phase}}).code == code
