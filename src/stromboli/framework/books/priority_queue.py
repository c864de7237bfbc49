"""Priority queues over jobs, queues and tasks."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class PriorityQueue(Protocol[T]):
    """A priority queue; an item that is popped and pushed back is ordered again."""

    def push(self, item: T) -> None:
        """Add ``item``."""

    def pop(self) -> T:
        """Remove and return the first item; IndexError where there is none."""

    def __iter__(self) -> Iterator[T]:
        """The items that wait, in no order."""

    def __len__(self) -> int: ...


def all_of(queue: PriorityQueue[T], items: Iterable[T]) -> list[T]:
    """``items`` in the order in which ``queue`` gives them."""
    for item in items:
        queue.push(item)
    return [queue.pop() for _ in range(len(queue))]


class SortedQueue(Generic[T]):
    """Items by a key that is taken when they are pushed.

    The key of a waiting item must not change.  Items pushed before the first pop are sorted once; only later ones need
    a heap, as a rule a small one.
    """

    __slots__ = ("_begun", "_count", "_first", "_key", "_late")

    def __init__(self, key: Callable[[T], tuple[Any, ...]]) -> None:
        self._key = key
        self._first: list[tuple[Any, ...]] = []  # the key's parts, a running number, the item; last one first
        self._late: list[tuple[Any, ...]] = []
        self._begun = False
        self._count = 0

    def push(self, item: T) -> None:
        """Add ``item``."""
        self._count += 1
        entry = (*self._key(item), self._count, item)
        if self._begun:
            heapq.heappush(self._late, entry)
        else:
            self._first.append(entry)

    def pop(self) -> T:
        """Remove and return the item with the least key; IndexError where there is none."""
        first, late = self._first, self._late
        if not self._begun:
            self._begun = True
            first.sort(reverse=True)
        entry = heapq.heappop(late) if late and (not first or late[0] < first[-1]) else first.pop()
        item: T = entry[-1]
        return item

    def __iter__(self) -> Iterator[T]:
        return (entry[-1] for entry in chain(self._first, self._late))

    def __len__(self) -> int:
        return len(self._first) + len(self._late)


class HeapQueue(Generic[T]):
    """Items by a comparison whose result may change while they wait.

    A binary heap as in textbooks (sift up on push; on pop move the last item to the top and sift down): where waiting
    items change places unnoticed, what comes out depends on these very steps, and they are the reference's.
    """

    __slots__ = ("_compare", "_items")

    def __init__(self, compare: Callable[[T, T], int], ordered: Iterable[T] = ()) -> None:
        """``ordered`` are items to begin with, already in order."""
        self._compare = compare
        self._items: list[T] = list(ordered)

    def _less(self, left: T, right: T) -> bool:
        return self._compare(left, right) < 0

    def __iter__(self) -> Iterator[T]:
        return iter(self._items)

    def clone(self) -> HeapQueue[T]:
        """The same items in the same state."""
        return HeapQueue(self._compare, self._items)

    def push(self, item: T) -> None:
        """Add ``item``."""
        items = self._items
        items.append(item)
        child = len(items) - 1
        while child and self._less(items[child], items[(child - 1) // 2]):
            parent = (child - 1) // 2
            items[child], items[parent] = items[parent], items[child]
            child = parent

    def pop(self) -> T:
        """Remove and return the item at the top; IndexError where there is none."""
        items = self._items
        top = items[0]
        last = items.pop()
        if items:
            items[0] = last
            self._sink()
        return top

    def _sink(self) -> None:
        items, parent = self._items, 0
        while (child := 2 * parent + 1) < len(items):
            if child + 1 < len(items) and self._less(items[child + 1], items[child]):
                child += 1
            if not self._less(items[child], items[parent]):
                return
            items[child], items[parent] = items[parent], items[child]
            parent = child

    def __len__(self) -> int:
        return len(self._items)


class Order(Generic[T]):
    """How things are ordered: by a comparison, and by a key where every plugin in the order gives one.

    ``opinion`` is the key of the plugins alone, without the tie-breaker: equal where none of them tells two apart.
    """

    __slots__ = ("compare", "key", "opinion")

    def __init__(
        self,
        compare: Callable[[T, T], int],
        key: Callable[[T], tuple[Any, ...]] | None,
        opinion: Callable[[T], tuple[Any, ...]] | None = None,
    ) -> None:
        self.compare, self.key, self.opinion = compare, key, opinion

    def priority_queue(self) -> PriorityQueue[T]:
        """An empty priority queue in this order."""
        return HeapQueue(self.compare) if self.key is None else SortedQueue(self.key)

    def sorted(self, items: list[T]) -> list[T]:
        """``items`` in the order in which a priority queue would give them."""
        if self.key is not None:
            return sorted(items, key=self.key)
        return all_of(HeapQueue(self.compare), items)
