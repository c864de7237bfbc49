"""Objects as JSON values: their parts, their versions, and changed copies of them."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.cluster.body import changed, key_of, merge_patched, newer, part, seconds_of, with_meta

POD: dict[str, Any] = {
    "metadata": {"name": "a", "namespace": "ns", "labels": {"app": "x"}},
    "spec": {"nodeName": "n1"},
    "status": {},
}


@pytest.mark.parametrize(
    ("version", "known", "expected"),
    [("10", "9", True), ("9", "10", False), ("9", "9", False), ("a", "b", True), ("a", "a", False), ("", "", True)],
)
def test_which_version_is_newer(version: str, known: str, expected: bool) -> None:
    assert newer(version, known) is expected


@pytest.mark.parametrize(
    ("path", "found"),
    [((), POD), (("spec", "nodeName"), "n1"), (("spec", "nodeName", "x"), None), (("spec", "x", "y"), None)],
)
def test_a_part_is_found_by_its_path(path: tuple[str, ...], found: object) -> None:
    assert part(POD, *path) == found


@pytest.mark.parametrize(
    ("body", "key"),
    [(POD, ("ns", "a")), ({"metadata": {"name": "n1"}}, ("", "n1")), ({"metadata": None}, ("", "")), ({}, ("", ""))],
)
def test_where_an_object_stands(body: dict[str, Any], key: tuple[str, str]) -> None:
    assert key_of(body) == key


def test_a_changed_copy_leaves_the_object_as_it_is() -> None:
    assert changed(POD, spec=None, status={"phase": "Running"}) == {
        "metadata": POD["metadata"],
        "status": {"phase": "Running"},
    }
    assert with_meta(POD, labels=None, uid="u")["metadata"] == {"name": "a", "namespace": "ns", "uid": "u"}
    assert with_meta({}, name="a") == {"metadata": {"name": "a"}}
    assert POD["spec"] == {"nodeName": "n1"}
    assert "uid" not in POD["metadata"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1970-01-01T00:00:01Z", 1.0), ("1970-01-01T01:00:00+01:00", 0.0), ("soon", None), ("", None), (None, None)],
)
def test_times_that_cannot_be_read_are_none(text: str | None, seconds: float | None) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize(
    ("value", "patch", "result"),
    [
        ({"a": 1, "b": 2}, {"b": 3}, {"a": 1, "b": 3}),
        ({"a": 1, "b": 2}, {"b": None}, {"a": 1}),
        ({"a": 1}, {"b": None}, {"a": 1}),
        ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"a": 1}, {"a": {"b": None, "c": 1}}, {"a": {"c": 1}}),
        ([1], {"a": 1}, {"a": 1}),
        ({"a": 1}, "text", "text"),
    ],
)
def test_merge_patches_as_rfc_7386_says(value: Any, patch: Any, result: Any) -> None:
    assert merge_patched(value, patch) == result
