"""Everything about a job, as ``job view`` shows it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from stromboli.api.batch import Job, Task
from stromboli.cli.vcctl.columns import age, plain
from stromboli.model.values.times import seconds

Lines = Iterator[tuple[int, str]]
"""Lines with their indents, in levels of two blanks."""


def view_of(job: Job, events: Iterable[Mapping[str, Any]], now: float, devices: Sequence[str] = ()) -> str:
    """The whole view, as of ``now`` in seconds since 1970; ``devices`` are lines about what its pods hold of them."""
    lines = [*_head(job), *_spec(job), *_status(job), *_devices(devices), *_events(events, now)]
    return "\n".join(f"{'  ' * level}{plain(text)}".rstrip() for level, text in lines)


def _head(job: Job) -> Lines:
    meta = job.metadata
    yield 0, f"Name:       {meta.name}"
    yield 0, f"Namespace:  {meta.namespace}"
    yield 0, f"Labels:     {_texts(meta.labels)}"
    yield 0, f"Annotations:{_texts(meta.annotations)}"
    yield 0, f"API Version:{job.api_version}"
    yield 0, f"Kind:       {job.kind}"
    yield 0, "Metadata:"
    yield 1, f"Creation Timestamp: {meta.creation_timestamp or ''}"
    yield 1, f"Generate Name:      {meta.generate_name}"
    yield 1, f"Generation:         {meta.generation}"
    yield 1, f"Resource Version:   {meta.resource_version}"
    yield 1, f"UID:                {meta.uid}"


def _texts(texts: Mapping[str, str]) -> str:
    return json.dumps(dict(texts)) if texts else "<none>"


def _spec(job: Job) -> Lines:
    spec = job.spec
    yield 0, "Spec:"
    yield 1, f"Min Available:      {spec.min_available}"
    yield 1, f"Queue:              {spec.queue}"
    if spec.plugins:
        yield 1, "Plugins:"
        yield from ((2, f"{name}: {' '.join(arguments)}") for name, arguments in spec.plugins.items())
    yield 1, f"Scheduler Name:     {spec.scheduler_name}"
    yield 1, "Tasks:"
    for task in spec.tasks:
        yield from _task(task)


def _task(task: Task) -> Lines:
    yield 2, f"Name: {task.name}"
    yield 2, f"Replicas: {task.replicas}"
    if task.min_available is not None:
        yield 2, f"Min Available: {task.min_available}"
    yield 2, "Template:"
    spec: Any = task.template.get("spec") or {}
    yield 3, "Containers:"
    for container in spec.get("containers") or []:
        yield from _container(container)
    yield 3, f"Restart Policy: {spec.get('restartPolicy') or ''}"


def _container(container: Mapping[str, Any]) -> Lines:
    yield 4, f"Name:  {container.get('name') or ''}"
    yield 4, f"Image: {container.get('image') or ''}"
    if container.get("command"):
        yield 4, f"Command: {' '.join(container['command'])}"
    resources = container.get("resources") or {}
    for title in ("Limits", "Requests"):
        amounts = resources.get(title.lower()) or {}
        if amounts:
            yield 4, f"{title}:"
            yield from ((5, f"{name}: {amount}") for name, amount in amounts.items())


def _status(job: Job) -> Lines:
    status = job.status
    yield 0, "Status:"
    for title, number in (
        ("Succeeded", status.succeeded),
        ("Pending", status.pending),
        ("Running", status.running),
        ("Failed", status.failed),
        ("Terminating", status.terminating),
        ("Unknown", status.unknown),
        ("RetryCount", status.retry_count),
        ("Min Available", status.min_available),
        ("Version", status.version),
    ):
        if number:
            yield 1, f"{title + ':':<15}{number}"
    yield 1, "State:"
    yield 2, f"Phase: {status.state.phase}"
    if status.controlled_resources:
        yield 1, "Controlled Resources:"
        yield from ((2, f"{name}: {text}") for name, text in status.controlled_resources.items())
    if status.conditions:
        yield 1, "Conditions:"
        yield 2, f"{'Status':<15}TransitionTime"
        yield from ((2, f"{row.status:<15}{row.last_transition_time or ''}") for row in status.conditions)


def _devices(lines: Sequence[str]) -> Lines:
    if lines:
        yield 0, "Devices:"
        yield from ((1, line) for line in lines)


def _events(events: Iterable[Mapping[str, Any]], now: float) -> Lines:
    rows = sorted(events, key=lambda event: str(event.get("lastTimestamp") or ""))
    if not rows:
        yield 0, "Events:     <none>"
        return
    yield 0, "Events:"
    yield 0, f"{'Type':<10}{'Reason':<20}{'Age':<22}{'From':<24}Message"
    for event in rows:
        source = (event.get("source") or {}).get("component") or event.get("reportingComponent") or ""
        kind, reason, message = (event.get(name) or "" for name in ("type", "reason", "message"))
        yield 0, f"{kind:<10}{reason:<20}{_when(event, now):<22}{source:<24}{message}"


def _when(event: Mapping[str, Any], now: float) -> str:
    """How long ago an event was told, and how often since when if that is more than once."""
    first, last = (_ago(event.get(name), now) for name in ("firstTimestamp", "lastTimestamp"))
    return f"{last} (x{event['count']} over {first})" if (event.get("count") or 1) > 1 else last


def _ago(stamp: str | None, now: float) -> str:
    then = seconds(stamp, "lastTimestamp")
    return age(now - then) if then else "<unknown>"
