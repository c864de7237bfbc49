"""What a claim asks for, made ready for the search: classes looked up, alternatives in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid5

from stromboli.filters.devices.capacity import Takes, written
from stromboli.filters.devices.offers import Candidate, common, only_on
from stromboli.model.claims import (
    Allocation,
    DeviceClass,
    DeviceConstraint,
    DeviceRequest,
    DeviceResult,
    DeviceResults,
    ExactRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from stromboli.model.spec import Amount, Toleration

ALL: Final = "All"
MOST_DEVICES: Final = 32
"""Devices that one claim can be given; what its status has room for in Kubernetes."""
MOST_ALTERNATIVES: Final = 8
"""Alternatives of one request."""
SHARES: Final = UUID("5d1f4f5e-6c0e-4f0b-9c39-0b8a4f0f6a57")
"""The name space of shares' ids."""
MOST_CONSUMERS: Final = 256
"""Pods that can share a claim."""


@dataclass(frozen=True, slots=True, eq=False)
class Selector:
    """An expression, and what its errors begin with; ``{claim}`` stands for the claim."""

    expression: str
    whose: str


@dataclass(frozen=True, slots=True, eq=False)
class Option:
    """One way to meet a request; ``count`` 0: all devices that match; better alternatives have a higher ``score``."""

    name: str
    request: str
    device_class: str
    selectors: tuple[Selector, ...]
    count: int
    admin: bool
    tolerations: tuple[Toleration, ...]
    capacity: Mapping[str, Amount]
    score: int = 0

    def concerns(self, constraint: DeviceConstraint) -> bool:
        """Whether a constraint is about this request; one that names none is about all."""
        return not constraint.requests or self.name in constraint.requests or self.request in constraint.requests


@dataclass(frozen=True, slots=True, eq=False)
class Wish:
    """What one claim asks for: the options of each request, the best first.  ``problem`` makes it hopeless."""

    requests: tuple[tuple[Option, ...], ...]
    constraints: tuple[DeviceConstraint, ...]
    problem: str = ""


def wish_of(spec: ResourceClaimSpec, classes: Mapping[str, DeviceClass]) -> Wish:
    """The wish of a claim; ``problem`` names a class that does not exist, or what no scheduler could meet."""
    requests, problem = [], ""
    for request in spec.devices.requests:
        options = tuple(_options(request, classes))
        requests.append(options)
        for option in options:
            if not option.device_class:
                problem = problem or f"request {option.name}: unsupported request type"
            elif option.device_class not in classes:
                problem = problem or f"request {option.name}: device class {option.device_class} does not exist"
    return Wish(tuple(requests), spec.devices.constraints, problem)


def _options(request: DeviceRequest, classes: Mapping[str, DeviceClass]) -> Iterator[Option]:
    if request.exactly is not None or not request.first_available:
        yield _option(request.name, request.name, request.exactly or ExactRequest(), classes)
    for place, each in enumerate(request.first_available if request.exactly is None else ()):
        yield _option(f"{request.name}/{each.name}", request.name, each, classes, MOST_ALTERNATIVES - place)


def _option(name: str, request: str, asked: ExactRequest, classes: Mapping[str, DeviceClass], score: int = 0) -> Option:
    found = classes.get(asked.device_class_name)
    own = found.spec.selectors if found is not None else ()
    selectors = [(one, f"class {asked.device_class_name}: selector #{place}: ") for place, one in enumerate(own)]
    selectors += [(one, f"claim {{claim}}: selector #{place}: ") for place, one in enumerate(asked.selectors)]
    return Option(
        name,
        request,
        asked.device_class_name,
        tuple(Selector(one.cel.expression if one.cel is not None else "", whose) for one, whose in selectors),
        0 if asked.allocation_mode == ALL else max(1, asked.count),
        asked.admin_access,
        asked.tolerations,
        asked.capacity.requests if asked.capacity is not None else {},
        score,
    )


class Given(NamedTuple):
    """A device for a request; ``share`` is what it takes of one that others may have, too, None the device itself."""

    option: Option
    device: Candidate
    share: Takes | None = None


def allocation(
    claim: ResourceClaim, given: Sequence[Given], classes: Mapping[str, DeviceClass], node: str
) -> Allocation:
    """What is written into a claim's status for a pod on ``node``: devices, their drivers' configuration, and where
    they can be used.
    """
    results = tuple(_result(claim, place, each) for place, each in enumerate(given))
    configs = tuple(_configs(claim.spec, dict.fromkeys(each.option for each in given), classes))
    binds = any(each.device.device.binds_to_node for each in given)
    where = only_on(node) if binds else common(each.device.node_selector for each in given)
    return Allocation(DeviceResults(results, configs), where)


def _result(claim: ResourceClaim, place: int, given: Given) -> DeviceResult:
    option, one, share = given
    admin = True if option.admin else None
    amounts: dict[str, Amount] = {name: written(amount) for name, amount in (share or {}).items()}
    return DeviceResult(
        option.name, *one.key, admin, option.tolerations,
        "" if share is None else _share_id(claim, place, one), amounts,
        one.device.binding_conditions, one.device.binding_failure_conditions,
    )  # fmt: skip


def _share_id(claim: ResourceClaim, place: int, one: Candidate) -> str:
    """Which share of a device a claim has: the same whenever it is computed, and no other claim's or request's."""
    meta = claim.metadata
    return str(uuid5(SHARES, "/".join((meta.namespace, meta.name, meta.uid, str(place), *one.key))))


def _configs(
    spec: ResourceClaimSpec, options: Mapping[Option, None], classes: Mapping[str, DeviceClass]
) -> Iterator[dict[str, Any]]:
    """Of each class in use, then of the claim where it is about a request, or an alternative, in use."""
    by_class: dict[str, list[str]] = {}
    for option in options:
        by_class.setdefault(option.device_class, []).append(option.name)
    for name, requests in by_class.items():
        whose = {"requests": requests} if len(requests) < len(spec.devices.requests) else {}
        for config in classes[name].spec.config if name in classes else ():
            yield {"source": "FromClass", **whose, **config}
    used = {name for option in options for name in (option.name, option.request)}
    for config in spec.devices.config:
        if not config.get("requests") or used.intersection(config["requests"]):
            yield {"source": "FromClaim", **config}
