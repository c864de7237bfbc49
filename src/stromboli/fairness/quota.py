"""What each queue is guaranteed, deserves and may have, worked out from what the Queue objects say.

``flat`` looks at every queue alone; ``tree`` lets queues below another one inherit its limits and share them.  Nothing
here depends on what queues or jobs hold.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from stromboli.model.names import DEVICE_CLASS_PREFIX
from stromboli.model.names import ROOT_QUEUE as ROOT
from stromboli.model.queue import KEPT, Queue
from stromboli.model.resources.amounts import MIN
from stromboli.model.resources.axes import CPU, MEMORY, Axes
from stromboli.model.resources.quantity import MAX_INT64
from stromboli.model.resources.resource import INFINITE, Default, Resource, exceeded_part, maximum
from stromboli.model.spec import Amount

DEVICE_CLASS = DEVICE_CLASS_PREFIX
"""Names of device classes in a queue's amounts: ``deviceclass/C`` and, for a dimension D, ``D.deviceclass/C``."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How a Queue's amounts are read.

    ``device_scalars`` makes names of device classes ordinary scalars; ``open_dimensions`` makes every dimension that
    root leaves out unlimited, not only all of them together; ``checks_sums`` finds fault with queues whose children are
    promised more than they have themselves, and with guarantees that the whole cluster could not keep.
    """

    device_scalars: bool = False
    open_dimensions: bool = True
    checks_sums: bool = True

    def resource(self, written: Mapping[str, Amount] | None) -> Resource:
        """A resource list of a Queue."""
        if self.device_scalars or not written:
            return Resource.from_list(written or {})
        return Resource.from_list({name: amount for name, amount in written.items() if not is_device_class(name)})


OURS = Reading()


def is_device_class(name: str) -> bool:
    """Whether ``name`` limits devices of a class, or one of their dimensions."""
    return name.startswith(DEVICE_CLASS) or f".{DEVICE_CLASS}" in name


@dataclass(slots=True)
class Quota:
    """The bounds of one queue.

    ``capability`` is None where nothing is written or inherited; ``real_capability`` is what others'
    guarantees leave of it.  ``claims`` are the names that the Queue writes into deserved or guarantee.  ``ancestors``
    go from the root down to the parent; ``fault`` says why the queue cannot be used, ``warning`` why it may not get
    what it is guaranteed.
    """

    name: str
    guarantee: Resource
    deserved: Resource
    capability: Resource | None
    claims: frozenset[str]
    real_capability: Resource = field(default_factory=Resource)
    ancestors: tuple[str, ...] = ()
    children: list[str] = field(default_factory=list)
    fault: str = ""
    warning: str = ""

    @property
    def parent(self) -> str:
        """The queue above, empty for the root."""
        return self.ancestors[-1] if self.ancestors else ""

    def twin(self) -> Quota:
        """The same quota with amounts of its own, so that a change to these does not reach another session."""
        capability = None if self.capability is None else self.capability.clone()
        return Quota(
            self.name, self.guarantee.clone(), self.deserved.clone(), capability, self.claims,
            self.real_capability.clone(), self.ancestors, [*self.children], self.fault, self.warning,
        )  # fmt: skip

    def below(self, above: Resource, guaranteed: Resource) -> None:
        """Take what is left of ``above`` once all siblings have what they are ``guaranteed`` together."""
        self.real_capability = exceeded_part(above, guaranteed).add(self.guarantee)
        if self.capability is not None:
            self.real_capability.min_dimension(self.capability, Default.INFINITY)


def read(queue: Queue, reading: Reading = OURS) -> Quota:
    """What ``queue`` itself says, nothing worked out yet."""
    spec = queue.spec
    guarantee = (spec.guarantee.resource if spec.guarantee else None) or {}
    capability = reading.resource(spec.capability) if spec.capability else None
    claims = frozenset({*(spec.deserved or {}), *guarantee})
    return Quota(queue.name, reading.resource(guarantee), reading.resource(spec.deserved), capability, claims)


class Guaranteed(Protocol):
    """Whatever has a guarantee."""

    guarantee: Resource


def total_guarantee(quotas: Iterable[Guaranteed]) -> Resource:
    """The guarantees of several queues added up."""
    total = Resource()
    for quota in quotas:
        total.add(quota.guarantee)
    return total


def by_column(axes: Axes, resource: Resource, absent: float) -> list[float]:
    """``resource`` as floats by column; ``absent`` stands where it does not name a scalar."""
    values = [absent] * len(axes)
    values[CPU], values[MEMORY] = resource.milli_cpu, resource.memory
    for name, amount in (resource.scalars or {}).items():
        values[axes.column(name)] = amount
    return values


# ---------------------------------------------------------------------- every queue alone


def flat(
    queues: Iterable[Queue], total: Resource, reading: Reading = OURS, most: Resource | None = None
) -> dict[str, Quota]:
    """Quotas of queues side by side in a cluster of ``total``; cpu or memory of 0 in a capability is unlimited.

    deserved = max(min(written, real capability), guarantee).  ``most`` is the most that the cluster has had, ``total``
    where it is left out; see :func:`refuse_guarantee` for impossible guarantees.
    """
    quotas = {queue.name: read(queue, reading) for queue in queues}
    if reading.checks_sums:
        for quota in quotas.values():
            refuse_guarantee(quota, most or total)
        warn_of_shortage(list(quotas.values()), total)
    guaranteed = total_guarantee(quotas.values())
    for quota in quotas.values():
        if quota.capability is not None:
            _fill(quota.capability, Resource(INFINITE, INFINITE))
        quota.below(total, guaranteed)
        quota.deserved.min_dimension(quota.real_capability, Default.INFINITY)
        quota.deserved = maximum(quota.deserved, quota.guarantee)
    return quotas


def _fill(capability: Resource, above: Resource) -> None:
    """Let ``capability`` inherit the dimensions that it leaves open; cpu and memory of 0 are open."""
    capability.milli_cpu = capability.milli_cpu if capability.milli_cpu > 0 else above.milli_cpu
    capability.memory = capability.memory if capability.memory > 0 else above.memory
    for name, amount in (above.scalars or {}).items():
        if name not in (capability.scalars or {}):
            capability.set_scalar(name, amount)


# ---------------------------------------------------------------------- a tree of queues


def tree(
    queues: Iterable[Queue], total: Resource, reading: Reading = OURS, most: Resource | None = None
) -> dict[str, Quota]:
    """Quotas of queues below one another; one that names no parent stands below the queue ``root``.

    deserved = max(written, guarantee), at the root the sum of its children's, as is its guarantee.  What a capability
    leaves open is inherited; of its parent's real capability a queue may have what the guarantees of its siblings
    leave.  Root's own limit is unlimited where nothing is written: the cluster bounds its jobs anyway.

    A queue above which no root is found has a ``fault`` and nothing else is worked out for it.  One whose children
    are promised more than it has itself, or that is promised more than the cluster has had (``most``, ``total`` where
    it is left out), has a fault with all queues below it.
    """
    quotas = {queue.name: read(queue, reading) for queue in queues}
    parents = {queue.name: queue.spec.parent or ROOT for queue in queues}
    for quota in quotas.values():
        quota.ancestors, quota.fault = _above(quota.name, parents)
        if reading.checks_sums and quota.name != ROOT:
            refuse_guarantee(quota, most or total)
    for quota in quotas.values():
        if quota.parent:
            quotas[quota.parent].children.append(quota.name)
        quota.deserved = maximum(quota.deserved, quota.guarantee)
        quota.capability = quota.capability or Resource()
    if ROOT in quotas:
        _settle_root(quotas, _unlimited(total), reading)
        _settle_below(quotas[ROOT], quotas)
        _check(quotas, total, reading)
    return quotas


def _check(quotas: Mapping[str, Quota], total: Resource, reading: Reading) -> None:
    """Find fault with queues below one that cannot be used, and with sums that do not add up."""
    for name, fault in overcommitments(quotas) if reading.checks_sums else ():
        _blame(quotas[name], fault, quotas)
    for quota in [one for one in quotas.values() if one.fault]:
        _blame(quota, quota.fault, quotas)
    if reading.checks_sums:
        warn_of_shortage([quotas[name] for name in quotas[ROOT].children], total)


def refuse_guarantee(quota: Quota, most: Resource) -> None:
    """Find fault with a queue that is guaranteed more than the whole cluster ever had; nothing is kept for it then.

    Kept, such a guarantee would leave nothing to all other queues.  A resource of which the cluster had nothing is not
    looked at: no other queue could have it instead, and nodes with it may come.
    """
    if not quota.fault and (names := _not_there(quota.guarantee, most)):
        quota.fault = f"guarantee is beyond the whole cluster in {', '.join(names)}; lower it, or add nodes"
        quota.guarantee, quota.deserved = Resource(), Resource()


def warn_of_shortage(quotas: Collection[Quota], total: Resource) -> None:
    """Say of queues side by side which are guaranteed something that the cluster lacks for all of them together.

    None of them is at fault: they go on, and get what there is.
    """
    short = _not_there(total_guarantee(quotas), total)
    for quota in quotas:
        if names := [name for name in short if quota.guarantee.get(name) >= MIN]:
            short_of, own = ", ".join(names), quota.guarantee.to_list()
            told = ", ".join(f"{name} {own[name]}" for name in names)
            quota.warning = (
                f"all guarantees are beyond the cluster in {short_of}; lower them, or add nodes{KEPT}{told})"
            )


def _not_there(promised: Resource, total: Resource) -> list[str]:
    """Resources of which ``total`` has something, but less than is ``promised``."""
    return [n for n in promised.names() if total.get(n) >= MIN and promised.get(n) >= total.get(n) + MIN]


def _blame(quota: Quota, fault: str, quotas: Mapping[str, Quota]) -> None:
    """Find fault with a queue and all below it, unless that has been done."""
    quota.fault = quota.fault or fault
    for child in quota.children:
        _blame(quotas[child], fault, quotas)


def _above(name: str, parents: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """The queues above ``name`` from the root on, or why there is no way to the root."""
    path: list[str] = [name]
    while path[-1] != ROOT:
        parent = parents[path[-1]]
        if parent not in parents:
            return (), f"the queue {path[-1]} has invalid parent queue {parent}"
        if parent in path:
            circle = min(path[path.index(parent) :])
            return (), f"cycle detected in queue hierarchy for queue {circle}"
        path.append(parent)
    return tuple(reversed(path[1:])), ""


def _unlimited(total: Resource) -> Resource:
    scalars = {name: float(MAX_INT64) for name in total.scalars or {}}
    return Resource(INFINITE, INFINITE, scalars, MAX_INT64)


def _settle_root(quotas: Mapping[str, Quota], unlimited: Resource, reading: Reading) -> None:
    root = quotas[ROOT]
    capability = root.capability or Resource()
    if capability.is_empty():
        capability = unlimited
    elif reading.open_dimensions:
        _fill(capability, unlimited)
    root.capability = root.real_capability = capability
    children = [quotas[name] for name in root.children]
    root.guarantee, root.deserved = total_guarantee(children), total_deserved(children)


def _settle_below(parent: Quota, quotas: Mapping[str, Quota]) -> None:
    children = [quotas[name] for name in parent.children]
    guaranteed = total_guarantee(children)
    for child in children:
        if child.capability is not None and parent.capability is not None:
            _fill(child.capability, parent.capability)
        child.below(parent.real_capability, guaranteed)
    for child in children:
        _settle_below(child, quotas)


def total_deserved(quotas: Iterable[Quota]) -> Resource:
    """What several queues deserve, added up."""
    total = Resource()
    for quota in quotas:
        total.add(quota.deserved)
    return total


def overcommitments(quotas: Mapping[str, Quota]) -> Iterator[tuple[str, str]]:
    """Queues whose children are promised more than they have themselves, with what it is that does not add up.

    Only dimensions that the queue itself names are looked at; root has what its children have.
    """
    for quota in quotas.values():
        children = [quotas[name] for name in quota.children]
        if quota.name != ROOT and children:
            guaranteed, deserved = total_guarantee(children), total_deserved(children)
            for what, own, theirs in (
                ("guarantee", quota.guarantee, guaranteed),
                ("deserved", quota.deserved, deserved),
            ):
                if names := _beyond(theirs, own):
                    yield quota.name, f"{what} of the children of queue {quota.name} is beyond its own in {names}"


def _beyond(theirs: Resource, own: Resource) -> str:
    return ", ".join(name for name in own.names() if theirs.get(name) >= own.get(name) + MIN)
