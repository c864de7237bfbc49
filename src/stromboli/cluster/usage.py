"""What pods count against a ResourceQuota; PodGroups that controllers make carry it as their minResources."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from stromboli.model.names import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from stromboli.model.resources.request import limit, pod_request
from stromboli.model.resources.resource import Resource
from stromboli.model.spec import Amount, PodSpec

LIMITED: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
"""The only resources whose limits a quota counts; of extended resources it counts requests, which equal the limits."""


def quota_usage(pods: Iterable[tuple[PodSpec, int]]) -> dict[str, Amount]:
    """Resource list of so many pods of each spec together, under the names that quotas use.

    Requests count under their bare name and under ``requests.``, the limits of :data:`LIMITED` under ``limits.``, pods
    as ``pods`` and ``count/pods``: what Kubernetes' quota evaluator counts, and in addition the bare names of extended
    resources.  Raises :class:`~stromboli.errors.QuantityError`.
    """
    requests, limits, count = Resource(), Resource(), 0
    for spec, number in pods:
        count += number
        requests.add(pod_request(spec).multi(number))
        limits.add(limit(spec).multi(number))
    asked, bounds = _named(requests), _named(limits)
    usage: dict[str, Amount] = {**asked}
    usage.update({f"requests.{name}": amount for name, amount in asked.items()})
    usage.update({f"limits.{name}": amount for name, amount in bounds.items() if name in LIMITED})
    return {**usage, PODS: str(count), f"count/{PODS}": str(count)}


def _named(resource: Resource) -> dict[str, str]:
    """``resource`` as a list without the pods and without what is zero."""
    return {name: amount for name, amount in resource.to_list().items() if name != PODS and amount != "0"}
