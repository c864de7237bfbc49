"""What a PodGroup's annotations say about its tasks: which belong together, which apart, and which come first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from stromboli.model.job import Job

AFFINITY: Final = "volcano.sh/task-topology-affinity"
ANTI_AFFINITY: Final = "volcano.sh/task-topology-anti-affinity"
TASK_ORDER: Final = "volcano.sh/task-topology-task-order"

SELF_ANTI, INTER, SELF, INTER_ANTI = 4, 3, 2, 1
"""How much a name counts that a group of this kind holds."""

LONGEST: Final = 1 << 16
"""An annotation of more characters is not read."""

Group = tuple[str, ...]


@dataclass(slots=True)
class Wishes:
    """Names of tasks that attract (``together``) or repel (``apart``) each other, or themselves, both ways.

    ``weight`` says how much each name with a wish counts, ``order`` which names come first: more is earlier.
    """

    together: set[tuple[str, str]] = field(default_factory=set)
    apart: set[tuple[str, str]] = field(default_factory=set)
    weight: dict[str, int] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)

    def attraction(self, name: str, others: Mapping[str, int]) -> int:
        """How many of ``others``, numbers by name, ``name`` belongs with, less those it is to be apart from."""
        drawn = sum(count for other, count in others.items() if (name, other) in self.together)
        return drawn - self.repulsion(name, others)

    def repulsion(self, name: str, others: Mapping[str, int]) -> int:
        """How many of ``others``, numbers by name, ``name`` is to be apart from."""
        return sum(count for other, count in others.items() if (name, other) in self.apart)

    def rank(self, name: str) -> tuple[int, int]:
        """Where ``name`` stands: less is earlier."""
        return -self.order.get(name, 0), -self.weight.get(name, 0)

    def _add(self, groups: Iterable[Group], pairs: set[tuple[str, str]], alone: int, several: int) -> None:
        for group in groups:
            # empty names are not checked, and their pairs would be as many as an annotation has commas, squared
            found = combinations(dict.fromkeys(group), 2) if len(group) > 1 else [(group[0], group[0])]
            for first, second in found:
                pairs |= {(first, second), (second, first)}
            for name in group:
                self.weight[name] = max(self.weight.get(name, 0), several if len(group) > 1 else alone)


def read(job: Job) -> tuple[Wishes | None, str]:
    """The wishes of ``job``, and what is wrong with them: then none counts.  None where it has no wish."""
    annotations = job.group.annotations
    given = {key: annotations[key] for key in (AFFINITY, ANTI_AFFINITY, TASK_ORDER) if key in annotations}
    if not given:
        return None, ""
    roles = {task.role for task in job.tasks.values()}
    groups = {key: _groups(key, text) for key, text in given.items()}
    for key, text in given.items():
        if problem := _problem(groups[key], roles, job) if len(text) <= LONGEST else f"{key} is too long":
            return None, problem
    wishes = Wishes()
    wishes._add(groups.get(AFFINITY, ()), wishes.together, SELF, INTER)
    wishes._add(groups.get(ANTI_AFFINITY, ()), wishes.apart, SELF_ANTI, INTER_ANTI)
    names = groups.get(TASK_ORDER, ((),))[0]
    wishes.order = {name: len(names) - place for place, name in enumerate(names)}
    return wishes, ""


def _groups(key: str, text: str) -> tuple[Group, ...]:
    parts = [text] if key == TASK_ORDER else text.split(";")
    return tuple(tuple(part.split(",")) for part in parts)


def _problem(groups: Iterable[Group], roles: Collection[str], job: Job) -> str:
    for group in groups:
        seen: set[str] = set()
        for name in group:
            if not name:
                continue
            if name not in roles:
                return f"task {name:.63} do not exist in job <{job.uid}>"
            if name in seen:
                return f"task {name:.63} is duplicate in job <{job.uid}>"
            seen.add(name)
    return ""
