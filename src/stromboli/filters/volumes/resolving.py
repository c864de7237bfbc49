"""What a pod's claims come to: volumes that they have, what they still lack, and what is wrong with them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Final, NamedTuple, TypeAlias

from stromboli.filters.selectors import Clauses, clauses
from stromboli.model.objects.storage import (
    ONE_POD,
    SELECTED_NODE,
    STORAGE,
    Mount,
    PersistentVolume,
    PersistentVolumeClaim,
    Storage,
    attached_as,
    class_of,
    is_bound,
    is_delayed,
)
from stromboli.model.resources import quantity
from stromboli.model.task import Task

ZONE_LABELS: Final = tuple(
    f"{domain}/{name}"
    for domain in ("topology.kubernetes.io", "failure-domain.beta.kubernetes.io")
    for name in ("zone", "region")
)
"""Labels by which volumes and nodes say where they are."""

Zones: TypeAlias = tuple[tuple[str, frozenset[str]], ...]


class Shape(NamedTuple):
    """What an unbound claim asks of a volume; claims alike in it can stand in for each other."""

    storage_class: str
    size: int
    access_modes: tuple[str, ...]
    volume_mode: str
    selector: Clauses | None
    attributes_class: str


Wish: TypeAlias = Shape | str
"""A claim without a volume: its shape, or its key where a volume or node is kept for it or pods share it."""


class Wanted(NamedTuple):
    """What a pod's claims come to; equal ones get equal answers.

    ``zone_problem`` and ``problem`` rule out every node.  ``bound`` are the nodes that reach the volumes of bound
    claims, by number, ``gone`` says that such a volume does not exist; ``wishes`` are of unbound claims.  ``attached``
    are CSI drivers and how many volumes only this pod mounts, ``shared`` those that others mount, too; ``alone`` are
    claims for one pod at a time.
    """

    zone_problem: str = ""
    problem: str = ""
    bound: tuple[int, ...] = ()
    gone: bool = False
    zones: Zones = ()
    wishes: tuple[Wish, ...] = ()
    attached: tuple[tuple[str, int], ...] = ()
    shared: tuple[tuple[str, str], ...] = ()
    alone: tuple[str, ...] = ()


NOTHING: Final = Wanted()


def shape_of(claim: PersistentVolumeClaim) -> Shape:
    """The shape of a claim."""
    spec = claim.spec
    selector = () if spec.selector is None else clauses(spec.selector)
    size = quantity.whole(spec.resources.requests.get(STORAGE, 0))
    attributes = spec.volume_attributes_class_name or ""
    return Shape(class_of(claim), size, spec.access_modes, spec.volume_mode, selector, attributes)


def delayed(task: Task, storage: Storage) -> Iterator[str]:
    """The claims of a pod that get their volumes once it has a node."""
    for mount in task.volumes:
        claim = storage.claims.get(mount.claim)
        if claim is not None and not is_bound(claim) and is_delayed(claim, storage.classes):
            yield mount.claim


def resolve(
    task: Task,
    storage: Storage,
    is_own: Callable[[str], bool],
    kept: Callable[[str], bool],
    reach: Callable[[PersistentVolume], int],
) -> Wanted:
    """What the claims of ``task`` come to.

    ``is_own`` says whether no other pod mounts a claim, ``kept`` whether a volume is kept for it, ``reach`` numbers the
    sets of nodes that reach volumes.
    """
    problem = _first(_problem(task, mount, storage) for mount in task.volumes)
    zone_problem = _first(_zone_problem(mount, storage) for mount in task.volumes)
    named = {mount.claim: storage.claims.get(mount.claim) for mount in task.volumes}
    claims = {key: claim for key, claim in named.items() if claim is not None}
    if len(claims) < len(named):
        return Wanted(zone_problem, problem)
    bound = [claim.spec.volume_name for claim in claims.values() if is_bound(claim)]
    there = [storage.volumes[name] for name in bound if name in storage.volumes]
    own, shared = _attached(claims, storage, is_own)
    return Wanted(
        zone_problem,
        problem,
        bound=tuple(dict.fromkeys(map(reach, there))),
        gone=len(there) < len(bound),
        zones=tuple(dict.fromkeys(chain.from_iterable(map(zones_of, there)))),
        wishes=_wishes(task, storage, lambda key: is_own(key) and not kept(key)),
        attached=own,
        shared=shared,
        alone=_alone(claims),
    )


def _first(problems: Iterable[str]) -> str:
    return next(filter(None, problems), "")


def _alone(claims: Mapping[str, PersistentVolumeClaim]) -> tuple[str, ...]:
    return tuple(key for key, claim in claims.items() if ONE_POD in claim.spec.access_modes)


def _attached(
    claims: Mapping[str, PersistentVolumeClaim], storage: Storage, is_own: Callable[[str], bool]
) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, str], ...]]:
    """How many volumes each CSI driver attaches for the pod alone, and those that it attaches for others, too."""
    own: Counter[str] = Counter()
    shared: set[tuple[str, str]] = set()
    for key, claim in claims.items():
        driver, volume = attached_as(claim, storage)
        if driver and is_own(key):
            own[driver] += 1
        elif driver:
            shared.add((driver, volume))
    return tuple(sorted(own.items())), tuple(sorted(shared))


def zones_of(volume: PersistentVolume) -> Iterator[tuple[str, frozenset[str]]]:
    """The zones and regions that a volume's labels name."""
    for key in ZONE_LABELS:
        if key in volume.metadata.labels:
            yield key, frozenset(volume.metadata.labels[key].split("__"))


def _wishes(task: Task, storage: Storage, is_free: Callable[[str], bool]) -> tuple[Wish, ...]:
    """Wishes by shape where no volume or node is kept for the claim and no other pod shares it."""
    claims = ((key, storage.claims[key]) for key in delayed(task, storage))
    return tuple(
        shape_of(claim) if is_free(key) and SELECTED_NODE not in claim.metadata.annotations else key
        for key, claim in claims
    )


def _zone_problem(mount: Mount, storage: Storage) -> str:
    """What VolumeZone finds wrong with a claim; it looks at no ephemeral ones."""
    name, claim = mount.claim.partition("/")[2], storage.claims.get(mount.claim)
    if mount.owner:
        return ""
    if claim is None:
        return f'persistentvolumeclaim "{name}" not found'
    volume = claim.spec.volume_name
    if volume:
        return "" if volume in storage.volumes else f'persistentvolume "{volume}" not found'
    named = class_of(claim)
    if not named:
        return "PersistentVolumeClaim had no pv name and storageClass name"
    if named not in storage.classes:
        return f'storageclass.storage.k8s.io "{named}" not found'
    return "" if is_delayed(claim, storage.classes) else "PersistentVolume had no name"


def _problem(task: Task, mount: Mount, storage: Storage) -> str:
    """What VolumeBinding finds wrong with a claim."""
    name, claim = mount.claim.partition("/")[2], storage.claims.get(mount.claim)
    if claim is None and mount.owner:
        return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
    if claim is None:
        return f'persistentvolumeclaim "{name}" not found'
    if claim.status.phase == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
    if claim.metadata.deletion_timestamp:
        return f'persistentvolumeclaim "{name}" is being deleted'
    if mount.owner and all(owner.uid != mount.owner for owner in claim.metadata.owner_references if owner.controller):
        return f"PVC {mount.claim} was not created for pod {task.key} (pod is not owner)"
    if not is_bound(claim) and not is_delayed(claim, storage.classes):
        return "pod has unbound immediate PersistentVolumeClaims"
    return ""
