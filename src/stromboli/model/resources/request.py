"""What a pod asks for, by Kubernetes' rules: containers, init containers, sidecars, overhead, pod level, resizes.

The walk, in each dimension: containers and sidecars (restartable init containers) run together; a plain init container
runs beside the sidecars started before it only; a pod needs the larger of both.  Values that the pod as a whole states
replace the result for the names they give; the overhead comes on top.

Specs and states may be given decoded or as the mappings they were decoded from.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from fractions import Fraction
from typing import Final, TypeAlias, TypeVar

import msgspec

from stromboli.errors import ManifestError
from stromboli.model.names import CPU, HUGE_PAGES_PREFIX, MEMORY, POD_RESIZE_PENDING, PODS, REASON_INFEASIBLE
from stromboli.model.resources import quantity
from stromboli.model.resources.resource import Resource
from stromboli.model.spec import Amount, Container, PodSpec, Resources, Wire

NONZERO_MILLI_CPU: Final = 100
"""What a container without a cpu request counts in scores, in thousandths of a core."""
NONZERO_MEMORY: Final = 200 * 1024 * 1024
"""What a container without a memory request counts in scores, in bytes."""


class RequestGates(msgspec.Struct, frozen=True):
    """Kubernetes' feature gates that decide what counts: PodLevelResources and InPlacePodVerticalScaling."""

    pod_level_resources: bool = True
    in_place_resize: bool = True


class ContainerState(Wire, frozen=True):
    """What the kubelet says a container has: ``resources`` in force, ``allocated_resources`` set aside for it."""

    name: str = ""
    resources: Resources | None = None
    allocated_resources: dict[str, Amount] = msgspec.field(default_factory=dict)


class PodCondition(Wire, frozen=True):
    """One condition of a pod's status."""

    type: str = ""
    status: str = ""
    reason: str = ""


class PodState(Wire, frozen=True):
    """The part of a pod's ``status`` that changes what it counts."""

    container_statuses: tuple[ContainerState, ...] = ()
    init_container_statuses: tuple[ContainerState, ...] = ()
    conditions: tuple[PodCondition, ...] = ()


SpecLike: TypeAlias = PodSpec | Mapping[str, object]
StateLike: TypeAlias = PodState | Mapping[str, object] | None
DEFAULT_GATES: Final = RequestGates()

_Amounts: TypeAlias = Mapping[str, quantity.Quantity]
_AmountsOf: TypeAlias = Callable[[Container, bool], _Amounts]
"""Container, whether its state counts -> amounts by name."""
_Wire = TypeVar("_Wire", bound=Wire)
_NONZERO: Final[_Amounts] = {CPU: Fraction(NONZERO_MILLI_CPU, 1000), MEMORY: NONZERO_MEMORY}


def with_default_requests(spec: PodSpec) -> PodSpec:
    """``spec`` as the API server stores it: every container requests what it limits where it states no request.

    The same object where that changes nothing.
    """
    parts = {"containers": spec.containers, "init_containers": spec.init_containers}
    changed = {
        name: tuple(_with_default_requests(container) for container in containers)
        for name, containers in parts.items()
        if any(container.resources.limits.keys() - container.resources.requests.keys() for container in containers)
    }
    return msgspec.structs.replace(spec, **changed) if changed else spec


def _with_default_requests(container: Container) -> Container:
    resources = container.resources
    requests = {**resources.limits, **resources.requests}
    return msgspec.structs.replace(container, resources=msgspec.structs.replace(resources, requests=requests))


def pod_request(
    spec: SpecLike, status: StateLike = None, *, gates: RequestGates = DEFAULT_GATES, ignored: Collection[str] = ()
) -> Resource:
    """What a pod takes of a node, one of its ``pods`` included.

    ``ignored`` are scalars accounted elsewhere (shared devices).  Raises :class:`~stromboli.errors.ManifestError` for a
    spec of the wrong shape, :class:`~stromboli.errors.QuantityError` for a bad amount.
    """
    pod = _decoded(spec, PodSpec)
    total = _walk(pod, _requests(status, gates), ignored)
    total.add_scalar(PODS, 1)
    return _with_pod_features(total, pod, gates, ignored)


def request_without_init(
    spec: SpecLike, status: StateLike = None, *, gates: RequestGates = DEFAULT_GATES, ignored: Collection[str] = ()
) -> Resource:
    """What the pod's containers alone ask for, init containers and ``pods`` left out; errors as :func:`pod_request`."""
    pod = _decoded(spec, PodSpec)
    total = _sum(pod.containers, _requests(status, gates), ignored)
    return _with_pod_features(total, pod, gates, ignored)


def limit(
    spec: SpecLike, status: StateLike = None, *, gates: RequestGates = DEFAULT_GATES, ignored: Collection[str] = ()
) -> Resource:
    """The limits of a pod by the same walk, without ``pods``; errors as :func:`pod_request`.

    The overhead is added only where there is a limit: a dimension without one stays unlimited (0).
    """
    pod = _decoded(spec, PodSpec)
    total = _walk(pod, _limits(status, gates), ignored)
    if gates.pod_level_resources:
        _replace(total, pod.resources.limits, ignored)
    overhead = {name: amount for name, amount in pod.overhead.items() if total.get(name)}
    return total.add(Resource.from_list(overhead, ignored))


def nonzero_request(
    spec: SpecLike, status: StateLike = None, *, gates: RequestGates = DEFAULT_GATES
) -> tuple[int, int]:
    """(thousandths of a core, bytes) that a pod counts in scores.

    Every container that names no cpu or memory counts :data:`NONZERO_MILLI_CPU` or :data:`NONZERO_MEMORY`; a written 0
    stays 0.  Where the pod states requests as a whole, a stand-in is used only for what no container names.
    """
    pod = _decoded(spec, PodSpec)
    requests = _requests(status, gates)
    standins = _standins(pod, requests, gates)
    total = _walk(pod, lambda container, live: {**standins, **requests(container, live)}, ())
    total = _with_pod_features(total, pod, gates, ())
    return int(total.milli_cpu), int(total.memory)


# -- The walk --------------------------------------------------------------------------------------------------------


def _walk(pod: PodSpec, amounts_of: _AmountsOf, ignored: Collection[str]) -> Resource:
    together = _sum(pod.containers, amounts_of, ignored)
    sidecars, starting = Resource(), Resource()
    for container in pod.init_containers:
        own = Resource.from_list(amounts_of(container, _restarts(container)), ignored)
        if _restarts(container):
            together.add(own)
            starting.set_max(sidecars.add(own))
        else:
            starting.set_max(own.add(sidecars))
    return together.set_max(starting)


def _sum(containers: Iterable[Container], amounts_of: _AmountsOf, ignored: Collection[str]) -> Resource:
    total = Resource()
    for container in containers:
        total.add(Resource.from_list(amounts_of(container, True), ignored))
    total.max_task_num = 0
    return total


def _restarts(container: Container) -> bool:
    return container.restart_policy == "Always"


def _with_pod_features(total: Resource, pod: PodSpec, gates: RequestGates, ignored: Collection[str]) -> Resource:
    if gates.pod_level_resources:
        _replace(total, pod.resources.requests, ignored)
    return total.add(Resource.from_list(pod.overhead, ignored)) if pod.overhead else total


def _replace(total: Resource, stated: _Amounts, ignored: Collection[str]) -> None:
    """Put what the pod states as a whole in place of its containers' sums."""
    names = [name for name in stated if _stands_for_pod(name)]
    amounts = Resource.from_list({name: stated[name] for name in names}, ignored)
    for name in names:
        if name == CPU:
            total.milli_cpu = amounts.milli_cpu
        elif name == MEMORY:
            total.memory = amounts.memory
        else:
            total.set_scalar(name, amounts.get(name))


def _stands_for_pod(name: str) -> bool:
    """Whether a pod may state this resource as a whole."""
    return name in (CPU, MEMORY) or name.startswith(HUGE_PAGES_PREFIX)


def _standins(pod: PodSpec, requests: _AmountsOf, gates: RequestGates) -> _Amounts:
    stated = [name for name in pod.resources.requests if _stands_for_pod(name)] if gates.pod_level_resources else []
    if not stated:
        return _NONZERO
    containers = [requests(container, True) for container in pod.containers]
    containers += [requests(container, _restarts(container)) for container in pod.init_containers]
    named = [*stated, *pod.overhead, *(name for amounts in containers for name in amounts)]
    return {name: amount for name, amount in _NONZERO.items() if name not in named}


# -- Amounts of one container ----------------------------------------------------------------------------------------


def _requests(status: StateLike, gates: RequestGates) -> _AmountsOf:
    """Requests of a container, those in force and those set aside included while a resize is under way."""
    states, infeasible = _states(status, gates)

    def amounts(container: Container, live: bool) -> _Amounts:
        state = states.get(container.name) if live else None
        if state is None or state.resources is None:
            return container.resources.requests
        wanted = {} if infeasible else container.resources.requests
        return _largest(wanted, state.resources.requests, state.allocated_resources)

    return amounts


def _limits(status: StateLike, gates: RequestGates) -> _AmountsOf:
    states, _ = _states(status, gates)

    def amounts(container: Container, live: bool) -> _Amounts:
        state = states.get(container.name) if live else None
        if state is None or state.resources is None:
            return container.resources.limits
        return _largest(container.resources.limits, state.resources.limits)

    return amounts


def _states(status: StateLike, gates: RequestGates) -> tuple[dict[str, ContainerState], bool]:
    """States by container name, and whether the node has refused the pod's resize."""
    if not status or not gates.in_place_resize:
        return {}, False
    state = _decoded(status, PodState)
    pending = [condition.reason for condition in state.conditions if condition.type == POD_RESIZE_PENDING]
    states = {each.name: each for each in (*state.init_container_statuses, *state.container_statuses)}
    return states, pending[:1] == [REASON_INFEASIBLE]


def _largest(*lists: _Amounts) -> _Amounts:
    largest: dict[str, Fraction] = {}
    for amounts in lists:
        for name, amount in amounts.items():
            exact = quantity.parse(amount)
            largest[name] = max(exact, largest.get(name, exact))
    return largest


def _decoded(value: Mapping[str, object] | _Wire, kind: type[_Wire]) -> _Wire:
    if isinstance(value, kind):
        return value
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ManifestError(str(error), object="Pod", path="spec" if kind is PodSpec else "status") from error
