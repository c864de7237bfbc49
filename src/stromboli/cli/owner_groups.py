"""PodGroups of pods in files by what their owners say, decided by the code of the controllers of a live cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from stromboli.cluster.body import meta, with_meta
from stromboli.cluster.complete import BodyOf, Grouped
from stromboli.cluster.kinds import OwnerReference, Pod
from stromboli.cluster.owners.workload_pods import Whose
from stromboli.errors import ManifestError
from stromboli.model.values.reading import convert

if TYPE_CHECKING:
    from stromboli.controllers.changes import Outcome
    from stromboli.controllers.owners import Climb
    from stromboli.controllers.world import World

OURS: Final = "volcano.sh/"
"""What the annotations contain by which owners decide on PodGroups."""
UNREAD: Final = (
    "{kind} {name} decides on the PodGroup of this pod on a live cluster, but {why}, so its pods are not grouped by it"
)
UNLISTED: Final = "it is not listed"


class OwnerGroups:
    """Groups pods by their owners: :class:`~stromboli.cluster.complete.Grouping`.

    An owner without a uid has that by which its pods name it, else its name.
    """

    def __init__(self) -> None:
        self._uids: dict[Whose, str] = {}
        self._speaking: dict[Whose, bool] = {}

    @cached_property
    def _world(self) -> World:
        """What the controllers know: the owners that were read."""
        from stromboli.controllers.world import World

        return World()

    def __call__(self, pod: Pod, body_of: BodyOf) -> Grouped | None:
        """The group of ``pod``; None where no annotation of it or of its owners speaks of groups.

        Raises ManifestError.
        """
        body_of = _readable(body_of)
        if not self._speaks(pod, body_of):
            return None
        from stromboli.controllers.pod_groups import look, wanted

        references = self._identified(pod.metadata.owner_references, pod.metadata.namespace, body_of)
        pod = replace(pod, metadata=replace(pod.metadata, owner_references=references))
        climb = self._climb(pod, body_of)
        group = wanted(pod, climb)
        if climb.top is None:
            return Grouped(group, remark=_unread(climb))
        return Grouped(group, _annotations(look(pod, self._world)), is_owners=True, remark=_unread(climb))

    def _speaks(self, pod: Pod, body_of: BodyOf) -> bool:
        """Whether an annotation of ``pod`` or of an owner above it may decide on its group, so that it is looked at."""
        references, namespace = pod.metadata.owner_references, pod.metadata.namespace
        if references and any(OURS in key for key in pod.metadata.annotations):
            from stromboli.controllers.owners import GROUP_BY

            if GROUP_BY in pod.metadata.annotations:
                return True
        for one in references:
            name = _named(one, namespace)
            if name not in self._speaking:
                texts = (meta(body)["annotations"] for body in _above(one, namespace, body_of))
                self._speaking[name] = any(OURS in key for text in texts for key in text)
        return any(self._speaking[_named(one, namespace)] for one in references)

    def _climb(self, pod: Pod, body_of: BodyOf) -> Climb:
        """The owners above ``pod``, each read from the files when it is asked for."""
        from stromboli.controllers.owners import Climb

        while (read := (climb := Climb(pod, self._world, frozenset(), 0.0)).missing) is not None:
            name = (read.api_version, read.kind, read.namespace, read.name)
            body = body_of(name)
            self._world.readings.note(read, body and self._whole(name, body, body_of), UNLISTED, 0.0)
        return climb

    def _whole(self, name: Whose, body: Mapping[str, Any], body_of: BodyOf) -> Mapping[str, Any]:
        """An owner as a live cluster would hold it: it and its owners have uids."""
        owners = self._identified(_owners(body), name[2], body_of)
        listed = [{**one, "uid": each.uid} for one, each in zip(_listed(body), owners, strict=True)]
        return with_meta(body, uid=self._uids.get(name, name[3]), ownerReferences=listed)

    def _identified(
        self, references: tuple[OwnerReference, ...], namespace: str, body_of: BodyOf
    ) -> tuple[OwnerReference, ...]:
        """``references`` with uids."""
        return tuple(replace(one, uid=self._uid(one, namespace, body_of)) for one in references)

    def _uid(self, reference: OwnerReference, namespace: str, body_of: BodyOf) -> str:
        name = _named(reference, namespace)
        known = self._uids.get(name)
        if known is None:
            own = str(meta(body_of(name) or {}).get("uid") or "")
            known = self._uids[name] = own or reference.uid or reference.name
        return reference.uid or known


def _unread(climb: Climb) -> str:
    """What is said of an owner that matters and could not be read; empty without one."""
    if climb.denied is None:
        return ""
    reference, why = climb.denied
    return UNREAD.format(kind=reference.kind, name=reference.name, why=why)


def _annotations(outcome: Outcome) -> Mapping[str, str]:
    """What a look at a pod writes into its annotations."""
    from stromboli.api.kinds import PODS
    from stromboli.controllers.changes import Patch

    changes = (change for batch in outcome.batches for change in batch)
    joins = next(one.body for one in changes if isinstance(one, Patch) and one.resource == PODS)
    return convert(meta(joins)["annotations"], dict[str, str])


def _readable(body_of: BodyOf) -> BodyOf:
    """Objects with ``annotations`` and ``ownerReferences`` that can be read: what cannot counts as absent."""

    def read(name: Whose) -> Mapping[str, Any] | None:
        body = body_of(name)
        if body is None:
            return None
        texts, listed = meta(body).get("annotations"), meta(body).get("ownerReferences")
        annotations = {str(key): text for key, text in texts.items()} if isinstance(texts, Mapping) else {}
        try:
            convert(listed, tuple[OwnerReference, ...])
        except ManifestError:
            listed = []
        return with_meta(body, annotations=annotations, ownerReferences=listed)

    return read


def _above(reference: OwnerReference, namespace: str, body_of: BodyOf) -> Iterator[Mapping[str, Any]]:
    """The owner that is named, then the first that controls it, and so on, as far as they are in the files."""
    from stromboli.controllers.owners import DEEPEST

    above: OwnerReference | None = reference
    for _ in range(DEEPEST):
        if above is None or (body := body_of(_named(above, namespace))) is None:
            return
        yield body
        above = next((one for one in _owners(body) if one.controller), None)


def _owners(body: Mapping[str, Any]) -> tuple[OwnerReference, ...]:
    return convert(_listed(body), tuple[OwnerReference, ...])


def _listed(body: Mapping[str, Any]) -> list[Any]:
    found: list[Any] = meta(body)["ownerReferences"]
    return found


def _named(reference: OwnerReference, namespace: str) -> Whose:
    return reference.api_version, reference.kind, namespace, reference.name
