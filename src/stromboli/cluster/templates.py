"""Pod templates: one value for all pods with equal specs, so that what follows from a spec is worked out once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from stromboli.cluster.amounts import INT32, POD_LARGEST, check_amounts, check_whole
from stromboli.errors import ManifestError, QuantityError
from stromboli.model.axes import Axes
from stromboli.model.names import POD_RESIZE_PENDING
from stromboli.model.request import (
    DEFAULT_GATES,
    ContainerState,
    PodCondition,
    PodState,
    RequestGates,
    nonzero_request,
    pod_request,
)
from stromboli.model.spec import Container, PodSpec
from stromboli.model.task import PodTemplate

_PORTS: Final = range(65536)
_NO_STATE: Final = PodState()
_encode: Final = msgspec.msgpack.Encoder().encode


class TemplateStore:
    """All templates of a cluster, numbered from 0 in the order in which they were first seen.

    ``axes`` is the cluster's numbering of resources, ``ignored`` are scalars accounted elsewhere (shared devices),
    ``gates`` the API server's feature gates.
    """

    __slots__ = ("_known", "axes", "gates", "ignored")

    def __init__(self, axes: Axes, ignored: Collection[str] = (), gates: RequestGates = DEFAULT_GATES) -> None:
        self.axes, self.ignored, self.gates = axes, ignored, gates
        self._known: dict[bytes, PodTemplate] = {}

    def __len__(self) -> int:
        return len(self._known)

    def all(self) -> list[PodTemplate]:
        """Every template made so far, in the order of their numbers."""
        return list(self._known.values())

    def template(self, spec: PodSpec, state: PodState = _NO_STATE) -> PodTemplate:
        """The template of a pod of ``spec``, its node's name aside.

        ``state`` makes a difference while a resize in place is under way.  Raises
        :class:`~stromboli.errors.ManifestError` naming the field for amounts and numbers that cannot be used.
        """
        if spec.node_name:
            spec = msgspec.structs.replace(spec, node_name="")
        resized = _resized(spec, state)
        try:
            key = _encode(spec) if resized is None else _encode((spec, resized))
        except OverflowError as error:
            raise ManifestError("holds a number of more than 64 bits", path="spec") from error
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._made(spec, resized)
        return found

    def _made(self, spec: PodSpec, state: PodState | None) -> PodTemplate:
        check_spec(spec)
        try:
            request = pod_request(spec, state, gates=self.gates, ignored=self.ignored)
            nonzero = nonzero_request(spec, state, gates=self.gates)
        except QuantityError as error:  # the spec's own amounts are sound, so it is the kubelet's
            raise ManifestError(error.message, path="status.containerStatuses") from error
        vector = self.axes.vector(request)
        if max(vector) > POD_LARGEST or min(vector) < 0:
            raise ManifestError("all its containers together ask for too much", path="spec")
        return PodTemplate(len(self._known), spec, request, vector, nonzero)


def check_spec(spec: PodSpec, path: str = "spec") -> None:
    """Raise :class:`~stromboli.errors.ManifestError` for the first amount or number of a spec that cannot be used.

    ``path`` is where the spec stands in its object.
    """
    for kind, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for number, container in enumerate(containers):
            _check_container(container, f"{path}.{kind}[{number}]")
    check_amounts(spec.overhead, f"{path}.overhead", POD_LARGEST)
    check_amounts(spec.resources.requests, f"{path}.resources.requests", POD_LARGEST)
    check_amounts(spec.resources.limits, f"{path}.resources.limits", POD_LARGEST)
    check_whole(spec.priority, INT32, f"{path}.priority")


def _check_container(container: Container, path: str) -> None:
    check_amounts(container.resources.requests, f"{path}.resources.requests", POD_LARGEST)
    check_amounts(container.resources.limits, f"{path}.resources.limits", POD_LARGEST)
    for number, port in enumerate(container.ports):
        check_whole(port.host_port, _PORTS, f"{path}.ports[{number}].hostPort")


def _resized(spec: PodSpec, state: PodState) -> PodState | None:
    """The part of ``state`` that changes the request; None when it says what the spec says."""
    if not state.container_statuses and not state.init_container_statuses:
        return None
    named = {container.name: container for container in (*spec.init_containers, *spec.containers)}
    differing = tuple(_differing(named, state.container_statuses))
    starting = tuple(_differing(named, state.init_container_statuses))
    if not differing and not starting:
        return None
    pending = tuple(PodCondition(c.type, c.status, c.reason) for c in state.conditions if c.type == POD_RESIZE_PENDING)
    return PodState(differing, starting, pending)


def _differing(named: dict[str, Container], states: Iterable[ContainerState]) -> Iterable[ContainerState]:
    for state in states:
        container = named.get(state.name)
        if container is None or state.resources is None:
            continue
        wanted = container.resources.requests
        set_aside = state.allocated_resources or wanted
        if not state.resources.requests == set_aside == wanted:
            yield state
