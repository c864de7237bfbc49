from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.cluster.decoding.amounts import SCORED_LARGEST
from stromboli.filters import scores
from stromboli.filters.images import ImageIndex, full_name
from stromboli.model.spec import Image
from tests.filters.builders import node, table

GIB, MIB, TIB = 2**30, 2**20, 2**40
LARGEST = 2 * SCORED_LARGEST  # what a node offers, and what it states as oversubscription
amounts = st.one_of(st.just(0), st.integers(1, 12), st.integers(1, 100 * TIB), st.integers(LARGEST // 2, LARGEST))


@pytest.mark.parametrize(
    ("offered", "wanted", "least", "most"),
    [
        pytest.param((4000, 8 * GIB), (2000, 3 * GIB), 56, 43, id="S3-04"),
        pytest.param((4000, 8 * GIB), (5000, 3 * GIB), 31, 68, id="more-than-there-is"),
        pytest.param((4000, 0), (2000, 3 * GIB), 50, 50, id="one-not-offered"),
        pytest.param((0, 0), (2000, 3 * GIB), 0, 0, id="nothing-offered"),
        pytest.param((3000, 100 * TIB), (1000, 33 * TIB), 66, 33, id="terabytes"),
    ],
)
def test_shares(offered, wanted, least, most):
    assert scores.least_allocated(offered, wanted) == least
    assert scores.most_allocated(offered, wanted) == most


@pytest.mark.parametrize(
    ("offered", "requested", "asked", "score"),
    [
        pytest.param((4000, 8 * GIB), (1000, 2 * GIB), (1000, 1 * GIB), 71, id="S3-05"),
        pytest.param((4000, 8 * GIB), (1000, 2 * GIB), (1000, 2 * GIB), 75, id="stays-even"),
        pytest.param((4000, 0), (1000, 0), (1000, 0), 75, id="one-resource"),
        pytest.param((4000, 4000, 0), (0, 0, 0), (4000, 0, 0), 50, id="worst"),
        pytest.param((4000, 8000, 8000), (0, 0, 0), (4000, 4000, 0), 54, id="three"),
        pytest.param((4000, 8000), (8000, 9000), (0, 100), 75, id="overfull-counts-as-full"),
    ],
)
def test_balance(offered, requested, asked, score):
    assert scores.balanced_allocation(offered, requested, asked, scores.evenness(offered, requested)) == score


@given(st.lists(st.tuples(*[amounts] * 9), min_size=1, max_size=6), st.lists(amounts, min_size=3, max_size=3))
def test_scores_by_amounts_agree(rows, asked):
    columns = np.array(rows, dtype=np.int64).T
    offered, requested = columns[:3], columns[3:6]
    for width in (2, 3):
        each = [(row[:width], row[3 : 3 + width]) for row in rows]
        whole = offered[:width], requested[:width]
        assert scores.least_allocated_rows(*whole).tolist() == [scores.least_allocated(a, w) for a, w in each]
        assert scores.most_allocated_rows(*whole).tolist() == [scores.most_allocated(a, w) for a, w in each]
        before = scores.evenness_rows(*whole)
        assert before.tolist() == [scores.evenness(a, r) for a, r in each]
        balanced = scores.balanced_allocation_rows(*whole, asked[:width], before).tolist()
        assert balanced == scores.balanced_allocation_rows(*whole, asked[:width]).tolist()
        assert balanced == [scores.balanced_allocation(a, r, asked[:width], scores.evenness(a, r)) for a, r in each]
        assert all(0 <= score <= 100 for score in balanced)


@pytest.mark.parametrize(
    ("function", "raw", "expected"),
    [
        pytest.param(lambda raw, lo, hi: scores.share_of_greatest(raw, hi), [80, 20, 0], [100, 25, 0], id="S3-06"),
        pytest.param(lambda raw, lo, hi: scores.share_of_greatest(raw, hi), [0, 0], [0, 0], id="none"),
        pytest.param(lambda raw, lo, hi: scores.rest_of_greatest(raw, hi), [0, 1], [100, 0], id="S3-08"),
        pytest.param(lambda raw, lo, hi: scores.rest_of_greatest(raw, hi), [0, 0], [100, 100], id="no-taints"),
        pytest.param(lambda raw, lo, hi: scores.rest_of_greatest(raw, hi), [1, 3], [67, 0], id="thirds"),
        pytest.param(scores.between_extremes, [-5, 0, 10], [0, 33, 100], id="between"),
        pytest.param(scores.between_extremes, [4, 4], [0, 0], id="all-equal"),
        pytest.param(scores.beside_extremes, [1, 3], [100, 33], id="S3-07"),
        pytest.param(scores.beside_extremes, [0, 0], [100, 100], id="nothing-counted"),
    ],
)
def test_normalising(function, raw, expected):
    assert function(np.array(raw), min(raw), max(raw)).tolist() == expected


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        pytest.param(["app:1"], [38, 0], id="S3-03"),
        pytest.param(["app:1", "absent"], [19, 0], id="two-containers"),
        pytest.param(["base"], [25, 25], id="everywhere-latest"),
        pytest.param(["tiny:1"], [0, 0], id="too-small"),
        pytest.param(["huge:1"], [0, 100], id="clamped"),
        pytest.param([], [0, 0], id="no-containers"),
    ],
)
def test_image_locality(images, expected):
    nodes = [
        node("n1", images=(Image(("app:1",), 800 * MIB), Image(("base:latest", "base@sha"), 277 * MIB))),
        node("n2", images=(Image(("base:latest",), 1), Image(("tiny:1",), 40 * MIB), Image(("huge:1",), 9000 * MIB))),
    ]
    index = ImageIndex(nodes)
    assert index.score_rows(images, table(nodes).view()).tolist() == expected
    assert [index.score(images, row) for row in range(2)] == expected
    assert index.score_rows(images, table(nodes).view(np.array([1]))).tolist() == expected[1:]
    assert index.knows(images) is (images not in ([], ["absent"]))


@pytest.mark.parametrize(
    ("image", "full"),
    [("a", "a:latest"), ("a:1", "a:1"), ("host:5000/a", "host:5000/a:latest"), ("host:5000/a:2", "host:5000/a:2")],
)
def test_full_name(image, full):
    assert full_name(image) == full
