"""Priority queues: by keys as a sorted list gives turns, by comparisons step by step as the reference's heap does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stromboli.framework.books.priority_queue import HeapQueue, Order, PriorityQueue, SortedQueue, all_of


class Heap:
    """Go's container/heap over places in a list of values, which may change while places wait."""

    def __init__(self, values: list[int]) -> None:
        self.values, self.items = values, list[int]()

    def less(self, left: int, right: int) -> bool:
        return self.values[self.items[left]] < self.values[self.items[right]]

    def swap(self, left: int, right: int) -> None:
        self.items[left], self.items[right] = self.items[right], self.items[left]

    def push(self, item: int) -> None:
        self.items.append(item)
        place = len(self.items) - 1
        while place > 0 and self.less(place, above := (place - 1) // 2):
            self.swap(place, above)
            place = above

    def pop(self) -> int:
        end = len(self.items) - 1
        self.swap(0, end)
        place = 0
        while (below := 2 * place + 1) < end:
            if below + 1 < end and self.less(below + 1, below):
                below += 1
            if not self.less(below, place):
                break
            self.swap(place, below)
            place = below
        return self.items.pop()


steps = st.lists(st.tuples(st.sampled_from(["push", "pop", "change"]), st.integers(0, 15), st.integers(0, 9)))


@given(st.lists(st.integers(0, 9), min_size=16, max_size=16), st.lists(st.integers(0, 15), max_size=16), steps)
def test_by_comparison_what_comes_out_is_what_the_references_heap_gives(
    values: list[int], waiting: list[int], done: list[tuple[str, int, int]]
) -> None:
    heap = Heap(values)
    turns: HeapQueue[int] = HeapQueue(lambda left, right: values[left] - values[right])
    for item in waiting:
        heap.push(item)
        turns.push(item)
    for what, item, value in done:
        if what == "push":
            heap.push(item)
            turns.push(item)
        elif what == "change":
            values[item] = value
        elif heap.items:
            assert turns.pop() == heap.pop()
        assert len(turns) == len(heap.items)
    assert [turns.pop() for _ in range(len(turns))] == [heap.pop() for _ in range(len(heap.items))]


@given(st.lists(st.one_of(st.integers(0, 5), st.none()), max_size=40))
def test_by_key_the_least_comes_first_and_of_equals_the_one_pushed_first(pushed: list[int | None]) -> None:
    """None takes a turn."""
    turns: SortedQueue[tuple[int, int]] = SortedQueue(lambda item: item[:1])
    waiting: list[tuple[int, int]] = []
    for number, key in enumerate(pushed):
        if key is not None:
            turns.push((key, number))
            waiting.append((key, number))
        elif waiting:
            assert turns.pop() == min(waiting)
            waiting.remove(min(waiting))
        assert len(turns) == len(waiting)
    assert all_of(turns, []) == sorted(waiting)


@pytest.mark.parametrize("made", [lambda: SortedQueue(lambda item: (item,)), lambda: HeapQueue(lambda a, b: a - b)])
def test_an_empty_queue_raises_index_error(made: Callable[[], PriorityQueue[int]]) -> None:
    turns = made()
    with pytest.raises(IndexError):
        turns.pop()
    turns.push(3)
    assert (len(turns), turns.pop(), len(turns)) == (1, 3, 0)
    with pytest.raises(IndexError):
        turns.pop()


def test_items_that_are_in_order_already_wait_as_they_are() -> None:
    turns = HeapQueue[int](lambda left, right: left - right, [1, 2, 3, 4])
    assert list(turns) == [1, 2, 3, 4]
    assert all_of(turns, [0]) == [0, 1, 2, 3, 4]


@given(st.lists(st.integers(), unique=True, max_size=20))
def test_an_order_sorts_alike_by_key_and_by_comparison(items: list[int]) -> None:
    def compare(left: int, right: int) -> int:
        return (left > right) - (left < right)

    by_comparison, by_key = Order[int](compare, None), Order[int](compare, lambda item: (item,))
    assert isinstance(by_comparison.priority_queue(), HeapQueue)
    assert isinstance(by_key.priority_queue(), SortedQueue)
    assert by_comparison.sorted(items) == by_key.sorted(items) == sorted(items)
