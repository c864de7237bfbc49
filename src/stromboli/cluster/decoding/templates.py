"""Pod templates: one value for all pods with equal specs, so that what follows from a spec is worked out once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

import msgspec

from stromboli.cluster.decoding.amounts import INT32, POD_LARGEST, check_amounts, check_whole
from stromboli.errors import ManifestError, QuantityError
from stromboli.model.names import POD_RESIZE_PENDING
from stromboli.model.resources.axes import Axes
from stromboli.model.resources.request import (
    DEFAULT_GATES,
    ContainerState,
    PodCondition,
    PodState,
    RequestGates,
    nonzero_request,
    pod_request,
)
from stromboli.model.resources.resource import Resource
from stromboli.model.spec import Affinity, Container, PodClaim, PodSpec, PodVolume, PreferredTerm, WeightedTerm
from stromboli.model.task import PodTemplate

FEW: Final = 2048
"""How many templates may be kept before the first search for unused ones."""

_PORTS: Final = range(65536)
_NO_STATE: Final = PodState()
_SOME_VOLUME, _SOME_CLAIM = (PodVolume(),), (PodClaim(),)
_encode: Final = msgspec.msgpack.Encoder().encode


class TemplateStore:
    """All templates of a cluster, numbered from 0 in the order in which they were first seen; no number is used twice.

    ``axes`` is the cluster's numbering of resources, ``ignored`` are scalars accounted elsewhere (shared devices),
    ``gates`` the API server's feature gates.
    """

    __slots__ = ("_known", "_many", "_next", "axes", "gates", "ignored")

    def __init__(self, axes: Axes, ignored: Collection[str] = (), gates: RequestGates = DEFAULT_GATES) -> None:
        self.axes, self.ignored, self.gates = axes, ignored, gates
        self._known: dict[bytes, PodTemplate] = {}
        self._next = 0
        self._many = FEW

    def __len__(self) -> int:
        return len(self._known)

    def all(self) -> list[PodTemplate]:
        """Every template that is kept, in the order of their numbers."""
        return list(self._known.values())

    def tidy(self, used: Iterable[PodTemplate]) -> None:
        """Let go of templates that are not ``used``, which is looked at only once there are many."""
        if len(self._known) <= self._many:
            return
        numbers = {template.number for template in used}
        self._known = {key: template for key, template in self._known.items() if template.number in numbers}
        self._many = max(FEW, 2 * len(self._known))

    def learn(self, names: frozenset[str]) -> dict[int, PodTemplate]:
        """Rebuild the templates that request ``names``, which now have a column; keyed by their old numbers."""
        found: dict[int, PodTemplate] = {}
        for key, old in self._known.items():
            if old.request.scalars and not names.isdisjoint(old.request.scalars):
                vector = self.axes.requested(old.request)
                found[old.number] = self._known[key] = self._numbered(old.spec, old.request, vector, old.nonzero)
        return found

    def template(
        self, spec: PodSpec, state: PodState = _NO_STATE, more: tuple[tuple[str, int], ...] = ()
    ) -> PodTemplate:
        """The template of a pod of ``spec``, its node's name, its time for ending and the names of its claims aside.

        ``state`` makes a difference while an in-place resize is under way; ``more`` are scalars that the pod requests
        in addition to those of its spec, in thousandths.  Raises
        :class:`~stromboli.errors.ManifestError` naming the field for amounts and numbers that cannot be used.
        """
        spec = _common(spec)
        resized = _resized(spec, state)
        try:
            # checkpoints hold these keys: a pod of an old record has to find its template again
            key = _encode(spec) if resized is None and not more else _encode((spec, resized, more))
        except OverflowError as error:
            raise ManifestError("holds a number of more than 64 bits", path="spec") from error
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._made(spec, resized, more)
        return found

    def _made(self, spec: PodSpec, state: PodState | None, more: tuple[tuple[str, int], ...]) -> PodTemplate:
        check_spec(spec)
        try:
            request = pod_request(spec, state, gates=self.gates, ignored=self.ignored)
            nonzero = nonzero_request(spec, state, gates=self.gates)
        except QuantityError as error:  # the spec's own amounts are sound, so it is the kubelet's
            raise ManifestError(error.message, path="status.containerStatuses") from error
        if more:
            request.scalars = {**(request.scalars or {}), **dict(more)}
        vector = self.axes.requested(request)
        asked = (*vector, *(request.scalars or {}).values())  # each name by itself: it may get a column later
        if max(asked) > POD_LARGEST or min(asked) < 0:
            raise ManifestError("all its containers together ask for too much", path="spec")
        return self._numbered(spec, request, vector, nonzero)

    def _numbered(
        self, spec: PodSpec, request: Resource, vector: tuple[int, ...], nonzero: tuple[int, int]
    ) -> PodTemplate:
        self._next += 1
        return PodTemplate(self._next - 1, spec, request, vector, nonzero)


def _common(spec: PodSpec) -> PodSpec:
    """What pods of a spec have in common; that they have claims stays visible."""
    own = spec.node_name or spec.resource_claims or spec.volumes or spec.termination_grace_period_seconds is not None
    if not own:
        return spec
    claims = any(each.persistent_volume_claim or each.ephemeral for each in spec.volumes)
    return msgspec.structs.replace(
        spec,
        node_name="",
        termination_grace_period_seconds=None,
        volumes=_SOME_VOLUME if claims else (),
        resource_claims=_SOME_CLAIM if spec.resource_claims else (),
    )


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
    for where, stated in _scored(spec):
        check_whole(stated, INT32, f"{path}.{where}")


def _scored(spec: PodSpec) -> Iterator[tuple[str, int | None]]:
    """The numbers that scores and spreads are reckoned with, each with the field that states it."""
    affinity = spec.affinity or Affinity()
    kinds = (
        ("nodeAffinity", affinity.node_affinity),
        ("podAffinity", affinity.pod_affinity),
        ("podAntiAffinity", affinity.pod_anti_affinity),
    )
    for kind, terms in kinds:
        preferred: Iterable[PreferredTerm | WeightedTerm] = terms.preferred if terms is not None else ()
        for number, term in enumerate(preferred):
            yield f"affinity.{kind}.preferredDuringSchedulingIgnoredDuringExecution[{number}].weight", term.weight
    for number, constraint in enumerate(spec.topology_spread_constraints):
        yield f"topologySpreadConstraints[{number}].maxSkew", constraint.max_skew
        yield f"topologySpreadConstraints[{number}].minDomains", constraint.min_domains


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
