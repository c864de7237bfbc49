"""ResourceClaims: made from their templates for pods, and free again once their pods are gone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from stromboli.cluster.body import Body, Key, changed, key_of, meta, part
from stromboli.server.controllers.workloads.objects import PODS, Objects, is_ending
from stromboli.server.storage.aside import Place
from stromboli.server.storage.store import Change, CollectionName, Store

CLAIMS: Final = ("resource.k8s.io", "resourceclaims")
TEMPLATES: Final = ("resource.k8s.io", "resourceclaimtemplates")
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
GROUPS: Final = ("scheduling.k8s.io", "podgroups")
POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim made for a pod, or for a PodGroup: what that calls it."""
_OVER: Final = ("Succeeded", "Failed")


def make_claims(objects: Objects, pod: Body) -> None:
    """Make the claims that a pod wants from templates, and name them in its status.  Raises ApiFailure.

    Claims that its PodGroup has, too, are that one's: they are named once the PodGroup's status does.  Until the
    PodGroup is there, it is not known which these are, and none is made.
    """
    group: Body | None = {}
    if group_of(pod):
        group = objects.get(GROUPS, meta(pod)["namespace"], group_of(pod))
    if group is None:
        return
    shared = part(group, "spec", "resourceClaims") or []
    named = {one["name"]: one["resourceClaimName"] for one in _statuses(group) if one.get("resourceClaimName")}

    def claim_of(wanted: Body) -> str:
        if wanted in shared:
            return str(named.get(wanted["name"], ""))
        return _name_of(objects, pod, wanted)

    _name_claims(objects, PODS, pod, claim_of)


def make_shared_claims(objects: Objects, group: Body) -> None:
    """Make the claims that the pods of a PodGroup share from templates, and name them in its status."""
    _name_claims(objects, GROUPS, group, lambda wanted: _name_of(objects, group, wanted))


def group_of(pod: Body) -> str:
    """The name of Kubernetes' own PodGroup that a pod belongs to; empty for none."""
    return str(part(pod, "spec", "schedulingGroup", "podGroupName") or "")


def _statuses(body: Body) -> list[Body]:
    return list(part(body, "status", "resourceClaimStatuses") or ())


def _name_claims(objects: Objects, kind: CollectionName, body: Body, claim_of: Callable[[Body], str]) -> None:
    """Name the claims that an object wants from templates in its status, as far as they are there."""
    statuses = _statuses(body)
    known = {one["name"] for one in statuses}
    for wanted in () if is_ending(body) else templated(body):
        if wanted["name"] not in known and (name := claim_of(wanted)):
            statuses.append({"name": wanted["name"], "resourceClaimName": name})
    if len(statuses) > len(known):
        objects.set_status(kind, body, changed(body.get("status") or {}, resourceClaimStatuses=statuses))


def _name_of(objects: Objects, owner: Body, wanted: Body) -> str:
    """The name of the claim that an object has of its own, made now if need be; empty without a template."""
    own = {part(one, "metadata", "annotations", POD_CLAIM): one for one in objects.owned(owner, CLAIMS)}
    made = own.get(wanted["name"]) or _made(objects, owner, wanted)
    return "" if made is None else str(meta(made)["name"])


def _made(objects: Objects, pod: Body, wanted: Body) -> Body | None:
    template = objects.get(TEMPLATES, meta(pod)["namespace"], wanted["resourceClaimTemplateName"])
    if template is None:
        return None
    given = part(template, "spec", "metadata") or {}
    notes = {**(given.get("annotations") or {}), POD_CLAIM: wanted["name"]}
    metadata = {**given, "generateName": f"{meta(pod)['name']}-{wanted['name']}-", "annotations": notes}
    return objects.create(CLAIMS, pod, metadata, spec=part(template, "spec", "spec") or {})


def sync(objects: Objects, claim: Body) -> None:
    """Free a claim of users that are gone or over, and of its devices with the last of them.  Raises ApiFailure."""
    users = part(claim, "status", "reservedFor") or []
    staying = [user for user in users if _is_used(objects, claim, user)]
    finalizers = part(claim, "metadata", "finalizers") or []
    if len(staying) < len(users):
        objects.set_status(CLAIMS, claim, {**claim["status"], "reservedFor": staying} if staying else {})
    elif is_ending(claim) and not part(claim, "status", "allocation") and FINALIZER in finalizers:
        kept = [one for one in finalizers if one != FINALIZER]
        objects.change(CLAIMS, claim, {"metadata": {"finalizers": kept}})


def _is_used(objects: Objects, claim: Body, user: Body) -> bool:
    if user.get("resource") == "podgroups":
        group = objects.get(GROUPS, meta(claim)["namespace"], user.get("name", ""))
        return group is not None and meta(group)["uid"] == user.get("uid")
    if user.get("resource") != "pods":
        return True
    pod = objects.get(PODS, meta(claim)["namespace"], user.get("name", ""))
    return pod is not None and meta(pod)["uid"] == user.get("uid") and part(pod, "status", "phase") not in _OVER


def templated(body: Body) -> Iterator[Body]:
    """The claims that are made for a pod, or for a PodGroup."""
    return (one for one in part(body, "spec", "resourceClaims") or () if one.get("resourceClaimTemplateName"))


class Members:
    """The pods with claims from templates, by the namespace and the name of Kubernetes' own PodGroup that they name."""

    def __init__(self) -> None:
        self._of: dict[Key, set[Key]] = {}

    def note(self, pod: Body, *, is_gone: bool) -> None:
        """Take in a pod as it is now; which PodGroup it names, and its claims, never change."""
        place, key = (meta(pod)["namespace"], group_of(pod)), key_of(pod)
        known = self._of.get(place, set())
        if is_gone:
            known.discard(key)
        elif group_of(pod) and any(templated(pod)):
            known.add(key)
        if known:
            self._of[place] = known
        else:
            self._of.pop(place, None)

    def of(self, group: Body) -> Iterable[Key]:
        """The pods of a PodGroup."""
        return self._of.get(key_of(group), ())


def related(store: Store, members: Members, collection: CollectionName, change: Change) -> Iterator[Place]:
    """What must be looked at after a change.

    The claims of a pod or PodGroup, what waits for a template, and the pods of a PodGroup that is new or has named a
    claim.
    """
    body = change.entry.body
    if collection == TEMPLATES:
        yield from _waiting(store, meta(body)["name"])
    elif collection in (PODS, GROUPS) and part(body, "spec", "resourceClaims"):
        claims = (one.get("resourceClaimName") for one in (*_statuses(body), *body["spec"]["resourceClaims"]))
        yield from ((CLAIMS, (meta(body)["namespace"], name)) for name in claims if name)
    if collection == GROUPS and (change.before is None or _statuses(change.before.body) != _statuses(body)):
        yield from ((PODS, key) for key in members.of(body))


def _waiting(store: Store, template: str) -> Iterator[Place]:
    """Pods and PodGroups with claims from a template."""
    for kind in (PODS, GROUPS):
        for key, entry in store.of(kind).entries.items():
            if any(one["resourceClaimTemplateName"] == template for one in templated(entry.body)):
                yield kind, key
