"""How often the garbage collector works while much is made."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest

from stromboli.sim.collecting import SELDOM, no_collecting, seldom_collecting


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """Leave the collector as it was."""
    thresholds, collects = gc.get_threshold(), gc.isenabled()
    gc.set_threshold(600, 5, 5)
    gc.enable()
    yield
    gc.set_threshold(*thresholds)
    (gc.enable if collects else gc.disable)()


@pytest.mark.parametrize("ends", ["well", "badly"])
@pytest.mark.parametrize(
    ("rarely", "meanwhile"), [(no_collecting, (False, (600, 5, 5))), (seldom_collecting, (True, SELDOM))]
)
def test_the_collector_works_as_before_afterwards(
    rarely: Callable[[], AbstractContextManager[None]], meanwhile: tuple[bool, tuple[int, ...]], ends: str
) -> None:
    try:
        with rarely():
            found = gc.isenabled(), gc.get_threshold()
            if ends == "badly":
                raise LookupError
    except LookupError:
        pass
    assert found == meanwhile
    assert (gc.isenabled(), gc.get_threshold()) == (True, (600, 5, 5))


def test_what_does_not_collect_may_be_told_so_already() -> None:
    gc.disable()
    with no_collecting():
        pass
    assert not gc.isenabled()
