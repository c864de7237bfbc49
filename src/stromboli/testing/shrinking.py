"""Makes a failing example small: objects, moves and fields that do not matter are left out, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from stromboli.testing.builders import Manifest
from stromboli.testing.moves import Move

Thing = TypeVar("Thing")
Example = tuple[Sequence[Manifest], Sequence[Move]]
"""A cluster, and what happens in it."""

Fails = Callable[[Example], AssertionError | None]
"""Tries an example; the failure, or None when it passes."""

NEEDED = ("containers", "nodeName", "minMember", "queue")
"""Fields of specs that stay."""


def smallest(fails: Fails, example: Example, failure: AssertionError) -> AssertionError:
    """The failure of the smallest example that is reached from ``example`` by leaving out one thing at a time."""
    simpler = iter(simplifications(example))
    while (candidate := next(simpler, None)) is not None:
        found = fails(candidate)
        if found is not None:
            failure, simpler = found, iter(simplifications(candidate))
    return failure


def simplifications(example: Example) -> Iterator[Example]:
    """Every example that is one step simpler: the biggest steps first."""
    objects, moves = example
    if moves:
        yield objects, ()
    half = len(objects) // 2
    yield from ((part, moves) for part in (objects[:half], objects[half:]) if half)
    yield from ((_without(objects, place), moves) for place in range(len(objects)))
    yield from ((objects, _without(moves, place)) for place in range(len(moves)))
    for place, each in enumerate(objects):
        for simple in plainer(each):
            yield [*objects[:place], simple, *objects[place + 1 :]], moves


def plainer(each: Manifest) -> Iterator[Manifest]:
    """The object without labels, and without each field of its spec that it can do without."""
    if each["metadata"]["labels"]:
        yield {**each, "metadata": {**each["metadata"], "labels": {}}}
    for field in each["spec"]:
        if field not in NEEDED:
            yield {**each, "spec": {name: value for name, value in each["spec"].items() if name != field}}


def _without(things: Sequence[Thing], place: int) -> Sequence[Thing]:
    return [*things[:place], *things[place + 1 :]]
