"""Nodes that fail: the taints that their state calls for, and when pods have to leave them.  Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from stromboli.cluster.body import Body, changed, meta, part, seconds_of, stamp
from stromboli.filters.taints import CORDON, tolerates
from stromboli.model.spec import Taint, Toleration

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_BY_CONDITION: Final[Mapping[tuple[str, str], str]] = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
"""The taint that a condition calls for."""
_EXPELLING: Final = (NOT_READY, UNREACHABLE)
"""Those that drive pods out too."""
_MANAGED: Final = frozenset(
    [(key, NO_SCHEDULE) for key in (*_BY_CONDITION.values(), CORDON.key)] + [(key, NO_EXECUTE) for key in _EXPELLING]
)
_SILENT: Final = ("NodeStatusUnknown", "Kubelet stopped posting node status.")


def tainted(node: Body, now: float) -> Body:
    """The node with the taints that its conditions and its being cordoned call for, and without those they don't."""
    known = part(node, "spec", "taints") or []
    wanted = list(_wanted(node))
    kept = [one for one in known if _name(one) not in _MANAGED or _name(one) in wanted]
    missing = [name for name in wanted if name not in map(_name, kept)]
    new = [{"key": key, "effect": effect, "timeAdded": stamp(now)} for key, effect in missing]
    if not new and len(kept) == len(known):
        return node
    return {**node, "spec": changed(node.get("spec") or {}, taints=[*kept, *new] or None)}


def _name(taint: Body) -> tuple[str, str]:
    return taint.get("key", ""), taint.get("effect", "")


def _wanted(node: Body) -> Iterator[tuple[str, str]]:
    if part(node, "spec", "unschedulable"):
        yield CORDON.key, NO_SCHEDULE
    for condition in part(node, "status", "conditions") or ():
        key = _BY_CONDITION.get((condition.get("type", ""), condition.get("status", "")))
        if key is not None:
            yield key, NO_SCHEDULE
            if key in _EXPELLING:
                yield key, NO_EXECUTE


def silenced(node: Body, now: float) -> Body:
    """The node as it is when its kubelet is heard of no more: nothing is known of its conditions."""
    reason, message = _SILENT
    told = {"status": "Unknown", "reason": reason, "message": message, "lastTransitionTime": stamp(now)}
    conditions = [
        one if one.get("status") == "Unknown" else {**one, **told} for one in part(node, "status", "conditions") or ()
    ]
    return {**node, "status": {**(node.get("status") or {}), "conditions": conditions}}


class Expulsion(NamedTuple):
    """A taint that drives pods out, and since when it is there (seconds since 1970)."""

    taint: Taint
    since: float


def expulsions(node: Body, since: Mapping[tuple[str, str, str], float], now: float) -> list[Expulsion]:
    """The node's taints that drive pods out; ``since`` says when those came that do not say so themselves."""
    found = []
    for one in part(node, "spec", "taints") or ():
        if one.get("effect") == NO_EXECUTE:
            noted = since.get((meta(node).get("uid", ""), *_name(one)), now)
            found.append(Expulsion(msgspec.convert(one, Taint), seconds_of(one.get("timeAdded")) or noted))
    return found


def leaves_at(pod: Body, driving: Iterable[Expulsion]) -> float | None:
    """When the pod has to go (seconds since 1970): at once where it does not tolerate; None if it may stay."""
    given = part(pod, "spec", "tolerations") or ()
    tolerations = [(msgspec.convert(one, Toleration), one.get("tolerationSeconds")) for one in given]
    times = []
    for taint, since in driving:
        spans = [span for toleration, span in tolerations if tolerates(toleration, taint)]
        limited = [float(span) for span in spans if span is not None]
        if not spans:
            times.append(since)
        elif limited:
            times.append(since + max(0.0, min(limited)))
    return min(times, default=None)
