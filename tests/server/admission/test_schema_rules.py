"""Rules in CEL within the schema of a custom kind (``x-kubernetes-validations``), on the embedded server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.browser import Answer, Browser

Json = dict[str, Any]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
RULES = "x-kubernetes-validations"
PATH = "/apis/example.com/v1/namespaces/default/things"


@pytest.fixture(scope="module")
def shared() -> Iterator[Browser]:
    browser = Browser()
    yield browser
    browser.runner.close()


def defined(browser: Browser, spec: Json, *rules: Json, code: int = 201) -> Answer:
    """The kind Thing, created again with these rules for its spec."""
    browser("DELETE", f"{DEFINITIONS}/things.example.com")
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", **spec, RULES: [*rules]}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    body = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    answer = browser("POST", DEFINITIONS, {"metadata": {"name": "things.example.com"}, "spec": body})
    assert answer.code == code, answer.body
    return answer


def made(browser: Browser, spec: Json) -> Answer:
    return browser(
        "POST", PATH, {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec}
    )


def changed(browser: Browser, spec: Json) -> Answer:
    body = browser("GET", f"{PATH}/t").body
    return browser("PUT", f"{PATH}/t", {**body, "spec": spec})


NUMBERS = {"properties": {name: {"type": "integer"} for name in ("least", "most", "a-b", "namespace")}}
LESS = "self.least <= self.most"
OVER = {"least": 3, "most": 2}
ESCAPED = {"a-b": 1, "namespace": 2}


@pytest.mark.parametrize(
    ("rule", "spec", "said"),
    [
        pytest.param({"rule": LESS}, {"least": 1, "most": 2}, "", id="holds"),
        pytest.param({"rule": LESS}, OVER, f'spec: Invalid value: "object": failed rule: {LESS}', id="no message"),
        pytest.param({"rule": LESS, "message": "too much"}, OVER, "too much", id="message"),
        pytest.param({"rule": LESS, "messageExpression": "'not ' + string(self.least)"}, OVER, "not 3", id="made"),
        pytest.param({"rule": LESS, "message": "no", "messageExpression": "self.x"}, OVER, ": no", id="not made"),
        pytest.param(
            {"rule": LESS, "reason": "FieldValueForbidden", "message": "no", "fieldPath": ".least"}, OVER,
            "spec.least: Forbidden: no", id="reason and path",
        ),
        pytest.param({"rule": LESS}, {"least": 3}, "no such key: most", id="a field that is not there"),
        pytest.param({"rule": "!has(self.most) || self.most > 0"}, {"least": 3}, "", id="asked for"),
        pytest.param({"rule": "self.a__dash__b + self.__namespace__ == 3"}, ESCAPED, "", id="names"),
        pytest.param({"rule": "self.a__dash__b == 2"}, ESCAPED, "failed rule", id="another value"),
        pytest.param({"rule": "self.least == oldSelf.least"}, {"least": 1}, "", id="about changes alone"),
    ],
)  # fmt: skip
def test_rules_about_an_object(shared: Browser, rule: Json, spec: Json, said: str) -> None:
    defined(shared, NUMBERS, rule)
    answer = made(shared, spec)
    assert answer.code == (422 if said else 201), answer.body
    assert not said or said in answer.text


def test_rules_of_parts_name_their_place(shared: Browser) -> None:
    item = {
        "type": "object",
        "properties": {"n": {"type": "integer", RULES: [{"rule": "self > 0"}]}},
    }
    free = {
        "type": "object",
        "additionalProperties": {"type": "string", RULES: [{"rule": "self != ''"}]},
    }
    defined(shared, {"properties": {"rows": {"type": "array", "items": item}, "notes": free}})
    answer = made(shared, {"rows": [{"n": 1}, {"n": 0}], "notes": {"a": ""}})
    assert [one["field"] for one in answer.body["details"]["causes"]] == ["spec.rows[1].n", "spec.notes.a"]


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        pytest.param({"least": 1}, {"least": 2}, 422, id="changed"),
        pytest.param({"least": 1, "most": 1}, {"least": 1, "most": 2}, 200, id="another field"),
    ],
)
def test_a_field_that_must_stay(shared: Browser, before: Json, after: Json, code: int) -> None:
    defined(shared, NUMBERS, {"rule": "self.least == oldSelf.least", "message": "it stays"})
    assert made(shared, before).code == 201
    assert changed(shared, after).code == code


def test_entries_of_a_map_list_are_compared_by_their_keys(shared: Browser) -> None:
    item = {
        "type": "object", "required": ["name"], RULES: [{"rule": "self.n >= oldSelf.n"}],
        "properties": {"name": {"type": "string"}, "n": {"type": "integer"}},
    }  # fmt: skip
    rows = {"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    defined(shared, {"properties": {"rows": rows}})
    assert made(shared, {"rows": [{"name": "a", "n": 5}, {"name": "b", "n": 1}]}).code == 201
    assert changed(shared, {"rows": [{"name": "b", "n": 2}, {"name": "a", "n": 5}, {"name": "c", "n": 0}]}).code == 200
    assert changed(shared, {"rows": [{"name": "a", "n": 4}, {"name": "b", "n": 2}]}).code == 422


def test_what_a_change_leaves_is_not_judged_again(shared: Browser) -> None:
    """An object from before a rule can still be changed elsewhere."""
    defined(shared, NUMBERS)
    assert made(shared, {"least": 9}).code == 201
    body = shared("GET", f"{DEFINITIONS}/things.example.com").body
    part = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    part["properties"]["least"][RULES] = [{"rule": "self < 5"}]
    assert shared("PUT", f"{DEFINITIONS}/things.example.com", body).code == 200
    assert changed(shared, {"least": 9, "most": 1}).code == 200
    assert changed(shared, {"least": 8, "most": 1}).code == 422


def test_a_rule_that_cannot_be_evaluated_is_told_and_passed_over(shared: Browser) -> None:
    answer = defined(shared, NUMBERS, {"rule": "self.?least.orValue(0) > 5"})
    told = " ".join(value for name, value in answer.headers if name.lower() == "warning")
    assert "v1.spec: x-kubernetes-validations[0] is not evaluated" in told
    assert made(shared, {"least": 1}).code == 201


@pytest.mark.parametrize(("fields", "count"), [(["x" * 3000], 1), ([f"p{number}" for number in range(40)], 16)])
def test_what_is_told_of_rules_is_bounded(shared: Browser, fields: list[str], count: int) -> None:
    answer = defined(
        shared, {"properties": {name: {"type": "string", RULES: [{"rule": "self.?a"}]} for name in fields}}
    )
    told = [value for name, value in answer.headers if name.lower() == "warning"]
    assert len(told) == count
    assert max(map(len, told)) < 300


TYPED = {
    "properties": {
        "n": {"type": "number"},
        "at": {"type": "string", "format": "date-time"},
        "day": {"type": "string", "format": "date"},
        "after": {"type": "string", "format": "duration"},
        "raw": {"type": "string", "format": "byte"},
        "rows": {"type": "array", "items": {"type": "number"}},
        "by-name": {"type": "object", "additionalProperties": {"type": "number"}},
    }
}


@pytest.mark.parametrize(
    ("rule", "spec"),
    [
        pytest.param("self.n == 1.0 && type(self.n) == double", {"n": 1}, id="number"),
        pytest.param("self.n / 2.0 == 0.5", {"n": 1}, id="arithmetic"),
        pytest.param("self.rows.all(x, x > 0.5)", {"rows": [1, 2.5]}, id="numbers of a list"),
        pytest.param("self.at > timestamp('2020-01-01T00:00:00Z')", {"at": "2021-01-01T00:00:00Z"}, id="time"),
        pytest.param("self.day.getFullYear() == 2021", {"day": "2021-05-01"}, id="day"),
        pytest.param("self.after < duration('2h')", {"after": "90m"}, id="duration"),
        pytest.param("self.raw == b'ab'", {"raw": "YWI="}, id="bytes"),
        pytest.param("self.by__dash__name['x-y'] == 2.0", {"by-name": {"x-y": 2}}, id="keys of a map stay"),
    ],
)
def test_values_have_the_types_of_their_schema(shared: Browser, rule: str, spec: Json) -> None:
    defined(shared, TYPED, {"rule": rule})
    assert made(shared, spec).code == 201
    defined(shared, TYPED, {"rule": f"!({rule})"})
    assert made(shared, spec).code == 422


def test_a_number_that_no_float_holds_is_a_number_all_the_same(shared: Browser) -> None:
    defined(shared, TYPED, {"rule": "self.n > 0.0"})
    assert made(shared, {"n": 10**400}).code in (201, 422)


def test_a_rule_that_is_no_cel_is_refused(shared: Browser) -> None:
    answer = defined(shared, NUMBERS, {"rule": "self.least <="}, {"message": "none"}, code=422)
    fields = [one["field"].rpartition(".spec]")[2] for one in answer.body["details"]["causes"]]
    assert fields == [f"[spec].{RULES}[0].rule", f"[spec].{RULES}[1].rule"] or all(RULES in one for one in fields)


def test_rules_of_changes_judge_what_stayed(shared: Browser) -> None:
    """As in Kubernetes: a rule of changes is about the step, which is made even where the value is the same."""
    defined(shared, NUMBERS, {"rule": "self.least > oldSelf.least"})
    assert made(shared, {"least": 1}).code == 201
    assert changed(shared, {"least": 2}).code == 200
    assert changed(shared, {"least": 2}).code == 422


def test_causes_are_bounded(shared: Browser) -> None:
    item = {"type": "integer", RULES: [{"rule": "self > 0"}]}
    defined(shared, {"properties": {"rows": {"type": "array", "items": item}}})
    answer = made(shared, {"rows": [0] * 1000})
    assert answer.code == 422
    causes = answer.body["details"]["causes"]
    assert len(causes) == 257
    assert causes[-1]["message"] == "and 744 more"


@pytest.mark.parametrize(
    ("status", "told"),
    [
        ({"n": 3}, ""),
        ({"n": 11}, "n is at most 9"),
        ({"m": 5}, ""),
        ({"m": 1}, "m only grows"),
    ],
)
def test_statuses_are_judged_with_the_whole_object(shared: Browser, status: Json, told: str) -> None:
    spec = {"type": "object", "properties": {"a": {"type": "integer"}}}
    grows = {"rule": "!has(self.m) || !has(oldSelf.m) || self.m >= oldSelf.m", "message": "m only grows"}
    numbers = {"type": "object", "properties": {"n": {"type": "integer"}, "m": {"type": "integer"}}, RULES: [grows]}
    bound = {"rule": "!has(self.status) || !has(self.status.n) || self.status.n < 10", "message": "n is at most 9"}
    define(shared, {"type": "object", "properties": {"spec": spec, "status": numbers}, RULES: [bound]})
    shared("DELETE", f"{PATH}/t")
    assert made(shared, {"a": 1}).code == 201
    strict = {**spec, RULES: [{"rule": "self.a > 5", "message": "a is above 5"}]}
    define(shared, {"type": "object", "properties": {"spec": strict, "status": numbers}, RULES: [bound]})
    assert shared.patch(f"{PATH}/t/status", {"status": {"m": 3}}).code == 200, "what it leaves alone is not judged"
    answer = shared.patch(f"{PATH}/t/status", {"status": status})
    assert (answer.code, told in answer.body.get("message", "")) == (422 if told else 200, True)


def define(browser: Browser, schema: Json) -> None:
    """The kind Thing with a status of its own, new or changed."""
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names}
    body = {"metadata": {"name": "things.example.com"}, "spec": {**spec, "versions": [{**version, **STATUS}]}}
    there = browser("GET", f"{DEFINITIONS}/things.example.com")
    if there.code == 200 and "status" in there.body["spec"]["versions"][0].get("subresources", {}):
        answer = browser.patch(f"{DEFINITIONS}/things.example.com", {"spec": body["spec"]})
    else:
        browser("DELETE", f"{DEFINITIONS}/things.example.com")
        answer = browser("POST", DEFINITIONS, body)
    assert answer.code in (200, 201), answer.body


STATUS: Json = {"subresources": {"status": {}}}
