"""What Kubernetes refuses of the statuses of ResourceClaims, and of what PodGroups say of their claims."""

from __future__ import annotations

from collections.abc import Iterator

from stromboli.cluster.body import Body, part
from stromboli.server.status_errors import Cause, wrong


def devices_of(status: Body) -> frozenset[tuple[str, ...]]:
    """The devices that are allocated to a ResourceClaim with that status."""
    return frozenset(device_of(one) for one in part(status, "allocation", "devices", "results") or ())


def device_of(found: Body) -> tuple[str, ...]:
    """What tells a device from others: driver, pool and name, and its share where it is shared."""
    return tuple(str(found[name]) for name in ("driver", "pool", "device", "shareID") if found.get(name))


def wrong_claim_status(body: Body) -> Iterator[Cause]:
    """What is wrong with the status of a ResourceClaim: drivers tell of allocated devices alone."""
    status = body.get("status") or {}
    allocated = devices_of(status)
    for index, one in enumerate(status.get("devices") or ()):
        if (device := device_of(one)) not in allocated:
            told = "must be an allocated device in the claim"
            yield wrong(f"status.devices[{index}]", "/".join(device), told)


def wrong_group_status(body: Body) -> Iterator[Cause]:
    """What is wrong with the status of a PodGroup: it names the claims of its spec alone."""
    wanted = {one.get("name") for one in part(body, "spec", "resourceClaims") or ()}
    for index, one in enumerate(part(body, "status", "resourceClaimStatuses") or ()):
        if one.get("name") not in wanted:
            told = "must match the name of an entry in `spec.resourceClaims`"
            yield wrong(f"status.resourceClaimStatuses[{index}].name", one.get("name", ""), told)
