"""The whole numbers that stand for tolerant comparisons agree with those comparisons."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.fairness.thresholds import Thresholds
from stromboli.model.resources.axes import PODS
from stromboli.model.resources.resource import Default, Resource

NAMES = ("example.com/a", "example.com/b")

fractions = st.sampled_from([0.0, 0.01, 0.05, 0.0999, 0.1, 0.1000001, 0.5, 0.9, 0.95, 0.999])
figure = st.builds(lambda whole, rest: whole + rest, st.integers(0, 12), fractions)
deserved = st.lists(figure, min_size=5, max_size=5)
held = st.lists(st.integers(0, 14), min_size=5, max_size=5)
asked = st.lists(st.integers(0, 4), min_size=5, max_size=5)


def resource(values):
    cpu, memory, pods, *rest = map(float, values)
    return Resource(cpu, memory, {"pods": pods, **dict(zip(NAMES, rest, strict=True))})


@given(deserved, held)
def test_reached_is_less_equal(deserved, held):
    expected = resource(deserved).less_equal(resource(held), Default.ZERO)
    assert Thresholds(deserved).reached(held) == expected


@given(deserved, held)
def test_exceeded_is_not_less_equal(deserved, held):
    expected = not resource(held).less_equal(resource(deserved), Default.ZERO)
    assert Thresholds(deserved).exceeded(held) == expected


@given(deserved, held, asked)
def test_covers_compares_what_is_asked_for_and_no_pods(deserved, held, asked):
    after = resource([have + more for have, more in zip(held, asked, strict=True)])
    expected, _ = after.less_equal_dims_names(resource(deserved), resource(asked))
    assert Thresholds(deserved).covers(held, asked) == expected


@given(deserved, held, asked, st.integers(0, 6))
def test_times_is_covers_again_and_again(deserved, held, asked, most):
    thresholds, now, count = Thresholds(deserved), list(held), 0
    while count < most and thresholds.covers(now, asked):
        now, count = [have + more for have, more in zip(now, asked, strict=True)], count + 1
    assert thresholds.times(held, asked, most) == count


@pytest.mark.parametrize(
    ("deserved", "held", "share"),
    [([4, 0, 0], [3, 9, 9], 0.75), ([4, 2, 0], [3, 3, 0], 1.5), ([0, 0, 0], [1, 1, 1], 0.0)],
    ids=["what-is-not-deserved-does-not-count", "the-largest", "nothing-deserved"],
)
def test_share(deserved, held, share):
    assert Thresholds(deserved).share(held) == share


def test_pods_are_no_limit():
    assert Thresholds([10.0, 10.0, 1.0]).covers([0, 0, 5], [1, 1, 1])
    assert PODS == 2


def test_a_shorter_request_asks_for_no_more():
    assert Thresholds([10.0, 10.0, 1.0, 0.0]).covers([0, 0, 0, 0], [5])
