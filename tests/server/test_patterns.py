"""Patterns and selectors that reach the embedded server: as a real one answers, whatever they are."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from tests.server.browser import PODS, TABLE, Browser, definition

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.com/v1/namespaces/default/things"
FOR_EVER = "(a+)+$"
"""A pattern that ``re`` would be busy with for ever."""


def things(pattern: str, **more):
    names = {"type": "array", "items": {"type": "string", "pattern": pattern}}
    spec = {"type": "object", "properties": {"names": names, **more}}
    return definition("things", "Thing", schema={"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}})


@pytest.fixture
def browser():
    found = Browser()
    with found.runner:
        yield found


def test_a_pattern_decides_at_once_whatever_it_is(browser):
    assert browser.post(DEFINITIONS, things(FOR_EVER)).code == 201
    assert browser.post(THINGS, {"metadata": {"name": "t"}, "spec": {"names": ["baa"]}}).code == 201
    name = "a" * 100_000 + "!"
    answer = browser.post(THINGS, {"metadata": {"name": "u"}, "spec": {"names": [name]}})
    assert answer.code == 422
    assert answer.text.endswith("spec.names[0] in body should match '(a+)+$'")


def test_a_definition_with_a_bad_pattern_is_refused(browser):
    answer = browser.post(DEFINITIONS, things("(?=a)", other={"type": "string", "pattern": "("}))
    place = "spec.versions[0].schema.openAPIV3Schema.properties[spec].properties"
    told = "must be a valid regular expression, but isn't: error parsing regexp:"
    assert answer.code == 422
    assert answer.text == (
        'CustomResourceDefinition.apiextensions.k8s.io "things.example.com" is invalid: '
        f'[{place}[names].items.pattern: Invalid value: "(?=a)": {told} invalid or unsupported Perl syntax: `(?=`, '
        f'{place}[other].pattern: Invalid value: "(": {told} missing closing ): `(`]'
    )


def test_a_value_that_is_too_long_for_its_pattern_is_refused(browser):
    assert browser.post(DEFINITIONS, things("(a|b)*a(a|b){999}c")).code == 201
    answer = browser.post(THINGS, {"metadata": {"name": "u"}, "spec": {"names": ["ab" * 600_000]}})
    assert answer.code == 422
    assert "but pattern is invalid: a text of 1200000 bytes is too long for it" in answer.text


@pytest.mark.parametrize("selector", ["a" + " " * 60_000 + "(", "a" * 60_000 + "(", "a in" + " " * 60_000 + "b"])
def test_a_selector_is_read_in_linear_time(browser, selector):
    answer = browser.get(f"{PODS}?labelSelector={quote(selector)}")
    assert answer.code == 400
    assert answer.text.startswith('unable to parse requirement: found "a')


@pytest.mark.parametrize(
    "path",
    [
        "[?(@.a==" * 50_000,
        "[?(@.a" + " " * 300_000,
        "['" * 100_000,
        "[" + "9" * 100_000 + "]",
        '.spec[?(@.a == "b")].c',
    ],
)
def test_a_columns_path_is_read_in_linear_time(browser, path):
    body = things("a")
    body["spec"]["versions"][0]["additionalPrinterColumns"] = [{"name": "C", "type": "string", "jsonPath": path}]
    assert browser.post(DEFINITIONS, body).code == 201
    assert browser.post(THINGS, {"metadata": {"name": "t"}, "spec": {"names": ["a"]}}).code == 201
    table = browser.get(THINGS, accept=TABLE)
    assert table.code == 200
    assert table.body["rows"][0]["cells"][1] is None
