"""What the pods of a job hold of devices, or wait for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, cast

from stromboli.cli.vcctl.columns import Column, table
from stromboli.cluster.kinds import Pod, ResourceClaim
from stromboli.errors import ApiError
from stromboli.kube.client import Select
from stromboli.kube.resources import PODS, RESOURCES
from stromboli.model.claims import DeviceResult
from stromboli.model.names import JOB_NAME
from stromboli.plugins.deviceshare import Holding, holdings

if TYPE_CHECKING:
    from stromboli.kube.client import Client

MOST_PODS: Final = 64
"""Pods of a job whose devices are listed."""
NOWHERE: Final = "<none>"
COLUMNS: Final = (Column("Pod"), Column("Node"), Column("Device"), Column("Holds"))


async def devices_of(client: Client, job: str, namespace: str) -> list[str]:
    """Lines about what the pods of a job hold of devices; what may not be read is told so in its place."""
    try:
        found = await client.list_all(PODS, namespace, Select(labels=f"{JOB_NAME}={job}"))
    except ApiError as error:
        return [f"Pods cannot be read: {error}"]
    pods = [pod for pod in found if isinstance(pod, Pod)]
    if not any(name for pod in pods for _, name in _claim_names(pod)):
        return held_by(pods, {})
    try:
        claims = cast("list[ResourceClaim]", await client.list_all(RESOURCES["ResourceClaim"], namespace))
    except ApiError as error:
        return [*held_by(pods, {}), f"ResourceClaims cannot be read: {error}"]
    return held_by(pods, {claim.metadata.name: claim for claim in claims})


def _claim_names(pod: Pod) -> Iterator[tuple[str, str]]:
    """The claims of a pod: what the pod calls each, and its name; empty while it has not been made.

    Of a template from which the pod needs no claim the status says so by a row without a name.
    """
    made = {one.name: one.resource_claim_name or "" for one in pod.status.resource_claim_statuses}
    for claim in pod.spec.resource_claims:
        name = claim.resource_claim_name or made.get(claim.name, "")
        if name or claim.name not in made:
            yield claim.name, name


def held_by(pods: Iterable[Pod], claims: Mapping[str, ResourceClaim]) -> list[str]:
    """The lines of a table of what pods hold; ``claims`` by name.  No lines where no pod has devices or claims."""
    ordered = sorted(pods, key=lambda pod: pod.metadata.name)
    rows = [row for pod in ordered[:MOST_PODS] for row in _rows(pod, claims)]
    more = [f"... and {len(ordered) - MOST_PODS} more pods"] if rows and len(ordered) > MOST_PODS else []
    return [*table(COLUMNS, rows).splitlines(), *more] if rows else []


def _rows(pod: Pod, claims: Mapping[str, ResourceClaim]) -> Iterator[tuple[str, ...]]:
    where = pod.metadata.name, pod.spec.node_name or NOWHERE
    for holding in holdings(pod.metadata.annotations, pod.spec):
        yield (*where, holding.device, _amounts(holding))
    for called, name in _claim_names(pod):
        claim = claims.get(name)
        if claim is None:
            yield (*where, NOWHERE, f"claim {name or called}: " + ("not found" if name else "not made yet"))
        elif claim.status.allocation is None:
            yield (*where, NOWHERE, f"claim {name}: not allocated yet")
        else:
            for result in claim.status.allocation.devices.results:
                device = f"{result.driver}/{result.pool}/{result.device}"
                yield (*where, device, f"claim {name}, request {result.request}{_more(result)}")


def _more(result: DeviceResult) -> str:
    """What a claim has of a device that it does not have alone."""
    admin = " (admin access)" if result.admin_access else ""
    share = ", ".join(f"{amount} of {name}" for name, amount in sorted(result.consumed_capacity.items()))
    return f"{admin}: {share}" if share else admin


def _amounts(holding: Holding) -> str:
    parts = [f"{holding.memory} MB"] if holding.memory else []
    parts += [f"{holding.cores} % of its cores"] if holding.cores else []
    parts += [f"a slice {holding.template}"] if holding.template else []
    return ", ".join(parts) or "the whole device"
