"""Features that objects use: which of them are done, and which are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from stromboli.api.scheduling import FIFO
from stromboli.cli.linting.findings import Rule, Spot
from stromboli.cli.migrating.bodies import Body, at, title
from stromboli.job_plugins.registry import BUILT_IN

JOB_PLUGINS: Final = frozenset(plugin.name for plugin in BUILT_IN)
COUNTED: Final = ("Queue", "PodGroup", "Job", "CronJob", "JobFlow", "JobTemplate", "HyperNode", "NodeShard")
VOLCANO: Final = ".volcano.sh/"
CLUSTER: Final = "in use"
"""In whose place findings stand that are about all objects together."""


def _jobs(bodies: Iterable[Body]) -> Iterator[tuple[Body, Body]]:
    """Jobs, and the job of each CronJob and JobTemplate, as (the object, the job's spec)."""
    for body in bodies:
        if VOLCANO not in str(body.get("apiVersion", "")):
            continue
        if body.get("kind") in ("Job", "JobTemplate"):
            yield body, at(body, "spec") or {}
        elif body.get("kind") == "CronJob":
            yield body, at(body, "spec", "jobTemplate", "spec") or {}


def unknown_plugins(bodies: Sequence[Body]) -> Iterator[Spot]:
    """Job plugins that are not built in."""
    for body, spec in _jobs(bodies):
        for name in sorted(set(spec.get("plugins") or ()) - JOB_PLUGINS):
            yield Spot(f"job plugin {name} is not built in", object=title(body), path="spec.plugins")


def fifo_queues(bodies: Sequence[Body]) -> Iterator[Spot]:
    """Queues whose field is read here and nowhere there."""
    for body in bodies:
        if body.get("kind") == "Queue" and at(body, "spec", "dequeueStrategy") == FIFO:
            yield Spot("dequeueStrategy: fifo is acted on", object=title(body), path="spec.dequeueStrategy")


def used(bodies: Sequence[Body]) -> Iterator[Spot]:
    """What is there, by kind, with the job plugins that are used."""
    kinds = Counter(str(body.get("kind")) for body in bodies if VOLCANO in str(body.get("apiVersion", "")))
    plugins = Counter(name for _, spec in _jobs(bodies) for name in spec.get("plugins") or () if name in JOB_PLUGINS)
    found = [f"{kinds[kind]} {kind}" for kind in COUNTED if kinds[kind]]
    if found:
        yield Spot(", ".join(found), object=CLUSTER)
    if plugins:
        named = ", ".join(f"{name} ({count})" for name, count in sorted(plugins.items()))
        yield Spot(f"job plugins {named}", object=CLUSTER)


def running(bodies: Sequence[Body]) -> Iterator[Spot]:
    """Pods that the change leaves alone."""
    phases = Counter(
        str(at(body, "status", "phase"))
        for body in bodies
        if body.get("kind") == "Pod" and at(body, "spec", "schedulerName") == "volcano"
    )
    if phases["Running"]:
        yield Spot(f"{phases['Running']} pods run; the change itself restarts and moves none of them", object=CLUSTER)


FEATURE_RULES: Final[tuple[Rule[Sequence[Body]], ...]] = (
    Rule(
        "job-plugin", "error", unknown_plugins, "No pods are made of the job, and its condition says so.",
        "Write it as a Python class and name its folder with --job-plugins-dir; see docs/job-plugins.md.",
    ),
    Rule(
        FIFO, "warning", fifo_queues,
        "A job that waits keeps those behind it waiting; Volcano reads the field nowhere.",
        "Keep it if that is what it is meant for; else remove the field, or write `compat: volcano`.",
    ),
    Rule("in-use", "note", used, "They are read and kept as they stand.", "Nothing."),
    Rule("pods-stay", "note", running, "Pods belong to the API server and their kubelets.", "Nothing."),
)  # fmt: skip
