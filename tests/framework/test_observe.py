"""Observers hear what they want, and nothing is reported that no observer wants."""

from __future__ import annotations

import numpy as np
import pytest

from stromboli.errors import NotFoundError
from stromboli.model.resources.axes import Axes
from stromboli.narration.observe import (
    SILENT,
    AmountRows,
    Columns,
    Counting,
    Derived,
    Observer,
    OnAxes,
    Several,
    each,
    teller,
    teller_all,
)

OVERUSED, BINDING = "queue_overused", "binding"


@pytest.mark.parametrize(
    "observer", [SILENT, Several([]), Several([SILENT, SILENT]), Counting(keys=[BINDING]), Several([Several([SILENT])])]
)
def test_there_is_no_teller_of_what_no_observer_wants(observer: Observer) -> None:
    assert teller(observer, OVERUSED) is None
    assert teller_all(observer, OVERUSED) is None
    assert not observer.wants(OVERUSED)


def test_silence_takes_everything_and_keeps_nothing() -> None:
    SILENT.started("action", "allocate")
    SILENT.tell(OVERUSED, {"queue": "q"})
    SILENT.ended("action", "allocate")
    assert not SILENT.wants(OVERUSED)
    assert vars(SILENT) == {}


def test_one_listener_gets_fields_by_name() -> None:
    observer = Counting()
    say = teller(observer, BINDING)
    assert say is not None
    say(task="ns/a", node="n1")
    say(task="ns/b", node="n2")
    assert observer.counts == {BINDING: 2}
    assert observer.of(BINDING) == [{"task": "ns/a", "node": "n1"}, {"task": "ns/b", "node": "n2"}]


@pytest.mark.parametrize("nested", [False, True])
def test_several_hear_what_each_wants(nested: bool) -> None:
    one, other = Counting(keys=[OVERUSED]), Counting(keys=[OVERUSED, BINDING])
    observer = Several([Several([one]), SILENT, other]) if nested else Several([one, other])
    for key, fields in ((OVERUSED, {"queue": "q"}), (BINDING, {"task": "ns/a", "node": "n1"})):
        say = teller(observer, key)
        assert say is not None
        say(**fields)
        observer.tell(key, fields)
    assert (one.counts, other.counts) == ({OVERUSED: 2}, {OVERUSED: 2, BINDING: 2})


class Taking(Counting):
    """Takes many at once."""

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[tuple[str, int, Columns]] = []

    def tell_all(self, key: str, count: int, columns: Columns) -> None:
        """Keep it."""
        self.taken.append((key, count, columns))


def test_an_observer_that_takes_single_events_gets_one_event_at_a_time() -> None:
    one, many = Counting(), Taking()
    columns = {"task": ["ns/a", "ns/b"], "node": ("n1",)}
    for observer in (one, many, Several([one, Several([many])])):
        say = teller_all(observer, BINDING)
        assert say is not None
        say(2, columns)
    assert one.of(BINDING) == [{"task": "ns/a", "node": "n1"}, {"task": "ns/b", "node": "n1"}] * 2
    assert many.taken == [(BINDING, 2, columns)] * 2
    assert not many.counts


@pytest.mark.parametrize(
    ("count", "columns", "fields"),
    [
        (1, {}, [{}]),
        (3, {}, [{}, {}, {}]),
        (2, {"a": (1,)}, [{"a": 1}, {"a": 1}]),
        (2, {"a": [1, 2], "b": "x"}, [{"a": 1, "b": "x"}, {"a": 2, "b": "x"}]),
        (2, {"a": AmountRows(Axes(), np.array([[1, 2, 3], [4, 5, 6]]))}, [{"a": (1, 2, 3)}, {"a": (4, 5, 6)}]),
    ],
)
def test_columns_are_the_fields_of_each(count: int, columns: Columns, fields: list[dict[str, object]]) -> None:
    found = list(each(count, columns))
    shown = [{name: v.vector if isinstance(v, OnAxes) else v for name, v in row.items()} for row in found]
    assert shown == fields


def test_columns_must_be_of_one_length() -> None:
    with pytest.raises(ValueError, match="argument"):
        list(each(3, {"a": [1, 2]}))


def test_spans_reach_all_and_end_in_reverse() -> None:
    order: list[str] = []

    class Noting(Counting):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def started(self, kind: str, name: str) -> None:
            order.append(f"{self.name} {kind} {name}")

        def ended(self, kind: str, name: str) -> None:
            order.append(f"{self.name} over")

    observer = Several([Noting("a"), Noting("b")])
    observer.started("action", "allocate")
    observer.ended("action", "allocate")
    assert order == ["a action allocate", "b action allocate", "b over", "a over"]


def test_counting_keeps_the_last_fields_and_the_spans() -> None:
    observer = Counting(keep=2)
    for queue in "abc":
        observer.tell(OVERUSED, {"queue": queue})
    observer.started("cycle", "")
    observer.ended("cycle", "")
    assert observer.of(OVERUSED) == [{"queue": "b"}, {"queue": "c"}]
    assert observer.counts[OVERUSED] == 3
    assert observer.spans == [("cycle", "")]


@pytest.mark.parametrize(
    ("key", "fields", "missing"),
    [
        ("queue_overloaded", {}, "queue_overloaded"),
        (BINDING, {"task": "ns/a"}, "node"),
        ("metric.queue_deleted", {}, "queue"),
        ("metric.unknown", {}, "metric.unknown"),
    ],
)
def test_counting_refuses_what_the_catalogue_does_not_know(key: str, fields: dict[str, object], missing: str) -> None:
    with pytest.raises(NotFoundError, match=missing):
        Counting().tell(key, fields)


def test_amounts_become_text_only_when_they_are_read() -> None:
    amounts = OnAxes(Axes(["nvidia.com/gpu"]), (2000, 1 << 30, 1, 4000))
    assert str(amounts) == "cpu 2000.00, memory 1073741824.00, nvidia.com/gpu 4000.00, pods 1.00"
    assert amounts.resource().get("nvidia.com/gpu") == 4000


def test_derived_figures_are_computed_when_they_are_read() -> None:
    asked: list[int] = []

    def half(raw: int) -> float:
        asked.append(raw)
        return raw / 2

    figures = Derived({"a": 1, "b": 4}, half)
    assert (list(figures), len(figures), asked) == (["a", "b"], 2, [])
    assert figures == {"a": 0.5, "b": 2.0}
    assert sorted(asked) == [1, 4]
