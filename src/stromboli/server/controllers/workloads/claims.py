"""ResourceClaims: made from their templates for pods, and free again once their pods are gone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stromboli.cluster.body import Body, changed, meta, part
from stromboli.server.controllers.workloads.objects import PODS, Objects, is_ending
from stromboli.server.storage.store import CollectionName, Store

CLAIMS: Final = ("resource.k8s.io", "resourceclaims")
TEMPLATES: Final = ("resource.k8s.io", "resourceclaimtemplates")
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
POD_CLAIM: Final = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim made for a pod: what the pod calls it."""
_OVER: Final = ("Succeeded", "Failed")


def make_claims(objects: Objects, pod: Body) -> None:
    """Make the claims that a pod wants from templates, and name them in its status.  Raises ApiFailure."""
    statuses = list(part(pod, "status", "resourceClaimStatuses") or ())
    known = {one["name"] for one in statuses}
    own = {part(one, "metadata", "annotations", POD_CLAIM): one for one in objects.owned(pod, CLAIMS)}
    for wanted in () if is_ending(pod) else templated(pod):
        name = wanted["name"]
        if name not in known and (made := own.get(name) or _made(objects, pod, wanted)) is not None:
            statuses.append({"name": name, "resourceClaimName": meta(made)["name"]})
    if len(statuses) > len(known):
        objects.set_status(PODS, pod, changed(pod.get("status") or {}, resourceClaimStatuses=statuses))


def _made(objects: Objects, pod: Body, wanted: Body) -> Body | None:
    template = objects.get(TEMPLATES, meta(pod)["namespace"], wanted["resourceClaimTemplateName"])
    if template is None:
        return None
    given = part(template, "spec", "metadata") or {}
    notes = {**(given.get("annotations") or {}), POD_CLAIM: wanted["name"]}
    metadata = {**given, "generateName": f"{meta(pod)['name']}-{wanted['name']}-", "annotations": notes}
    return objects.create(CLAIMS, pod, metadata, spec=part(template, "spec", "spec") or {})


def sync(objects: Objects, claim: Body) -> None:
    """Free a claim of pods that are gone or over, and of its devices with the last of them.  Raises ApiFailure."""
    users = part(claim, "status", "reservedFor") or []
    staying = [user for user in users if _is_used(objects, claim, user)]
    finalizers = part(claim, "metadata", "finalizers") or []
    if len(staying) < len(users):
        objects.set_status(CLAIMS, claim, {**claim["status"], "reservedFor": staying} if staying else {})
    elif is_ending(claim) and not part(claim, "status", "allocation") and FINALIZER in finalizers:
        kept = [one for one in finalizers if one != FINALIZER]
        objects.change(CLAIMS, claim, {"metadata": {"finalizers": kept}})


def _is_used(objects: Objects, claim: Body, user: Body) -> bool:
    if user.get("resource") != "pods":
        return True
    pod = objects.get(PODS, meta(claim)["namespace"], user.get("name", ""))
    return pod is not None and meta(pod)["uid"] == user.get("uid") and part(pod, "status", "phase") not in _OVER


def templated(pod: Body) -> Iterator[Body]:
    """A pod's claims that are made for it."""
    return (one for one in part(pod, "spec", "resourceClaims") or () if one.get("resourceClaimTemplateName"))


def related(store: Store, collection: CollectionName, body: Body) -> Iterator[tuple[CollectionName, tuple[str, str]]]:
    """What must be looked at after a change of ``body``: the claims of a pod, and pods that wait for a template."""
    if collection == PODS and part(body, "spec", "resourceClaims"):
        namespace = meta(body)["namespace"]
        made = (one.get("resourceClaimName") for one in part(body, "status", "resourceClaimStatuses") or ())
        named = (one.get("resourceClaimName") for one in body["spec"]["resourceClaims"])
        yield from ((CLAIMS, (namespace, name)) for name in (*made, *named) if name)
    for key, entry in store.of(PODS).entries.items() if collection == TEMPLATES else ():
        if any(one["resourceClaimTemplateName"] == meta(body)["name"] for one in templated(entry.body)):
            yield PODS, key
