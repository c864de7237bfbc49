"""The default orders: what decides between two jobs, queues, tasks or sub-jobs where no plugin has an opinion.

Each order comes as a comparison (negative: left first) and as a key; comparing keys equals the comparison.
"""

from __future__ import annotations

from typing import Any, Protocol


class Aged(Protocol):
    """Something created at a time with an identity: a job, a task."""

    @property
    def created(self) -> float:
        """Creation time, seconds since the epoch."""

    @property
    def uid(self) -> str:
        """The identity, compared as text."""


class Member(Aged, Protocol):
    """A task: its pod's name may end in an index."""

    @property
    def index(self) -> int:
        """That index, -1 where there is none."""


class Part(Protocol):
    """A sub-job: ordered by the integer of its first match label."""

    @property
    def match_index(self) -> int:
        """That integer, 0 where there is none."""

    @property
    def uid(self) -> str:
        """The identity, compared as text."""


class Lane(Protocol):
    """A queue: among queues the name is the identity."""

    @property
    def created(self) -> float:
        """Creation time, seconds since the epoch."""

    @property
    def name(self) -> str:
        """The name, compared as text."""


class Named(Protocol):
    """Something known by its name alone: a cluster."""

    @property
    def name(self) -> str:
        """The name."""


def age_key(item: Aged) -> tuple[float, str]:
    """Older first, then by uid."""
    return item.created, item.uid


def by_age(left: Aged, right: Aged) -> int:
    """-1, 0 or 1 by :func:`age_key`."""
    return compare(age_key(left), age_key(right))


def queue_key(queue: Lane) -> tuple[float, str]:
    """Older first, then by name."""
    return queue.created, queue.name


def by_queue(left: Lane, right: Lane) -> int:
    """-1, 0 or 1 by :func:`queue_key`."""
    return compare(queue_key(left), queue_key(right))


def part_key(part: Part) -> tuple[int, str]:
    """Lower match index first, then by uid."""
    return part.match_index, part.uid


def by_part(left: Part, right: Part) -> int:
    """-1, 0 or 1 by :func:`part_key`."""
    return compare(part_key(left), part_key(right))


def name_key(item: Named) -> str:
    """By name, as text."""
    return item.name


def by_name(left: Named, right: Named) -> int:
    """-1, 0 or 1 by name."""
    return compare(left.name, right.name)


class TaskTurn:
    """Key of a task: by pod index where both tasks have one and they differ, else older first, then by uid.

    A class, not a tuple, because the index of one task counts only if the other task has one too.
    """

    __slots__ = ("age", "index")

    def __init__(self, task: Member) -> None:
        self.index = task.index
        self.age = age_key(task)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TaskTurn) and self.index == other.index and self.age == other.age

    def __hash__(self) -> int:
        return hash((self.index, self.age))

    def __lt__(self, other: TaskTurn) -> bool:
        if self.index != other.index and self.index >= 0 and other.index >= 0:
            return self.index < other.index
        return self.age < other.age


def by_turn(left: Member, right: Member) -> int:
    """-1, 0 or 1 by :class:`TaskTurn`; asked often where a plugin gives no key, so the key is not made."""
    one, other = left.index, right.index
    if one != other and one >= 0 and other >= 0:
        return -1 if one < other else 1
    return compare((left.created, left.uid), (right.created, right.uid))


def compare(left: Any, right: Any) -> int:
    """-1, 0 or 1 of two keys of one kind."""
    return -1 if left < right else int(right < left)
