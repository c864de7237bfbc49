from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.fairness.waterfill import Claim, pour

NONE = (math.inf, math.inf, math.inf)


def claim(name, weight, request, limit=None, guarantee=None):
    """A claim of cpu alone, unless vectors are given."""

    def row(value, absent):
        return [value, absent, absent] if isinstance(value, (int, float)) else list(value)

    return Claim(
        name, weight, row(request, 0.0), row(math.inf if limit is None else limit, math.inf), row(guarantee or 0, 0.0)
    )


def share_out(total, *claims):
    rounds = list(pour([float(total), 0.0, 0.0] if isinstance(total, (int, float)) else total, claims))
    return [one.deserved[0] for one in claims], rounds


@pytest.mark.parametrize(
    ("total", "claims", "deserved"),
    [
        pytest.param(30, [("a", 1, 2), ("b", 2, 40), ("c", 3, 40)], [2, 11.2, 16.8], id="S3-62"),
        pytest.param(30, [("a", 1, 2, 30, 20), ("b", 2, 40, 10), ("c", 3, 40, 10)], [20, 10, 10], id="S3-62-guarantee"),
        pytest.param(
            100,
            [("a", 3, 200, 50, 20), ("b", 2, 200, 80, 10), ("c", 5, 200, 100, 30)],
            [30, 20, 50],
            id="S1-34",
        ),
        pytest.param(100, [("a", 1, 200, 100, 20), ("b", 9, 200, 80)], [20, 80], id="S1-35"),
        pytest.param(30, [("a", 0, 5), ("b", 1, 40)], [0, 30], id="no-weight-no-share"),
        pytest.param(30, [("a", 0, 5)], [0], id="no-weights-at-all"),
        pytest.param(30, [], [], id="no-queues"),
        pytest.param(0, [("a", 1, 5)], [0], id="no-cluster"),
        pytest.param(10, [("a", 1, 20, 4), ("b", 1, 20)], [4, 6], id="capped-leaves-the-rest-to-others"),
        pytest.param(10, [("a", 1, 3), ("b", 1, 3)], [3, 3], id="all-satisfied"),
    ],
)
def test_worked_numbers(total, claims, deserved):
    got, _ = share_out(total, *(claim(*one) for one in claims))
    assert got == pytest.approx(deserved)


def test_rounds_say_what_happened():
    _, rounds = share_out(30, claim("a", 1, 2), claim("b", 2, 40), claim("c", 3, 40, 16))
    first, second = rounds[0], rounds[1]
    assert (first.weight, [one.name for one in first.satisfied], first.remaining[0]) == (6, ["a"], 3)
    assert (second.weight, [one.name for one in second.raised]) == (5, ["b", "c"])
    assert [one.name for one in rounds[2].capped] == ["c"]
    assert rounds[-1].remaining[0] == 0


def test_a_claim_that_nothing_can_raise_is_capped_in_the_second_round():
    total = [10.0, 10.0, 10.0]
    stuck, other = claim("a", 1, 5, limit=0), claim("b", 1, (20, 20, 20))
    rounds = list(pour(total, [stuck, other]))
    assert [[one.name for one in done.capped] for done in rounds[:2]] == [[], ["a"]]
    assert other.deserved == [10, 10, 10]


def test_left_pods_alone_end_it():
    one = Claim("a", 1, [10.0, 10.0, 1.0], list(NONE), [0.0] * 3)
    rounds = list(pour([10.0, 10.0, 110.0], [one]))
    assert (len(rounds), one.deserved) == (1, [10.0, 10.0, 1.0])


def test_a_round_without_weight_ends_it():
    rounds = list(pour([10.0, 10.0, 10.0], [claim("a", 1, 3)]))
    assert (rounds[-1].weight, rounds[-1].raised) == (0, [])


amounts = st.lists(st.integers(0, 50).map(float), min_size=3, max_size=3)
claims = st.lists(st.tuples(st.integers(1, 5), amounts, amounts), min_size=1, max_size=5)


@given(amounts, claims)
def test_no_claim_gets_more_than_asked_or_allowed_and_all_get_no_more_than_there_is(total, drawn):
    them = [Claim(str(i), weight, request, limit, [0.0] * 3) for i, (weight, request, limit) in enumerate(drawn)]
    list(pour(total, them))
    for one in them:
        assert all(
            got <= min(asked, limit) for got, asked, limit in zip(one.deserved, one.request, one.limit, strict=True)
        )
    for column, amount in enumerate(total):
        assert sum(one.deserved[column] for one in them) <= amount + 1e-6


@given(
    st.integers(1, 100).map(float), st.lists(st.tuples(st.integers(1, 5), st.integers(0, 80)), min_size=1, max_size=5)
)
def test_in_one_dimension_nothing_is_kept_from_queues_that_request_it(total, drawn):
    them = [claim(str(i), weight, float(request)) for i, (weight, request) in enumerate(drawn)]
    list(pour([total, 0.0, 0.0], them))
    asked = sum(request for _, request in drawn)
    assert sum(one.deserved[0] for one in them) == pytest.approx(min(total, asked), abs=0.2)
    unmet = [one.deserved[0] / one.weight for one in them if one.deserved[0] < one.request[0] - 0.2]
    if unmet:
        assert max(unmet) - min(unmet) <= 0.2
        assert all(one.deserved[0] / one.weight <= max(unmet) + 0.2 for one in them)
