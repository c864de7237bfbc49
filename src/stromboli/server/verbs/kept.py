"""What a change leaves as it was, whatever the request says."""

from __future__ import annotations

from typing import Final

from stromboli.cluster.body import Body, changed, meta, with_meta
from stromboli.server.schema.claim_statuses import device_of, devices_of
from stromboli.server.schema.resources import Resource

CLAIMS: Final = ("resource.k8s.io", "resourceclaims")
_KEPT: Final = (
    "name", "namespace", "uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds",
    "generateName",
)  # fmt: skip
"""Metadata that no request changes."""


def with_kept_meta(resource: Resource, old: Body, body: Body, subresource: str) -> Body:
    """The metadata that no request changes stays as it was."""
    if subresource and resource.custom:
        return {**body, "metadata": meta(old)}
    kept = {name: meta(old).get(name) for name in _KEPT}
    if "deletionTimestamp" in meta(old):
        # No finalizer comes to an object that is being deleted.
        known = frozenset(meta(old).get("finalizers") or ())
        kept["finalizers"] = [name for name in meta(body).get("finalizers") or () if name in known] or None
    if subresource:
        kept["ownerReferences"] = meta(old).get("ownerReferences")
    return with_meta(body, **kept, selfLink=None)


def with_kept_parts(resource: Resource, old: Body, body: Body, subresource: str) -> Body:
    """A subresource changes the status alone; everything else of the object stays."""
    if not subresource:
        return body
    status = body.get("status")
    if resource.collection == CLAIMS and status:
        status = _without_freed_devices(old.get("status") or {}, status)
    return changed({**old, "metadata": meta(body)}, status=status)


def _without_freed_devices(old: Body, status: Body) -> Body:
    """The status of a ResourceClaim without what is said of devices that it had until this very write."""
    freed = devices_of(old) - devices_of(status)
    told = status.get("devices") or ()
    return changed(status, devices=[one for one in told if device_of(one) not in freed] or None)


def with_kept_status(resource: Resource, old: Body, body: Body) -> Body:
    """The status stays as it was where it has a subresource of its own."""
    if "status" in resource.subresources:
        return changed(body, status=old.get("status"))
    return body


def counted(resource: Resource, old: Body, body: Body) -> Body:
    """The generation goes up where anything but metadata and status differs."""
    generation = meta(old).get("generation")
    aside = ("metadata", "status", "apiVersion", "kind")
    differs = {k: v for k, v in body.items() if k not in aside} != {k: v for k, v in old.items() if k not in aside}
    if generation is None or not differs:
        return body
    return with_meta(body, generation=generation + 1)
