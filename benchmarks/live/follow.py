"""Follows the pods of a run: when each was first seen, first seen with a node, first seen running."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import msgspec

from benchmarks.live.load import NAMESPACE
from stromboli.kube.client import Client
from stromboli.kube.informer import Change, Informer
from stromboli.kube.resources import PODS, Raw


class _Name(msgspec.Struct):
    name: str = ""


class _Spec(msgspec.Struct):
    node: str = msgspec.field(default="", name="nodeName")


class _Status(msgspec.Struct):
    phase: str = ""


class Seen(msgspec.Struct):
    """What the measuring looks at of a pod."""

    metadata: _Name = msgspec.field(default_factory=_Name)
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)


_decode = msgspec.json.Decoder(Seen).decode


def _seen(raw: Raw) -> Seen:
    return _decode(raw)


@dataclass
class Times:
    """By pod, the client's clock in seconds when it was first seen at all, with a node, and running."""

    created: dict[str, float] = field(default_factory=dict)
    bound: dict[str, float] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)

    def note(self, change: Change[Seen]) -> None:
        """Take a change in."""
        now, pod = time.time(), change.object
        if pod is None:
            return
        name = pod.metadata.name
        self.created.setdefault(name, now)
        if pod.spec.node:
            self.bound.setdefault(name, now)
        if pod.status.phase in {"Running", "Succeeded"}:
            self.running.setdefault(name, now)


async def until_running(
    client: Client, times: Times, pods: int, limit: float, ended: Callable[[], Sequence[str]]
) -> None:
    """Follow until so many pods run.  Raises TimeoutError after ``limit`` seconds, or once a process has ``ended``."""
    informer = Informer(client, PODS.read_as(_seen), namespace=NAMESPACE, keep=False)
    informer.subscribe(times.note)
    following = asyncio.create_task(informer.run())
    try:
        async with asyncio.timeout(limit):
            while len(times.running) < pods:
                await asyncio.sleep(0.1)
                if ended():
                    raise TimeoutError
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
