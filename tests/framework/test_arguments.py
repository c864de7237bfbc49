"""Arguments of plugins and actions: families of keys, what is taken, what is refused, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest

from stromboli.errors import PluginError
from stromboli.framework.config.argument import (
    Argument,
    Complaint,
    arg,
    arg_pattern,
    arg_section,
    convert,
    go_text,
    nearest,
    parse_arguments,
)
from stromboli.plugins.predicates import Predicates


def parsed(given: dict[str, object], **declared: object) -> tuple[dict[str, Any], list[Complaint]]:
    known: Any = declared
    return parse_arguments(known, given, "mine")


@pytest.mark.parametrize(
    ("key", "gap"),
    [("a.x.z", "x"), ("a.x.y.z", "x.y"), ("a..z", ""), ("a.z", ""), ("b.x.z", ""), ("a.x.y", ""), ("a.", "")],
)
def test_what_stands_for_the_star(key: str, gap: str) -> None:
    assert Argument("a.*.z", int, 0).gap(key) == gap


def test_a_family_takes_all_its_keys_and_the_longest_pattern_wins() -> None:
    found, complaints = parsed(
        {"w.cpu": 2, "w.big.cpu": 3, "w.gpu": "x", "other": 1},
        weights=arg_pattern("w.*", int, 7), big=arg_pattern("w.big.*", int, 1), other=arg("other", int, 0),
    )  # fmt: skip
    assert found == {"weights": {"cpu": 2, "gpu": 7}, "big": {"cpu": 3}, "other": 1}
    assert [(one.kind, one.key) for one in complaints] == [("type", "w.gpu")]


def test_one_that_is_not_declared_keeps_none_after_it_back() -> None:
    found, complaints = parsed({"wieght": 1, "limit": 2}, weight=arg("weight", int, 5), limit=arg("limit", int, 0))
    assert found == {"weight": 5, "limit": 2}
    [one] = complaints
    assert (one.kind, one.key, one.nearest) == ("unknown", "wieght", "weight")
    assert "did you mean 'weight'?" in one.told
    [far] = parsed({"zzz": 1}, weight=arg("weight", int, 5))[1]
    assert "did you mean" not in far.told


@pytest.mark.parametrize(
    ("text", "close", "told"),
    [("no such", "a", "no such; did you mean 'a'?"), ("no such; did you mean 'a'?", "a", "no such; did you mean 'a'?"),
     ("no such", "", "no such")],
)  # fmt: skip
def test_what_was_probably_meant_is_said_once(text: str, close: str, told: str) -> None:
    assert Complaint("unknown", text, nearest=close).told == told


def test_a_bad_value_of_a_fatal_argument_is_an_error() -> None:
    checked = arg("size", int, 3, check=lambda value: "must be positive" if value <= 0 else "", fatal=True)
    assert parsed({"size": 2}, size=checked) == ({"size": 2}, [])
    with pytest.raises(PluginError, match="argument size: must be positive"):
        parsed({"size": 0}, size=checked)
    with pytest.raises(PluginError, match="argument size: Could not parse argument: big for key size to int"):
        parsed({"size": "big"}, size=checked)


def test_sections_name_the_keys_within_them() -> None:
    section = arg_section("limits", arg("cpu", int, 80), "no argument", arg("mem", int, 70))
    assert parsed({}, limits=section)[0] == {"limits": {"cpu": 80, "mem": 70}}
    found, complaints = parsed({"limits": {"cpu": "x", "mem": 5}}, limits=section)
    assert found == {"limits": {"cpu": 80, "mem": 5}}
    assert [one.key for one in complaints] == ["limits.cpu"]


@pytest.mark.parametrize(
    ("value", "kind", "taken"),
    [(1, int, 1), (True, int, None), (1.5, int, None), (1, float, 1.0), (1e308, float, 1e308), (1.1e308, float, None),
     (-1e308, float, -1e308), (True, float, None), ("x", str, "x"), (1, str, None), ([1], list, [1]), ({}, list, None),
     ({"a": 1}, dict, {"a": 1}), ([], dict, None), ("T", bool, True), (False, bool, False), (0, bool, None),
     ("maybe", bool, None), (b"any", object, b"any")],
)  # fmt: skip
def test_what_is_read_as_which_type(value: object, kind: type[Any], taken: object) -> None:
    assert convert(value, kind) == taken
    assert convert(value, kind) is None or type(convert(value, kind)) is type(taken)


@pytest.mark.parametrize(
    ("value", "text"),
    [({"b": 1, "a": [True, None]}, "map[a:[true <nil>] b:1]"), ([1, "x"], "[1 x]"), (False, "false"), ("x", "x")],
)
def test_values_are_printed_as_go_does(value: object, text: str) -> None:
    assert go_text(value) == text


def test_names_that_differ_in_case_alone_are_near_in_a_fixed_order() -> None:
    assert nearest("cpU", ["CPU", "cpu"]) == nearest("cpU", ["cpu", "CPU"])


@pytest.mark.parametrize("name", ["GPUSharingEnable", "GPUNumberEnable", "VGPUEnable"])
def test_switches_of_devices_that_predicates_had_once_are_told_to_be_another_plugins(name: str) -> None:
    complaints = Predicates({f"predicate.{name}": True}).complaints
    assert [(one.kind, one.key) for one in complaints] == [("tolerated", f"predicate.{name}")]
    assert "devices are the plugin deviceshare's" in complaints[0].text
