"""Single entries of resource lists."""

from __future__ import annotations

from fractions import Fraction

import pytest

from stromboli.errors import ManifestError
from stromboli.model.resources.resource_list import parse_reserved, read_amount, write_amount


def test_parse_reserved() -> None:
    assert parse_reserved({"cpu": "500m", "memory": "1Gi"}) == {"cpu": Fraction(1, 2), "memory": 2**30}
    assert parse_reserved({}) == {}


@pytest.mark.parametrize(
    ("reserved", "text"),
    [
        ({"cpu": "-1"}, 'resource quantity for "cpu" cannot be negative: -1'),
        ({"nvidia.com/gpu": 1}, 'cannot reserve "nvidia.com/gpu" resource'),
    ],
)
def test_refused(reserved: dict[str, str | int], text: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_reserved(reserved)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("name", "text", "amount"), [("cpu", "1500m", 1500), ("memory", "2Gi", 2**31), ("nvidia.com/gpu", "2", 2)]
)
def test_amounts(name: str, text: str, amount: int) -> None:
    assert read_amount(name, text) == amount
    assert write_amount(name, float(amount)) == text
