"""The claimed devices of a session: what claims have, what is free, and what placements have taken so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np

from stromboli.filters.columns import Masks
from stromboli.filters.devices.capacity import Takes, takes
from stromboli.filters.devices.expressions import Answer, expression, seen
from stromboli.filters.devices.offers import Candidate, Offers
from stromboli.filters.devices.requests import MOST_CONSUMERS, Given, Option, Wish, allocation, wish_of
from stromboli.filters.devices.search import TOO_LONG, Search
from stromboli.filters.devices.usage import Usage, share_of
from stromboli.model.claims import Allocation, DeviceObjects, ResourceClaim
from stromboli.model.spec import NodeSelector
from stromboli.model.table import Ints, NodeTable
from stromboli.model.task import Task

CANNOT, ELSEWHERE, GIVEN_UP = (np.uint64(1 << bit) for bit in range(3))
"""Refusals of a node: its devices don't do, claims have theirs on other nodes, too many ways to allocate."""
_NOWHERE: Final = np.uint64(0)
_ALL: Final[Takes] = {}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the claims of a pod come to: numbers of wishes in the order of claims, and where claims are already."""

    wishes: tuple[int, ...] = ()
    places: frozenset[NodeSelector] = frozenset()


NOTHING: Final = Wanted()


@dataclass(slots=True)
class _Rows:
    """Answers for some wishes over all rows: how many of the book's changes they know, and texts of errors."""

    masks: Masks
    scores: Ints
    known: int
    errors: dict[int, tuple[int, str]] = field(default_factory=dict)


class DeviceBook:
    """Answers for pods with claims.  ``tasks`` are all pods; ``shares`` lets pods share what the session allocates.

    ``groups`` are the PodGroups, by uid, for which claims are reserved, by the job and the claim.
    """

    def __init__(
        self, devices: DeviceObjects, table: NodeTable, tasks: Iterable[Task], *, shares: bool,
        groups: Mapping[tuple[str, str], str] | None = None,
    ) -> None:  # fmt: skip
        self._devices, self._shares, self._groups = devices, shares, groups or {}
        self._table, self._offers = table, Offers(devices.slices, table)
        self._pods = Counter(claim for task in tasks for claim in task.claims)
        self._usage = Usage()
        self._numbers: dict[bytes, int] = {}
        self._wishes: list[Wish] = []
        self._number_of: dict[str, int] = {}
        self._given: dict[str, Allocation] = {}
        self._users: dict[str, dict[str, str]] = {}
        """By claim, the pods that got it in this session, by uid, and the pod or PodGroup it is reserved for."""
        self._answers: dict[tuple[Option, int], Answer] = {}
        self._takes: dict[tuple[Option, int], Takes | None] = {}
        self._seen: dict[int, dict[str, Any]] = {}
        self._rows: dict[tuple[int, ...], _Rows] = {}
        self._changes: list[int] = []
        self._candidate = {one.key: one for one in self._offers.candidates}
        rows: dict[tuple[str, str], set[int]] = {}
        for one in self._offers.candidates:
            rows.setdefault(one.key[:2], set()).add(one.row)
        self._wide = {pool for pool, found in rows.items() if len(found) > 1}
        """Pools whose devices are of several nodes."""
        for claim in devices.claims.values():
            if claim.status.allocation is not None:
                self._count(claim.status.allocation, 1)

    # ------------------------------------------------------------------ what a pod wants

    def problem(self, task: Task) -> str:
        """What rules out every node at once; empty if nothing does."""
        if task.lacks_claims:
            return f'pod "{task.key}": ResourceClaim not created yet'
        for key in task.claims:
            claim = self._devices.claims.get(key)
            if claim is None:
                return f'could not find ResourceClaim "{key}"'
            if claim.metadata.deletion_timestamp:
                return f'resourceclaim "{claim.metadata.name}" is being deleted'
        return next((text for key in task.claims if (text := self._claim_problem(task, key))), "")

    def _claim_problem(self, task: Task, key: str) -> str:
        status = self._devices.claims[key].status
        users = {one.uid for one in status.reserved_for} | {*self._users.get(key, {}).values()}
        if status.allocation is not None or (self._shares and key in self._given):
            return "" if self._user(task, key) in users or len(users) < MOST_CONSUMERS else "resourceclaim in use"
        if key in self._given:
            return f"resource claim {key} is in the process of being allocated"
        return self._wishes[self._wish(key)].problem

    def _user(self, task: Task, key: str) -> str:
        """The consumer that a pod's claim is reserved for: the pod, or the PodGroup whose pods share it."""
        return self._groups.get((task.job, key), task.uid)

    def _wish(self, key: str) -> int:
        """The number of a claim's wish; claims of equal specs have the same."""
        number = self._number_of.get(key)
        if number is None:
            spec = self._devices.claims[key].spec
            number = self._numbers.setdefault(msgspec.msgpack.encode(spec), len(self._wishes))
            if number == len(self._wishes):
                self._wishes.append(wish_of(spec, self._devices.classes))
            self._number_of[key] = number
        return number

    def key(self, task: Task) -> object:
        """What the answers depend on: for claims of several pods also on what the session gives them."""
        shared = tuple(key for key in task.claims if self._pods[key] > 1)
        return (shared, *self._wanted(task)) if shared else self._wanted(task)

    def _wanted(self, task: Task) -> tuple[tuple[int, ...], frozenset[NodeSelector]]:
        wishes: list[int] = []
        places: set[NodeSelector] = set()
        for key in task.claims:
            if key not in self._devices.claims:
                continue
            found = self._allocation(key)
            if found is None:
                wishes.append(self._wish(key))
            elif found.node_selector is not None:
                places.add(found.node_selector)
        return tuple(wishes), frozenset(places)

    def _allocation(self, key: str) -> Allocation | None:
        return self._devices.claims[key].status.allocation or self._given.get(key)

    # ------------------------------------------------------------------ answers, over all rows

    def masks(self, task: Task) -> Masks | None:
        """Refusals of each row; None where nothing is refused."""
        wishes, places = self._wanted(task)
        masks = self._of(wishes).masks if wishes else None
        for selector in places:
            masks = np.zeros(len(self._table), dtype=np.uint64) if masks is None else masks.copy()
            masks[~self._offers.rows(selector) & (masks == 0)] = ELSEWHERE
        return masks

    def scores(self, task: Task) -> Ints | None:
        """How good the alternatives are that claims get on each row; None where none has a choice."""
        wishes, _ = self._wanted(task)
        chooses = any(
            option.score for number in wishes for options in self._wishes[number].requests for option in options
        )
        return self._of(wishes).scores if chooses else None

    def errors(self, task: Task) -> dict[int, str]:
        """Rows on which an expression failed, with what is wrong."""
        wishes, _ = self._wanted(task)
        waiting = [key for key in task.claims if key in self._devices.claims and self._allocation(key) is None]
        found = self._of(wishes).errors if wishes else {}
        return {row: text.replace("{claim}", waiting[claim]) for row, (claim, text) in found.items()}

    def _of(self, wishes: tuple[int, ...]) -> _Rows:
        found = self._rows.get(wishes)
        if found is None:
            nothing = np.zeros(len(self._table), dtype=np.int64)
            found = self._rows[wishes] = _Rows(nothing.astype(np.uint64), nothing, len(self._changes))
            self._renew(wishes, found, range(len(self._table)))
        elif found.known < len(self._changes):
            changed = set(self._changes[found.known :])
            found.known = len(self._changes)
            self._renew(wishes, found, range(len(self._table)) if -1 in changed else changed)
        return found

    def _renew(self, wishes: tuple[int, ...], answers: _Rows, rows: Iterable[int]) -> None:
        answers.masks = answers.masks.copy()
        for row in rows:
            search = self._search(wishes, row)
            answers.errors.pop(row, None)
            answers.scores[row] = 0
            if (found := search.run()) is not None:
                answers.masks[row] = _NOWHERE
                answers.scores[row] = sum(option.score for given in found for option in {each.option for each in given})
                continue
            answers.masks[row] = GIVEN_UP if search.failure == TOO_LONG else CANNOT
            if search.failure not in ("", TOO_LONG):
                answers.errors[row] = search.claim, search.failure

    def _search(self, wishes: tuple[int, ...], row: int) -> Search:
        wanted, offers = [self._wishes[number] for number in wishes], self._offers
        return Search(wanted, offers.of(row), self._usage, self._matches, self._takes_of, offers.counters)

    def _takes_of(self, option: Option, one: Candidate) -> Takes | None:
        """What a request takes of an idle device; nothing of one that it gets alone, unless it asks for amounts."""
        if not option.capacity and not one.is_shared:
            return _ALL
        key = option, one.number
        if key not in self._takes:
            self._takes[key] = takes(one.device.capacity, option.capacity)
        return self._takes[key]

    def _matches(self, option: Option, one: Candidate) -> Answer:
        known = self._answers.get((option, one.number))
        if known is None:
            known = self._answers[option, one.number] = self._evaluated(option, one)
        return known

    def _evaluated(self, option: Option, one: Candidate) -> Answer:
        if one.number not in self._seen:
            self._seen[one.number] = seen(one.key[0], one.device)
        for selector in option.selectors:
            answer = expression(selector.expression).of(self._seen[one.number])
            if answer is not True:
                return selector.whose + answer if isinstance(answer, str) else False
        return True

    # ------------------------------------------------------------------ placements

    def place(self, task: Task, row: int) -> dict[str, Allocation] | None:
        """A pod takes a row: what each of its claims has then; None, nothing changed, where one gets nothing."""
        waiting = [key for key in task.claims if self._allocation(key) is None]
        if waiting:
            found = self._search(tuple(self._wish(key) for key in waiting), row).run()
            if found is None:
                return None
            for key, given in zip(waiting, found, strict=True):
                self._give(key, given, self._table.statics.names[row])
        for key in task.claims:
            if key in self._given:
                self._users.setdefault(key, {})[task.uid] = self._user(task, key)
        return {key: has for key in task.claims if (has := self._allocation(key)) is not None}

    def _give(self, key: str, given: list[Given], node: str) -> None:
        claim: ResourceClaim = self._devices.claims[key]
        self._given[key] = allocation(claim, given, self._devices.classes, node)
        self._count(self._given[key], 1)

    def leave(self, task: Task) -> None:
        """A pod leaves its row; what only it was given in this session is free again."""
        for key in task.claims:
            users = self._users.get(key)
            if users and task.uid in users:
                del users[task.uid]
                if not users:
                    self._count(self._given.pop(key), -1)

    def _count(self, given: Allocation, times: int) -> None:
        for one in given.devices.results:
            if one.admin_access:
                continue
            key = one.driver, one.pool, one.device
            device = self._candidate.get(key)
            self._usage.count(key, share_of(one), device.draws if device is not None else (), times)
            if device is not None:
                self._changes.append(-1 if device.draws and key[:2] in self._wide else device.row)
