from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.fairness.share import divisors, dominant_share
from stromboli.model.resources.resource import share

amounts = st.lists(st.integers(0, 10**6), min_size=1, max_size=6)


@pytest.mark.parametrize(
    ("held", "total", "expected"),
    [
        ([2000, 0], [10000, 100], 0.2),
        ([2000, 50], [10000, 100], 0.5),
        ([0, 0], [10000, 100], 0.0),
        ([5, 7], [10, 0], 0.5),
        ([], [10], 0.0),
        ([20], [10, 10], 2.0),
        ([1], [0.05], 0.0),
    ],
    ids=["one", "the-larger", "nothing", "not-offered", "shorter", "beyond-all", "below-tolerance-is-not-offered"],
)
def test_the_largest_part_counts(held, total, expected):
    assert dominant_share(held, divisors(total)) == expected


@given(amounts, amounts)
def test_it_is_the_largest_share_of_what_there_is(held, total):
    size = min(len(held), len(total))
    parts = [share(held[i], total[i]) for i in range(size) if total[i] >= 0.1]
    assert dominant_share(held, divisors(total)) == max(parts, default=0.0)


@given(amounts)
def test_more_is_never_a_smaller_share(held):
    total = divisors([1000.0] * len(held))
    more = [amount + 1 for amount in held]
    assert dominant_share(more, total) > dominant_share(held, total)
    assert not math.isnan(dominant_share(held, total))
