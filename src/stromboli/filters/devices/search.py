"""The devices that claims get on one node: request after request, device after device, the first full solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from stromboli.filters.devices.capacity import Takes
from stromboli.filters.devices.expressions import Answer
from stromboli.filters.devices.offers import Candidate, CounterKey, Reached
from stromboli.filters.devices.requests import MOST_DEVICES, Given, Option, Wish
from stromboli.filters.devices.usage import Usage, has_room
from stromboli.model.claims import DeviceConstraint

MOST_STEPS: Final = 10_000
"""Devices looked at on one node for the claims of one pod."""
TOO_LONG: Final = "too many ways to allocate devices"

Matches = Callable[[Option, Candidate], Answer]
TakesOf = Callable[[Option, Candidate], Takes | None]


class Search:
    """One search for the claims ``wishes`` of one pod; ``failure`` says why it ended without looking at all ways.

    ``usage`` is what others have, ``takes`` what a request takes of an idle device, ``counters`` how much there is of
    those that devices share.
    ``claim`` is the place of the claim that the failure is about; its text may contain ``{claim}``.
    """

    def __init__(
        self, wishes: Sequence[Wish], reached: Reached, usage: Usage, matches: Matches, takes: TakesOf,
        counters: Mapping[CounterKey, int] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        self._reached, self._matches, self._takes = reached, matches, takes
        self._usage, self._own, self._counters = usage, Usage(), counters
        self._free = [one for one in reached.candidates if one.is_shared or not usage.uses(one.key)]
        self._wishes = wishes
        self._places = [(claim, place) for claim, wish in enumerate(wishes) for place in range(len(wish.requests))]
        self._given: list[list[Given]] = [[] for _ in wishes]
        self._values: list[list[list[object]]] = [[[] for _ in wish.constraints] for wish in wishes]
        self._steps = 0
        self.failure, self.claim = "", 0

    def run(self) -> list[list[Given]] | None:
        """What each claim gets; None where they don't all get what they ask for."""
        return self._given if self._request(0) else None

    def _request(self, place: int) -> bool:
        if place == len(self._places):
            return True
        claim, request = self._places[place]
        options = self._wishes[claim].requests[request]
        return any(self._option(place, claim, option) for option in options if not self.failure)

    def _option(self, place: int, claim: int, option: Option) -> bool:
        if option.count == 0:
            return self._all(place, claim, option)
        if len(self._given[claim]) + option.count > MOST_DEVICES:
            return len(self._wishes[claim].requests) == 1 and self._exceeds(claim, option)
        candidates = self._reached.candidates if option.admin else self._free
        return self._pick(place, claim, option, candidates, option.count)

    def _exceeds(self, claim: int, option: Option) -> bool:
        asks = f"number of requested devices {option.count} exceeds the claim limit of {MOST_DEVICES}"
        return self._fail(claim, f"claim {{claim}}: {asks}")

    def _all(self, place: int, claim: int, option: Option) -> bool:
        if self._reached.trouble:
            asks = f"claim {{claim}}, request {option.name}: asks for all devices, but {self._reached.trouble}"
            return self._fail(claim, asks)
        wanted = [one for one in self._reached.candidates if self._suits(claim, option, one)]
        mark = len(self._given[claim])
        if self.failure or not 0 < len(wanted) <= MOST_DEVICES - mark:
            return False
        free = wanted if option.admin else self._free
        taken = all(one in free and self._take(claim, option, one) for one in wanted)
        done = taken and self._request(place + 1)
        while not done and len(self._given[claim]) > mark:
            self._give_back(claim)
        return done

    def _pick(self, place: int, claim: int, option: Option, rest: Sequence[Candidate], left: int) -> bool:
        """Devices in order, since which of them comes first makes no difference."""
        if left == 0:
            return self._request(place + 1)
        narrowed, position = False, 0
        while len(rest) - position >= left and not self.failure:
            one = rest[position]
            position += 1
            self._steps += 1
            if self._steps > MOST_STEPS:
                return self._fail(claim, TOO_LONG)
            if self._suits(claim, option, one) and self._take(claim, option, one):
                if self._pick(place, claim, option, rest[position:], left - 1):
                    return True
                self._give_back(claim)
                if not narrowed:  # all have been looked at by now, or will be
                    rest = [each for each in rest[position:] if self._suits(claim, option, each)]
                    narrowed, position = True, 0
        return False

    def _suits(self, claim: int, option: Option, one: Candidate) -> bool:
        answer = self._matches(option, one)
        if isinstance(answer, str):
            self._fail(claim, answer)
            return False
        return answer and one.admits(option.tolerations) and self._takes(option, one) is not None

    def _take(self, claim: int, option: Option, one: Candidate) -> bool:
        """Take a device, or a share of it, unless too much is taken, or a constraint forbids it."""
        share = self._takes(option, one) if one.is_shared else None
        if not self._is_free(claim, option, one, share):
            return False
        values = [
            (one.attribute(constraint.match_attribute or constraint.distinct_attribute), constraint, others)
            for constraint, others in zip(self._wishes[claim].constraints, self._values[claim], strict=True)
            if option.concerns(constraint)
        ]
        if not all(_holds(*each) for each in values):
            return False
        for value, _, others in values:
            others.append(value)
        self._given[claim].append(Given(option, one, share))
        self._count(self._given[claim][-1], 1)
        return True

    def _is_free(self, claim: int, option: Option, one: Candidate, share: Takes | None) -> bool:
        """Whether a device may be taken: not twice by one claim unless it is shared; administrators always may."""
        if share is None and any(given.device is one for given in self._given[claim]):
            return False
        return option.admin or has_room(one, share, self._counters, self._usage, self._own)

    def _count(self, given: Given, times: int) -> None:
        """Note what is taken in this search; a device that others share draws on its counters already."""
        if not given.option.admin:
            key = given.device.key
            self._own.count(key, given.share, () if self._usage.uses(key) else given.device.draws, times)

    def _give_back(self, claim: int) -> None:
        given = self._given[claim].pop()
        option = given.option
        self._count(given, -1)
        for constraint, values in zip(self._wishes[claim].constraints, self._values[claim], strict=True):
            if option.concerns(constraint):
                values.pop()

    def _fail(self, claim: int, failure: str) -> bool:
        if not self.failure:
            self.failure, self.claim = failure, claim
        return False


def _holds(value: object, constraint: DeviceConstraint, others: Sequence[object]) -> bool:
    """Whether a device may join others in a constraint: with the same value, or with one that none of them has."""
    return value is not None and (value in others or not others if constraint.match_attribute else value not in others)
