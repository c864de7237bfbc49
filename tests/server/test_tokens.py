"""Tokens of service accounts: they are issued, name their account, and are valid for their time while it exists."""

from __future__ import annotations

import pytest

from stromboli.server.http.tokens import Tokens
from tests.server.browser import PODS, TOKEN, Browser

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"


@pytest.fixture
def browser():
    found = Browser()
    with found.runner:
        found.post(ACCOUNTS, {"metadata": {"name": "bob"}})
        yield found


def _issued(browser, seconds=None):
    spec = {} if seconds is None else {"expirationSeconds": seconds}
    answer = browser.post(f"{ACCOUNTS}/bob/token", {"spec": {"audiences": [], **spec}})
    assert answer.code == 201
    return answer.body["status"]["token"]


def test_an_issued_token_lets_its_account_in_for_its_time(browser):
    token = _issued(browser, 700)
    review = browser("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", {}, token=token).body["status"]
    assert review["userInfo"]["username"] == "system:serviceaccount:default:bob"
    assert browser("GET", PODS, token=token).code == 200
    browser.now += 701
    assert browser("GET", PODS, token=token).code == 401


def test_a_token_goes_with_its_account(browser):
    token = _issued(browser)
    browser.delete(f"{ACCOUNTS}/bob")
    assert browser("GET", PODS, token=token).code == 401
    browser.post(ACCOUNTS, {"metadata": {"name": "bob"}})
    assert browser("GET", PODS, token=token).code == 401, "it is another bob"


@pytest.mark.parametrize("odd", ["", ".", "..", "a.b.c", "é", "eyJhbGciOiJub25lIn0.e30."])
def test_a_forged_token_is_of_no_user(browser, odd):
    token = _issued(browser)
    head, claims, signature = token.split(".")
    for forged in (odd, f"{head}.{claims}.", f"{head}.{claims[:-2]}AA.{signature}", token[:-2], TOKEN[:-1]):
        assert browser.api.tokens.user_of(forged) is None
        review = browser.post(REVIEWS, {"spec": {"token": forged}}).body["status"]
        assert review == {"authenticated": False, "error": "invalid bearer token"}
    assert browser.post(REVIEWS, {"spec": {"token": token}}).body["status"]["authenticated"]
    assert browser.post(REVIEWS, {"spec": {"token": TOKEN}}).body["status"]["user"]["groups"][0] == "system:masters"


def test_without_a_secret_no_client_is_let_in(browser):
    closed = Tokens("", browser.api, lambda: 0.0)
    assert closed.user_of("") is None
    assert closed.user_of("a.b.c") is None


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (
            {"expirationSeconds": 60},
            "spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 10",
        ),
        ({"expirationSeconds": "long"}, "cannot unmarshal string into Go struct field"),
        ({"boundObjectRef": {"kind": "Pod", "name": "p"}}, "bound to objects"),
    ],
)
def test_what_cannot_be_issued_is_refused(browser, spec, text):
    answer = browser.post(f"{ACCOUNTS}/bob/token", {"spec": {"audiences": [], **spec}})
    assert answer.code in (400, 422)
    assert text in answer.text
    assert browser.post(f"{ACCOUNTS}/missing/token", {"spec": {}}).code == 404
