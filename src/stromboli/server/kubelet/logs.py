"""What simulated containers have written: the text that an annotation of their pod states."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final

from stromboli.cluster.body import Body, meta, part
from stromboli.errors import ApiFailure
from stromboli.server.status_errors import bad_request

LOGS: Final = "simulation.stromboli.dev/logs"
"""Annotation of a pod: what its containers write."""


PAUSE: Final = 0.25
"""Seconds between two looks at a log that is followed."""

Written = Callable[[Body, str], bytes | None]
"""What a pod's container of that name has written, None before it has started."""


def stated(pod: Body, _: str) -> bytes | None:
    """What the annotation says."""
    text = str((meta(pod).get("annotations") or {}).get(LOGS, ""))
    return None if part(pod, "status", "phase") in ("Pending", None) else text.encode()


def log_of(pod: Body, query: Mapping[str, str], written: Written = stated) -> bytes:
    """The log of a pod's container, as ``kubectl logs`` asks for it.  Raises ApiFailure."""
    container = container_of(pod, query.get("container", ""))
    if query.get("previous") in ("true", "1"):  # of a container only the last run is kept
        raise bad_request(f'previous terminated container "{container}" in pod "{meta(pod).get("name", "")}" not found')
    text = written(pod, container)
    if text is None:
        raise _not_yet(pod, container)
    whole = _chosen(text, query)
    return whole if not whole or whole.endswith(b"\n") else whole + b"\n"


def _chosen(text: bytes, query: Mapping[str, str]) -> bytes:
    """The last lines of a text, or its first bytes, as a query wants them."""
    tail, most = _number(query, "tailLines"), _number(query, "limitBytes")
    lines = text.splitlines(keepends=True)
    return b"".join(lines if tail is None else lines[max(len(lines) - tail, 0) :])[:most]


async def followed(
    look: Callable[[], Body | None], query: Mapping[str, str], written: Written, pause: float = PAUSE
) -> AsyncIterator[bytes]:
    """The log of a container as it grows, until the container has ended or its pod, which ``look`` finds, is gone."""
    pod = look()
    if pod is None:
        return
    uid, container = meta(pod).get("uid"), container_of(pod, query.get("container", ""))
    left, known, begun = _number(query, "limitBytes"), b"", False
    while pod is not None and meta(pod).get("uid") == uid:
        ended = _has_ended(pod, container)
        text = written(pod, container) or b""
        news = text[len(known) if text.startswith(known) else 0 :] if begun else _chosen(text, query)
        known, news, begun = text, news[:left], True
        if news:
            yield news
        left = None if left is None else left - len(news)
        if ended or left == 0:
            return
        await asyncio.sleep(pause)
        pod = look()


def _has_ended(pod: Body, container: str) -> bool:
    """Whether the container writes no more."""
    if part(pod, "status", "phase") in ("Succeeded", "Failed"):
        return True
    kinds = ("containerStatuses", "initContainerStatuses")
    statuses = (one for kind in kinds for one in part(pod, "status", kind) or () if one.get("name") == container)
    return any("terminated" in (one.get("state") or {}) for one in statuses)


def container_of(pod: Body, wanted: str) -> str:
    """The container that is asked for, which only a pod of one need not name."""
    name = meta(pod).get("name", "")
    containers = [one["name"] for one in part(pod, "spec", "containers") or ()]
    if wanted and wanted not in (*containers, *(one["name"] for one in part(pod, "spec", "initContainers") or ())):
        raise bad_request(f"container {wanted} is not valid for pod {name}")
    if not wanted and len(containers) > 1:
        raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{' '.join(containers)}]")
    return wanted or containers[0]


def _number(query: Mapping[str, str], name: str) -> int | None:
    text = query.get(name, "")
    return int(text) if text.isdecimal() and len(text) < 19 else None


def _not_yet(pod: Body, container: str) -> ApiFailure:
    name = meta(pod).get("name", "")
    if not part(pod, "spec", "nodeName"):
        return bad_request(f"pod {name} does not have a host assigned")
    return bad_request(f'container "{container}" in pod "{name}" is waiting to start: ContainerCreating')
