"""The worked examples of the page on eviction, recomputed."""

from __future__ import annotations

import re

import pytest

from stromboli.framework.books.plan import Plan
from tests.docs.eviction_examples import PAGE, examples, plan_of


def told(plan: Plan) -> tuple[str, str]:
    """The outcome as the page writes it."""
    evicted = [eviction.key.partition("/")[2] for eviction in plan.evictions]
    waiting = [f"{held.key.partition('/')[2]} on {held.node}" for held in plan.reservations]
    return ", ".join(evicted) or "none", ", ".join(waiting) or "none"


def test_every_example_is_found():
    headings = re.findall(r"^### (\w\d):", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert list(examples()) == headings
    assert len(headings) >= 10


@pytest.mark.parametrize("name", examples())
def test_an_example_comes_out_as_it_is_told(name):
    example = examples()[name]
    assert told(plan_of(name)) == (example["evicted"], example["waiting"])


@pytest.mark.parametrize("name", examples())
def test_an_example_in_compat_mode(name):
    example = examples()[name]
    evicted, waiting = told(plan_of(name, compat=True))
    expected = example["old_evicted"] or example["evicted"], example["old_waiting"] or example["waiting"]
    assert (sorted(evicted.split(", ")), waiting) == (sorted(expected[0].split(", ")), expected[1])
