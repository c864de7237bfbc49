"""The names by which real pods find each other: a hosts file for each namespace, mounted as /etc/hosts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from stromboli.cluster.body import Body, meta, part

_HEAD: Final = "127.0.0.1\tlocalhost\n"


def hostname(pod: Body) -> str:
    """What the pod calls itself."""
    return str(part(pod, "spec", "hostname") or meta(pod)["name"])


def write(file: Path, pods: Iterable[tuple[Body, str]], services: Iterable[Body]) -> None:
    """Names of pods, each with its address, and of Services with a selector.

    The file stays the same one, as containers that run have it mounted.
    """
    there = list(pods)
    lines = [f"{address}\t{' '.join(_names(pod))}\n" for pod, address in there]
    lines += [line for service in services for line in _of_service(service, there)]
    text = "".join([_HEAD, *lines]).encode()
    at = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        os.pwrite(at, text, 0)  # never empty meanwhile
        os.ftruncate(at, len(text))
    finally:
        os.close(at)


def _names(pod: Body) -> Iterator[str]:
    name, domain = hostname(pod), part(pod, "spec", "subdomain")
    if domain:
        yield from _forms(f"{name}.{domain}", meta(pod)["namespace"])
    yield name


def _forms(name: str, namespace: str) -> tuple[str, ...]:
    return f"{name}.{namespace}.svc.cluster.local", f"{name}.{namespace}.svc", f"{name}.{namespace}", name


def _of_service(service: Body, pods: Iterable[tuple[Body, str]]) -> Iterator[str]:
    selector = part(service, "spec", "selector") or {}
    names = " ".join(_forms(meta(service)["name"], meta(service)["namespace"]))
    for pod, address in pods:
        if selector and selector.items() <= (meta(pod).get("labels") or {}).items():
            yield f"{address}\t{names}\n"
