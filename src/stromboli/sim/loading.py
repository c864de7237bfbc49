"""Manifest files into a cluster state, completed as the controllers of a live cluster would complete them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from stromboli.api.scheduling import QUEUE_OPEN
from stromboli.cluster.body import part
from stromboli.cluster.budgets import is_bare, with_status
from stromboli.cluster.complete import Addition, Completion, Grouping, ungrouped
from stromboli.cluster.decoding.devices import describes_devices
from stromboli.cluster.events import Event, Modified
from stromboli.cluster.files.reader import Manifests, Progress, Read, load, read
from stromboli.cluster.kinds import KINDS, ConfigMap, Job, Object, Pod, PodDisruptionBudget, Queue, ReplicaSet, title
from stromboli.cluster.owners.workload_pods import Whose
from stromboli.cluster.references import References
from stromboli.cluster.state import ClusterState
from stromboli.errors import ManifestError
from stromboli.model.names import POD_PENDING, SCHEDULER_NAME
from stromboli.model.resources.request import with_default_requests
from stromboli.sim.ignored import NO_DEVICES, Heeded, Ignored, kind_text, wishes

WORKLOADS = ("ReplicaSet", "StatefulSet", "ReplicationController", "Deployment", "DaemonSet", "BatchJob")
"""Kinds whose pods are objects of their own, made of those that are ours where none is listed."""
NO_PODS = "none of its pods is listed, and none is made of it; list them too (kubectl get pods -o yaml)"
LEFT = "its pods are left to scheduler {name}"
EMPTY = "holds no object"
"""What the reader says of a file that is empty, which is odd and no more."""


class Loading:
    """Takes files in.

    ``problems`` are objects that could not be used, ``remarks`` what is odd and yet works, ``ignored`` fields that
    their kinds do not have, ``added`` the sentences on what was completed, ``counts`` how many objects of which kind
    were ``added`` or ``changed``, ``manifests`` what was read last.

    With ``strict`` the first problem, remark or field without effect is raised.  ``grouping`` puts pods into the gangs
    of their owners.
    """

    def __init__(
        self, state: ClusterState, *, schedulers: Iterable[str] = (SCHEDULER_NAME,), strict: bool = False,
        grouping: Grouping = ungrouped,
    ) -> None:  # fmt: skip
        self.state, self.strict = state, strict
        self.problems: list[ManifestError] = []
        self.remarks: list[ManifestError] = []
        self.ignored: list[ManifestError] = []
        self.added: list[str] = []
        self.counts: dict[str, dict[str, int]] = {"added": {}, "changed": {}}
        self.manifests: Manifests | None = None
        self._completion = Completion(tuple(schedulers), state.default_queue, grouping)
        self._references = References()
        self._bare: dict[str, PodDisruptionBudget] = {}
        self._parents: set[tuple[str, str, str]] = set()
        self._childless: dict[tuple[str, str, str], Ignored] = {}

    def take(self, paths: Iterable[str | Path], progress: Progress | None = None) -> None:
        """Read all files and directories of ``paths`` (``-`` is standard input).  Raises ManifestError when strict."""
        self.manifests = read(paths, strict=self.strict, progress=progress)
        for error in load(self._sorted_out(self.manifests), self._apply):
            self._note(error, self.problems)
        for error in self.manifests.ignored:
            self._note(error, self.ignored)

    def _sorted_out(self, found: Iterable[Read | ManifestError]) -> Iterable[Read | ManifestError]:
        """What was found; an error that only announces that an object replaces an earlier one becomes a remark."""
        last: ManifestError | None = None
        for each in found:
            if last is not None:
                if isinstance(each, Read) and isinstance(each.event, Modified):
                    self.remarks.append(last)
                else:
                    yield last
                last = None
            if isinstance(each, ManifestError) and each.problem == EMPTY:
                self._note(each, self.remarks)
            elif isinstance(each, ManifestError):
                last = each
            else:
                yield each
        if last is not None:
            yield last

    def _apply(self, event: Event) -> None:
        if event.kind in self.state.ignored:
            return
        event = settled(event)
        self.state.apply(event)
        if isinstance(budget := event.object, PodDisruptionBudget):
            key = f"{budget.metadata.namespace}/{budget.metadata.name}"
            self._bare.pop(key, None)
            if is_bare(budget):
                self._bare[key] = budget
        self._completion.see(event)
        self._references.see(event)
        self._note_owner(event)
        if isinstance(event.object, ConfigMap) and not describes_devices(event.object):
            meta = event.object.metadata
            note = Ignored(title("ConfigMap", meta), "data", NO_DEVICES, minor=True)
            self._childless["ConfigMap", meta.namespace, meta.name] = note

    def _note_owner(self, event: Event) -> None:
        """Keep which workloads have no pods so far."""
        found, namespace = event.object, event.object.metadata.namespace
        if event.kind in WORKLOADS:
            key = (KINDS[event.kind].wire or event.kind, namespace, found.metadata.name)
            if key not in self._parents:
                self._childless[key] = Ignored(title(event.kind, found.metadata), "", _why_childless(found), minor=True)
        if event.kind in (*WORKLOADS, "Pod"):
            for owner in found.metadata.owner_references:
                self._parents.add((owner.kind, namespace, owner.name))
                self._childless.pop((owner.kind, namespace, owner.name), None)

    def complete(self) -> None:
        """Add what a live cluster would have: queues, namespaces, PodGroups of plain pods, pods of Volcano Jobs.

        Disruption budgets without a status get theirs.
        """
        self._completion.owners = self.manifests.owners if self.manifests else {}
        for addition in self._completion.additions():
            if isinstance(addition, ManifestError):
                self._note(addition, self.problems)
                continue
            try:
                self.state.apply(addition.event)
            except ManifestError as error:
                self._note(error, self.problems)
                continue
            self._references.see(addition.event)
            self._count(addition)
        for budget in self._bare.values():
            self._complete(budget)
        for remark in (*self._completion.remarks.values(), *self._references.problems()):
            self._note(remark, self.remarks)

    def kinds_ignored(self) -> list[str]:
        """Sentences on the objects of kinds that are not looked at."""
        if self.manifests is None:
            return []
        owning = Counter(self._owning(self.manifests.owners))
        left = {kind: count - owning[kind] for kind, count in self.manifests.skipped.items()}
        return [kind_text(kind, count) for kind, count in left.items() if count]

    def _owning(self, owners: Mapping[Whose, Mapping[str, Any]]) -> Iterator[str]:
        """The kind of each owner of which pods, or what makes them, are listed."""
        above = {(one.get("kind"), one.get("name")) for body in owners.values() for one in _references(body)}
        for version, kind, namespace, name in owners:
            if (kind, namespace, name) in self._parents or (kind, name) in above:
                yield f"{version} {kind}"

    @property
    def jobs(self) -> Mapping[str, Job]:
        """The Volcano Jobs that were read, by ``namespace/name``."""
        return self._completion.jobs

    def unfulfilled(self, heeded: Heeded) -> list[Ignored]:
        """What the objects ask for in vain; see :func:`~stromboli.sim.ignored.wishes`."""
        return [
            *wishes(self.state, self.jobs, heeded),
            *(
                note
                for (kind, namespace, name), note in self._childless.items()
                if not any(made[1:] == (kind, namespace, name) for made in self._completion.made)
            ),
        ]

    def _complete(self, budget: PodDisruptionBudget) -> None:
        """Write the status of a disruption budget as its controller would."""
        name = title("PodDisruptionBudget", budget.metadata)
        try:
            whole = with_status(budget, self.state.tasks.values())
        except ManifestError as error:
            self._note(ManifestError(error.problem, object=name, path=error.path), self.problems)
            return
        self.state.apply(Modified("PodDisruptionBudget", whole))
        allowed = whole.status.disruptions_allowed
        self._count(
            Addition(Modified("PodDisruptionBudget", whole), f"{name} allows {allowed} disruptions, by its pods")
        )

    def _count(self, addition: Addition) -> None:
        kind = addition.event.kind
        if kind != "Namespace":  # those decide nothing unless a selector asks for their labels
            counts = self.counts["changed" if isinstance(addition.event, Modified) else "added"]
            counts[kind] = counts.get(kind, 0) + 1
            self.added.append(addition.sentence)

    def _note(self, error: ManifestError, where: list[ManifestError]) -> None:
        if self.strict:
            raise error
        where.append(error)


def _references(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = part(body, "metadata", "ownerReferences")
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _why_childless(found: Object) -> str:
    """Why nothing is made of a workload whose pods are not listed."""
    template = found.spec.template if isinstance(found, ReplicaSet) else None
    return NO_PODS if template is None else LEFT.format(name=template.spec.scheduler_name[:63] or "default-scheduler")


def settled(event: Event) -> Event:
    """The object as a live cluster would hold it.

    A pod without a phase is Pending and requests what it limits; a queue without a state is Open.
    """
    found = event.object
    if isinstance(found, Pod):
        spec = with_default_requests(found.spec)
        status = found.status if found.status.phase else replace(found.status, phase=POD_PENDING)
        same = spec is found.spec and status is found.status
        return event if same else replace(event, object=replace(found, spec=spec, status=status))
    if isinstance(found, Queue) and not found.status.state:
        return replace(event, object=replace(found, status=replace(found.status, state=QUEUE_OPEN)))
    return event
