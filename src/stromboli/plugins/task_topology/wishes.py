"""What a PodGroup's annotations say about its tasks: which belong together, which apart, and which come first."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from stromboli.model.job import Job

AFFINITY: Final = "volcano.sh/task-topology-affinity"
ANTI_AFFINITY: Final = "volcano.sh/task-topology-anti-affinity"
TASK_ORDER: Final = "volcano.sh/task-topology-task-order"

SELF_ANTI, INTER, SELF, INTER_ANTI = 4, 3, 2, 1
"""How much a name counts that a group of this kind holds."""

LONGEST: Final = 1 << 16
"""An annotation of more characters is not read."""
MOST_NAMES: Final = 64
"""So many names may be together or apart: what each task costs grows with them."""

Group = tuple[str, ...]
Pairs = dict[str, set[str]]
"""For each name those with which it is joined, both ways."""


@dataclass(slots=True)
class Wishes:
    """Names of tasks that attract (``together``) or repel (``apart``) each other, or themselves, both ways.

    ``weight`` says how much each name with a wish counts, ``order`` which names come first: more is earlier.
    """

    together: Pairs = field(default_factory=dict)
    apart: Pairs = field(default_factory=dict)
    weight: dict[str, int] = field(default_factory=dict)
    order: dict[str, int] = field(default_factory=dict)

    def attraction(self, name: str, other: str) -> int:
        """What ``other`` is to ``name``: 1 they belong together, -1 apart, 0 both or neither."""
        return (other in self.together.get(name, ())) - (other in self.apart.get(name, ()))

    def rank(self, name: str) -> tuple[int, int]:
        """Where ``name`` stands: less is earlier."""
        return -self.order.get(name, 0), -self.weight.get(name, 0)

    def _add(self, groups: Iterable[Group], pairs: Pairs, alone: int, several: int) -> None:
        for group in groups:
            names = set(group)
            for name in names:
                pairs.setdefault(name, set()).update(names - {name} if len(group) > 1 else names)
                self.weight[name] = max(self.weight.get(name, 0), several if len(group) > 1 else alone)


def read(job: Job) -> tuple[Wishes | None, str]:
    """The wishes of ``job``, and what is wrong with them: then none counts.  None where it has no wish."""
    annotations = job.group.annotations
    given: dict[str, str] = {
        key: annotations[key] for key in (AFFINITY, ANTI_AFFINITY, TASK_ORDER) if key in annotations
    }
    if not given:
        return None, ""
    groups = {key: _groups(key, text) for key, text in given.items() if len(text) <= LONGEST}
    if problem := _problem(given, groups, job):
        return None, problem
    wishes = Wishes()
    wishes._add(groups.get(AFFINITY, ()), wishes.together, SELF, INTER)
    wishes._add(groups.get(ANTI_AFFINITY, ()), wishes.apart, SELF_ANTI, INTER_ANTI)
    if len(wishes.weight) > MOST_NAMES:
        return None, f"{len(wishes.weight)} tasks are to be together or apart, more than {MOST_NAMES}"
    names = groups.get(TASK_ORDER, ((),))[0]
    wishes.order = {name: len(names) - place for place, name in enumerate(names)}
    return wishes, ""


def _groups(key: str, text: str) -> tuple[Group, ...]:
    parts = [text] if key == TASK_ORDER else text.split(";")
    return tuple(tuple(part.split(",")) for part in parts)


def _problem(given: Iterable[str], groups: Mapping[str, tuple[Group, ...]], job: Job) -> str:
    roles = {task.role for task in job.tasks.values()}
    found = (_misnamed(groups[key], roles, job) if key in groups else f"{key} is too long" for key in given)
    return next(filter(None, found), "")


def _misnamed(groups: Iterable[Group], roles: Collection[str], job: Job) -> str:
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
